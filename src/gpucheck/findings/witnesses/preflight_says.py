"""The findings of a pre-flight: its culprits, where they are, and what to do about each."""

from gpucheck.facts.base import Derived
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import (
    Culprit,
    Preflight,
    RankOutcome,
)
from gpucheck.findings import all_rules
from gpucheck.findings.form import Claim, Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, and_more, in_series, say, say_many

# The findings of a pre-flight: its culprits by kind, and where they are.

# Chosen: the report names every culprit in its own list; here a few stand for their kind, because
# one bad switch may hit every rank.
_MOST_FACTS = 6
_MOST_RANKS = 4
_SEVERITIES = tuple(Severity)
_CONFIDENCES = tuple(Confidence)


class PreflightSays(Derived):
    """The culprits by their slug. Every finding can be claimed by one."""

    def __init__(self, preflight: Preflight) -> None:
        self._preflight = preflight

    def claims(self) -> list[Claim]:
        """Return a claim for each finding that has culprits; unknown slugs are left out."""
        slugs = dict.fromkeys(culprit.slug for culprit in self._preflight.culprits or ())
        rules = all_rules() if slugs else {}
        return [self._claim(rules[slug]) for slug in slugs if slug in rules]

    def nothing(self) -> Judgement | None:
        """Return what to say about a cause that no culprit has; None if no pre-flight was run."""
        if self._preflight.finished:
            return Fine(say("the pre-flight found no sign of it"))
        if self._preflight.culprits is not None:
            why = self._preflight.stopped_because or say("it was ended early")
            return NotApplicable(
                say("the pre-flight found no sign of it before it stopped: {why}", why=why)
            )
        return None

    def _claim(self, rule: Rule) -> Claim:
        """Return one claim for all culprits of a rule, in the words of the most severe."""
        from gpucheck.findings.witnesses.preflight_fixes import fixes_for  # noqa: PLC0415  # imported late

        culprits = self._preflight.culprits or []
        order = [at for at, culprit in enumerate(culprits) if culprit.slug == rule.slug]
        order.sort(key=lambda at: _order(culprits[at]))
        found = [culprits[at] for at in order]
        first, place = found[0], self.place(found[0])
        return Claim(
            slug=rule.slug,
            hit=Hit(
                headline=and_more(_headline(rule, place, first.evidence), len(found) - 1),
                evidence=tuple(f"preflight.culprits.{at}.evidence" for at in order[:_MOST_FACTS]),
                fixes=fixes_for(rule, found, self._preflight),
                severity=first.severity,
                confidence=first.confidence,
            ),
            place=place,
        )

    def place(self, culprit: Culprit) -> str:
        """Return the place: the rank with its host and GPU, a node, or the ends of a link."""
        ranks = culprit.ranks or ((culprit.rank,) if culprit.rank is not None else ())
        hosts = culprit.hosts or ((culprit.host,) if culprit.host else ())
        if culprit.is_link and len(ranks) == 2:  # noqa: PLR2004  # its ends
            return say(
                "the link between {one} and {other}",
                one=self._end(ranks[0], culprit),
                other=self._end(ranks[1], culprit),
            )
        if culprit.is_link and hosts:
            return say_many(
                len(ranks),
                "the links between {hosts} (one rank)",
                "the links between {hosts} ({count} ranks)",
                hosts=_few(hosts),
            )
        if len(ranks) == 1:
            return self._end(ranks[0], culprit)
        where = say_many(len(hosts), "host {hosts}", "hosts {hosts}", hosts=_few(hosts))
        who = say_many(len(ranks), "rank {ranks}", "ranks {ranks}", ranks=_few(ranks))
        if hosts and ranks:
            return say("{hosts} ({ranks})", hosts=where, ranks=who)
        return where if hosts else who if ranks else say("the job")

    def _end(self, rank: int, culprit: Culprit) -> str:
        """Return a rank with everything that is known about where it is."""
        known = next(
            (outcome for outcome in self._preflight.ranks or () if outcome.rank == rank), None
        )
        own = rank == culprit.rank or culprit.rank is None
        of = known or RankOutcome(rank=rank, task=-1)
        host = of.host or (culprit.host if own else None)
        gpu = of.gpu if of.gpu is not None else culprit.gpu if own else None
        pci = of.pci or (culprit.pci if own else None)
        uuid = of.uuid or (culprit.uuid if own else None)
        parts = [
            say_many(1, "host {hosts}", "hosts {hosts}", hosts=host) if host else "",
            f"GPU {gpu}" if gpu is not None else "",
            f"PCI {pci}" if pci else "",
            uuid or "",
        ]
        where = in_series([part for part in parts if part])
        if not where:
            return say("rank {rank}", rank=rank)
        return say("rank {rank} ({where})", rank=rank, where=where)


def _order(culprit: Culprit) -> tuple[int, int]:
    """Sort the most severe first, then the most certain; otherwise keep the order."""
    return _SEVERITIES.index(culprit.severity), _CONFIDENCES.index(culprit.confidence)


def _headline(rule: Rule, place: str, evidence: str) -> str:
    title = rule.preflight.title or rule.title
    what = title.at_start() if isinstance(title, Sentence) else title
    if not evidence:
        return say("{what}: {place}", what=what, place=place)
    return say("{what}: {place}: {evidence}", what=what, place=place, evidence=evidence)


def _few(ranks: tuple[object, ...]) -> str:
    named = in_series([str(rank) for rank in ranks[:_MOST_RANKS]])
    more = len(ranks) - _MOST_RANKS
    return say("{those} and {count} more", those=named, count=more) if more > 0 else named
