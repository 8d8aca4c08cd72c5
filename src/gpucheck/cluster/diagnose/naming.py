"""From ranks to an entry of the report: the ranks, their hosts, the GPU if there is only one."""

import functools
from collections.abc import Iterable, Sequence

import msgspec

from gpucheck.cluster.diagnose.control_runs import ControlRun
from gpucheck.cluster.model import Roster
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.culprit_data import CulpritData, OwnFailure
from gpucheck.facts.preflight import Culprit
from gpucheck.findings import all_rules
from gpucheck.findings.form import GroupFailure
from gpucheck.language import in_series, say, say_many

_MOST = 4


@functools.cache
def of_rank(failure: GroupFailure) -> str:
    """Return the finding of a rank that fails in this way in every group."""
    return next(slug for slug, one in all_rules().items() if failure in one.preflight.of_ranks)


@functools.cache
def of_link(failure: GroupFailure) -> str:
    """Return the finding of two ends that fail in this way, and that each pass with others."""
    return next(slug for slug, one in all_rules().items() if failure in one.preflight.of_links)


@functools.cache
def of_route() -> str:
    """Return the finding of two nodes that came to the store and never connect."""
    return next(slug for slug, one in all_rules().items() if one.preflight.is_of_ways)


def of_control_run(run: ControlRun) -> str:
    """Return the finding of a group that passes in this control run and fails without it."""
    without = {"gloo"} if run.backend == "gloo" else set(run.env)
    return next(
        slug
        for slug, one in all_rules().items()
        if not without.isdisjoint(one.preflight.passes_without)
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
    these = [roster.ranks[rank] for rank in sorted(set(ranks))]
    names = list(dict.fromkeys(name for name in (*(one.host for one in these), *hosts) if name))
    alone = these[0] if len(these) == 1 else None
    return Culprit(
        slug=slug,
        severity=severity,
        confidence=confidence,
        rank=these[0].rank if these else None,
        ranks=tuple(one.rank for one in these),
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
