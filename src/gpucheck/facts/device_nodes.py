"""The device nodes of the driver and whether this user may open them."""

from typing import ClassVar, Literal

from gpucheck.facts import Facts, Section
from gpucheck.language import say

OpenResult = Literal["opens", "EACCES", "EPERM", "ENOENT", "ENXIO", "ENODEV", "EIO", "other"]


class DeviceNode(Facts, frozen=True, kw_only=True):
    """One node below /dev."""

    path: str | None = None
    is_device: bool | None = None
    """False if there is a plain file or folder in place of the device."""
    mode: str | None = None
    """Permission bits in octal, such as ``0666``."""
    opens: OpenResult | None = None


class DeviceNodes(Section, frozen=True, kw_only=True):
    """``/dev/nvidia*``; on WSL ``/dev/dxg``; on a Jetson ``/dev/nvhost*`` and ``/dev/nvgpu*``."""

    name: ClassVar[str] = "device_nodes"
    subject = say("The device nodes of the driver and whether this user may open them.")

    nodes: list[DeviceNode] | None = None
    uid: int | None = None
    in_video_group: bool | None = None
