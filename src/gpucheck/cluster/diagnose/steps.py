"""A step in one line: which groups it tried, how they ended, and what it measured."""

from gpucheck.cluster.diagnose.naming import words_of
from gpucheck.cluster.model import RankResult, StepResult
from gpucheck.language import Sentence, in_clauses, say, say_many

_MOST = 4


def in_words(done: StepResult) -> str:
    """Return the line, as ``2 groups of 2 ranks; 1 passed; 1 did not; ...``."""
    groups = done.step.groups
    passed = sum(done.passed(group) for group in groups)
    sizes = sorted({len(group) for group in groups})
    if done.step.kind == "alone":
        what = say_many(
            len(groups), "{count} rank without any other", "{count} ranks without any other"
        )
    else:
        of = "-".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))
        what = say_many(
            len(groups), "{count} group of {size} ranks", "{count} groups of {size} ranks", size=of
        )
    parts = [what, say("{count} passed", count=passed)]
    if passed < len(groups):
        parts.append(say("{count} did not", count=len(groups) - passed))
    if done.step.env:
        variables = " ".join(f"{k}={v}" for k, v in sorted(done.step.env.items()))
        parts.append(say("with {variables}", variables=variables))
    results = [done.results[rank] for rank in sorted(done.results)]
    parts += _went(results)
    parts += _measured([one for one in results if one.passed])
    slowest = max((one.seconds for one in results), default=0.0)
    return in_clauses([*parts, say("{seconds:.1f} s", seconds=slowest)])


def _went(results: list[RankResult]) -> list[Sentence]:
    """Return how the other ranks ended, with their numbers: the most frequent end first."""
    ends: dict[tuple[str, str, str], list[int]] = {}
    for one in results:
        if one.status != "passed":
            ends.setdefault((one.status, one.kind, one.phase), []).append(one.rank)
    most = sorted(ends.items(), key=lambda pair: -len(pair[1]))[:_MOST]
    return [
        say_many(
            len(ranks),
            "{end}: rank {ranks}",
            "{end}: ranks {ranks}",
            end=say("{kind} in phase {phase}", kind=_kind(status, kind), phase=phase),
            ranks=words_of(ranks),
        )
        for (status, kind, phase), ranks in most
    ]


def _kind(status: str, kind: str) -> str:
    if kind in ("", status):
        return status
    return say("{status} ({kind})", status=status, kind=kind)


def _measured(results: list[RankResult]) -> list[Sentence]:
    """Return the range of each figure over the ranks that passed; its name ends with its unit."""
    found: dict[str, list[float]] = {}
    for one in results:
        for name, value in one.measurements.items():
            found.setdefault(name, []).append(value)
    return [_span(*name.rpartition(" ")[::2], values) for name, values in found.items()]


def _span(what: str, unit: str, values: list[float]) -> Sentence:
    least, most = f"{min(values):.3g}", f"{max(values):.3g}"
    if least == most:
        return say("{figure} {value} {unit}", figure=what, value=least, unit=unit)
    return say("{figure} {least} to {most} {unit}", figure=what, least=least, most=most, unit=unit)
