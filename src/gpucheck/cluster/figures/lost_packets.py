"""Links on which packets get lost, when a collective hardly ends and nobody else is to blame.

Every network loses some packets, so a job that works is not judged by them: a fresh connection
sends twice as much each time until a queue is full, which may lose a quarter of a short message on
a sound link. After that TCP finds its rate, at which one in a hundred is lost at most. So loss
accounts for a collective only if packets still wait to be acknowledged when a quarter of its time
is over, or all of it. Of more than five in a hundred most are lost however slowly they are sent:
by a cable, a transceiver, a port. A way that is cut loses all, but then TCP waits twice as long
before each of its attempts, and makes fewer than ten of them in a minute.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.cluster.diagnose.naming import between, blamed, words_of
from gpucheck.cluster.diagnose.rounds import pair
from gpucheck.cluster.model import Roster, StepResult
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.culprit_data import PacketLoss
from gpucheck.facts.preflight import Culprit
from gpucheck.findings import link_slow
from gpucheck.language import say

_SHARE, _LEAST = 0.05, 20
"""The share of lost packets, and how many there must be."""
_CLEAN, _ENOUGH = 0.01, 100
"""The share up to which a route is well, and the packets that must have been sent on it."""
Route = tuple[int, int]
"""From one node to another."""


class Count(msgspec.Struct):
    """What was sent on a route, what of it got lost, and what was not acknowledged in the end."""

    sent: int = 0
    lost: int = 0
    waiting: int = 0

    @property
    def share(self) -> float:
        """The share that got lost."""
        return self.lost / self.sent if self.sent else 0.0


def culprits(roster: Roster, history: Sequence[StepResult]) -> list[Culprit]:
    """Name the link that loses packets, or the host if its links to several others do."""
    routes = _routes(roster, history)
    bad = {
        route: one for route, one in routes.items() if one.lost >= _LEAST and one.share >= _SHARE
    }
    if not any(one.waiting for one in bad.values()):
        return []
    lossy = {pair(*route) for route in bad}
    well = {
        node
        for route, one in routes.items()
        if pair(*route) not in lossy
        and all(_is_clean(routes.get(each)) for each in (route, route[::-1]))
        for node in route
    }
    has_ended = all(
        result.passed
        for done in history
        for result in done.results.values()
        if result.facts.lost_packets
    )
    shared = frozenset.intersection(*map(frozenset, lossy))
    ends = frozenset().union(*lossy)
    if len(lossy) == 1:
        sure = Confidence.LIKELY if ends <= well else Confidence.POSSIBLE
        return [between(_culprit(roster, ends, bad, sure, has_ended=has_ended), roster)]
    if len(shared) != 1 or shared & well:
        return []  # each link may have a fault of its own, or they share a switch
    sure = Confidence.LIKELY if ends - shared <= well else Confidence.POSSIBLE
    return [_culprit(roster, shared, bad, sure, has_ended=has_ended)]


def _is_clean(one: Count | None) -> bool:
    return one is not None and one.sent >= _ENOUGH and one.share <= _CLEAN


def _culprit(
    roster: Roster, nodes: frozenset[int], bad: Mapping[Route, Count], sure: Confidence, *,
    has_ended: bool,
) -> Culprit:  # fmt: skip
    """Return the entry of the link between two nodes, or of one whose links lose packets."""
    ranks = roster.nodes()
    hosts = {node: roster.ranks[ranks[node][0]].host for route in bad for node in route}
    (here, there), worst = max(bad.items(), key=lambda item: item[1].share)
    figures = {
        "sent": worst.sent, "lost": worst.lost, "share": worst.share,
        "here": hosts[here], "there": hosts[there],
    }  # fmt: skip
    words = (
        say(
            "a collective took more than a quarter of its time limit, and of {sent:,} packets from "
            "{here} to {there} {lost:,} got lost ({share:.0%})",
            **figures,
        )
        if has_ended
        else say(
            "a collective did not end, and of {sent:,} packets from {here} to {there} {lost:,} got "
            "lost ({share:.0%})",
            **figures,
        )
    )
    if len(nodes) == 1:
        others = sorted(hosts[node] for node in hosts.keys() - nodes)
        words = say("{said}; its links to {hosts} lose packets", said=words, hosts=words_of(others))
    return blamed(
        link_slow.RULE.slug, roster,
        [rank for node in nodes for rank in ranks[node][: 1 if len(nodes) > 1 else None]],
        evidence=words, confidence=sure,
        severity=Severity.WARNING if has_ended else Severity.ERROR,
        data=PacketLoss(sent=worst.sent, lost=worst.lost),
    )  # fmt: skip


def _routes(roster: Roster, history: Sequence[StepResult]) -> dict[Route, Count]:
    """Return what was sent between the nodes in steps that took long, and what got lost."""
    said = [
        (roster.ranks[rank].node, row)
        for done in history
        for rank, result in done.results.items()
        for row in result.facts.lost_packets
    ]
    nodes_at: dict[str, set[int]] = {}
    for node, (here, *_) in said:
        nodes_at.setdefault(here, set()).add(node)
    # Containers of several hosts may have the same address: that is nobody's.
    node_at = {here: min(nodes) for here, nodes in nodes_at.items() if len(nodes) == 1}
    living = roster.nodes()
    found: dict[Route, Count] = {}
    for node, (_here, there, sent, lost, waiting) in said:
        other = node_at.get(there, node)
        if other != node and {node, other} <= living.keys():
            one = found.setdefault((node, other), Count())
            one.sent += sent
            one.lost += lost
            one.waiting += waiting
    return found
