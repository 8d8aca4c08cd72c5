"""What to do about a culprit of a pre-flight: about its kind, and to go on without its node."""

import ipaddress
import re
import shlex

import msgspec

from gpucheck.findings import Confidence, Fix, Severity
from gpucheck.fixes.nccl_surroundings import (
    enlarge_shared_memory,
    lift_memlock,
    look_at_nvlinks,
)
from gpucheck.probes.preflight import Culprit, Preflight

_AGAIN = "gpucheck preflight"
_MOST_FIXES = 4
_MOST_HOSTS = 16
"""More hosts than these stand in no command: --exclude-file has them all."""
_BREAKS_A_NODE = frozenset(
    [
        "rank-missing", "rank-hangs", "rank-crashed", "wrong-result", "nccl-p2p-broken",
        "nccl-transport-broken", "nccl-infiniband", "nvlink-down", "gpu-slow", "link-slow",
        "gpu-fallen-off-bus", "gpu-hardware-fault", "fabric-manager-down", "selftest-failed",
    ]
)  # fmt: skip
"""The node of these can be left out; nothing else than the job itself is wrong in the others."""

_NO_NAME = re.compile(r"[^A-Za-z0-9._:-]")
"""What is in no name of a host, and in no address."""
_XIDS = "sudo dmesg | grep -i -e NVRM -e Xid | tail -n 20"


def _cure(text: str, *commands: str) -> Fix:
    return Fix(text=text, commands=commands, verify=_AGAIN)


def _checked(fix: Fix) -> Fix:
    """Return a fix that another pre-flight verifies: on all hosts, not only here."""
    return msgspec.structs.replace(fix, verify=_AGAIN)


_CURES: dict[str, Fix] = {
    "rank-missing": _cure(
        "Look at the output of the process that should have started there, and whether the node "
        "is up and the launcher was given it."
    ),
    "rank-hangs": _cure(
        "Look on that host for errors of the driver; a GPU on which programs hang needs a reset "
        "or a reboot.",
        _XIDS,
    ),
    "rank-crashed": _cure(
        "Look on that host for errors of the driver and for processes that the kernel killed.",
        _XIDS,
        "sudo dmesg | grep -i -e oom -e segfault | tail -n 20",
    ),
    "wrong-result": _cure(
        "Take this GPU out of work and let NVIDIA's diagnostics (of the package "
        "datacenter-gpu-manager) examine it.",
        "dcgmi diag -r 3",
    ),
    "nccl-p2p-broken": _cure(
        "Look for what redirects the transfers between GPUs: an IOMMU that translates, or PCIe "
        "ACS on a bridge.",
        "sudo dmesg | grep -i -e IO_PAGE_FAULT -e DMAR",
        "sudo lspci -vvv | grep ACSCtl",
    ),
    "nccl-transport-broken": _cure(
        "Update the driver, with NVSwitch the fabric manager of the same release, and torch with "
        "its NCCL."
    ),
    "link-slow": _cure(
        "Look at the links of the hosts that are named.",
        "nvidia-smi topo -m",
        "nvidia-smi nvlink --status",
        "ibstat",
    ),
    "gpu-slow": _cure(
        "Look at its clocks, temperature and power beside a fast one's, under load.",
        "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER",
    ),
    "nvlink-down": _checked(look_at_nvlinks()),
    "ranks-heterogeneous": _cure(
        "Give every node the same image or environment, and every rank the same variables."
    ),
    "nccl-version-mismatch": _cure(
        "Give every node the same environment: torch and the nvidia-nccl wheel of the same "
        "release, and no other NCCL in LD_LIBRARY_PATH.",
        "python -m pip list | grep -i -e torch -e nccl",
    ),
    "nccl-network-interface": _cure(
        "Name the interface that leads to the other nodes, on every node, and open the ports "
        "between the nodes; run containers with the host's network.",
        "ip -brief address",
        "export NCCL_SOCKET_IFNAME=INTERFACE GLOO_SOCKET_IFNAME=INTERFACE",
    ),
    "nccl-infiniband": _cure(
        "Look at the ports on the host that is named: PORT_ACTIVE is what they should be in.",
        "ibv_devinfo",
        "ibstat",
    ),
    "memlock-too-low": _checked(lift_memlock(None, under_slurm=None)),
    "shm-too-small": _checked(enlarge_shared_memory(None)),
    "rendezvous-failed": _cure(
        "Give every rank an address and a port of the master that the other nodes reach (not "
        "127.0.0.1), free on the master and open in the firewall.",
        "ss -ltn",
    ),
    "nccl-duplicate-gpu": _cure(
        "Start one process for each GPU, and let either the launcher bind each to its own GPU or "
        "the program choose it by LOCAL_RANK, not both."
    ),
    "nccl-timeout": _cure(
        "Run it again with more time and NCCL's own log, to see what the ranks wait for.",
        "NCCL_DEBUG=INFO gpucheck preflight --timeout 600",
    ),
    "driver-too-old": _cure("Update the NVIDIA driver on the host that is named."),
    "requirement-not-met": _cure(
        "Bring the hosts that are named to what is required, or change what you require."
    ),
}
_ELSE = _cure("Look at the host that is named.", f"{_AGAIN} -v")


