"""The findings of a pre-flight: its culprits, where they are, and what to do about each."""

import ipaddress
import re
import shlex

import msgspec
from msgspec import UNSET, UnsetType

from gpucheck.derived.selftest_results import control_run, settings
from gpucheck.facts.base import Derived
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.preflight import (
    Culprit,
    CulpritData,
    FailedGroup,
    OwnFailure,
    PacketLoss,
    Preflight,
    RankOutcome,
    Route,
    Throttled,
)
from gpucheck.findings import all_rules
from gpucheck.findings.form import Claim, Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.links import LINK_SLOW, REPLACE_THE_LINK
from gpucheck.findings.ranks import HELD, RAISE_THE_LIMIT, RANK_HANGS, RANK_SLOW
from gpucheck.language import Sentence, and_more, in_series, say, say_many

# What to do about a culprit of a pre-flight: about its kind, and to go on without its node.

_AGAIN = "gpucheck preflight"
_CULPRIT = 1
"""The class of findings whose hosts are in --exclude-file."""
_MOST_FIXES = 4  # chosen: another task sent them, and each is printed in full
_MOST_HOSTS = 16
"""A command names no more hosts than this: --exclude-file has them all."""
_NO_NAME = re.compile(r"[^A-Za-z0-9._:-]")
"""Characters that occur neither in host names nor in addresses."""
_SCOPE = re.compile(r"[A-Za-z0-9._-]{1,15}")
"""The scope of an IPv6 address is an interface; ``ipaddress`` takes any text for one."""
_LAST_PORT = 65535  # of TCP


def _fix(text: str, *commands: str) -> Fix:
    return Fix(text=text, commands=commands, verify=_AGAIN)


def fixes_for(rule: Rule, culprits: list[Culprit], preflight: Preflight) -> tuple[Fix, ...]:
    """Return what to do about culprits of one rule; what lets the job run at once comes first."""
    first = culprits[0]
    group = first.data if isinstance(first.data, FailedGroup) else None
    variables = control_run(group.variables) if group is not None else {}
    way = _way(group.route) if group is not None and rule.preflight.is_of_ways else ()
    around = (_without_transport(variables),) if variables else ()
    own = _own(first.data) or _by_facts(first)
    is_listed = rule.preflight_class == _CULPRIT
    leave = _left_out(culprits, preflight, is_listed=is_listed) if rule.breaks_node else None
    kind = (_of(rule, culprits),)
    return (*around, *((leave,) if leave is not None else ()), *(own or way or kind))


def _of(rule: Rule, culprits: list[Culprit]) -> Fix:
    """Return what the header of a rule says; otherwise to check the hosts by themselves."""
    header = rule.preflight
    if header.fix:
        return msgspec.structs.replace(_fix(header.fix, *header.commands), restart=header.restart)
    hosts = list(dict.fromkeys(host for culprit in culprits for host in _hosts(culprit)))
    if not hosts:
        return _fix(
            say("Run a check on each host of the job: it examines more than the pre-flight does."),
            "gpucheck",
        )
    return _fix(
        say(
            "Run a check on {hosts}: it examines more than the pre-flight does.",
            hosts=_some(hosts),
        ),
        "gpucheck",
    )


def _way(route: Route | UnsetType) -> tuple[Fix, ...]:
    """Return how to look at the network between two hosts; () if the hosts are not known."""
    if route is UNSET or route.port is None or not 0 < route.port <= _LAST_PORT:
        return ()
    try:
        address, port = _address(route.address), route.port
    except ValueError:
        return ()
    target = shlex.quote(address)
    here, there = _NO_NAME.sub("", route.near), _NO_NAME.sub("", route.far)
    at = _at_address(here, _NO_NAME.sub("", route.near_address)) if route.near_address else here
    return (
        _fix(
            say(
                "Find out what keeps {here} from {there}: a firewall on one of them or between "
                "them, a route, a switch. TCP must pass both ways on every port that their systems "
                "assign (ip_local_port_range, 32768 to 60999 unless it was changed).",
                here=at,
                there=_at_address(there, address),
            ),
            f"ip route get {target}  # on {here}",
            f"nc -l {port}  # on {there}",
            f"nc -vz -w 5 {target} {port}  # on {here}, meanwhile",
            "sysctl net.ipv4.ip_local_port_range  # on both",
        ),
    )


