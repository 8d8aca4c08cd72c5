"""Whether driver and GPUs meet the requirement of a container image (``NVIDIA_REQUIRE_CUDA``)."""

import re
from collections.abc import Callable, Iterable

from gpucheck.derived.base import Derived
from gpucheck.derived.driver_state import DriverState
from gpucheck.derived.gpus import Gpu, Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.system import Container
from gpucheck.language import say
from gpucheck.tables.versions import compare, parse

_CONDITION = r"([a-z]{1,16})(>=|<=|!=|=|<|>)([A-Za-z0-9.]{1,32})"
_CUT = 4096
"""Number of characters kept of a variable: the end of a longer one is unknown."""
_BRANDS = {
    "geforce": ("geforce", "geforcertx"),
    "tesla": ("tesla",),
    "titan": ("titan", "titanrtx"),
}
"""Words in product names that show the brand, and the brands that NVML may report."""


class ImageRequirement(Derived):
    """The requirement as alternatives, each a list of conditions that must all hold."""

    def __init__(self, container: Container, driver: DriverState, gpus: Gpus) -> None:
        text = container.requirements or ""
        self._alternatives = [words.split(",") for words in text.split()]
        self._is_cut = len(text) >= _CUT
        self._driver = driver
        self._gpus = gpus

    def holds(self) -> bool | None:
        """Whether some alternative holds; None if an unknown value decides."""
        found = [_all(map(self._condition, words)) for words in self._alternatives]
        if True in found:
            return True
        return None if None in found or self._is_cut else False

    def unknown(self) -> str:
        """Return which condition could not be evaluated."""
        for words in self._alternatives:
            if _all(map(self._condition, words)) is None:
                unclear = next(word for word in words if self._condition(word) is None)
                return say("{unclear} cannot be judged", unclear=unclear[:60])
        return say("the requirement is too long and was cut off")

    def least_cuda(self) -> str | None:
        """Return the lowest CUDA that an alternative without other conditions requires: 12.4."""
        asked = [
            found[3]
            for words in self._alternatives
            if len(words) == 1 and (found := re.fullmatch(_CONDITION, words[0]))
            if found[1] == "cuda" and found[2] in (">=", "=") and parse(found[3])
        ]
        return min(asked, key=lambda cuda: parse(cuda) or (), default=None)

    def driver(self) -> str:
        """Return a description of the driver."""
        release, cuda = _known(self._driver.release), _known(self._driver.cuda)
        if cuda and release:
            return say("driver {release} supports CUDA up to {cuda}", release=release, cuda=cuda)
        if cuda:
            return say("the driver supports CUDA up to {cuda}", cuda=cuda)
        if release:
            return say("this is driver {release}", release=release)
        return say("the release of the driver is unknown")

    def facts(self) -> tuple[str, ...]:
        """Return the facts of the driver that decide."""
        asks = (self._driver.release_fact, self._driver.cuda_fact)
        return tuple(dict.fromkeys(fact for ask in asks if (fact := _known(ask))))

    def _condition(self, words: str) -> bool | None:
        found = re.fullmatch(_CONDITION, words)
        if found is None:
            return None
        subject, operator, value = found.groups()
        if subject == "cuda":
            return _compared(_known(self._driver.cuda), operator, value)
        if subject == "driver":
            return _compared(_known(self._driver.release), operator, value)
        if subject == "arch":
            return _same(
                _compared(gpu.compute_capability, operator, value) for gpu in self._every_gpu()
            )
        if subject == "brand" and operator in ("=", "!="):
            is_it = _same(_is_brand(gpu, value.lower()) for gpu in self._every_gpu())
            return is_it if operator == "=" or is_it is None else not is_it
        return None

    def _every_gpu(self) -> list[Gpu]:
        try:
            return self._gpus.all()
        except UnknownFactError:
            return []


def _all(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all hold: a False decides first, then an unknown one."""
    found = list(answers)
    if False in found:
        return False
    return None if None in found else True


def _same(answers: Iterable[bool | None]) -> bool | None:
    """Return the common answer of all GPUs, None if they differ or there is no GPU."""
    found = set(answers)
    return found.pop() if len(found) == 1 else None


def _compared(have: str | None, operator: str, wanted: str) -> bool | None:
    left, right = parse(have), parse(wanted)
    if left is None or right is None:
        return None
    if len(left) == 1 < len(right) and left == right[:1]:
        return None  # "535" alone may be older or newer than 535.54
    order = compare(left, right)
    return {
        "=": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def _is_brand(gpu: Gpu, wanted: str) -> bool | None:
    """Return whether a GPU is of a brand, by its name: some drivers call the A100 Tesla."""
    if not gpu.has_product or wanted == "unknown":
        return None
    words = gpu.product.lower().split()
    for word, brands in _BRANDS.items():
        if word in words:
            return None if wanted in brands and len(brands) > 1 else wanted in brands
    return None


def _known(ask: Callable[[], str]) -> str | None:
    try:
        return ask()
    except UnknownFactError:
        return None
