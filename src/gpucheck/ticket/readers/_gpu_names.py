"""Names of GPUs in a sentence: brands by their form, models that the product tables know.

The brand of most products is named with them: "RTX 3060", "Quadro P620". A data-centre GPU goes by
its model alone (H100, GB300), and so does one of the "RTX A" series (A6000). A GeForce is often
called by its number (4090).
"""

import functools
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from gpucheck.tables import Tables
from gpucheck.tables.gpu_products import GpuProducts, plain_product
from gpucheck.tables.pci_devices import PciDevices

_BRANDS = ("rtx", "gtx", "geforce gt", "tesla", "quadro", "titan", "gt ")
_BRANDED = (
    r"(?:RTX|GTX|GT)\s?-?(?:PRO )?(?:A?\d{3,4})\s?(?:Ti\b|SUPER\b)?"
    r"|Quadro [A-Z]{0,3}\s?\d{3,4}|Tesla [A-Z]\d{1,3}|TITAN (?:Xp|X|V|RTX)|RTX A\d{4}"
)
_END = r"(?!\w|\.\w|-\w{0,3}\.)"
_SERIES = re.compile(r"(RTX|GTX|GT)[ -]?(?=\d)", re.IGNORECASE)
_VARIANT = re.compile(r"(?<=\d)\s?(Ti|SUPER)$", re.IGNORECASE)

_MAKERS = ("nvidia ", "tesla ")
_MODEL = re.compile(r"(?:rtx )?([abd-z][a-z]?[0-9]{1,4}[a-z]?)(?= |$)")
"""The first word of a product, or the word after "RTX". Errors of Microsoft's compiler have numbers
like C2050, as old models do."""
_GEFORCE = re.compile(r"geforce rtx ([1-9]0[1-9]0)$")
_LATEST_YEAR = 2079
"""A smaller number may be the year of a date."""
_SHORT, _SHORTEST = 3, 2
_OF_GPUS = ("gpu", "nvidia", "tesla", "cuda", "card", "node", "卡")
"""A line with one of these is about GPUs."""
_OF_DUMP = re.compile(r"(?<![\w/.:-])[0-9a-fA-F]{4}(?![\w/.:-])")
_DUMPED = 6
"""Groups of four hexadecimal digits that make a line one of a dump: its 2080 is no RTX 2080."""
_TIMES = ("x", "*", "\u00d7")
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
        return [re.compile(pattern) for pattern in patterns]

    @cached_property
    def _named(self) -> re.Pattern[str]:
        words, pairs = "|".join(self._words), "|".join(self._pairs)
        return re.compile(
            rf"(?<![\w/.#-])(?:(?:NVIDIA )?(?:GeForce )?({_BRANDED}|{words})"
            rf"|NVIDIA ({pairs})|({pairs})(?= GPU)){_END}",
            re.IGNORECASE,
        )

    @cached_property
    def _bare(self) -> re.Pattern[str]:
        return re.compile(
            rf"(?<![\w./:-])(?:NVIDIA )?({'|'.join(self._numbers)})\s?(Ti|SUPER)?(?![\w./:])",
            re.IGNORECASE,
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