def _address(text: str) -> str:
    """Return an address in its usual form.

    Raises:
        ValueError: it is none, or its scope is not the name of an interface.
    """
    address = ipaddress.ip_address(text)
    scope = getattr(address, "scope_id", None)
    if scope is not None and not _SCOPE.fullmatch(scope):
        raise ValueError(f"{scope!r} is not an interface")
    return str(address)


def _at_address(host: str, address: str) -> str:
    return say("{host} ({address})", host=host, address=address)


def _own(data: CulpritData) -> tuple[Fix, ...]:
    """Return the fixes that the checks of the culprit's own node have found; () if none."""
    fixes = data.fixes if isinstance(data, (OwnFailure, Throttled)) else UNSET
    return tuple(fixes or ())[:_MOST_FIXES]


def _by_facts(culprit: Culprit) -> tuple[Fix, ...]:
    """Return what is known to help against what was seen of the culprit; () if nothing is.

    A saved report has no fixes of its own: this finds those that gpucheck had made.
    """
    slug, data = culprit.slug, culprit.data
    if slug == RANK_SLOW.slug and isinstance(data, Throttled):
        return (RAISE_THE_LIMIT,)
    if slug == LINK_SLOW.slug and isinstance(data, PacketLoss):
        return (REPLACE_THE_LINK,)
    look = data.look if isinstance(data, OwnFailure) else None
    if slug != RANK_HANGS.slug or look is None:
        return ()
    held = (state for state in (look.state, look.zygote) if state in HELD)
    return tuple(HELD[state] for state in held)[:1]


def _without_transport(variables: dict[str, str]) -> Fix:
    shell_settings = settings(dict(sorted(variables.items())))
    return Fix(
        text=say("Until this is repaired, switch off the failing feature of NCCL on every rank."),
        commands=(f"export {shell_settings}",),
        verify=f"{shell_settings} {_AGAIN}",
    )


def _left_out(culprits: list[Culprit], preflight: Preflight, *, is_listed: bool) -> Fix | None:
    """Return how to go on without the nodes; None if it is not certain that a node is at fault.

    A drill takes no node out of work. ``is_listed``: whether --exclude-file has such nodes.
    """
    if preflight.drill:
        return None
    blamed = [
        culprit for culprit in culprits
        if culprit.confidence is not Confidence.POSSIBLE and culprit.severity is Severity.ERROR
        and not culprit.is_link
    ]  # fmt: skip
    hosts = list(dict.fromkeys(host for culprit in blamed for host in _hosts(culprit)))
    every = {rank.host for rank in preflight.ranks or () if rank.host}
    if not hosts or every <= set(hosts):
        return None
    if not is_listed and (preflight.launcher != "slurm" or len(hosts) > _MOST_HOSTS):
        return Fix(text=say("Start the job without {hosts}.", hosts=_some(hosts)), verify=_AGAIN)
    if preflight.launcher != "slurm":
        return Fix(
            text=say(
                "Start the job without {hosts} (--exclude-file FILE writes the list).",
                hosts=_some(hosts),
            ),
            verify=_AGAIN,
        )
    if len(hosts) > _MOST_HOSTS:
        return Fix(
            text=say(
                "Leave out {hosts}: --exclude-file FILE writes the list for srun --exclude.",
                hosts=_some(hosts),
            ),
            verify=f"srun --exclude=FILE {_AGAIN}",
        )
    names = shlex.quote(",".join(hosts))
    reason = f"gpucheck: {culprits[0].slug}"
    return Fix(
        text=say_many(
            len(hosts),
            "Run the job without {hosts}, and drain this node until it is repaired.",
            "Run the job without {hosts}, and drain these nodes until they are repaired.",
            hosts=_some(hosts),
        ),
        commands=(
            f"scontrol update NodeName={names} State=DRAIN Reason='{reason}'",
            f"srun --exclude={names} COMMAND",
        ),
        verify=f"srun --exclude={names} {_AGAIN}",
    )


def _hosts(culprit: Culprit) -> tuple[str, ...]:
    return culprit.hosts or ((culprit.host,) if culprit.host else ())


def _some(hosts: list[str]) -> str:
    if len(hosts) == 1:
        return hosts[0]
    return say("{those} and {count} more", those=hosts[0], count=len(hosts) - 1)


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
