"""Whether this is a container, of which kind, and which parts of the GPU it was given."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Private, Section
from gpucheck.language import say

Runtime = Literal[
    "docker", "podman", "kubernetes", "apptainer", "enroot", "lxc", "containerd", "other", ""
]


class Container(Section, frozen=True, kw_only=True):
    """The container around this process."""

    name: ClassVar[str] = "container"
    subject = say(
        "Whether this is a container, of which kind, and which parts of the GPU it was given."
    )

    runtime: Runtime | None = None
    """"" on a machine without a container."""
    injected: Annotated[list[str] | None, Private("paths")] = None
    """Driver files and device nodes that a runtime mounted (``/proc/self/mountinfo``)."""
    requirements: Annotated[str | None, Private("setting")] = None
    """``NVIDIA_REQUIRE_CUDA`` of the image; "" if it has none."""
    visible_devices: Annotated[str | None, Private("setting")] = None
    """``NVIDIA_VISIBLE_DEVICES`` as the image or the runtime set it; "" if unset."""
    driver_capabilities: Annotated[str | None, Private("setting")] = None
    """``NVIDIA_DRIVER_CAPABILITIES``; "" if unset."""
