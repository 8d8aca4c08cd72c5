"""What people mention in sentences: "RTX 3090", "torch 2.0.1", "driver 535.54", "on Windows 11".

A name in a sentence is the least reliable source, and a version counts only if the text names no
other one.
"""

import re
from collections.abc import Container, Iterator, Sequence

from gpucheck.facts.nvml import Nvml
from gpucheck.facts.pasted import Pasted
from gpucheck.facts.pci import Pci, PciGpu
from gpucheck.facts.system import System
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.source_code import is_code
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers._conda import read_conda_package
from gpucheck.ticket.readers._gpu_names import gpu_names
from gpucheck.ticket.readers._said import cannot_import_torch
from gpucheck.ticket.readers.base import Machine

NAME = say("free text")
_SYSTEM_WORDS = (
    "mac", "os x", "osx", "apple silicon", "/users/", "win", ":\\", "ubuntu", "debian", "centos",
    "rhel", "fedora", "arch linux", "manjaro", "rocky",
)  # fmt: skip
_TORCH_WORDS = (*(f"torch{sign}" for sign in " \t=:v`'\"*"), "torch.__version__")
"""The words before a release: "torch" alone occurs in every path of a traceback."""
_NOT_FOUND_WORDS = ("no matching distribution found for torch", "satisfies the requirement torch")
_AVAILABLE_WORDS = (
    "available", "可用", "not used", "not detected", "not found", "initialization",
)  # fmt: skip
MARKS = ("",)  # any text may mention something
RANK = 50  # prose comes last: people write what they believe they have

_TORCH = re.compile(
    r"(?<![\w/.-])(?:py)?torch(?:\.__version__)?(?: version| ver\.?)?[\s=:v`'\"*]{1,6}"
    r"(\d\.\d{1,2}(?:\.\d{1,2})?(?:\+(?:cu\d{2,3}|cpu|rocm[\d.]{1,5}))?)(?![\w.]|-\w)",
    re.IGNORECASE,
)
_CONDA = re.compile(
    r"(?<![\w/.-])pytorch[=\s]{1,6}(\d\.\d{1,2}\.\d{1,2})[=_\s]{1,6}"
    r"((?:py\d\.?\d{1,2}_)?(?:cuda\d|cpu)[\w.]{0,40})",
    re.IGNORECASE,
)
"""A release with conda's build string: ``pytorch 0.4.1_cuda9.2_cudnn7.1.4``."""
_PIP = re.compile(
    r"\bpip[23]?(?:\.\d{1,2})? install\b(?:\s[^\s`]{1,60}){0,8}?"
    r"\storch(?:={2,3}[\d.]{3,8})?(?=[\s`]|$)"
)
_OTHER_INDEX = (" -f ", "--find-links", "index-url", " -i ", "--pre")
"""In a pip command these select other wheels than PyPI's."""
_DRIVER = re.compile(
    r"driver(?: version)?[\s=:`*]{1,4}v?(\d{3}\.\d{2,3}(?:\.\d{2})?)(?![\w.])", re.IGNORECASE
)
_SYSTEMS = {
    "macos": re.compile(
        r"\b(?:mac ?os|macbook|mac (?:mini|pro|studio|m[1-5])|imac|os ?x|apple silicon"
        r"|on (?:an? |my |the )?mac)\b|(?<![:\w])/Users/\w",
        re.IGNORECASE,
    ),
    "windows": re.compile(
        r"\b(?:windows (?:7|8|10|11|server|home|pro)|win ?1[01]\b|win32\b|win_amd64)|^[A-Z]:\\",
        re.IGNORECASE,
    ),
    "linux": re.compile(
        r"\b(?:ubuntu|debian|centos|rhel|fedora|arch linux|manjaro|rocky)\b", re.IGNORECASE
    ),
}
_JETSON = re.compile(
    r"\bjetson(?: (?:agx )?(?:nano|tx[12]|xavier(?: nx)?|orin(?: nano| nx)?|thor))?", re.IGNORECASE
)
_AVAILABLE = re.compile(
    r"(?:is_available(?:\(\))?\W{0,6}|CUDA (?:is )?available\W{1,4})"
    r"(?!.{0,20}\b(?:will|should|would|must)\b).{0,24}?(?<![A-Za-z])(true|false)(?![A-Za-z])",
    re.IGNORECASE,
)
_FALSE = re.compile(r"(?<![A-Za-z])False(?![A-Za-z])")
_ANSWER = re.compile(r"\W{0,8}(?:is |returns? |gives? |->)?\W{0,4}(true|false)\b", re.IGNORECASE)
_CONDITION = re.compile(r"\s{0,60}(?:if|elif|while|assert|return|raise)\s")
"""The start of a script line that only tests something."""
_NOT_AVAILABLE = re.compile(
    r"CUDA (?:is |was )?(?:not|un) ?available|cuda.{0,12}不可用"
    r"|GPU (?:is )?not (?:available|used|detected|found)"
    r"|CUDA (?:driver )?initialization(?: failed|:)",
    re.IGNORECASE,
)
_MOST = 200
"""Maximum number of lines with one word that are examined."""
_LONGEST = 400
"""Longer lines are program output and not sentences."""


def read(text: Text, machine: Machine) -> None:
    """Note GPUs, one release of torch, one of the driver, the system, and whether CUDA works."""
    if not machine.items(Nvml, "gpus") and not machine.items(Pci, "gpus"):
        _gpus(text, machine)
    if not machine.knows(TorchBuild, "version"):
        _conda(text, machine)
    found = _one(_TORCH, _lines(text, *_TORCH_WORDS), _not_found(text))
    if found is not None:
        _torch(*found, machine, imports=not cannot_import_torch(text))
    if machine.knows(TorchBuild, "version") and not machine.knows(TorchBuild, "installer"):
        _installer(text, machine)
    found = _one(_DRIVER, _lines(text, "driver"))
    if found is not None and not machine.knows(Nvml, "driver_release"):
        machine.fill(Nvml, "driver_release", *found)
    if not machine.knows(System, "os"):
        _system(text, machine)
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


def _one(
    pattern: re.Pattern[str], lines: Iterator[Line], but: Container[str] = ()
) -> tuple[str, Line] | None:
    """Return a release on which all mentions agree, and the first line that names it."""
    found = [
        (match[1], line)
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
