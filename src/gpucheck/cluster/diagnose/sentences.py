"""One cause as a sentence for people, and how certain it is."""

from collections.abc import Collection, Iterable
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from gpucheck.cluster.diagnose import direct_evidence
from gpucheck.cluster.diagnose.evidence import Evidence, Trial
from gpucheck.cluster.diagnose.naming import words_of
from gpucheck.cluster.diagnose.rounds import Pair, pair
from gpucheck.cluster.model import RankResult, Roster
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Phase, Route
from gpucheck.findings.form import GroupFailure
from gpucheck.language import any_of, say

Sort = Literal["rank", "port", "node", "link", "node-link", "inside", "either", "scale"]
"""The kind of cause. ``rank``: a rank. ``port``: its way out of its node. ``node``: a node.
``link`` and ``node-link``: what joins two ranks, or two nodes. ``inside``: a node that fails within
itself. ``either``: one of several nodes that only fail together. ``scale``: nobody, since only many
ranks together fail."""
_CONNECT = direct_evidence.PHASES.index("connect")
_PAIR = 2
"""Ranks, or nodes."""
HOW: dict[GroupFailure, str] = {
    "wrong": say("got wrong sums"),
    "store": say("did not meet at the store"),
    "connect": say("never connected"),
    "error": say("failed"),
    "hang": say("entered an all-reduce and never left it"),
}


def unreached(trial: Trial) -> RankResult | None:
    """Return the first rank that did not reach the port which its group's first rank had opened.

    None when every rank did, or when both are on one node.
    """
    if len(trial.nodes) < 2:  # noqa: PLR2004  # two ends
        return None
    found = (result for result in trial.results.values() if result.kind == "store-unreachable")
    return min(found, key=lambda result: (result.order, result.rank), default=None)


def in_words(trial: Trial) -> str:
    """Return which rank did not reach which, and what its system said. "" if every rank did."""
    result = unreached(trial)
    if result is None:
        return ""
    result_facts = result.facts
    words = say("rank {rank} did not reach rank {other}", rank=result.rank, other=trial.group[0])
    if result_facts.address and result_facts.port:
        words = say(
            "rank {rank} did not reach rank {other} at {address} port {port}",
            rank=result.rank, other=trial.group[0],
            address=result_facts.address, port=result_facts.port,
        )  # fmt: skip
    return (
        say("{said} ({error})", said=words, error=result_facts.error)
        if result_facts.error
        else words
    )


