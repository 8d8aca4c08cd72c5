"""The RDMA ports of this machine, and the network interfaces that a job is told to use."""

from gpucheck.derived.job_network import Names
from gpucheck.facts import Notes
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import Network, NetworkInterface, RdmaPort
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.reading.platform import not_linux

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "files"

_CLASS = "/sys/class"
_INTERFACES = f"{_CLASS}/net"
_PORTS = f"{_CLASS}/infiniband/*/ports/*"
_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
_MOST = 64  # chosen: beyond what a node has; each costs some reads of sysfs


def collect(host: Host) -> Network:
    """Read the state of each."""
    if problems := not_linux(host):
        return Network(problems=problems)
    if host.exists(_CLASS).value is not True:
        return Network(problems={"*": say("/sys/class does not exist")})
    notes = Notes()
    ports = notes.take("rdma_ports", host.glob(_PORTS))
    return Network(
        interfaces=_interfaces(host, notes),
        rdma_ports=None if ports is None else [_port(host, folder) for folder in ports[:_MOST]],
        sources=notes.sources,
        problems=notes.problems,
    )


def _interfaces(host: Host, notes: Notes) -> list[NetworkInterface] | None:
    """Return the interfaces that a variable names; a host of containers has hundreds of others."""
    env = host.env()
    wanted = [Names.of(env[name]) for name in _VARIABLES if env.get(name)]
    if not wanted:
        notes.known("interfaces", say("the environment of gpucheck"))
        return []
    found = notes.take("interfaces", host.listing(_INTERFACES))
    if found is None:
        return None
    named = [name for name in sorted(found) if any(names.match(name) for names in wanted)]
    return [_interface(host, name) for name in named[:_MOST]]


def _interface(host: Host, name: str) -> NetworkInterface:
    notes = Notes()
    notes.known("*", _INTERFACES)
    return NetworkInterface(
        interface=name,
        state=notes.take("state", host.line(f"{_INTERFACES}/{name}/operstate")),
        sources=notes.sources,
        problems=notes.problems,
    )


def _port(host: Host, folder: str) -> RdmaPort:
    """Read a port; its state is a number and a word: ``4: ACTIVE``."""
    *_, adapter, _ports, port = folder.split("/")
    notes = Notes()
    notes.known("*", folder)
    state = host.line(f"{folder}/state").map(lambda line: line.rpartition(":")[2].strip() or None)
    of_device = host.listing(f"{_CLASS}/infiniband/{adapter}/device/net").absent([])
    return RdmaPort(
        adapter=adapter,
        port=whole_number(port),
        state=notes.take("state", state),
        interfaces=notes.take("interfaces", of_device),
        sources=notes.sources,
        problems=notes.problems,
    )
