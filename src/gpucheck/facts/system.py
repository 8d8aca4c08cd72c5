"""The operating system and the hardware, containers, limits and the environment.

Names of variables are listed one by one and never selected by prefix, because a prefix may match
tokens.
"""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

Wsl = Literal[0, 1, 2]

OsFamily = Literal["linux", "windows", "macos"]

OS_NAMES: dict[OsFamily, str] = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}

Libc = Literal["glibc", "musl", "other"]


PackageManager = Literal["apt", "dnf", "yum", "zypper", "pacman", "apk", ""]


class System(Section, frozen=True, kw_only=True):
    """The operating system and the machine."""

    name: ClassVar[str] = "system"
    subject = say("The operating system, its libraries, and the hardware platform.")

    os: OsFamily | None = None
    distribution: str | None = None
    """``ID`` of os-release, such as ``ubuntu``; "" if there is none."""
    distribution_version: str | None = None
    """Of Windows its own version: 10.0.26100."""
    distribution_like: list[str] | None = None
    pretty_name: str | None = None
    kernel: str | None = None
    machine: str | None = None
    """``x86_64``, ``aarch64`` ... from ``uname -m`` (AMD64 is given as x86_64)."""
    hostname: Annotated[str | None, Private("host")] = None
    user: Annotated[str | None, Private("user")] = None
    is_root: bool | None = None
    """Whether the commands of the user are those of root."""
    has_sudo: bool | None = None
    """Whether sudo is on PATH; unknown of another machine than this one."""
    home: Annotated[str | None, Private("path")] = None
    libc: Literal["glibc", "musl", "other"] | None = None
    glibc: str | None = None
    """Version of glibc, such as ``2.35``; "" if the C library is another."""
    libstdcxx: Annotated[str | None, Private("path")] = None
    """The system's libstdc++.so.6; "" if there is none."""
    glibcxx: str | None = None
    """The newest GLIBCXX symbol version in it, such as ``3.4.30``; "" without libstdc++."""
    virtualization: str | None = None
    """The hypervisor or cloud according to DMI; "" on bare metal."""
    wsl: Literal[0, 1, 2] | None = None
    """0: not the Windows Subsystem for Linux."""
    jetson: str | None = None
    """The board according to the device tree; "" on anything except a Jetson."""
    l4t: str | None = None
    """Jetson's Linux for Tegra release, such as ``36.4.0``; "" elsewhere."""
    package_manager: PackageManager | None = None
    memory_total_bytes: int | None = None
    under_slurm: bool | None = None


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


class LimitsOfProcess(Section, frozen=True, kw_only=True):
    """Sizes in bytes; -1 is unlimited."""

    name: ClassVar[str] = "limits"
    subject = say("Limits of this process and of shared memory that GPU jobs run into.")

    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    memlock_bytes: int | None = None
    may_exceed_memlock: bool | None = None
    """Whether the kernel lets this process register more memory than that: it has CAP_IPC_LOCK, in
    the first user namespace."""
    open_files: int | None = None
    address_space_bytes: int | None = None
    """Of virtual memory (``ulimit -v``): a library takes its size of it, used or not."""
    infiniband_devices: list[str] | None = None
    """RDMA devices of this machine (``/sys/class/infiniband``), except those whose ports are
    Ethernet, like those of every recent network card."""


class NetworkInterface(Facts, frozen=True, kw_only=True):
    """An interface as this process sees it."""

    interface: Annotated[str | None, Private("setting")] = None
    state: str | None = None
    """``up``, ``down``, ``unknown`` ... (``operstate``; Linux, ABI/testing/sysfs-class-net)."""


class RdmaPort(Facts, frozen=True, kw_only=True):
    """A port of an RDMA adapter (Linux, ABI/stable/sysfs-class-infiniband)."""

    adapter: Annotated[str | None, Private("setting")] = None
    port: int | None = None
    state: str | None = None
    """``ACTIVE``, ``DOWN``, ``INIT`` ..."""
    interfaces: Annotated[list[str] | None, Private("setting")] = None
    """Those of the network that are of the same device."""


