"""A step in one line: which groups it tried, what became of them, what it measured."""

from gpucheck.preflight.diagnose.naming import counted, words_of
from gpucheck.preflight.model import RankResult, StepResult

_MOST = 4


def in_words(done: StepResult) -> str:
    """Return the line, as ``2 groups of 2 ranks; 1 passed; 1 did not; ...``."""
    groups = done.step.groups
    passed = sum(done.passed(group) for group in groups)
    sizes = sorted({len(group) for group in groups})
    if done.step.kind == "alone":
        what = f"{counted(len(groups), 'rank')} without any other"
    else:
        of = "-".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))
        what = f"{counted(len(groups), 'group')} of {of} ranks"
    parts = [what, f"{passed} passed"]
    if passed < len(groups):
        parts.append(f"{len(groups) - passed} did not")
    if done.step.env:
        parts.append("with " + " ".join(f"{k}={v}" for k, v in sorted(done.step.env.items())))
    results = sorted(done.results.values(), key=lambda one: one.rank)
    parts += _went(results)
    parts += _measured([one for one in results if one.passed])
    slowest = max((one.seconds for one in results), default=0.0)
    return "; ".join([*parts, f"{slowest:.1f} s"])


def _went(results: list[RankResult]) -> list[str]:
    """Return how the other ranks ended, with their numbers: the most frequent end first."""
    ends: dict[str, list[int]] = {}
    for one in results:
        if not one.passed:
            kind = f" ({one.kind})" if one.kind and one.kind != one.status else ""
            ends.setdefault(f"{one.status}{kind} in phase {one.phase}", []).append(one.rank)
    most = sorted(ends.items(), key=lambda pair: -len(pair[1]))[:_MOST]
    return [f"{end}: rank{'s' * (len(ranks) > 1)} {words_of(ranks)}" for end, ranks in most]


def _measured(results: list[RankResult]) -> list[str]:
    """Return the range of each figure over the ranks that passed; its name ends with its unit."""
    found: dict[str, list[float]] = {}
    for one in results:
        for name, value in one.measurements.items():
            found.setdefault(name, []).append(value)
    return [_span(*name.rpartition(" ")[::2], values) for name, values in found.items()]


def _span(what: str, unit: str, values: list[float]) -> str:
    ends = dict.fromkeys((f"{min(values):.3g}", f"{max(values):.3g}"))
    return f"{what} {' to '.join(ends)} {unit}"
