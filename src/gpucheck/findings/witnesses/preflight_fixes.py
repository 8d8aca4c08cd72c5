"""What to do about a culprit of a pre-flight: about its kind, and to go on without it."""

import ipaddress
import re
import shlex

import msgspec
from msgspec import UNSET, UnsetType

from gpucheck.derived.selftest_results import control_run, settings
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.preflight import (
    Culprit,
    CulpritData,
    FailedGroup,
    OwnFailure,
    PacketLoss,
    Preflight,
    Route,
    Throttled,
)
from gpucheck.findings.form import Rule
from gpucheck.findings.links import LINK_SLOW, REPLACE_THE_LINK
from gpucheck.findings.ranks import HELD, RAISE_THE_LIMIT, RANK_HANGS, RANK_SLOW
from gpucheck.language import say, say_many

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
