"""What can be shown: each demo is a recorded machine of the tests, or a pre-flight."""

import msgspec

from gpucheck.language import say

_BY_HAND = say("Made by hand after reports of such machines.")
_OF_A_REAL_ENVIRONMENT = say(
    "The Python environment is a real one that was broken on purpose; the machine around it was "
    "made by hand."
)


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be shown."""

    title: str
    machine: str
    """The test machine that it is made from; "" of a pre-flight."""
    origin: str = _BY_HAND
    command: str = "gpucheck"
    """What a user would have typed."""
    gpus: int | None = None
    """The value of ``--gpus`` in it."""


DEMOS = {
    "rtx5090": Demo(
        title=say("A student's RTX 5090, and a PyTorch that is older than it"),
        machine="rtx5090-cu124",
    ),
    "cpu-build": Demo(
        title=say("GPU and driver work, but PyTorch is the build for the CPU"),
        machine="cpu-build-with-gpu",
    ),
    "windows": Demo(
        title=say("Windows, where pip install torch brings the build for the CPU"),
        machine="windows-cpu-build",
    ),
    "wsl": Demo(
        title=say("WSL 2 in which somebody has installed a driver for Linux"),
        machine="wsl2-linux-driver-inside",
    ),
    "docker": Demo(
        title=say("A container that was started without its GPU"),
        machine="docker-no-gpu",
    ),
    "old-driver": Demo(
        title=say("A driver that is too old for the CUDA of PyTorch"),
        machine="r470-cu121",
    ),
    "updated-driver": Demo(
        title=say("A driver that was updated while its old kernel module is still loaded"),
        machine="library-mismatch",
    ),
    "hidden-gpus": Demo(
        title=say("CUDA_VISIBLE_DEVICES that hides every GPU"),
        machine="cvd-all-word",
    ),
    "broken-wheel": Demo(
        title=say("A CUDA library that a full disk has cut off"),
        machine="cuda-library-cut-off",
        origin=_OF_A_REAL_ENVIRONMENT,
    ),
    "foreign-library": Demo(
        title=say("A package that has replaced a CUDA library of PyTorch"),
        machine="torch26-nvjitlink-older",
        origin=_OF_A_REAL_ENVIRONMENT,
    ),
    "healthy-node": Demo(
        title=say("A node with eight H100, and nothing is wrong"),
        machine="h100x8-r580-cu130",
        command="gpucheck --gpus 8",
        gpus=8,
    ),
    "fallen-gpu": Demo(
        title=say("A node with eight H100, one of which has fallen off the bus"),
        machine="gpu-lost-xid79",
        command="gpucheck --gpus 8",
        gpus=8,
    ),
    "fabric-manager": Demo(
        title=say("A node with NVSwitch whose fabric manager does not run"),
        machine="fabric-manager-802",
    ),
    "hanging-driver": Demo(
        title=say("A driver that hangs: much stays unknown, and gpucheck says so"),
        machine="nvml-hangs",
    ),
    "preflight-hang": Demo(
        title=say("A pre-flight of 64 ranks, one of which never comes"),
        machine="",
        origin=say("The job is simulated; the judgement is that of a real pre-flight."),
        command="srun gpucheck preflight",
    ),
}
"""By name, in the order in which they are listed."""
