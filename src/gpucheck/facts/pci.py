"""NVIDIA devices on the PCI bus; on a Jetson, in the device tree; on Windows, in the registry."""

from typing import Annotated, ClassVar

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say


class PciGpu(Facts, frozen=True, kw_only=True):
    """One NVIDIA display or 3D controller."""

    address: str | None = None
    """``0000:01:00.0``: domain, bus, device, function, in lower case."""
    device_id: str | None = None
    """Four hexadecimal digits in lower case."""
    product: str | None = None
    """The product of that device id; None if the tables do not know it. Several products that
    share an id are joined by " / "."""
    chip: str | None = None
    compute_capability: str | None = None
    bound_driver: str | None = None
    """The kernel driver bound to it (nvidia, nouveau, vfio-pci ...; on Windows nvlddmkm or
    BasicDisplay); "" if none is."""
    link_width: int | None = None
    """Current number of lanes."""
    link_width_max: int | None = None
    """Maximum number of lanes of the card."""
    port_width_max: int | None = None
    """Maximum number of lanes of the port above it."""
    link_speed: float | None = None
    """Current GT/s; an idle GPU lowers it."""
    link_speed_max: float | None = None
    numa_node: int | None = None
    """-1: the firmware names none."""
    enabled: bool | None = None


class Pci(Section, frozen=True, kw_only=True):
    """The devices on the bus."""

    name: ClassVar[str] = "pci"
    subject = say(
        "NVIDIA devices on the PCI bus; on a Jetson, in the device tree; on Windows, in the "
        "registry."
    )

    gpus: list[PciGpu] | None = None
    """[] if none was found on the bus: WSL and some virtual machines show no GPU there."""
    nvswitches: int | None = None
    adapters: list[str] | None = None
    """Windows: the names of all display adapters, as its Device Manager shows them. With the Basic
    Display Adapter that is no product."""
    former_gpus: list[str] | None = None
    """Windows: the names of NVIDIA adapters that were here earlier and are not here now. A laptop
    whose GPU is switched off shows it so."""
    other_display_vendors: list[str] | None = None
    """Vendors of display controllers other than NVIDIA: ``amd``, ``intel``, ``virtual`` ..."""
    jetson_gpu: Annotated[str | None, Private("path")] = None
    """The node of the GPU in a Jetson's device tree; "" if the machine has none."""
