"""Ports of RDMA adapters: down or slower than on other hosts, and errors that they counted.

A port is known by its name, such as ``mlx5_0/1``. A port that a host does not have at all is a
difference of hardware, and nothing is said of it. What a counter shows may be years old, so only
what was added during the run counts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.cluster.diagnose.naming import blamed, words_of
from gpucheck.cluster.model import PHYSICAL_COUNTERS, TRANSPORT_COUNTERS, Facts, Roster
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.culprit_data import BadPorts
from gpucheck.facts.preflight import Culprit
from gpucheck.findings import nccl_infiniband
from gpucheck.language import in_clauses, in_series, say, say_many

_ACTIVE = "ACTIVE"
_SYMBOLS = "symbol_error"
_ALLOWED = 1e-12
"""Errors a bit that InfiniBand's specification allows a link."""
_GIGA = 1e9
_MOST_TOLD = 5
_OF_PORTS = ("ports", "port-rates")
"""The keys of ``node_settings`` that count states and rates without the names of the ports."""

GrownByTask = Mapping[int, Mapping[str, Mapping[str, int]]]


def culprits(roster: Roster, facts: Facts, *, collective_failed: bool) -> list[Culprit]:
    """Return the hosts that have a port down or at a lower rate than most others.

    It is an error only where a collective failed as well.
    """
    grave = Severity.ERROR if collective_failed else Severity.WARNING
    return [*ports_down(roster, facts, grave), *ports_slow(roster, facts, grave)]


def ports_down(roster: Roster, facts: Facts, severity: Severity) -> list[Culprit]:
    """Return the hosts that have a port down which most other hosts have up."""
    by_port: dict[str, dict[str, str]] = {}
    for one in facts.values():
        for said in one.infiniband or ():
            port, _blank, state = said.partition(" ")
            by_port.setdefault(port, {})[one.host] = state.strip().upper()
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
    for one in facts.values():
        for name, port in (one.ports or {}).items():
            if (port.state or "").upper() == _ACTIVE and port.gigabits is not None:
                by_port.setdefault(name, {})[one.host] = port.gigabits
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


def errors(roster: Roster, facts: Facts, grown: GrownByTask, seconds: float) -> list[Culprit]:
    """Return a warning for each host whose ports counted errors of the link during the run.

    Symbol errors count if there were more than InfiniBand allows a link of that rate in that time.
    """
    found = []
    for task, ports in sorted(grown.items()):
        said = [
            words
            for port, counters in sorted(ports.items())
            if (words := _errors(port, counters, _allowed(facts, task, port, seconds)))
        ]
        if said and task in facts:
            entry = _of_host(
                roster, facts[task].host, said, Severity.WARNING, in_clauses(said[:_MOST_TOLD])
            )
            found.append(entry)
    return found


def notices(facts: Facts, grown: GrownByTask) -> list[str]:
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
    hosts = {host for one in named for host in one.hosts}
    return {
        task: msgspec.structs.replace(
            one, settings={k: v for k, v in one.settings.items() if k not in _OF_PORTS}
        )
        if one.host in hosts and one.settings
        else one
        for task, one in facts.items()
    }


def _errors(port: str, counters: Mapping[str, int], symbols: float | None) -> str:
    """Return the errors of a port in words; "" if nothing counts."""
    said = [
        say("{name} +{count}", name=name, count=counters[name])
        for name in PHYSICAL_COUNTERS
        if counters.get(name)
        and (name != _SYMBOLS or (symbols is not None and counters[name] > symbols))
    ]
    if not said:
        return ""
    return say("{port} counted errors during the run: {errors}", port=port, errors=in_series(said))


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
        nccl_infiniband.RULE.slug,
        roster,
        [one.rank for one in roster.ranks if one.host == host],
        hosts=[host],
        severity=severity,
        confidence=Confidence.LIKELY,
        evidence=evidence,
        data=BadPorts(ports=[str(port) for port in sorted(ports)]),
    )


def _physical(facts: Facts) -> dict[tuple[str, str], str]:
    """Return the physical state of each port, by host and name."""
    return {
        (one.host, name): port.physical
        for one in facts.values()
        for name, port in (one.ports or {}).items()
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
