"""What people mention in sentences: "RTX 3090", "torch 2.0.1", "driver 535.54", "on Windows 11".

A name in a sentence is the least reliable source, and a version counts only if the text names no
other one.
"""

import functools
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property

from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Pasted
from gpucheck.facts.system import Pci, PciGpu, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.source_code import is_code
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.tables.gpus import GpuProducts, PciDevices, plain_product
from gpucheck.tables.jetson import Jetpacks
from gpucheck.ticket.readers._fields import cannot_import_torch, read_conda_package
from gpucheck.ticket.readers.base import Machine

NAME = say("free text")
_SYSTEM_WORDS = (
    "mac", "os x", "osx", "apple silicon", "/users/", "win", ":\\", "ubuntu", "debian", "centos",
    "rhel", "fedora", "arch linux", "manjaro", "rocky",
)  # fmt: skip
_TORCH_WORDS = (*(f"torch{sign}" for sign in " \t=:v`'\"*12版为是"), "torch.__version__")
"""The words before a release: "torch" alone occurs in every path of a traceback."""
_NOT_FOUND_WORDS = ("no matching distribution found for torch", "satisfies the requirement torch")
_AVAILABLE_WORDS = (
    "available", "可用", "not used", "not detected", "not found", "initialization",
    "0 active drivers", "found no cuda devices",
)  # fmt: skip
MARKS = ("",)  # any text may mention something
RANK = 50  # prose comes last: people write what they believe they have
_FLAGS = re.IGNORECASE | re.ASCII  # a Chinese character beside a name is no part of it

# "torch 2.1" in prose: not as a part of a path or another package, and not followed by a suffix
# that would make it a file name.
_TORCH = re.compile(
    r"(?<![\w/.-])(?:py)?torch(?:\.__version__)?(?: version| ver\.?|版本)?[\s=:v`'\"*为是]{0,6}"
    r"(\d\.\d{1,2}(?:\.\d{1,2})?(?:[+-](?:cu\d{2,3}|cpu|rocm[\d.]{1,5}))?)(?!\w|\.\w|-\w)",
    _FLAGS,
)
_ALONE = re.compile(r"^\W{0,8}([12]\.\d{1,2}\.\d{1,2}\+(?:cu\d{2,3}|cpu))\W{0,8}$", _FLAGS)
"""A line that is only a release with its CUDA is what ``print(torch.__version__)`` prints."""
_CONDA = re.compile(
    r"(?<![\w/.-])pytorch[=\s]{1,6}(\d\.\d{1,2}\.\d{1,2})[=_\s]{1,6}"
    r"((?:py\d\.?\d{1,2}_)?(?:cuda\d|cpu)[\w.]{0,40})",
    _FLAGS,
)
"""A release with conda's build string: ``pytorch 0.4.1_cuda9.2_cudnn7.1.4``."""
_PIP = re.compile(
    r"\bpip[23]?(?:\.\d{1,2})? install\b(?:\s[^\s`]{1,60}){0,8}?"
    r"\storch(?:={2,3}[\d.]{3,8})?(?=[\s`]|$)"
)
_OTHER_INDEX = (" -f ", "--find-links", "index-url", " -i ", "--pre")
"""In a pip command these select other wheels than PyPI's."""
_DRIVER = re.compile(
    r"(?:driver(?: version)?|驱动(?:版本)?)[\s=:`*为是]{0,4}"
    r"v?(\d{3}\.\d{2,3}(?:\.\d{2})?)(?!\w|\.\w)",
    _FLAGS,
)
_SYSTEMS = {
    "macos": re.compile(
        r"\b(?:mac ?os|macbook|mac (?:mini|pro|studio|m[1-5])|imac|os ?x|apple silicon"
        r"|on (?:an? |my |the )?mac)\b|(?<![:\w])/Users/\w",
        _FLAGS,
    ),
    "windows": re.compile(
        r"\b(?:windows (?:7|8|10|11|server|home|pro)|win ?1[01]\b|win32\b|win_amd64)|^[A-Z]:\\",
        _FLAGS,
    ),
    "linux": re.compile(
        r"\b(?:ubuntu|debian|centos|rhel|fedora|arch linux|manjaro|rocky)\b", _FLAGS
    ),
}
_JETSON = re.compile(
    r"\bjetson(?: (?:agx )?(?:nano|tx[12]|xavier(?: nx)?|orin(?: nano| nx)?|thor))?", _FLAGS
)
_JETPACK = re.compile(r"\bjetpack(?: sdk)?[ :=-]{1,2}v?(\d(?:\.\d){1,2})(?![\w.]\w)", _FLAGS)
_BOARD = re.compile(r"\b(?:orin|xavier|thor|jetson nano|jetson tx2)\b", _FLAGS)
# What should be the case is no answer, so will, should, would and must in between rule it out.
_AVAILABLE = re.compile(
    r"(?:is_available(?:\(\))?\W{0,6}|CUDA (?:is )?available\W{1,4})"
    r"(?!.{0,20}\b(?:will|should|would|must)\b).{0,24}?(?<![A-Za-z])(true|false)(?![A-Za-z])",
    re.IGNORECASE,
)
_FALSE = re.compile(r"(?<![A-Za-z])False(?![A-Za-z])|[Tt]orch is not able to use GPU")
_ANSWER = re.compile(r"\W{0,8}(?:is |returns? |gives? |->)?\W{0,4}(true|false)\b", re.IGNORECASE)
_CONDITION = re.compile(r"\s{0,60}(?:if|elif|while|assert|return|raise)\s")
"""The start of a script line that only tests something."""
_NOT_AVAILABLE = re.compile(
    r"CUDA (?:is |was )?(?:not|un) ?available|cuda.{0,12}不可用"
    r"|GPU (?:is )?not (?:available|used|detected|found)"
    r"|CUDA (?:driver )?initialization(?: failed|:)"
    # In the words of Triton (its driver.py) and of DeepSpeed (its builder.py and runner.py).
    r"|\b0 active drivers \(|found no CUDA devices\b|no GPU resources available",
    _FLAGS,
)
_MOST = 200
"""Maximum number of lines with one word that are examined."""
_LONGEST = 400
"""Longer lines are program output and not sentences."""

