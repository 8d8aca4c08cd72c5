"""What the JSON documents of known-good states hold, as types."""

from typing import Literal

import msgspec

from gpucheck.baselines.diff import Change
from gpucheck.engine import Verdict


class SavedState(msgspec.Struct, frozen=True, kw_only=True):
    """A saved state; ``verdict`` is that of the day, null for a mere snapshot."""

    file: str
    host: str
    taken: str
    verdict: Verdict | None
    root_causes: tuple[str, ...]
    note: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A rate that differs: of which test, on which device, then and now, in its unit."""

    test: str
    device: str
    name: str
    unit: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """The change as a share of the old value: -0.2 is a fifth slower."""
        return self.after / self.before - 1


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A fact in which some hosts differ from most that have the same GPUs.

    ``alike`` of ``of`` hosts have the usual value. ``hosts`` are the others; null: absent there.
    """

    fact: str
    usual: str
    alike: int
    of: int
    gpus: str
    hosts: dict[str, str | None]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A machine and a saved state; ``explained`` is the slug that ``explained_by`` explains."""

    schema: Literal["gpucheck.baseline-comparison/1"] = "gpucheck.baseline-comparison/1"
    state: SavedState
    verdict: Verdict
    root_causes: tuple[str, ...]
    explained: str | None
    was_there: bool
    explained_by: tuple[Change, ...]
    figures: tuple[Figure, ...]
    changes: tuple[Change, ...]


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that differ from their like; ``not_compared`` have too few of these."""

    schema: Literal["gpucheck.fleet-comparison/1"] = "gpucheck.fleet-comparison/1"
    hosts: int
    differences: tuple[Difference, ...]
    not_compared: tuple[str, ...]
    unreadable: tuple[str, ...]


class States(msgspec.Struct, frozen=True, kw_only=True):
    """The states that were kept, the newest first."""

    schema: Literal["gpucheck.baselines/1"] = "gpucheck.baselines/1"
    states: tuple[SavedState, ...]
