"""Containers and the marks they leave."""

from pathlib import Path

from each import each
from support import machine

from gpucheck.machine import LiveHost
from gpucheck.probes.container import collect

DISK = "27 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
OVERLAY = (
    "611 437 0:56 / / rw,relatime master:191 - overlay overlay rw,"
    "lowerdir=/var/lib/docker/overlay2/l/ABC:/var/lib/docker/overlay2/l/DEF\n"
)
INJECTED = (
    "640 611 0:23 /nvidia-smi /usr/bin/nvidia-smi ro,nosuid - ext4 /dev/nvme0n1p2 rw\n"
    "641 611 0:23 /x /usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03 ro - ext4 /dev/nvme0n1p2 rw\n"
    "642 611 0:23 /x /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.54.03 ro - ext4 /dev/sda rw\n"
    "643 611 0:5 /nvidiactl /dev/nvidiactl ro,nosuid,noexec - devtmpfs udev rw\n"
    "644 611 0:5 /nvidia0 /dev/nvidia0 ro,nosuid,noexec - devtmpfs udev rw\n"
    "645 611 0:22 /driver/nvidia /proc/driver/nvidia ro - proc proc rw\n"
    "646 611 0:22 /x /data/my\\040libcuda.so.notes/file rw - ext4 /dev/sda rw\n"
    "broken line\n"
)
MOUNTS = "/proc/self/mountinfo"


def test_plain_machine(tmp_path: Path) -> None:
    files = {MOUNTS: DISK, "/proc/1/cgroup": "0::/init.scope\n", "/proc/2/comm": "kthreadd"}

    container = collect(machine(tmp_path, files=files))

    assert container.runtime == ""
    assert container.injected == []
    assert (container.requirements, container.visible_devices) == ("", "")


def test_docker_with_gpus(tmp_path: Path) -> None:
    env = {
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_REQUIRE_CUDA": "cuda>=12.4 brand=tesla,driver>=470,driver<471",
    }
    files = {MOUNTS: OVERLAY + INJECTED, "/.dockerenv": "", "/proc/1/cgroup": "0::/\n"}

    container = collect(machine(tmp_path, files=files, env=env))

    assert container.runtime == "docker"
    assert container.injected == [
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "/proc/driver/nvidia",
        "/usr/bin/nvidia-smi",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03",
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.54.03",
    ]
    assert container.visible_devices == "all"
    assert container.driver_capabilities == "compute,utility"
    assert container.requirements == "cuda>=12.4 brand=tesla,driver>=470,driver<471"
    assert container.source("requirements") == "$NVIDIA_REQUIRE_CUDA"


@each(
    ("files", "env", "expected"),
    [
        ({"/run/.containerenv": 'engine="podman-4.9.4"'}, {}, "podman"),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt": ""}, {}, "kubernetes"),
        ({"/.singularity.d/runscript": "", "/.dockerenv": ""}, {}, "apptainer"),
        ({}, {"APPTAINER_NAME": "pytorch.sif"}, "apptainer"),
        ({MOUNTS: "1 0 0:9 /enroot/data/x / rw - squashfs /run/enroot/u.sqsh ro\n"}, {}, "enroot"),
        ({"/run/systemd/container": "lxc\n"}, {}, "lxc"),
        ({"/run/systemd/container": "systemd-nspawn\n"}, {}, "other"),
        ({"/run/systemd/container": "wsl\n"}, {}, ""),
        ({}, {"container": "lxc"}, "lxc"),
        ({"/proc/1/cgroup": "12:devices:/kubepods/burstable/pod1/abc\n"}, {}, "kubernetes"),
        ({"/proc/1/cgroup": "12:devices:/docker/0123abc\n"}, {}, "docker"),
        ({"/proc/1/cgroup": "0::/../../containerd-x.scope\n"}, {}, "containerd"),
        ({MOUNTS: OVERLAY, "/proc/1/cgroup": "0::/\n"}, {}, "docker"),
        (
            {MOUNTS: OVERLAY.replace("docker/overlay2", "containerd/io.containerd.s")},
            {},
            "containerd",
        ),
    ],
)
def test_runtimes(
    tmp_path: Path, files: dict[str, str], env: dict[str, str], expected: str
) -> None:
    assert collect(machine(tmp_path, files=files, env=env)).runtime == expected


def test_machine_made_of_an_image_is_no_container(tmp_path: Path) -> None:
    files = {"/.dockerenv": "", MOUNTS: DISK, "/proc/2/comm": "kthreadd\n"}

    container = collect(machine(tmp_path, files=files))

    assert container.runtime == ""
    assert "left over" in container.source("runtime")


def test_container_that_sees_the_processes_of_its_host(tmp_path: Path) -> None:
    files = {"/.dockerenv": "", MOUNTS: OVERLAY, "/proc/2/comm": "kthreadd\n"}

    assert collect(machine(tmp_path, files=files)).runtime == "docker"


def test_the_host_of_this_container_is_no_container(tmp_path: Path) -> None:
    """As in a pod that mounts its host: "self" in the host's /proc is the pod."""
    files = {
        MOUNTS: OVERLAY + INJECTED,
        "/proc/1/mountinfo": DISK,
        "/proc/1/cgroup": "0::/init.scope\n",
    }
    for path, text in files.items():
        file = tmp_path / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    container = collect(LiveHost(str(tmp_path)))

    assert (container.runtime, container.injected) == ("", [])
    assert container.source("injected") == "/proc/1/mountinfo"


def test_nothing_readable_is_unknown(tmp_path: Path) -> None:
    container = collect(machine(tmp_path))

    assert container.runtime is None
    assert container.injected is None
    assert container.problem("injected")


def test_windows_knows_its_environment_only(tmp_path: Path) -> None:
    host = {"identity": {"os": "windows"}}

    container = collect(machine(tmp_path, host=host, env={"NVIDIA_VISIBLE_DEVICES": "0"}))

    assert container.runtime is None
    assert "Linux only" in container.problem("runtime")
    assert container.visible_devices == "0"