_BRANDS = ("rtx", "gtx", "geforce gt", "tesla", "quadro", "titan", "gt ")
_BRANDED = (
    r"(?:RTX|GTX|GT)\s?-?(?:PRO )?(?:A?\d{3,4})\s?(?:Ti\b|SUPER\b)?"
    r"|Quadro [A-Z]{0,3}\s?\d{3,4}|Tesla [A-Z]\d{1,3}|TITAN (?:Xp|X|V|RTX)|RTX A\d{4}"
)
_END = r"(?!\w|\.\w|-\w{0,3}\.)"  # not within a longer name, a version or a file name
_SERIES = re.compile(r"(RTX|GTX|GT)[ -]?(?=\d)", _FLAGS)
_VARIANT = re.compile(r"(?<=\d)\s?(Ti|SUPER)$", _FLAGS)

_MAKERS = ("nvidia ", "tesla ")
_MODEL = re.compile(r"(?:rtx )?([abd-z][a-z]?[0-9]{1,4}[a-z]?)(?= |$)")
"""The first word of a product, or the word after "RTX". Errors of Microsoft's compiler have numbers
like C2050, as old models do."""
_GEFORCE = re.compile(r"geforce rtx ([1-9]0[1-9]0)$")
_LATEST_YEAR = 2079
"""A smaller number may be the year of a date."""
# Models such as A40 or L4: so short that they need a brand or the word GPU beside them.
_SHORT, _SHORTEST = 3, 2
_OF_GPUS = ("gpu", "nvidia", "tesla", "cuda", "card", "node", "卡")
"""A line with one of these is about GPUs."""
# Numbers of a hexadecimal dump look like models (4090).
_OF_DUMP = re.compile(r"(?<![\w/.:-])[0-9a-fA-F]{4}(?![\w/.:-])")
_DUMPED = 6
"""Groups of four hexadecimal digits that make a line one of a dump: its 2080 is no RTX 2080."""
_TIMES = ("x", "*", "\u00d7")


