"""The NVIDIA driver and the GPUs: its files, its device nodes, and what it reports itself."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say


class DriverLibrary(Facts, frozen=True, kw_only=True):
    """One copy of a user-space driver library (``libcuda.so.1``, ``libnvidia-ml.so.1``)."""

    path: Annotated[str | None, Private("path")] = None
    real_path: Annotated[str | None, Private("path")] = None
    release: str | None = None
    """Driver release from the file name, such as ``535.54.03``; None if the name has none."""
    kind: Literal["driver", "stub", "compat", "wsl"] | None = None
    found_via: str | None = None
    """How the loader finds it: ``LD_LIBRARY_PATH``, ``ld.so.cache``, ``default folder``;
    ``not searched``: a folder of the driver that this process's loader does not search."""
    size_bytes: int | None = None


class Driver(Section, frozen=True, kw_only=True):
    """The kernel side and the user-space side of the driver."""

    name: ClassVar[str] = "driver"
    subject = say("The NVIDIA driver as files and kernel modules.")

    module_loaded: bool | None = None
    """The ``nvidia`` kernel module is loaded (on WSL ``/dev/dxg``, on a Jetson ``nvgpu``)."""
    module_release: str | None = None
    """Release of the loaded kernel module; "" if none is loaded."""
    module_flavour: Literal["open", "proprietary", ""] | None = None
    uvm_loaded: bool | None = None
    modeset_loaded: bool | None = None
    drm_loaded: bool | None = None
    nouveau_loaded: bool | None = None
    module_files: Annotated[list[str] | None, Private("paths")] = None
    """``nvidia.ko`` files of the *running* kernel."""
    modules_folder: bool | None = None
    """Whether ``/lib/modules/<running kernel>`` exists (it does not in a container)."""
    other_kernels_with_module: list[str] | None = None
    """Installed kernels, other than the running one, that have an ``nvidia.ko``."""
    dkms: list[str] | None = None
    """``<release> <kernel>`` for each nvidia module that DKMS has built."""
    dkms_sources: list[str] | None = None
    """Driver releases whose module sources are in ``/usr/src`` or registered with DKMS."""
    blacklist: list[str] | None = None
    """Lines of modprobe.d that prevent ``nvidia`` or ``nouveau`` from loading, such as ``blacklist
    nvidia``, and parameters of the kernel's command line, such as ``module_blacklist=nvidia``. The
    source names the files."""
    secure_boot: bool | None = None
    libcuda: list[DriverLibrary] | None = None
    """Every ``libcuda.so.1`` in the order of the loader. The loader takes the first one, unless its
    ``found_via`` is ``not searched``."""
    libnvidia_ml: list[DriverLibrary] | None = None
    packages: list[str] | None = None
    """Installed packages of the distribution that contain a driver."""
    compat_packages: list[str] | None = None
    """``cuda-compat`` folders and packages found, with their release if known."""
    nvidia_smi: Annotated[str | None, Private("path")] = None
    """"" if there is none."""
    nvidia_modprobe: bool | None = None
    fabric_manager_installed: bool | None = None
    fabric_manager_running: bool | None = None
    fabric_manager_release: str | None = None
    """The release of the package; "" if none is installed."""


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


class CudaDevice(Facts, frozen=True, kw_only=True):
    """One device, numbered as by the CUDA driver (after CUDA_VISIBLE_DEVICES)."""

    device_name: str | None = None
    compute_capability: str | None = None
    uuid: Annotated[str | None, Private("uuid")] = None


class CudaDriver(Section, frozen=True, kw_only=True):
    """The facts that the driver itself reports."""

    name: ClassVar[str] = "cuda_driver"
    subject = say("What the CUDA driver itself reports: ``cuInit``, its version, its devices.")

    library: Annotated[str | None, Private("path")] = None
    """The libcuda that was loaded; "" if none can be loaded."""
    load_error: str | None = None
    """The error of the loader; "" if the library was loaded."""
    init_code: int | None = None
    """Result of ``cuInit(0)``; 0 is success."""
    program_code: int | None = None
    """The error of CUDA that a running program got; known only of a described machine."""
    cuda: str | None = None
    """CUDA version that this driver supports (``cuDriverGetVersion``), such as ``12.2``."""
    device_count: int | None = None
    devices: list[CudaDevice] | None = None


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


class NvidiaSmi(Section, frozen=True, kw_only=True):
    """The facts and messages that nvidia-smi prints."""

    name: ClassVar[str] = "nvidia_smi"
    subject = say("What nvidia-smi reports if NVML did not answer.")

    found: bool | None = None
    asked: bool | None = None
    """False if NVML had already answered."""
    exit_status: int | None = None
    message: str | None = None
    """Its error message, from either stream, first lines; "" if it had none."""
    driver_release: str | None = None
    cuda: str | None = None
    gpu_names: list[str] | None = None


class XidEvent(Facts, frozen=True, kw_only=True):
    """One Xid message of the driver."""

    xid: int | None = None
    pci_address: str | None = None
    """In the form of ``pci.gpus``: ``0000:01:00.0``."""
    message: str | None = None
    seconds_ago: float | None = None
    """Includes time during which the machine was suspended."""


class SxidEvent(Facts, frozen=True, kw_only=True):
    """One SXid message: an error of an NVSwitch."""

    sxid: int | None = None
    pci_address: str | None = None
    """That of the NVSwitch, in the form of ``pci.gpus``."""
    link: int | None = None
    """The port of the NVSwitch."""
    fatal: bool | None = None
    """What the message calls it."""
    message: str | None = None
    seconds_ago: float | None = None
    """Includes time during which the machine was suspended."""


class OomKill(Facts, frozen=True, kw_only=True):
    """A process that the kernel killed because memory had run out."""

    pid: int | None = None
    process_name: str | None = None
    scope: str | None = None
    """``host`` or ``cgroup``: whose memory was exhausted."""
    in_own_group: bool | None = None
    """Whether it was the limit of this process's control group, or of one around that."""
    seconds_ago: float | None = None
    """Includes time during which the machine was suspended."""


class LostLink(Facts, frozen=True, kw_only=True):
    """A network interface that lost its link and has not had one since."""

    interface: Annotated[str | None, Private("setting")] = None
    was_up: bool | None = None
    """Whether the log shows that it had one before."""
    seconds_ago: float | None = None
    """Includes time during which the machine was suspended."""


class KernelLog(Section, frozen=True, kw_only=True):
    """Messages since this boot, as far as the log's buffer reaches."""

    name: ClassVar[str] = "kernel_log"
    subject = say("What the kernel log says about the GPUs.")

    xids: list[XidEvent] | None = None
    """Oldest first; the newest 20 of the same Xid on the same GPU."""
    sxids: list[SxidEvent] | None = None
    """Oldest first; the newest 20 of the same SXid of the same NVSwitch.

    Before them stand those that only the Fabric Manager's own log has of this boot.
    """
    fallen_off_bus: list[str] | None = None
    """PCI addresses of GPUs that have fallen off the bus according to the log."""
    nvrm: list[str] | None = None
    """Other lines of the driver (``NVRM:``), newest last, 50 at most."""
    rejected_modules: list[str] | None = None
    """Lines that refuse a module for its signature; they do not name it. Each once."""
    oom_kills: list[OomKill] | None = None
    lost_links: list[LostLink] | None = None
    """The newest 50. What is plugged in nowhere is among them; it is no fault by itself."""
