"""The driver's device nodes, and whether this user may open them."""

from gpucheck.facts import Answer, Notes
from gpucheck.facts.driver import DeviceNode, DeviceNodes, OpenResult
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say
from gpucheck.machine import Host, Stat
from gpucheck.probes.reading.platform import not_linux

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "driver"

# In this order, because of more than _MOST_NODES the last ones are left out.
_PATTERNS = (
    "/dev/nvidia*",
    "/dev/nvidia-caps/*",
    "/dev/dxg",
    "/dev/nvhost-*ctrl*",
    "/dev/nvmap",
    "/dev/nvgpu/*/*",
)
_FOLDERS = ("/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels")
"""Folders that the driver itself creates, in addition to its nodes."""
_OPENED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg", "/dev/nvmap")
_ALWAYS_THERE = "/dev/null"
# Chosen: the nodes of the GPUs come first. Of hundreds of MIG instances some are left out.
_MOST_NODES = 128


def collect(host: Host) -> DeviceNodes:
    """Look at every node, and open those that a CUDA program opens."""
    if problems := not_linux(host):
        return DeviceNodes(problems=problems)
    notes = Notes()
    identity = host.identity()
    if identity.uid < 0:
        notes.unknown("uid", say("the system has no user ids"))
    else:
        notes.known("uid", "getuid")
    return DeviceNodes(
        nodes=_nodes(host, notes),
        uid=identity.uid if identity.uid >= 0 else None,
        in_video_group=notes.take("in_video_group", _in_video_group(host)),
        sources=notes.sources,
        problems=notes.problems,
    )


def _nodes(host: Host, notes: Notes) -> list[DeviceNode] | None:
    if host.origin == "sysroot" and host.exists(_ALWAYS_THERE).value is not True:
        notes.unknown("nodes", say("the machine's /dev is not mounted below the sysroot"))
        return None
    paths: list[str] = []
    for pattern in _PATTERNS:
        answer = host.glob(pattern)
        if answer.value is None:
            notes.take("nodes", answer)
            return None
        paths += answer.value
    notes.known("nodes", "/dev")
    seen = [(path, host.stat(path)) for path in paths[:_MOST_NODES]]
    return [
        _node(host, path, stat)
        for path, stat in seen
        if not (path in _FOLDERS and stat.value is not None and stat.value.kind == "directory")
    ]


def _node(host: Host, path: str, stat: Answer[Stat]) -> DeviceNode:
    notes = Notes()
    is_device = notes.take("is_device", stat.map(lambda s: s.kind in ("character", "block")))
    mode = notes.take("mode", stat.map(lambda s: f"{s.mode:04o}"))
    opens: OpenResult | None = None
    if is_device is False:
        notes.unknown("opens", say("it is not a device"))
    elif path in _OPENED or path.removeprefix("/dev/nvidia").isdecimal():
        # If the driver hangs, opening its device hangs as well.
        host.stage(f"open {path}")
        opens = notes.take("opens", host.open_check(path))
    else:
        notes.unknown("opens", say("not tried: CUDA can start without it"))
    notes.known("path", "/dev")
    return DeviceNode(
        path=path,
        is_device=is_device,
        mode=mode,
        opens=opens,
        sources=notes.sources,
        problems=notes.problems,
    )


def _in_video_group(host: Host) -> Answer[bool]:
    groups = host.identity().groups

    def member(text: str) -> bool:
        for line in text.splitlines():
            fields = line.split(":")
            if fields[0] == "video" and len(fields) > 2:  # noqa: PLR2004  # name:password:gid
                return whole_number(fields[2]) in groups
        return False

    return host.read("/etc/group").map(member)