def read(text: Text, machine: Machine) -> None:
    """Note GPUs, one release of torch, one of the driver, the system, and whether CUDA works."""
    if not machine.items(Nvml, "gpus") and not machine.items(Pci, "gpus"):
        _gpus(text, machine)
    if not machine.knows(TorchBuild, "version"):
        _conda(text, machine)
    found = _agreed(_TORCH, _lines(text, *_TORCH_WORDS), _not_found(text))
    if found is None and not machine.knows(TorchBuild, "version"):
        found = _agreed(_ALONE, _lines(text, "+cu", "+cpu"))
    if found is not None:
        _torch(*found, machine, imports=not cannot_import_torch(text))
    if machine.knows(TorchBuild, "version") and not machine.knows(TorchBuild, "installer"):
        _installer(text, machine)
    found = _agreed(_DRIVER, _lines(text, "driver", "驱动"))
    if found is not None and not machine.knows(Nvml, "driver_release"):
        machine.fill(Nvml, "driver_release", *found)
    if not machine.knows(System, "os"):
        _system(text, machine)
    _board(text, machine)
    if not machine.knows(Pasted, "cuda_available"):
        _available(text, machine)


def _lines(text: Text, *words: str) -> Iterator[Line]:
    for index in text.find(*words, most=_MOST):
        line = text.lines[index]
        if len(line.text) <= _LONGEST:
            yield line


def _gpus(text: Text, machine: Machine) -> None:
    names = gpu_names(machine.tables)
    for line in _lines(text, *names.marks(text.lower)):
        for name in names.named(line.text):
            gpu = machine.item(Pci, "gpus", PciGpu, name.lower(), line)
            gpu.fill("product", name, line.source)


def _not_found(text: Text) -> set[str]:
    """Return the releases of torch that an installer did not find; they are not installed."""
    words: tuple[str, ...] = _NOT_FOUND_WORDS
    if text.holds("packagesnotfounderror"):
        words = (*words, "- pytorch")  # conda lists them on the following lines
    lines = _lines(text, *words)
    return {found[1] for line in lines for found in _TORCH.finditer(line.text)}


def _agreed(
    pattern: re.Pattern[str], lines: Iterator[Line], but: Container[str] = ()
) -> tuple[str, Line] | None:
    """Return a release on which all mentions agree, and the first line that names it."""
    found = [
        (match[1].replace("-", "+"), line)
        for line in lines
        for match in pattern.finditer(line.text)
        if match[1] not in but
    ]
    return found[0] if len({release for release, _ in found}) == 1 else None


def _conda(text: Text, machine: Machine) -> None:
    """Take the first release that is followed by conda's build string."""
    for line in _lines(text, "_cuda", "_cpu", "=cuda", "=cpu", " cpu_"):
        found = _CONDA.search(line.text)
        if found is not None:
            read_conda_package(["pytorch", *found.groups()], line, machine)
            return


def _torch(release: str, line: Line, machine: Machine, *, imports: bool) -> None:
    """Note the release; it is installed only if no Python lacked it."""
    machine.fill(TorchBuild, "version", release, line)
    if imports:
        machine.fill(TorchBuild, "installed", value=True, line=line)
    by_pip = "pip" in line.text and "install" in line.text
    if by_pip and "download.pytorch.org/whl/c" not in line.text:
        machine.fill(TorchBuild, "installer", "pip", line)


def _installer(text: Text, machine: Machine) -> None:
    """Note pip if its plain command occurs in the text and no other way to install torch does."""
    lines = [line for line in _lines(text, "install ") if "torch" in line.text]
    if any(
        "conda" in line.text or any(map(line.text.__contains__, _OTHER_INDEX)) for line in lines
    ):
        return
    line = next((line for line in lines if _PIP.search(line.text)), None)
    if line is not None:
        machine.fill(TorchBuild, "installer", "pip", line)


