"""The container around this process, if any, and the parts of the GPU that it was given."""

import fnmatch
from collections.abc import Mapping

from gpucheck.facts import Answer, Notes
from gpucheck.facts.system import Container, Runtime
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.reading.platform import not_linux

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "files"

_MOUNTS = "/proc/self/mountinfo"
_MOUNTS_OF_FIRST = "/proc/1/mountinfo"
# Bytes; chosen: one container had 1.6 KB, a node with many pods more.
_MOUNTS_LIMIT = 1024 * 1024
_MOST_CHARACTERS = 4096  # chosen: UUIDs of 100 GPUs fit
_APPTAINER_NAMES = (
    "APPTAINER_CONTAINER",
    "APPTAINER_NAME",
    "SINGULARITY_CONTAINER",
    "SINGULARITY_NAME",
)
# Innermost first: a pod of Kubernetes is made by Docker or containerd, and has their marks, too.
_MARKS: tuple[tuple[str, Runtime], ...] = (
    ("/.singularity.d", "apptainer"),
    ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ("/run/.containerenv", "podman"),
    ("/.dockerenv", "docker"),
)
_MANAGERS: dict[str, Runtime] = {
    "docker": "docker",
    "podman": "podman",
    "lxc": "lxc",
    "lxc-libvirt": "lxc",
    "kubernetes": "kubernetes",
    # systemd calls WSL a container, but it is not one.
    "wsl": "",
}
"""The container managers, by the value of ``container=``, with which they announce themselves."""
# Likewise: below kubepods stand the names of Docker or containerd, and Docker's own containers run
# below containerd.
_CGROUP_WORDS: tuple[tuple[str, Runtime], ...] = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
)
_ROOT_WORDS: tuple[tuple[str, Runtime], ...] = (
    ("/var/lib/docker/", "docker"),
    ("io.containerd.", "containerd"),
    ("/containers/storage/", "podman"),
)
_INJECTED = (
    "/dev/nvidia*",
    "*/libcuda.so*",
    "*/libnvidia-ml.so*",
    "/usr/bin/nvidia-smi",
    "/proc/driver/nvidia",
)


def collect(host: Host) -> Container:
    """Look for the traces that container runtimes leave."""
    # The files below a sysroot belong to another system than the environment and this process:
    # "self" in the host's /proc is the container that gpucheck itself runs in.
    elsewhere = host.origin == "sysroot"
    env = {} if elsewhere else host.env()
    notes = Notes()
    runtime: Runtime | None = None
    injected: list[str] | None = None
    problems = not_linux(host)
    if not problems:
        mounts = host.read(_MOUNTS_OF_FIRST if elsewhere else _MOUNTS, _MOUNTS_LIMIT)
        runtime = notes.take("runtime", _runtime(host, env, mounts))
        injected = notes.take("injected", mounts.map(_injected))
    return Container(
        runtime=runtime,
        injected=injected,
        requirements=_variable(env, notes, "requirements", "NVIDIA_REQUIRE_CUDA"),
        visible_devices=_variable(env, notes, "visible_devices", "NVIDIA_VISIBLE_DEVICES"),
        driver_capabilities=_variable(
            env, notes, "driver_capabilities", "NVIDIA_DRIVER_CAPABILITIES"
        ),
        sources=notes.sources,
        problems={**problems, **notes.problems},
    )


def _variable(env: Mapping[str, str], notes: Notes, field: str, name: str) -> str:
    notes.known(field, f"${name}")
    return env.get(name, "")[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()


def _runtime(host: Host, env: Mapping[str, str], mounts: Answer[str]) -> Answer[Runtime]:
    """Return the innermost runtime: one that runs inside another leaves a less specific trace."""
    root = mounts.map(_root_mount)
    name = next((name for name in _APPTAINER_NAMES if env.get(name)), "")
    if name:
        return Answer("apptainer", f"${name}")
    if "enroot" in (root.value or ""):
        return Answer("enroot", root.source)
    if env.get("KUBERNETES_SERVICE_HOST"):
        return Answer("kubernetes", "$KUBERNETES_SERVICE_HOST")
    for path, runtime in _MARKS:
        if host.exists(path).value:
            if _is_whole_machine(host, root.value or ""):
                return Answer(
                    "",
                    say(
                        "{mounts}; {path} is left over from an image", mounts=root.source, path=path
                    ),
                )
            return Answer(runtime, path)
    return _by_manager(host, env, root)


def _is_whole_machine(host: Host, root: str) -> bool:
    """Whether this is a machine built from a container image: its own disk and kernel."""
    disk = root.partition(" - ")[2].split(" ")[1:2]
    own_disk = bool(disk) and disk[0].startswith("/dev/") and "docker" not in disk[0]
    return own_disk and host.line("/proc/2/comm").value == "kthreadd"


def _by_manager(host: Host, env: Mapping[str, str], root: Answer[str]) -> Answer[Runtime]:
    """Check how the manager announces itself, then the names that it gives to its containers."""
    manager = host.line("/run/systemd/container")
    if not manager.value:
        manager = Answer(env.get("container", ""), "$container")
    if manager.value:
        return Answer(_MANAGERS.get(manager.value, "other"), manager.source)
    groups = host.read("/proc/1/cgroup")
    for word, runtime in _CGROUP_WORDS:
        if word in (groups.value or ""):
            return Answer(runtime, groups.source)
    for word, runtime in _ROOT_WORDS:
        if word in (root.value or ""):
            return Answer(runtime, root.source)
    if groups.value is None and root.value is None:
        return Answer(None, groups.source, groups.problem)
    return Answer("", f"{groups.source}, {root.source}")


def _root_mount(mounts: str) -> str:
    """Return the line of the mount at ``/``; the last one is on top."""
    return next((line for line in reversed(mounts.splitlines()) if _point(line) == "/"), "")


def _injected(mounts: str) -> list[str]:
    points = [_point(line) for line in mounts.splitlines()]
    found = {p for p in points if any(fnmatch.fnmatchcase(p, pattern) for pattern in _INJECTED)}
    return sorted(found)


def _point(line: str) -> str:
    """Return the mount point of a mountinfo line, its fifth word; "" in a broken line."""
    words = line.split(" ", 5)
    return words[4].replace("\\040", " ") if len(words) > 5 else ""  # noqa: PLR2004
