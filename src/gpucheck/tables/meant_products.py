"""The GPUs that people mean by a part of a name, and names similar to an unknown one."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from gpucheck.language import any_of, say
from gpucheck.tables import Tables
from gpucheck.tables.base import HOW_TO_RENEW
from gpucheck.tables.driver import DriverBranches, DriverSupport
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts, PciDevices
from gpucheck.tables.versions import numbers

# Finds the known names most similar to an unknown one, which the user may have mistyped.

MOST = 3  # chosen: a question with more is none
# Chosen: one wrong letter in a word of four still counts (0.75), two do not (0.5).
_ALIKE = 0.7
_BEHIND = 0.15
"""How much less similar than the best a name may be, to be named beside it."""
_TURNED = 0.9  # chosen: letters that are only exchanged are surer than a wrong letter
_SHORTEST_PART = 3  # chosen: two letters occur in too many names


def plain(name: str) -> str:
    """Return a name in the form used for comparison: in lower case, with hyphens as separators."""
    return "-".join(name.lower().replace("_", "-").replace(".", "-").split())


def same_name(wanted: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs at most in case and separators."""
    return next((name for name in known if plain(name) == plain(wanted)), None)


def nearest(name: str, known: Iterable[str], most: int = MOST) -> list[str]:
    """Return the known names similar to this one, the most similar first; often none."""
    wanted = plain(name)[:100]
    scores = {name: _likeness(wanted, plain(name)) for name in known}
    best = max(scores.values(), default=0.0)
    least = max(_ALIKE, best - _BEHIND)
    alike = [name for name, score in scores.items() if score >= least]
    return sorted(alike, key=lambda name: -scores[name])[:most]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question to append to a refusal; "" if no name is similar."""
    found = nearest(name, known)
    return say("Did you mean {names}?", names=any_of(found)) if found else ""


def _likeness(wanted: str, name: str) -> float:
    """Return how similar two names are, up to 1; a name that contains the other is similar."""
    if wanted == name:
        return 1.0
    from difflib import SequenceMatcher  # noqa: PLC0415  # for a name that is not known

    matched = SequenceMatcher(None, wanted, name).ratio()
    if len(wanted) >= _SHORTEST_PART and wanted in name:
        return max(matched, _ALIKE)
    if sorted(wanted.split("-")) == sorted(name.split("-")):  # words in another order
        return max(matched, _ALIKE)
    if sorted(wanted) == sorted(name):  # letters in another order
        return max(matched, _TURNED)
    return matched


# The GPUs that people mean when they leave out a part of the name: ``4090``, ``rtx3060ti``.
#
# Words are compared without regard to case, and even if they are written together. The family
# (GeForce RTX, Quadro, Tesla) may be left out, and so may the end of a long name ("RTX PRO 6000").
# A name that may mean GPUs of different compute capabilities is never decided here.

_FAMILIES = frozenset(("nvidia", "geforce", "rtx", "gtx", "tesla", "quadro"))
# "rtx3060ti" is taken apart from both ends: brand, number, suffix. With m and d laptops and the
# Chinese editions (4090 D) are meant.
_RUN_TOGETHER = r"(nvidia|geforce|rtx|gtx|gt(?=[0-9])|tesla|quadro|titan|jetson)(?=[0-9a-z])"
_SUFFIX = r"\b([0-9]{3,4})(ti|super|s|d|m)\b"
_BETWEEN = r"[^0-9a-z]+"
_GENERATION = r"[1-9][0-9]{2}[05]"
_VARIANTS = ("ti", "super", "d", "laptop", "gpu", "max", "q")
_LONGEST = 100  # the longest product name in the tables has 55 characters
_SHORTEST = 2  # chosen: one letter is part of any name; T4 and L4 have two
_START_PAGE = "https://pytorch.org/get-started/locally/"
_OTHER_VENDORS = (
    (
        "AMD",
        say("PyTorch's builds for ROCm run on those that ROCm supports"),
        r"\b(?:amd|ati|radeon|instinct|firepro|rx ?[0-9]{3,4}|mi[0-9]{2,3}[ax]?)\b",
    ),
    (
        "Intel",
        say("PyTorch's builds for XPU run on the newer ones"),
        r"\b(?:intel|arc|iris|gaudi)\b",
    ),
    (
        "Apple",
        say("PyTorch's build for macOS uses it as the device mps"),
        r"\bapple\b|\Am[1-9](?: (?:pro|max|ultra))?\Z",
    ),
)
"""GPUs that people name although CUDA does not run on them: the builds, words of the names."""

Named = dict[str, str]
"""Names of products with their compute capabilities."""


def products_meant(name: str, tables: Tables) -> Named:
    """Return the products that a name may mean; empty if the tables have none like it."""
    words = _words(name)
    core = _core(name)
    if not core or sum(map(len, core)) < _SHORTEST:
        return {}
    whole: Named = {}
    partly: Named = {}
    family = set(words) - set(core)
    for product in _known(tables):
        if not family <= set(product.words):
            continue
        if product.core == core:
            whole[product.product] = product.capability
        elif _is_part(core, product.core):
            partly[product.product] = product.capability
    return whole or partly


def meant_by(name: str, tables: Tables) -> tuple[str, str] | None:
    """Return the product and the capability that a name means; None if that is not certain.

    Of several products with one capability the first is returned under the name that was given.
    """
    found = products_meant(name, tables)
    if len(set(found.values())) != 1:
        return None
    product, capability = next(iter(found.items()))
    return (_shown(product) if len(found) == 1 else name), capability


def sold_as(name: str, tables: Tables) -> tuple[str, ...]:
    """Return the compute capabilities of the GPUs that are sold under one name, in order.

    () unless the name is that of several: GeForce GT 730 is Fermi or Kepler.
    """
    words, core = _words(name), _core(name)
    family = set(words) - set(core)
    found = {
        capability
        for product in _sold(tables)
        if core and product.core == core and family <= set(product.words)
        for capability in product.capabilities
    }
    return tuple(sorted(found, key=numbers)) if len(found) > 1 else ()


def driven(
    capabilities: Iterable[str], tables: Tables, *, release: str | None, cuda: str | None
) -> tuple[str, ...]:
    """Return the compute capabilities that a driver may serve: all of them if it is unknown."""
    support = DriverSupport(tables.get(GpuArchitectures), tables.get(DriverBranches))
    return tuple(
        capability
        for capability in capabilities
        if support.drives(capability, release=release, cuda=cuda) not in ("dropped", "too-old")
    )


def like_product(name: str, tables: Tables) -> str:
    """Return the question which GPU was meant; "" if none is similar."""
    found = products_meant(name, tables)
    names: list[str] = [
        say("{gpu} ({code})", gpu=_shown(product), code=f"sm_{cc.replace('.', '')}")
        for product, cc in found.items()
    ]
    if not names:
        cores: dict[str, str] = {}
        for product in _known(tables):
            cores.setdefault(" ".join(product.core), _shown(product.product))
        names = [cores[near] for near in nearest(" ".join(_core(name)), cores)]
    few = list(dict.fromkeys(names))[:4]
    return say("Did you mean {names}?", names=any_of(few)) if few else ""


def may_be_newer(name: str, tables: Tables) -> bool:
    """Return whether a name that the tables lack can be that of a GeForce newer than all of them.

    NVIDIA counts the generations in the first two of four digits: 2080, 3080, 4080, 5080.
    """
    words = [word for word in _words(name) if word not in _FAMILIES]
    numbers = [word for word in words if re.fullmatch(_GENERATION, word)]
    if len(numbers) != 1 or not set(words) <= {*numbers, *_VARIANTS} or "quadro" in name.lower():
        return False
    newest = max(
        (
            int(product.core[0][:2])
            for product in _known(tables)
            if "geforce" in product.words
            and "rtx" in product.words
            and re.fullmatch(_GENERATION, product.core[0])
        ),
        default=0,
    )
    return 0 < newest < int(numbers[0][:2])


def other_vendor(name: str) -> str:
    """Return whose GPU a name is, AMD, Intel or Apple; "" if it is none of these."""
    plain_name = name[:_LONGEST].strip()
    found = (v for v, _, words in _OTHER_VENDORS if re.search(words, plain_name, re.IGNORECASE))
    return next(found, "")


def of_other_vendor(name: str) -> str:
    """Return that a name is that of a GPU of AMD, Intel or Apple; "" if it is none of these."""
    for vendor, builds, _words_of_it in _OTHER_VENDORS:
        if other_vendor(name) == vendor:
            return say(
                "{name} is a GPU of {vendor}, and gpucheck judges those of NVIDIA only. {builds}: "
                "{page}",
                name=name[:_LONGEST],
                vendor=vendor,
                builds=builds,
                page=_START_PAGE,
            )
    return ""


def unlisted(name: str, tables: Tables) -> str:
    """Return what a name that the tables lack may mean; "" if nobody knows."""
    if not may_be_newer(name, tables):
        return like_product(name, tables)
    return say(
        "It may be a GPU newer than these tables ({version}). {how}.",
        version=tables.version,
        how=HOW_TO_RENEW,
    )


class _Sold(NamedTuple):
    """A product, what is sold under its name, its words, and those without its family."""

    product: str
    capabilities: list[str]
    is_certain: bool
    words: list[str]
    core: list[str]

    @property
    def capability(self) -> str:
        """Return its compute capability, of a product that has only one."""
        return self.capabilities[0]


@functools.lru_cache(maxsize=2)  # sets of tables: the built-in ones, and those of --tables
def _known(tables: Tables) -> list[_Sold]:
    """Return each product whose capability is certain."""
    return [sold for sold in _sold(tables) if len(sold.capabilities) == 1 and sold.is_certain]


@functools.lru_cache(maxsize=2)
def _sold(tables: Tables) -> list[_Sold]:
    """Return each product once, with or without "NVIDIA"."""
    rows: dict[str, tuple[str, set[str | None]]] = {}
    sold = [(row.product, row.compute_capability) for row in tables.get(GpuProducts).rows]
    for device in tables.get(PciDevices).rows:
        sold += [(product, device.compute_capability) for product in device.products]
    for product, capability in sold:
        rows.setdefault(" ".join(_words(product)), (product, set()))[1].add(capability)
    return [
        _Sold(
            product,
            [capability for capability in capabilities if capability],
            None not in capabilities,
            _words(product),
            _core(product),
        )
        for product, capabilities in rows.values()
    ]


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case, without NVIDIA, and taken apart: 4060 ti."""
    plain = re.sub(_RUN_TOGETHER, r"\1 ", name[:_LONGEST].lower().partition(" mig ")[0])
    plain = re.sub(_SUFFIX, r"\1 \2", plain)
    words = [word for word in re.split(_BETWEEN, plain) if word and word != "nvidia"]
    return ["super" if word == "s" else word for word in words]


def _core(name: str) -> list[str]:
    """Return the words of a name without its family."""
    return [word for word in _words(name) if word not in _FAMILIES]


def _is_part(some: list[str], words: list[str]) -> bool:
    """Whether some words follow one another in a name."""
    return any(words[at : at + len(some)] == some for at in range(len(words) - len(some) + 1))


def _shown(product: str) -> str:
    return product.removeprefix("NVIDIA ")
