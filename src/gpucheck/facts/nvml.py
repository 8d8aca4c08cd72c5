"""The state of each GPU as NVML reports it."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

CLOCK_REASONS = (
    "gpu-idle",
    "applications-clocks-setting",
    "sw-power-cap",
    "hw-slowdown",
    "sync-boost",
    "sw-thermal-slowdown",
    "hw-thermal-slowdown",
    "hw-power-brake-slowdown",
    "display-clock-setting",
    "board-limit",
    "reliability",
)
"""NVML's reasons for clocks below their maximum, from the lowest bit up."""

FABRIC_FAULTS = (
    "degraded-bandwidth",
    "route-recovery",
    "route-unhealthy",
    "access-timeout-recovery",
    "incorrect-configuration",
    "fabric-manager-disconnected",
)
"""What NVML's health mask of the NVLink fabric can say against a GPU."""

ComputeMode = Literal["default", "exclusive-thread", "prohibited", "exclusive-process"]


class GpuProcess(Facts, frozen=True, kw_only=True):
    """A process that holds memory of a GPU."""

    pid: int | None = None
    used_bytes: int | None = None
    kind: Literal["compute", "graphics"] | None = None
    process_name: str | None = None
    """The base name of its program; "" if it is not visible (another container or user)."""


class MigDevice(Facts, frozen=True, kw_only=True):
    """One MIG instance."""

    uuid: Annotated[str | None, Private("uuid")] = None
    device_name: str | None = None
    memory_total_bytes: int | None = None


class NvmlGpu(Facts, frozen=True, kw_only=True):
    """One GPU. A call that the driver does not support leaves only its own field unknown."""

    index: int | None = None
    lost: bool | None = None
    """NVML answered "GPU is lost", or "unknown error" for its handle."""
    handle_code: int | None = None
    """NVML's result code for the handle; 0 is success."""
    device_name: str | None = None
    uuid: Annotated[str | None, Private("uuid")] = None
    pci_address: str | None = None
    """In the form of ``pci.gpus``: ``0000:01:00.0``."""
    compute_capability: str | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    processes: list[GpuProcess] | None = None
    ecc_enabled: bool | None = None
    ecc_after_reset: bool | None = None
    """Whether ECC is on after the next reset of the GPU."""
    ecc_corrected: int | None = None
    """Since the driver was loaded."""
    ecc_uncorrected: int | None = None
    """Since the driver was loaded."""
    ecc_uncorrected_ever: int | None = None
    pages_pending: bool | None = None
    """A page retirement waits for a reset."""
    rows_remapped_uncorrected: int | None = None
    rows_pending: bool | None = None
    rows_failed: bool | None = None
    mig_enabled: bool | None = None
    mig_pending: bool | None = None
    """MIG mode after the next reset; differs from ``mig_enabled`` while a change is pending."""
    mig_devices: list[MigDevice] | None = None
    compute_mode: ComputeMode | None = None
    persistence: bool | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    application_clock_mhz: int | None = None
    """The clock of the SMs that ``nvidia-smi -ac`` sets; unknown where drivers lack such clocks."""
    application_clock_default_mhz: int | None = None
    throttle: list[str] | None = None
    """The reasons that currently reduce the clocks: names from ``CLOCK_REASONS``."""
    temperature_c: int | None = None
    temperature_slowdown_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    utilization_percent: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    nvlinks: list[bool] | None = None
    """Whether each NVLink of the GPU is active; [] for a GPU without NVLink.

    Unknown in MIG mode, because NVML then does not report links.
    """
    fabric_state: Literal["not-supported", "not-started", "in-progress", "completed"] | None = None
    """Always ``not-supported`` before Hopper, with or without NVSwitch."""
    fabric_status: int | None = None
    """NVML's result of the registration with the fabric; 0 is success."""
    fabric_cluster: Annotated[str | None, Private("uuid")] = None
    """UUID of the NVLink domain, 32 hex digits; "" where the GPU belongs to none."""
    fabric_clique: int | None = None
    """GPUs of one cluster and one clique reach each other's memory over NVLink."""
    fabric_faults: list[str] | None = None
    """What is wrong with the fabric of this GPU: names from ``FABRIC_FAULTS``."""
    c2c: bool | None = None
    """Whether the NVLink-C2C to the CPU is in use; False on GPUs without one."""
    vbios: str | None = None
    inforom: str | None = None
    """Version of the InfoROM image."""


class Nvml(Section, frozen=True, kw_only=True):
    """What NVML reports about the driver and each GPU."""

    name: ClassVar[str] = "nvml"
    subject = say("The state of each GPU as NVML reports it.")

    library_found: bool | None = None
    init_code: int | None = None
    """Result of ``nvmlInit``: 0 success, 9 driver not loaded, 18 library/module mismatch ..."""
    init_message: str | None = None
    driver_release: str | None = None
    """On WSL this is the release of the Windows driver."""
    cuda: str | None = None
    """CUDA version that the driver supports (UMD), such as ``13.0``."""
    gpus: list[NvmlGpu] | None = None
