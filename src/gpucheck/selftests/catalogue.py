"""Which self-tests there are: the headers of the modules in ``worker/selftests``."""

import functools
from typing import Literal

import msgspec

from gpucheck.facts.selftests import Level
from gpucheck.worker import selftests

Per = Literal["gpu", "machine", "ranks"]

IMPORT = "import-torch"
"""It always runs first: its result decides what else can run."""
# docs/selftests/reference.md promises it for the quick level. Chosen: most tests take seconds, and
# a GPU that does not answer should not use up the time limit of the whole run (300 s).
_USUAL_SECONDS: dict[Level, float] = {"quick": 60.0, "standard": 120.0, "stress": 300.0}


class SelfTestHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a self-test; ``seconds`` is its deadline by level."""

    name: str
    per: Per
    levels: tuple[Level, ...]
    about: str
    seconds: dict[Level, float]


@functools.cache
def headers() -> dict[str, SelfTestHeader]:
    """Return every self-test by its name, the first one first."""
    found = {name: _header(name) for name in selftests.names()}
    first = {IMPORT: found.pop(IMPORT)}
    return first | found


def _header(name: str) -> SelfTestHeader:
    module = selftests.load(name)
    raw = {
        "name": module.NAME,
        "per": module.PER,
        "levels": tuple(module.LEVELS),
        "about": str(module.ABOUT),
        "seconds": {**_USUAL_SECONDS, **getattr(module, "SECONDS", {})},
    }
    return msgspec.convert(raw, SelfTestHeader)