def _system(text: Text, machine: Machine) -> None:
    lines = list(_lines(text, *_SYSTEM_WORDS))
    named = {
        name: line
        for name, pattern in _SYSTEMS.items()
        for line in reversed(lines)
        if pattern.search(line.text)
    }
    if len(named) == 1:
        ((name, line),) = named.items()
        machine.fill(System, "os", name, line)
    for line in _lines(text, "jetson"):
        found = _JETSON.search(line.text)
        if found is not None:
            machine.fill(System, "jetson", found[0], line)
            return


def _board(text: Text, machine: Machine) -> None:
    """Note the system and the GPU of a Jetson that is named together with its JetPack."""
    if not machine.knows(System, "l4t"):
        releases = {
            found[1]: line
            for line in _lines(text, "jetpack")
            for found in _JETPACK.finditer(line.text)
        }
        rows = [machine.tables.get(Jetpacks).of_jetpack(release) for release in releases]
        if len(rows) != 1 or rows[0] is None:
            return
        machine.fill(System, "l4t", rows[0].l4t, next(iter(releases.values())))
    if machine.items(Nvml, "gpus") or machine.items(Pci, "gpus"):
        return
    boards = {
        found[0].capitalize(): line
        for line in _lines(text, "orin", "xavier", "thor", "jetson nano", "jetson tx2")
        for found in _BOARD.finditer(line.text)
    }
    if len(boards) == 1:
        ((name, line),) = boards.items()
        machine.item(Pci, "gpus", PciGpu, name, line).fill("product", name, line.source)
        if not machine.knows(System, "jetson"):
            machine.fill(System, "jetson", name, line)


def _available(text: Text, machine: Machine) -> None:
    """Take the result of ``torch.cuda.is_available()``; if there are both, the False."""
    answers: list[tuple[bool, Line]] = []
    for index in text.find(*_AVAILABLE_WORDS, most=_MOST):
        line = text.lines[index]
        found = _AVAILABLE.search(line.text)
        if found is None and "is_available" in line.text:
            found = _answer_below(text.after(index, 1))
        if found is not None and _CONDITION.match(line.text):
            continue
        if found is not None:
            differs = _FALSE.search(line.text, found.end()) is not None
            answers.append((found[1].lower() == "true" and not differs, line))
        elif _NOT_AVAILABLE.search(line.text) and not is_code(text, index):
            answers.append((False, line))
    if answers:
        machine.fill(Pasted, "cuda_available", *min(answers, key=lambda answer: answer[0]))


def _answer_below(lines: Sequence[Line]) -> re.Match[str] | None:
    return _ANSWER.match(lines[0].text) if lines else None


# The brand of most products is named with them: "RTX 3060", "Quadro P620". A data-centre GPU goes
# by its model alone (H100, GB300), and so does one of the "RTX A" series (A6000). A GeForce is
# often called by its number (4090).
_BEFORE = (*_TIMES, *(f"{marker} " for marker in _TIMES), " on ", " using ", " my ")