def route(trial: Trial, roster: Roster) -> Route | UnsetType:
    """Return the ends of the route and the port at its end, if it was not found and is known."""
    result = unreached(trial)
    if result is None or not result.facts.address:
        return UNSET
    return Route(
        near=roster.ranks[result.rank].host, far=roster.ranks[trial.group[0]].host,
        address=result.facts.address, port=result.facts.port,
    )  # fmt: skip


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A cause of failure. ``group`` is the smallest set of its ranks that fails."""

    sort: Sort
    ranks: tuple[int, ...]
    group: tuple[int, ...]
    partners: tuple[int, ...] = ()
    """The ranks, or the nodes where ``sort`` is ``node``, that are proven good and fail with it."""
    units: tuple[int, ...] = ()
    """The nodes, where ``sort`` is ``either``."""


def causes(evidence: Evidence) -> list[Cause]:
    """Return causes besides the ranks that a step named itself, the most certain first."""
    failing = _smallest(evidence)
    found = [*_of_ranks(evidence), *_of_nodes(evidence, failing)]
    inside: dict[int, list[Trial]] = {}
    for trial in evidence.unexplained:
        if len(trial.nodes) == 1:
            inside.setdefault(min(trial.nodes), []).append(trial)
    found += [_within(evidence, node, inside[node]) for node in evidence.guilty]
    return found + _either(evidence, failing)


def scale(evidence: Evidence) -> list[Cause]:
    """Return the smallest set of more than two nodes that fails although no pair in it does.

    It must have failed twice, or be a block of a larger set that did.
    """
    sets = [
        trial.group
        for trial in evidence.unexplained
        if len(trial.nodes) > 2  # noqa: PLR2004  # more than a pair
        and (trial.kind == "grow" or evidence.fails(trial.ranks) > 1)
        and not evidence.is_accounted(trial)
    ]
    smallest = sorted(sets, key=lambda subset: (len(subset), subset))[:1]
    return [Cause(sort="scale", ranks=subset, group=subset) for subset in smallest]


def _of_ranks(evidence: Evidence) -> list[Cause]:
    found = []
    for rank in evidence.bad_ranks:
        good = evidence.ranks.good_partners(rank)
        found.append(_with_partners("rank", rank, good))
    for rank in evidence.bad_ports:
        good = sorted(evidence.ranks.partners[rank] & evidence.across)
        found.append(_with_partners("port", rank, good))
    found += [Cause(sort="link", ranks=both, group=both) for both in evidence.links]
    return found


def _with_partners(sort: Literal["rank", "port"], rank: int, good: list[int]) -> Cause:
    group = tuple(sorted((rank, good[0])))
    return Cause(sort=sort, ranks=(rank,), group=group, partners=tuple(good))


def _of_nodes(evidence: Evidence, failing: dict[Pair, Trial]) -> list[Cause]:
    found = []
    for node in evidence.bad_nodes:
        good = evidence.nodes.good_partners(node)
        trial = failing[pair(node, good[0])]
        found.append(
            Cause(sort="node", ranks=evidence.pool[node], group=trial.group, partners=tuple(good))
        )
    for both in evidence.node_links:
        if both in failing and all(node in evidence.pool for node in both):
            ends = tuple(evidence.pool[node][0] for node in both)
            found.append(Cause(sort="node-link", ranks=ends, group=failing[both].group, units=both))
    return found


def _within(evidence: Evidence, node: int, inside: list[Trial]) -> Cause:
    """Return the cause of a node that fails within itself: its ranks that fail in pairs, or all."""
    smallest = min(inside, key=lambda trial: (len(trial.ranks), trial.group))
    pairs = [tuple(trial.ranks) for trial in inside if len(trial.ranks) == 2]  # noqa: PLR2004  # a pair
    ends = {rank for both in pairs for rank in both}
    accused = (ends - evidence.ranks.proven) or ends or set(evidence.pool[node])
    partners: tuple[int, ...] = ()
    if len(accused) == 1:
        partners = tuple(evidence.ranks.good_partners(min(accused)))
    return Cause(
        sort="inside",
        ranks=tuple(sorted(accused)),
        group=smallest.group,
        partners=partners,
        units=(node,),
    )


def _either(evidence: Evidence, failing: dict[Pair, Trial]) -> list[Cause]:
    """Return the nodes that fail with each other when nobody can say which of them is bad."""
    bad, links = {*evidence.bad_nodes}, {*evidence.node_links}
    open_pairs = [both for both in failing if bad.isdisjoint(both) and both not in links]
    smallest: dict[int, tuple[int, Pair]] = {}
    for both in open_pairs:
        size = (len(failing[both].ranks), both)
        for unit in both:
            smallest[unit] = min(smallest.get(unit, size), size)
    found = []
    for units in _connected(open_pairs):
        group = failing[min(smallest[unit] for unit in units)[1]].group
        good = units & evidence.nodes.proven
        accused = sorted(units - good) or sorted(units)
        ranks = tuple(rank for node in accused for rank in evidence.pool.get(node, ()))
        if len(accused) == 2 and not good:  # noqa: PLR2004  # a pair: represented by its ends
            ranks = tuple(evidence.pool[node][0] for node in accused if node in evidence.pool)
        found.append(
            Cause(
                sort="either",
                ranks=ranks,
                group=group,
                partners=tuple(sorted(good)),
                units=tuple(accused),
            )
        )
    return found


def _smallest(evidence: Evidence) -> dict[Pair, Trial]:
    """Return the smallest unexplained failure of each pair of nodes."""
    found: dict[Pair, Trial] = {}
    for trial in evidence.unexplained:
        if len(trial.nodes) == 2 and trial.nodes.isdisjoint(evidence.guilty):  # noqa: PLR2004
            both = pair(*trial.nodes)
            if both not in found or len(trial.ranks) < len(found[both].ranks):
                found[both] = trial
    return found


def _connected(pairs: Iterable[Pair]) -> list[set[int]]:
    """Return the units that are connected by pairs."""
    whole: dict[int, set[int]] = {}
    for first, other in pairs:
        left, right = whole.setdefault(first, {first}), whole.setdefault(other, {other})
        if left is not right:
            small, large = sorted((left, right), key=len)
            large |= small
            whole.update(dict.fromkeys(small, large))
    return sorted({id(found): found for found in whole.values()}.values(), key=min)


def form_of(trial: Trial) -> GroupFailure:
    """Return how a group fails."""
    known = list(trial.results.values())
    failed = [result for result in known if direct_evidence.went_wrong(result)]
    if any(result.kind == "wrong-value" for result in failed):
        return "wrong"
    furthest = max((direct_evidence.PHASES.index(result.phase) for result in known), default=0)
    if any(result.kind == "store-unreachable" for result in failed) or furthest < _CONNECT:
        return "store"
    if furthest == _CONNECT:
        return "connect"
    errors = (
        result for result in failed if result.status != "timed-out" and result.kind != "peer-lost"
    )
    return "error" if any(errors) else "hang"


def phase_of(trial: Trial) -> Phase | None:
    """Return the phase that the first rank to go wrong was in."""
    failed = [result for result in trial.results.values() if direct_evidence.went_wrong(result)]
    first = min(failed, key=lambda result: (result.order, result.rank), default=None)
    return first.phase if first is not None else None


class CauseSentence:
    """The sentence about a cause.

    Attributes:
        is_link: it is about the two ends of a link.
        is_nobody: nobody is blamed: only all together fail.
    """

    def __init__(self, evidence: Evidence, cause: Cause, form: GroupFailure) -> None:
        self._evidence = evidence
        self._cause = cause
        self._how = HOW[form]
        self._route = in_words(evidence.first(cause.group)) if form == "store" else ""
        if self._route:
            self._how = say("{how} ({why})", how=HOW[form], why=self._route)
        is_whole = len(evidence.nodes_of_job) == 1 and len(cause.group) > _PAIR
        self.is_nobody = cause.sort == "scale" or (cause.sort == "inside" and is_whole)
        of_two = cause.sort == "either" and len(cause.units) == _PAIR
        of_two |= cause.sort == "inside" and len(cause.ranks) == len(cause.group) == _PAIR
        self.is_link = cause.sort in ("link", "node-link") or of_two

    def confidence(self) -> Confidence:
        """Return how certain it is: less so if chance or too many bad units may explain it."""
        sort, evidence = self._cause.sort, self._evidence
        if sort == "either" or self._is_flaky() or self._are_many():
            return Confidence.POSSIBLE
        if sort in ("link", "node-link"):
            end = evidence.node_of[evidence.first(self._cause.group).group[0]]
            again = evidence.fails(self._cause.group) > 1
            again &= not self._route or end in evidence.entered  # else it may refuse all
            return Confidence.CERTAIN if again else Confidence.LIKELY
        if sort == "inside":
            again = evidence.fails_within[self._cause.units[0]] > 1
            is_told = not self.is_link and len(evidence.nodes_of_job) > 1  # by the other nodes
            return Confidence.LIKELY if again and is_told else Confidence.POSSIBLE
        return Confidence.LIKELY if sort == "port" else Confidence.CERTAIN

    def words(self) -> str:
        """Return the sentence, with every reason why it is less certain."""
        words = self._sentence()
        if self._is_flaky():
            words = say("{said}; but it passed at least once when that was repeated", said=words)
        named = direct_evidence.agreed_on(self._evidence.first(self._cause.group).results.values())
        if self.is_link and named is not None:
            words = say(
                "{said}; on both sides, the data that rank {rank} sent was wrong",
                said=words, rank=named,
            )  # fmt: skip
        if self._cause.sort in ("rank", "node") and self._are_many():
            words = say(
                "{said}; this is unsure, since more than a quarter of them fail", said=words
            )
        return words

    def _sentence(self) -> str:
        cause, how = self._cause, self._how
        count = len(cause.partners)
        if cause.sort == "rank":
            return say(
                "{how}, with each of {count} partners that pass with others (ranks {ranks})",
                how=how, count=count, ranks=words_of(cause.partners),
            )  # fmt: skip
        if cause.sort == "port":
            return say(
                "{how}, with each of {count} partners that pass with others on other hosts "
                "(ranks {ranks}); it works with its neighbours: its path out of the host is "
                "broken",
                how=how, count=count, ranks=words_of(cause.partners),
            )  # fmt: skip
        if cause.sort == "node":
            return say(
                "its ranks {how}, with each of {count} partners that pass with others (hosts "
                "{hosts}), and work among themselves",
                how=how, count=count, hosts=words_of(self._hosts(cause.partners)),
            )  # fmt: skip
        if cause.sort in ("link", "node-link"):
            return self._of_link()
        if cause.sort == "inside":
            return self._of_inside()
        if cause.sort == "scale":
            return self._of_scale()
        return self._of_either()

    def _of_link(self) -> str:
        times = _often(self._evidence.fails(self._cause.group))
        if self._route:
            return say(
                "{way}: {often}, while each end passes with others", way=self._route, often=times
            )
        if self._cause.sort == "link":
            return say(
                "the two {how} with each other ({often}), and each passes with others",
                how=self._how, often=times,
            )  # fmt: skip
        return say(
            "the ranks of the two hosts {how} with each other ({often}), and each passes with "
            "others",
            how=self._how, often=times,
        )  # fmt: skip

    def _of_inside(self) -> str:
        cause = self._cause
        if self.is_link:
            return say(
                "together they {how}: one of the two, or the link between them, is broken",
                how=self._how,
            )
        if cause.partners:
            return say(
                "with rank {ranks}, which passes with others, it {how}: it or the link is broken",
                ranks=words_of(cause.partners), how=self._how,
            )  # fmt: skip
        if len(cause.group) == _PAIR:
            return say(
                "no pair of the ranks {ranks} passes: they {how}; one of them, or what they share, "
                "is broken",
                ranks=words_of(cause.ranks), how=self._how,
            )  # fmt: skip
        return say(
            "groups of {count} or more of its ranks {how}, while every pair of them that was "
            "tried passes: the fault is not in a single GPU but in something that they share",
            count=len(cause.group), how=self._how,
        )  # fmt: skip

    def _of_scale(self) -> str:
        nodes = {self._evidence.node_of[rank] for rank in self._cause.group}
        return say(
            "groups of {count} or more ranks on {hosts} hosts {how}, while every pair of hosts "
            "that was tried passes: a link between nodes is broken, or the scale is too large",
            count=len(self._cause.group), hosts=len(nodes), how=self._how,
        )  # fmt: skip

    def _of_either(self) -> str:
        cause = self._cause
        hosts = words_of(self._hosts(cause.units))
        if cause.partners:
            return say(
                "with {hosts}, which pass with others, its ranks {how}: it or the link is broken",
                hosts=words_of(self._hosts(cause.partners)), how=self._how,
            )  # fmt: skip
        if len(cause.units) == _PAIR:
            return say(
                "together they {how}: {hosts}, or the link between them, is broken",
                how=self._how, hosts=any_of(self._hosts(cause.units)),
            )  # fmt: skip
        return say(
            "no pair of {hosts} that was tried passes: they {how}; more than a quarter of the "
            "nodes are bad, or something that they share is, so no node can be named",
            hosts=hosts, how=self._how,
        )  # fmt: skip

    def _hosts(self, nodes: Iterable[int]) -> list[str]:
        host_of = self._evidence.host_of
        return [host_of.get(node) or say("node {node}", node=node) for node in nodes]

    def _is_flaky(self) -> bool:
        ranks = set(self._cause.ranks)
        return any(
            not ranks.isdisjoint(trial.ranks) and len(trial.ranks) <= len(self._cause.group)
            for trial in self._evidence.transients
        )

    def _are_many(self) -> bool:
        """Whether more than a quarter of the ranks of the node, or of the nodes, are bad."""
        evidence, node = self._evidence, self._evidence.node_of[self._cause.ranks[0]]
        if self._cause.sort not in ("rank", "node", "inside"):
            return False
        neighbours = evidence.nodes_of_job.get(node, [])
        if self._cause.sort == "rank" and len(neighbours) > 1:
            bad = [rank for rank in neighbours if rank not in evidence.ranks.proven]
            return len([rank for rank in bad if rank not in evidence.direct]) > _quarter(neighbours)
        return evidence.bad_node_count > _quarter(evidence.nodes_of_job)


def _quarter(units: Collection[int]) -> int:
    return max(1, len(units) // 4)


def _often(times: int) -> str:
    if times == 1:
        return say("once")
    return say("twice") if times == 2 else say("{count} times", count=times)  # noqa: PLR2004
