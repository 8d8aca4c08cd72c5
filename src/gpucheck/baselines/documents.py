"""What the JSON documents of known-good states hold, as types."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from gpucheck.baselines.diff import Change
from gpucheck.engine import Verdict
from gpucheck.facts.selftests import LONG_ENOUGH, SelfTests
from gpucheck.facts.snapshot import Snapshot


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


# The figures of self-tests then and now: how much faster or slower a GPU has become.

NOTABLE = 0.1
"""The share by which a rate has to differ to be shown. It accuses nobody: rates vary."""
_RATES = ("TFLOP/s", "GB/s")


def figures(before: Snapshot, after: Snapshot) -> list[Figure]:
    """Return the rates that differ notably, the greatest loss first.

    Tests of the quick level are left out: the clocks of a GPU may still be idle then.
    """
    old, new = dict(_rates(before)), dict(_rates(after))
    found = [
        Figure(test=test, device=device, name=name, unit=unit, before=old[key], after=new[key])
        for key in old
        if key in new
        for test, device, name, unit in [key]
    ]
    return sorted(
        (figure for figure in found if abs(figure.change) >= NOTABLE),
        key=lambda figure: figure.change,
    )


def _rates(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str, str, str], float]]:
    tests = snapshot.get(SelfTests)
    if tests.level not in LONG_ENOUGH:
        return
    for result in tests.results or ():
        for measurement in result.measurements:
            if (
                measurement.unit in _RATES
                and measurement.value is not None
                and measurement.value > 0
            ):
                yield (
                    (result.name, result.device, measurement.name, measurement.unit),
                    measurement.value,
                )
