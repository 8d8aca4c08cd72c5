"""Several hosts on one machine: network namespaces with names of their own, joined by a bridge.

Each host has an address, a host name and an /etc/hosts that knows the others. A link between two
hosts can be cut (frames get lost, nobody is told) or made slow, and a host can lose its power.
It needs root and the kernel's network namespaces.
"""

import ipaddress
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_NUMBERS = itertools.count()
_RANDOM = 0xFFFFF000 + 56
"""Where a packet filter of the kernel reads a random number."""
_NOWHERE = "02:00:00:00:de:ad"
_CONFIG = Path("/etc/netns")
"""Where ``ip netns exec`` finds files to show in place of those in /etc."""


def missing() -> str:
    """Return why there can be no such hosts here; "" when there can."""
    for tool in ("ip", "tc", "unshare"):
        if not shutil.which(tool):
            return f"{tool} is not installed (apt-get install iproute2 util-linux)"
    if os.geteuid() != 0:
        return "network namespaces of one's own need root"
    name = f"gpucheck-try-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if done.returncode == 0:
        bridge = ["ip", "-n", name, "link", "add", "br0", "type", "bridge"]
        done = subprocess.run(bridge, capture_output=True, check=False)
        _ip("netns", "del", name)
    words = done.stderr.decode(errors="replace").strip()
    return f"this kernel lets no network namespace be joined: {words}" if done.returncode else ""


def shaping_missing() -> str:
    """Return why no link can be made slow here; "" when one can."""
    with hosts(2) as two:
        try:
            two.slow(0, 1, 8)
        except subprocess.CalledProcessError as error:
            return f"the kernel has no qdisc that shapes: {error.stderr.decode().strip()}"
    return ""


def losing_missing() -> str:
    """Return why no link can lose a share of its packets here; "" when one can."""
    with hosts(2) as two:
        try:
            two.lose(0, 1, 0.5)
        except subprocess.CalledProcessError as error:
            return f"the kernel has no filter for that: {error.stderr.decode().strip()}"
    return ""