def fixes_for(culprits: list[Culprit], preflight: Preflight) -> tuple[Fix, ...]:
    """Return how to cure culprits of one kind; what lets the job run at once comes first."""
    first = culprits[0]
    variables = first.data.get("variables")
    around = (_without_transport(variables),) if isinstance(variables, dict) and variables else ()
    own = _own(first.data.get("fixes"))
    way = _way(first.data.get("way")) if first.slug == "nccl-network-interface" else ()
    cures = own or way or (_CURES.get(first.slug, _ELSE),)
    leave = _left_out(culprits, preflight)
    return (*around, *((leave,) if leave is not None else ()), *cures)


def _way(raw: object) -> tuple[Fix, ...]:
    """Return how to look at the way between two hosts; () when it is not known which it is."""
    if not isinstance(raw, dict):
        return ()
    try:
        address, port = str(ipaddress.ip_address(raw["address"])), int(raw["port"])
    except (KeyError, TypeError, ValueError):
        return ()
    here, there = _NO_NAME.sub("", str(raw.get("from"))), _NO_NAME.sub("", str(raw.get("to")))
    own = raw.get("from_address")
    at = f" ({_NO_NAME.sub('', str(own))})" if own else ""
    return (
        _cure(
            f"Look for what keeps {here}{at} from {there} ({address}): a firewall on one of them "
            "or between, a route, a switch. TCP must pass both ways on every port that their "
            "systems hand out (ip_local_port_range, 32768 to 60999 unless it was changed).",
            f"ip route get {address}  # on {here}",
            f"nc -l {port}  # on {there}",
            f"nc -vz -w 5 {address} {port}  # on {here}, meanwhile",
            "sysctl net.ipv4.ip_local_port_range  # on both",
        ),
    )


def _own(raw: object) -> tuple[Fix, ...]:
    """Return the fixes that the rules of the culprit's own node have found; () without any."""
    try:
        return tuple(msgspec.convert(raw or [], list[Fix])[:_MOST_FIXES])
    except msgspec.ValidationError:
        return ()


def _without_transport(variables: dict[object, object]) -> Fix:
    settings = " ".join(
        f"{name}={shlex.quote(str(value))}" for name, value in sorted(variables.items(), key=str)
    )
    return Fix(
        text="Until it is cured, let NCCL do without what fails, on every rank.",
        commands=(f"export {settings}",),
        verify=f"{settings} {_AGAIN}",
    )


def _left_out(culprits: list[Culprit], preflight: Preflight) -> Fix | None:
    """Return how to go on without the nodes; None where the blame is not on a node for sure.

    A drill takes no node out of work.
    """
    if culprits[0].slug not in _BREAKS_A_NODE or preflight.drill:
        return None
    blamed = [
        one for one in culprits
        if one.confidence is not Confidence.POSSIBLE and one.severity is Severity.ERROR
        and not one.is_link
    ]  # fmt: skip
    hosts = list(dict.fromkeys(host for one in blamed for host in _hosts(one)))
    every = {one.host for one in preflight.ranks or () if one.host}
    if not hosts or every <= set(hosts):
        return None
    if preflight.launcher != "slurm":
        return Fix(
            text=f"Start the job without {_some(hosts)} (--exclude-file FILE writes the list).",
            verify=_AGAIN,
        )
    if len(hosts) > _MOST_HOSTS:
        return Fix(
            text=f"Leave out {_some(hosts)}: --exclude-file FILE writes what srun --exclude takes.",
            verify=f"srun --exclude=FILE {_AGAIN}",
        )
    names = shlex.quote(",".join(hosts))
    reason = f"gpucheck: {culprits[0].slug}"
    return Fix(
        text=f"Run the job without {_some(hosts)}, and drain it until it is cured.",
        commands=(
            f"scontrol update NodeName={names} State=DRAIN Reason='{reason}'",
            f"srun --exclude={names} COMMAND",
        ),
        verify=f"srun --exclude={names} {_AGAIN}",
    )


def _hosts(culprit: Culprit) -> tuple[str, ...]:
    return culprit.hosts or ((culprit.host,) if culprit.host else ())


def _some(hosts: list[str]) -> str:
    return hosts[0] if len(hosts) == 1 else f"{hosts[0]} and {len(hosts) - 1} more"
