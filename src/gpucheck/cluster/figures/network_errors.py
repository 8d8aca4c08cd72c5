"""Errors of the network between nodes: ports of RDMA adapters, and links that lose packets.

A port is down or slower than on other hosts, or has counted errors. It is known by its name, such
as ``mlx5_0/1``. A port that a host does not have at all is a difference of hardware, and nothing is
said of it. What a counter shows may be years old, so only what was added during the run counts.

Every network loses some packets, so a job that works is not judged by them: a fresh connection
sends twice as much each time until a queue is full, which may lose a quarter of a short message on
a sound link. After that TCP finds its rate, at which one in a hundred is lost at most. So loss
accounts for a collective only if packets still wait to be acknowledged when a quarter of its time
is over, or all of it. Of more than five in a hundred most are lost however slowly they are sent:
by a cable, a transceiver, a port. A way that is cut loses all, but then TCP waits twice as long
before each of its attempts, and makes fewer than ten of them in a minute.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.cluster.diagnose.naming import between, blamed, words_of
from gpucheck.cluster.diagnose.rounds import pair
from gpucheck.cluster.model import PHYSICAL_COUNTERS, TRANSPORT_COUNTERS, Facts, Roster, StepResult
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import BadPorts, Culprit, PacketLoss
from gpucheck.findings.links import LINK_SLOW
from gpucheck.findings.nccl_network import NCCL_INFINIBAND
from gpucheck.language import in_clauses, in_series, say, say_many

_ACTIVE = "ACTIVE"
_SYMBOLS = "symbol_error"
_ALLOWED = 1e-12
"""Errors a bit that InfiniBand's specification allows a link."""
_GIGA = 1e9
"""Rates of links are decimal (``400 Gb/sec`` in sysfs)."""
_MOST_TOLD = 5
"""Ports or counters in a sentence. Chosen: more would not be read."""
_OF_PORTS = ("ports", "port-rates")
"""The keys of ``node_settings`` that count states and rates without the names of the ports."""
_GrownByTask = Mapping[int, Mapping[str, Mapping[str, int]]]
_SHARE, _LEAST = 0.05, 20
"""The share of lost packets, and how many there must be."""
_CLEAN, _ENOUGH = 0.01, 100
"""The share up to which a route is well, and the packets that must have been sent on it."""
Route = tuple[int, int]
"""From one node to another."""


def culprits(roster: Roster, facts: Facts, *, collective_failed: bool) -> list[Culprit]:
    """Return the hosts that have a port down or at a lower rate than most others.

    It is an error only where a collective failed as well.
    """
    grave = Severity.ERROR if collective_failed else Severity.WARNING
    return [*ports_down(roster, facts, grave), *ports_slow(roster, facts, grave)]


def ports_down(roster: Roster, facts: Facts, severity: Severity) -> list[Culprit]:
    """Return the hosts that have a port down which most other hosts have up."""
    by_port: dict[str, dict[str, str]] = {}
    for task_facts in facts.values():
        for port_state in task_facts.infiniband or ():
            port, _blank, state = port_state.partition(" ")
            by_port.setdefault(port, {})[task_facts.host] = state.strip().upper()
    physical = _physical(facts)
    down: dict[str, list[str]] = {}
    up_on: dict[str, int] = {}
    for port, states in by_port.items():
        up = [host for host, state in states.items() if state.endswith(_ACTIVE)]
        if 2 * len(up) <= len(states) and len(states) > 2:  # noqa: PLR2004  # one against one
            continue
        for host in set(states) - set(up) if up else ():
            words = _in_state(port, states[host], physical.get((host, port)))
            down.setdefault(host, []).append(words)
            up_on[host] = max(up_on.get(host, 0), len(up))
    return [
        _of_host(
            roster, host, ports, severity,
            say_many(
                up_on[host],
                "{ports}, and {active} on {count} other",
                "{ports}, and {active} on {count} others",
                ports=words_of(sorted(ports)),
                active=_ACTIVE,
            ),
        )
        for host, ports in sorted(down.items())
    ]  # fmt: skip


def ports_slow(roster: Roster, facts: Facts, severity: Severity) -> list[Culprit]:
    """Return the hosts that have a port up at a lower rate than most hosts have the same port."""
    by_port: dict[str, dict[str, float]] = {}
    for task_facts in facts.values():
        for name, port in (task_facts.ports or {}).items():
            if (port.state or "").upper() == _ACTIVE and port.gigabits is not None:
                by_port.setdefault(name, {})[task_facts.host] = port.gigabits
    slow: dict[str, list[str]] = {}
    for name, rates in sorted(by_port.items()):
        usual, votes = Counter(rates.values()).most_common(1)[0]
        if votes < 2 or 2 * votes <= len(rates):  # noqa: PLR2004  # one is no majority
            continue
        for host, rate in rates.items():
            if rate < usual:
                words = say_many(
                    votes,
                    "{port} runs at {rate:g} Gb/s, and at {usual:g} Gb/s on {count} other",
                    "{port} runs at {rate:g} Gb/s, and at {usual:g} Gb/s on {count} others",
                    port=name, rate=rate, usual=usual,
                )  # fmt: skip
                slow.setdefault(host, []).append(words)
    return [
        _of_host(roster, host, ports, severity, in_clauses(ports[:_MOST_TOLD]))
        for host, ports in sorted(slow.items())
    ]


def errors(roster: Roster, facts: Facts, grown: _GrownByTask, seconds: float) -> list[Culprit]:
    """Return a warning for each host whose ports counted errors of the link during the run.

    Symbol errors count if there were more than InfiniBand allows a link of that rate in that time.
    """
    found = []
    for task, ports in sorted(grown.items()):
        sentences = [
            words
            for port, counters in sorted(ports.items())
            if (words := _errors(port, counters, _allowed(facts, task, port, seconds)))
        ]
        if sentences and task in facts:
            entry = _of_host(
                roster,
                facts[task].host,
                sentences,
                Severity.WARNING,
                in_clauses(sentences[:_MOST_TOLD]),
            )
            found.append(entry)
    return found