class Hosts:
    """The hosts, numbered from 0; they know each other by their names, and those in the domain."""

    def __init__(self, names: Sequence[str], domain: str) -> None:
        self._stem = f"gpucheck-{os.getpid()}-{next(_NUMBERS)}-"
        self.names = tuple(names)
        self.master = self.names[0]
        self.addresses = tuple(f"10.77.0.{number}" for number in range(1, len(names) + 1))
        self._domain = domain
        self._started: list[subprocess.Popen[str]] = []

    def space(self, host: int) -> str:
        """Return the name of a host's network namespace."""
        return f"{self._stem}{host}"

    def start(
        self, host: int, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start a program on a host; its output and errors go to pipes."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.names[host]]
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.space(host), *named, *command],
            env={**os.environ, **(env or {})}, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._started.append(process)
        return process

    def cut(self, one: int, other: int) -> None:
        """Lose every frame between two hosts from now on; nobody is told."""
        for here, there in ((one, other), (other, one)):
            _ip(
                "-n", self.space(here), "neigh", "replace", self.addresses[there], "lladdr",
                _NOWHERE, "dev", "eth0", "nud", "permanent",
            )  # fmt: skip

    def slow(self, one: int, other: int, mbit: float) -> None:
        """Let so many megabits a second through between two hosts, each way."""
        for here, there in ((one, other), (other, one)):
            tc, at = ["tc", "-n", self.space(here)], ["dev", "eth0", "parent", "1:"]
            if "htb 1:" not in _do(*tc, "qdisc", "show", "dev", "eth0"):
                _do(*tc, "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "htb")
            number = f"1:{there + 1:x}"
            _do(*tc, "class", "replace", *at, "classid", number, "htb", "rate", f"{mbit}mbit")
            to = ["u32", "match", "ip", "dst", f"{self.addresses[there]}/32", "flowid", number]
            _do(*tc, "filter", "add", *at, "protocol", "ip", "prio", str(there + 1), *to)

    def slow_down(self, host: int, mbit: float) -> None:
        """Let so many megabits a second through between a host and all others, each way."""
        middle = f"{self._stem}middle"
        shape = ["root", "tbf", "rate", f"{mbit}mbit", "burst", "16kb", "latency", "400ms"]
        _do("tc", "-n", self.space(host), "qdisc", "replace", "dev", "eth0", *shape)
        _do("tc", "-n", middle, "qdisc", "replace", "dev", f"to{host}", *shape)

    def let_nobody_in(self, host: int) -> None:
        """Lose whatever opens a connection to a host; those that it opens itself work."""
        tc, at = ["tc", "-n", f"{self._stem}middle"], ["dev", f"to{host}"]
        _do(*tc, "qdisc", "replace", *at, "root", "handle", "1:", "htb")
        _do(*tc, "class", "add", *at, "parent", "1:", "classid", "1:1", "htb", "rate", "1kbit")
        _do(*tc, "qdisc", "add", *at, "parent", "1:1", "bfifo", "limit", "1")
        # Of a TCP header's flags (its 14th byte) SYN is set, and ACK is not.
        opens = ["match", "ip", "protocol", "6", "0xff", "match", "u8", "0x02", "0x12", "at", "33"]
        parent = ["parent", "1:", "protocol", "ip", "prio", "1"]
        _do(*tc, "filter", "add", *at, *parent, "u32", *opens, "flowid", "1:1")

    def lose(self, one: int, other: int, share: float) -> None:
        """Lose this share of the packets between two hosts, each way, at random."""
        most = int(share * 0x100000000)
        for here, there in ((one, other), (other, one)):
            # Not where it sends: the sender would be told, and would try again at once.
            tc, at = ["tc", "-n", f"{self._stem}middle"], ["dev", f"to{here}"]
            if "clsact" not in _do(*tc, "qdisc", "show", *at):
                _do(*tc, "qdisc", "add", *at, "clsact")
                # Packets as on a wire, and not up to 44 of them as one.
                _ip("-n", self.space(here), "link", "set", "eth0", "gso_max_segs", "1")
            to = int(ipaddress.ip_address(self.addresses[there]))
            # IPv4, to that address, and a random number below the share: dropped. Else passed on.
            program = (
                f"8,40 0 0 12,21 0 5 2048,32 0 0 30,21 0 3 {to},32 0 0 {_RANDOM},53 1 0 {most},"
                "6 0 0 2,6 0 0 4294967295"
            )
            _do(*tc, "filter", "add", *at, "ingress", "bpf", "da", "bytecode", program)

    def narrow(self, host: int, *, inwards: bool = True, outwards: bool = True) -> None:
        """Lose packets of a kilobyte or more on their way to or from a host: an MTU black hole."""
        ways = []
        if inwards:
            ways.append((["tc", "-n", f"{self._stem}middle"], f"to{host}"))
        if outwards:
            ways.append((["tc", "-n", self.space(host)], "eth0"))
        for tc, device in ways:
            at = ["dev", device]
            _do(*tc, "qdisc", "replace", *at, "root", "handle", "1:", "htb")
            _do(*tc, "class", "add", *at, "parent", "1:", "classid", "1:1", "htb", "rate", "1kbit")
            _do(*tc, "qdisc", "add", *at, "parent", "1:1", "bfifo", "limit", "1")
            for bit in range(10, 16):  # any of these is set in the length of a large IP packet
                large = ["match", "u16", f"{1 << bit:#x}", f"{1 << bit:#x}", "at", "2"]
                parent = ["parent", "1:", "protocol", "ip", "prio", "1"]
                _do(*tc, "filter", "add", *at, *parent, "u32", *large, "flowid", "1:1")

    def power_off(self, host: int) -> None:
        """Take a host away: its link first, so that no farewell gets out, then its processes."""
        _ip("-n", self.space(host), "link", "set", "eth0", "down")
        pids = _do("ip", "netns", "pids", self.space(host)).split()
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)

    def set_up(self) -> None:
        """Make the hosts and the bridge between them, which lies in a namespace of its own."""
        middle = f"{self._stem}middle"
        _ip("netns", "add", middle)
        _ip("-n", middle, "link", "add", "br0", "type", "bridge")
        _ip("-n", middle, "link", "set", "br0", "up")
        for host, address in enumerate(self.addresses):
            space = self.space(host)
            _ip("netns", "add", space)
            self._know_names(host)
            ends = ["eth0", "netns", space, "type", "veth", "peer", "name", f"to{host}"]
            _ip("link", "add", *ends, "netns", middle)
            _ip("-n", middle, "link", "set", f"to{host}", "master", "br0", "up")
            _ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", space, "link", "set", device, "up")

    def tear_down(self) -> None:
        """End what was started and take all away."""
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        for host in range(len(self.names)):
            shutil.rmtree(_CONFIG / self.space(host), ignore_errors=True)
        for name in (*map(self.space, range(len(self.names))), f"{self._stem}middle"):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _know_names(self, host: int) -> None:
        folder = _CONFIG / self.space(host)
        folder.mkdir(parents=True)
        known = zip(self.addresses, self.names, strict=True)
        lines = [
            "127.0.0.1 localhost\n",
            *(f"{at} {name}.{self._domain} {name}\n" for at, name in known),
        ]
        (folder / "hosts").write_text("".join(lines))


@contextmanager
def hosts(count: int, names: Sequence[str] = (), domain: str = "test") -> Iterator[Hosts]:
    """Have so many hosts for a while, ``host1``, ``host2`` ... if they are given no names."""
    some = Hosts(names or [f"host{number}" for number in range(1, count + 1)], domain)
    try:
        some.set_up()
        yield some
    finally:
        some.tear_down()


def _ip(*words: str) -> str:
    return _do("ip", *words)


def _do(*command: str) -> str:
    return subprocess.run(command, capture_output=True, check=True, timeout=20).stdout.decode()