class Network(Section, frozen=True, kw_only=True):
    """The interfaces and adapters between the nodes of a job."""

    name: ClassVar[str] = "network"
    subject = say(
        "The state of RDMA ports, and of the interfaces that NCCL and Gloo are told to use."
    )

    interfaces: list[NetworkInterface] | None = None
    """Those that NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME name; no other was looked at."""
    rdma_ports: list[RdmaPort] | None = None
    """64 at most."""


HIDDEN = "(hidden)"
"""Replaces a value that looks like a secret."""

PATH_NAMES = (
    "CC",
    "CONDA_PREFIX",
    "CUDA_BIN_PATH",
    "CUDA_CACHE_PATH",
    "CUDA_HOME",
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDAHOSTCXX",
    "CUDNN_PATH",
    "CXX",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NCCL_CONF_FILE",
    "NCCL_DEBUG_FILE",
    "NCCL_GRAPH_FILE",
    "NCCL_TOPO_FILE",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "TRITON_CACHE_DIR",
    "TRITON_PTXAS_PATH",
    "TORCH_HOME",
    "VIRTUAL_ENV",
)
"""Variables that contain paths, in which long hashes are common and not secret."""

OTHER_NAMES = (
    # CUDA
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_VERSION",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDNN_LOGLEVEL_DBG",
    # containers, NVIDIA's runtime for them, and libraries
    "NVIDIA_DISABLE_REQUIRE",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_REQUIRE_CUDA",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "container",
    # Python
    "CONDA_DEFAULT_ENV",
    "PYTHONNOUSERSITE",
    "PYTHONSAFEPATH",
    # NCCL
    "NCCL_ALGO",
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT",
    "NCCL_BUFFSIZE",
    "NCCL_CHECKS_DISABLE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_COMM_BLOCKING",
    "NCCL_CROSS_NIC",
    "NCCL_CUMEM_ENABLE",
    "NCCL_CUMEM_HOST_ENABLE",
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_DMABUF_ENABLE",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_DISABLE",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_SL",
    "NCCL_IB_TC",
    "NCCL_IB_TIMEOUT",
    "NCCL_IGNORE_CPU_AFFINITY",
    "NCCL_LAUNCH_MODE",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NET",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_GDR_READ",
    "NCCL_NET_PLUGIN",
    "NCCL_NTHREADS",
    "NCCL_NVB_DISABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PROTO",
    "NCCL_PXN_DISABLE",
    "NCCL_RAS_ENABLE",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_FAMILY",
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_NTHREADS",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_TUNER_PLUGIN",
    # PyTorch
    "GLOO_SOCKET_IFNAME",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK",
    "TORCHINDUCTOR_COMPILE_THREADS",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_CUDA_ARCH_LIST",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_DISTRIBUTED_DEBUG",
    "TORCH_DONT_CHECK_COMPILER_ABI",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "FORCE_CUDA",
    "MAX_JOBS",
    "OMP_NUM_THREADS",
    # ranks
    "GROUP_RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "RANK",
    "WORLD_SIZE",
    # batch schedulers
    "LSB_JOBID",
    "PBS_JOBID",
    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS",
    "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_JOB_GPUS",
    "SLURM_JOB_ID",
    "SLURM_LOCALID",
    "SLURM_NNODES",
    "SLURM_NODEID",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_PROCID",
    "SLURM_STEP_GPUS",
    # GPUs of another vendor
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)


class Environment(Section, frozen=True, kw_only=True):
    """Variables that are set; a listed name that is missing here is unset."""

    name: ClassVar[str] = "environment"
    subject = say("The environment variables that control CUDA, NCCL and the loader, by name.")

    variables: Annotated[dict[str, str] | None, Private("variables")] = None

    def get(self, variable: str) -> str | None:
        """Return the value, or None if it is unset or the environment is unknown."""
        return None if self.variables is None else self.variables.get(variable)
