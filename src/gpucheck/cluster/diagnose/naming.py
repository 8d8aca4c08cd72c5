"""From ranks to an entry of the report: ranks, hosts, the only GPU; and steps in words.

PyTorch's flight recorder adds which ranks had begun the last collective of a step, and who not.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gpucheck.cluster.diagnose.control_runs import ControlRun
from gpucheck.cluster.diagnose.process_state import spans_of
from gpucheck.cluster.model import RankResult, Roster, StepResult
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, CulpritData, OwnFailure
from gpucheck.findings import all_rules
from gpucheck.findings.form import GroupFailure
from gpucheck.language import Sentence, in_clauses, in_series, say, say_many

_MOST = _MOST_ENDS = 4
"""Names in a sentence, and different ends of a step. Chosen: more would not be read."""


@functools.cache
def of_rank(failure: GroupFailure) -> str:
    """Return the finding of a rank that fails in this way in every group."""
    return next(slug for slug, rule in all_rules().items() if failure in rule.preflight.of_ranks)


@functools.cache
def of_link(failure: GroupFailure) -> str:
    """Return the finding of two ends that fail in this way, and that each pass with others."""
    return next(slug for slug, rule in all_rules().items() if failure in rule.preflight.of_links)


@functools.cache
def of_route() -> str:
    """Return the finding of two nodes that came to the store and never connect."""
    return next(slug for slug, rule in all_rules().items() if rule.preflight.is_of_ways)


def of_control_run(run: ControlRun) -> str:
    """Return the finding of a group that passes in this control run and fails without it."""
    without = {"gloo"} if run.backend == "gloo" else set(run.env)
    return next(
        slug
        for slug, rule in all_rules().items()
        if not without.isdisjoint(rule.preflight.passes_without)
    )


def blamed(
    slug: str,
    roster: Roster,
    ranks: Iterable[int],
    *,
    evidence: str,
    hosts: Iterable[str] = (),
    severity: Severity = Severity.ERROR,
    confidence: Confidence = Confidence.CERTAIN,
    data: CulpritData | None = None,
) -> Culprit:
    """Return the entry of these ranks; ``hosts`` are further hosts without a rank of their own."""
    members = [roster.ranks[rank] for rank in sorted(set(ranks))]
    names = list(dict.fromkeys(name for name in (*(rank.host for rank in members), *hosts) if name))
    alone = members[0] if len(members) == 1 else None
    return Culprit(
        slug=slug,
        severity=severity,
        confidence=confidence,
        rank=members[0].rank if members else None,
        ranks=tuple(rank.rank for rank in members),
        host=names[0] if names else None,
        hosts=tuple(names),
        gpu=alone.gpu if alone else None,
        pci=alone.pci if alone else None,
        uuid=alone.uuid if alone else None,
        evidence=evidence,
        data=OwnFailure() if data is None else data,
    )


def between(culprit: Culprit, roster: Roster) -> Culprit:
    """Return the entry of two ranks as one about the link between them."""
    first = roster.ranks[culprit.ranks[0]]
    return msgspec.structs.replace(
        culprit, is_link=True, gpu=first.gpu, pci=first.pci, uuid=first.uuid
    )


def words_of(names: Sequence[object]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - _MOST
    few = in_series([str(name) for name in names[:_MOST]])
    return say("{names} and {count} more", names=few, count=more) if more > 0 else few


def in_ranks(number: int) -> str:
    """Return ``1 rank``, ``7 ranks``."""
    return say_many(number, "{count} rank", "{count:,} ranks")


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
    parts += _measured([result for result in results if result.passed])
    slowest = max((result.seconds for result in results), default=0.0)
    return in_clauses([*parts, say("{seconds:.1f} s", seconds=slowest)])


def _went(results: list[RankResult]) -> list[Sentence]:
    """Return how the other ranks ended, with their numbers: the most frequent end first."""
    ends: dict[tuple[str, str, str], list[int]] = {}
    for result in results:
        if result.status != "passed":
            ends.setdefault((result.status, result.kind, result.phase), []).append(result.rank)
    most = sorted(ends.items(), key=lambda pair: -len(pair[1]))[:_MOST_ENDS]
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
    for result in results:
        for name, value in result.measurements.items():
            found.setdefault(name, []).append(value)
    return [_span(*name.rpartition(" ")[::2], values) for name, values in found.items()]


def _span(what: str, unit: str, values: list[float]) -> Sentence:
    least, most = f"{min(values):.3g}", f"{max(values):.3g}"
    if least == most:
        return say("{figure} {value} {unit}", figure=what, value=least, unit=unit)
    return say("{figure} {least} to {most} {unit}", figure=what, least=least, most=most, unit=unit)


def recorded_in_groups(history: Sequence[StepResult]) -> list[str]:
    """Return in sentences what was recorded in the first step in which ranks ran out of time."""
    for done in history:
        if sentences := _of_recorders(done.results):
            return sentences
    return []


def _of_recorders(results: Mapping[int, RankResult]) -> list[str]:
    known = {
        rank: result.flight for rank, result in sorted(results.items()) if result.flight is not None
    }
    latest = max((flight.begun for flight in known.values()), default=0)
    if not latest:
        return []
    begun = [rank for rank, flight in known.items() if flight.begun == latest]
    behind = [rank for rank, flight in known.items() if flight.begun < latest]
    operation = known[begun[0]].operation
    sentences: list[str] = [
        say(
            "Ranks that had begun collective {number} ({operation}) according to PyTorch's flight "
            "recorder: {count} ({ranks})",
            number=latest, operation=operation, count=len(begun), ranks=spans_of(begun),
        )
    ]  # fmt: skip
    if behind:
        sentences.append(
            say(
                "Ranks that had not begun it according to their recorder: {count} ({ranks})",
                count=len(behind), ranks=spans_of(behind),
            )
        )  # fmt: skip
    return sentences
