"""The figures of self-tests then and now: how much faster or slower a GPU has become."""

from collections.abc import Iterator

from gpucheck.baselines.documents import Figure
from gpucheck.facts.selftests import LONG_ENOUGH, SelfTests
from gpucheck.facts.snapshot import Snapshot

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