class GpuNames:
    """Finds names of GPUs in sentences.

    A model of two characters (T4) counts directly after "NVIDIA" or before "GPU". One of three
    (H20) counts in a line about GPUs or about a number of them. A longer one counts anywhere.
    """

    def __init__(self, models: Iterable[str], numbers: Iterable[str]) -> None:
        every = sorted(models, key=lambda model: (-len(model), model))
        self._words = [model for model in every if len(model) > _SHORTEST]
        self._pairs = [model for model in every if len(model) <= _SHORTEST]
        self._numbers = tuple(sorted(numbers))
        self._long = (*_BRANDS, *(word for word in self._words if len(word) > _SHORT))

    def marks(self, lower: str) -> tuple[str, ...]:
        """Return literals; every line of a lower-case text that names a GPU has one of them."""
        is_short = any(check.search(lower) for check in self._short_checks)
        return self._marks[self._number_check.search(lower) is not None, is_short]

    @cached_property
    def _marks(self) -> dict[tuple[bool, bool], tuple[str, ...]]:
        """The literals, by whether the text has four digits of a model, and a short model."""
        short = [word for word in self._words if len(word) == _SHORT]
        short += [f"nvidia {pair}" for pair in self._pairs] + [
            f"{pair} gpu" for pair in self._pairs
        ]
        return {
            (number, shorter): (
                *self._long, *(self._numbers if number else ()), *(short if shorter else ()),
            )
            for number in (False, True) for shorter in (False, True)
        }  # fmt: skip

    @cached_property
    def _number_check(self) -> re.Pattern[str]:
        """A pattern for a number; it begins with a plain character, which ``re`` finds quickly."""
        first, third = ("".join({number[at] for number in self._numbers}) for at in (0, 2))
        return re.compile(f"0(?<=[{first}]0)[{third}]0")

    @cached_property
    def _short_checks(self) -> list[re.Pattern[str]]:
        """Patterns for short models, joined, because searching for each of them takes longer.

        They begin with plain characters, which ``re`` finds quickly.
        """
        ends: dict[str, list[str]] = {}
        for word in self._words:
            if len(word) == _SHORT:
                ends.setdefault(word[-1], []).append(word)
        pairs = "|".join(self._pairs)
        patterns = [
            rf"{end}(?<=(?<!\w)(?:{'|'.join(models)}))(?!\w)" for end, models in ends.items()
        ]
        patterns += [f"nvidia (?:{pairs})", f" gpu(?<=(?:{pairs}) gpu)"]
        return [re.compile(pattern, re.ASCII) for pattern in patterns]

    @cached_property
    def _named(self) -> re.Pattern[str]:
        words, pairs = "|".join(self._words), "|".join(self._pairs)
        return re.compile(
            rf"(?<![\w/.#-])(?:(?:NVIDIA )?(?:GeForce )?({_BRANDED}|{words})"
            rf"|NVIDIA ({pairs})|({pairs})(?= GPU)){_END}",
            _FLAGS,
        )

    @cached_property
    def _bare(self) -> re.Pattern[str]:
        return re.compile(
            rf"(?<![\w./:-])(?:NVIDIA )?({'|'.join(self._numbers)})\s?(Ti|SUPER)?(?![\w./:])",
            _FLAGS,
        )

    def named(self, line: str) -> Iterator[str]:
        """Yield the name of each GPU in a line, as it is sold."""
        for found in self._named.finditer(line):
            name = found[found.lastindex or 0]
            if len(name) != _SHORT or _is_of_gpus(line.lower(), found.start(), found.end()):
                yield _as_sold(name)
        if len(_OF_DUMP.findall(line)) >= _DUMPED:
            return
        for found in self._bare.finditer(line):
            yield _as_sold(" ".join(filter(None, found.groups())))


def _is_of_gpus(line: str, start: int, end: int) -> bool:
    """Whether a line, or the words around a model, are about GPUs: "8 * H20", "on H20"."""
    counted = line[:start].endswith(_BEFORE) or line[end:].lstrip().startswith(_TIMES)
    return counted or any(word in line for word in _OF_GPUS)


def _as_sold(name: str) -> str:
    """Return ``RTX 3090 Ti`` for ``rtx3090ti`` and for a bare ``3090 ti``."""
    name = " ".join(name.split())
    name = _SERIES.sub(lambda found: found[1].upper() + " ", name)
    name = _VARIANT.sub(lambda found: " Ti" if found[1].lower() == "ti" else " SUPER", name)
    return f"RTX {name}" if name[0].isdecimal() else name


@functools.lru_cache(maxsize=4)
def gpu_names(tables: Tables) -> GpuNames:
    """Return the names that these tables give."""
    products = tables.get(GpuProducts).rows
    numbers = {found[1] for row in products if (found := _GEFORCE.match(row.product.lower()))}
    return GpuNames(_models(tables), (number for number in numbers if int(number) > _LATEST_YEAR))


def _models(tables: Tables) -> set[str]:
    """Return the models that name a product without its brand."""
    products = tables.get(GpuProducts).rows
    branded = {plain_product(row.product) for row in products if row.segment != "data center"}
    names = [
        *(row.product for row in products),
        *(name for row in tables.get(PciDevices).rows for name in row.products),
    ]
    return {
        found[1]
        for name in names
        if name.lower().startswith(_MAKERS) and "Laptop" not in name
        if (found := _MODEL.match(plain_product(name).removeprefix("tesla ")))
        if found[1] not in branded
    }
