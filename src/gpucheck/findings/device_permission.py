"""The driver's device files are there, but this process may not open them."""

import re
import shlex

from gpucheck.derived.surroundings import slurm_gave_none
from gpucheck.facts import known
from gpucheck.facts.claims import Fix, Severity, or_else
from gpucheck.facts.driver import CudaDriver, DeviceNode, DeviceNodes
from gpucheck.facts.request import Request
from gpucheck.facts.system import Container, Environment, System
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import say, say_many

RULE = Rule(
    "device-permission",
    page="""\
The driver's device files are there, but this process may not open them.

Two causes look alike. Either the file mode keeps this user out (EACCES, "Permission denied"): then
root can use the GPU, but this user cannot. Or a cgroup forbids the device even to root (EPERM,
"Operation not permitted"): then this container, batch job or service was not given the GPU.

Symptoms: nvidia-smi says "Failed to initialize NVML: Insufficient Permissions", "Unknown Error" or
"No devices were found"; PyTorch says "No CUDA GPUs are available", or fails with error 304 or 999.

Causes:
- NVreg_DeviceFileMode or a udev rule restricts the file mode.
- On a Jetson the user is not in the group video.
- A container that had a GPU loses it when the host runs ``systemctl daemon-reload``.
- A container has the device files, but no permission to use them.

When it is reported: not in a Slurm job that was given no GPU. There the refusal is intended.

Fix: change the group or the file mode; or start the container, job or service with the GPU.
""",
    title=say("no permission to open the GPU"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("kernel-module-not-loaded", "driver-missing", "container-no-gpu"),
    refuted_by_cuda="always",
)

_GROUP_MAY = 0o060  # NVIDIA's libraries open the node to read and to write
_ALL_MAY = 0o006  # read and write for others, as NVIDIA's own settings make the nodes


@RULE.check
def check(
    nodes: DeviceNodes,
    cuda: CudaDriver,
    container: Container,
    environment: Environment,
    request: Request,
    system: System,
) -> Judgement:
    """Look for a device file that cannot be opened, because of its mode or of the cgroup."""
    if cuda.init_code == 0:
        return Fine(say("CUDA starts"))
    if system.os in ("windows", "macos"):
        return NotApplicable(say("only Linux has device files"))
    all_nodes = known(nodes.nodes, "device_nodes.nodes")
    if not all_nodes:
        return NotApplicable(say("there are no device files of NVIDIA"))
    needed = [at for at, node in enumerate(all_nodes) if not _is_numbered(node)]
    numbered = [at for at, node in enumerate(all_nodes) if _is_numbered(node)]
    one_opens = any(all_nodes[at].opens == "opens" for at in numbered)
    refused = [
        at
        for at in (*needed, *(() if one_opens else numbered))
        if all_nodes[at].opens in ("EACCES", "EPERM")
    ]
    if not refused:
        return Fine(say("this user may open the device files"))
    forbidden = [at for at in refused if all_nodes[at].opens == "EPERM"]
    if forbidden and slurm_gave_none(environment) and not request.gpus:
        return Fine(say("Slurm gave this job no GPU, and keeps the GPUs of other jobs from it"))
    at, *more = forbidden or refused
    path: str = all_nodes[at].path or ""
    if more:
        path = say_many(
            len(more),
            "{path} and {count} more device file",
            "{path} and {count} more device files",
            path=path,
        )
    evidence = (f"device_nodes.nodes.{at}.path", f"device_nodes.nodes.{at}.opens")
    if forbidden:
        return Hit(
            headline=say(
                "This process is not allowed to open {path} (EPERM): its cgroup has no access to "
                "the GPU",
                path=path,
            ),
            evidence=evidence,
            fixes=_grant(container, environment, all_nodes),
        )
    return Hit(
        headline=say(
            "This user is not allowed to open {path} (EACCES, mode {mode})",
            path=path,
            mode=all_nodes[at].mode,
        ),
        evidence=(*evidence, f"device_nodes.nodes.{at}.mode", "device_nodes.uid"),
        fixes=_open_up(all_nodes[at], system),
    )


def _is_numbered(node: DeviceNode) -> bool:
    return (node.path or "").removeprefix("/dev/nvidia").isdecimal()


def _grant(
    container: Container, environment: Environment, nodes: list[DeviceNode]
) -> tuple[Fix, ...]:
    runtime = container.runtime or ""
    if runtime == "kubernetes":
        return (
            Fix(
                text=say(
                    "Let the pod request a GPU, so that NVIDIA's device plugin gives it one. A "
                    "privileged mount of /dev is not enough."
                ),
                commands=("resources: {limits: {nvidia.com/gpu: 1}}",),
            ),
        )
    if runtime == "lxc":
        return (
            Fix(
                text=say(
                    "Allow the devices in the container's configuration on the host. The major "
                    "number of nvidia is 195; /proc/devices shows that of nvidia-uvm."
                ),
                commands=("lxc.cgroup2.devices.allow: c 195:* rwm", "grep nvidia /proc/devices"),
            ),
        )
    if runtime:
        return _grant_container(container, nodes)
    if environment.get("SLURM_JOB_ID"):
        return (Fix(text=say("Ask Slurm for a GPU."), commands=("srun --gres=gpu:1 gpucheck",)),)
    return (
        Fix(
            text=say(
                "Allow the devices for the service or session that runs this. In a systemd unit, "
                "set DeviceAllow= for /dev/nvidia0, /dev/nvidiactl and /dev/nvidia-uvm, and do "
                "not set PrivateDevices=yes."
            )
        ),
    )


def _grant_container(container: Container, nodes: list[DeviceNode]) -> tuple[Fix, ...]:
    given = Fix(
        text=say("Start the container with the GPU, not only with its device files mounted."),
        commands=(
            "podman run --device nvidia.com/gpu=all ..."
            if container.runtime == "podman"
            else "docker run --gpus all ...",
        ),
    )
    if not container.injected:
        return (given,)
    again = Fix(
        text=say(
            "Restart this container on its host ({command}): it had the GPU and lost it, probably "
            "because `systemctl daemon-reload` was run there.",
            command=f"{'podman' if container.runtime == 'podman' else 'docker'} restart CONTAINER",
        ),
        restart="container",
    )
    devices = " ".join(f"--device {shlex.quote(node.path)}" for node in nodes if node.path)
    lasting = Fix(
        text=say(
            "So that this does not recur, name all device files of the GPU when you start the "
            'container. Or put "exec-opts": ["native.cgroupdriver=cgroupfs"] into the host\'s '
            "/etc/docker/daemon.json and restart Docker, which interrupts all its containers."
        ),
        commands=(f"docker run --gpus all {devices} ...",),
        restart="service",
    )
    return again, lasting


def _open_up(node: DeviceNode, system: System) -> tuple[Fix, ...]:
    octal = re.fullmatch(r"[0-7]{1,7}", node.mode or "")
    mode = int(octal[0], 8) if octal else 0
    if mode & _ALL_MAY == _ALL_MAY:
        return (
            Fix(
                text=say(
                    "The mode lets every user in, so something else refuses: SELinux or AppArmor "
                    "(their log says so), or a user namespace."
                ),
                commands=("sudo ausearch -m avc -ts recent | grep nvidia",),
            ),
        )
    fixes = []
    if system.jetson:
        return (
            Fix(
                text=say("Add this user to the group video, then log in again."),
                commands=('sudo usermod -aG video "$USER"',),
                restart="session",
            ),
        )
    path = node.path or ""
    is_plain = path == shlex.quote(path)  # every device of the driver is
    if mode & _GROUP_MAY == _GROUP_MAY and is_plain:
        group = f"stat -c %G {path}"
        fixes.append(
            Fix(
                text=say(
                    "Add this user to the group of the file (it is often video, render or "
                    "vglusers), then log in again. If the first command prints root, the second "
                    "one does nothing: use the other fix (gpucheck -v)."
                ),
                commands=(
                    group,
                    f'[ "$({group})" = root ] || sudo usermod -aG "$({group})" "$USER"',
                ),
                restart="session",
            )
        )
    fixes.append(
        Fix(
            text=say(
                "Let every user use the GPU, which is the driver's default: find the line that "
                "restricts the mode, remove it, and restart. Until then, set the mode by hand."
            ),
            commands=(
                "grep -rn NVreg_DeviceFile /etc/modprobe.d; grep -rln nvidia /etc/udev/rules.d",
                "sudo chmod 0666 /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia[0-9]*",
            ),
            restart="machine",
        )
    )
    return (*fixes[:1], *(or_else(fix) for fix in fixes[1:]))