def notices(facts: Facts, grown: _GrownByTask) -> list[str]:
    """Return a sentence for the hosts whose ports repeated transfers: no fault by itself."""
    repeated = {
        facts[task].host: total
        for task, ports in sorted(grown.items())
        if task in facts
        and (total := sum(counters.get(name, 0) for counters in ports.values()
                          for name in TRANSPORT_COUNTERS))
    }  # fmt: skip
    if not repeated:
        return []
    worst = sorted(repeated, key=lambda host: -repeated[host])
    hosts = [say("{host}: {count}", host=host, count=repeated[host]) for host in worst]
    return [
        say(
            "During the run, RDMA ports counted transfers that came late, out of order or again "
            "({hosts}). A busy network does that, too.",
            hosts=words_of(hosts),
        )
    ]


def without_named(facts: Facts, named: Sequence[Culprit]) -> Facts:
    """Return the facts without the number of ports in each state of hosts that are named for it."""
    hosts = {host for culprit in named for host in culprit.hosts}
    return {
        task: msgspec.structs.replace(
            task_facts,
            settings={k: v for k, v in task_facts.settings.items() if k not in _OF_PORTS},
        )
        if task_facts.host in hosts and task_facts.settings
        else task_facts
        for task, task_facts in facts.items()
    }


def _errors(port: str, counters: Mapping[str, int], symbols: float | None) -> str:
    """Return the errors of a port in words; "" if nothing counts."""
    sentences = [
        say("{name} +{count}", name=name, count=counters[name])
        for name in PHYSICAL_COUNTERS
        if counters.get(name)
        and (name != _SYMBOLS or (symbols is not None and counters[name] > symbols))
    ]
    if not sentences:
        return ""
    return say(
        "{port} counted errors during the run: {errors}", port=port, errors=in_series(sentences)
    )


def _allowed(facts: Facts, task: int, port: str, seconds: float) -> float | None:
    """Return how many symbol errors a port may count in that time, None if its rate is unknown."""
    known = (facts[task].ports or {}).get(port) if task in facts else None
    if known is None or known.gigabits is None:
        return None
    return 1 + known.gigabits * _GIGA * seconds * _ALLOWED


def _of_host(
    roster: Roster, host: str, ports: Sequence[str], severity: Severity, evidence: str
) -> Culprit:
    return blamed(
        NCCL_INFINIBAND.slug,
        roster,
        [rank.rank for rank in roster.ranks if rank.host == host],
        hosts=[host],
        severity=severity,
        confidence=Confidence.LIKELY,
        evidence=evidence,
        data=BadPorts(ports=[str(port) for port in sorted(ports)]),
    )


def _physical(facts: Facts) -> dict[tuple[str, str], str]:
    """Return the physical state of each port, by host and name."""
    return {
        (task_facts.host, name): port.physical
        for task_facts in facts.values()
        for name, port in (task_facts.ports or {}).items()
        if port.physical
    }


def _in_state(port: str, state: str, physical: str | None) -> str:
    if not state:
        return say("{port} has no state", port=port)
    if physical:
        return say(
            "{port} is {state} (physical state {physical})",
            port=port,
            state=state,
            physical=physical,
        )
    return say("{port} is {state}", port=port, state=state)


class Count(msgspec.Struct):
    """What was sent on a route, what of it got lost, and what was not acknowledged in the end."""

    sent: int = 0
    lost: int = 0
    waiting: int = 0

    @property
    def share(self) -> float:
        """The share that got lost."""
        return self.lost / self.sent if self.sent else 0.0


def losses(roster: Roster, history: Sequence[StepResult]) -> list[Culprit]:
    """Name the link that loses packets, or the host if its links to several others do."""
    routes = _routes(roster, history)
    bad = {
        route: count
        for route, count in routes.items()
        if count.lost >= _LEAST and count.share >= _SHARE
    }
    if not any(count.waiting for count in bad.values()):
        return []
    lossy = {pair(*route) for route in bad}
    well = {
        node
        for route, count in routes.items()
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


def _is_clean(count: Count | None) -> bool:
    return count is not None and count.sent >= _ENOUGH and count.share <= _CLEAN


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
        LINK_SLOW.slug, roster,
        [rank for node in nodes for rank in ranks[node][: 1 if len(nodes) > 1 else None]],
        evidence=words, confidence=sure,
        severity=Severity.WARNING if has_ended else Severity.ERROR,
        data=PacketLoss(sent=worst.sent, lost=worst.lost),
    )  # fmt: skip


def _routes(roster: Roster, history: Sequence[StepResult]) -> dict[Route, Count]:
    """Return what was sent between the nodes in steps that took long, and what got lost."""
    rows = [
        (roster.ranks[rank].node, row)
        for done in history
        for rank, result in done.results.items()
        for row in result.facts.lost_packets
    ]
    nodes_at: dict[str, set[int]] = {}
    for node, (here, *_) in rows:
        nodes_at.setdefault(here, set()).add(node)
    # Containers of several hosts may have the same address: that is nobody's.
    node_at = {here: min(nodes) for here, nodes in nodes_at.items() if len(nodes) == 1}
    living = roster.nodes()
    found: dict[Route, Count] = {}
    for node, (_here, there, sent, lost, waiting) in rows:
        other = node_at.get(there, node)
        if other != node and {node, other} <= living.keys():
            count = found.setdefault((node, other), Count())
            count.sent += sent
            count.lost += lost
            count.waiting += waiting
    return found
