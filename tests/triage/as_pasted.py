"""What ``collect_env`` and ``nvidia-smi`` would have printed on a test machine.

Written from the format of these programs; what they do not ask stays out.
"""

from gpucheck.facts.driver import CudaDriver, Nvml, NvmlGpu
from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, Packages, TorchBuild
from gpucheck.tables import Tables
from gpucheck.tables.error_codes import NvmlErrors

_NOTHING = "Could not collect"
_NVML_MESSAGES = {
    18: "Failed to initialize NVML: Driver/library version mismatch",
    4: "Failed to initialize NVML: Insufficient Permissions",
    9: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
    "that the latest NVIDIA driver is installed and running.",
    999: "Failed to initialize NVML: Unknown Error",
    12: "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that "
    "the NVIDIA Display Driver is properly installed and present in your system.",
}
_MIB = 1024 * 1024


def collect_env(snapshot: Snapshot) -> str:
    """Return the report of PyTorch's own tool."""
    torch, system = snapshot.get(TorchBuild), snapshot.get(System)
    nvml, python = snapshot.get(Nvml), snapshot.get(Interpreter)
    if torch.installed is None:
        return ""
    if not torch.installed and torch.installs:
        return "AttributeError: partially initialized module 'torch' has no attribute 'version'\n"
    if not torch.installed:
        return "ModuleNotFoundError: No module named 'torch'\n"
    serves = nvml.init_code == 0
    gpus = [f"GPU {gpu.index}: {gpu.device_name}" for gpu in nvml.gpus or ()] if serves else []
    lines = [
        "Collecting environment information...",
        f"PyTorch version: {torch.version}",
        "Is debug build: False",
        f"CUDA used to build PyTorch: {torch.cuda or ('N/A' if torch.hip else 'None')}",
        f"ROCM used to build PyTorch: {torch.hip or 'N/A'}",
        "",
        f"OS: {system.pretty_name or _NOTHING} ({system.machine})",
        "GCC version: Could not collect",
        f"Libc version: {f'glibc-{system.glibc}' if system.glibc else 'N/A'}",
        "",
        f"Python version: {python.version} (main) [GCC 11.4.0] (64-bit runtime)",
        f"Python platform: Linux-{system.kernel}-{system.machine}-with-glibc{system.glibc}",
        f"Is CUDA available: {_available(snapshot)}",
        f"CUDA runtime version: {snapshot.get(Toolkits).selected_version or _NOTHING}",
        "CUDA_MODULE_LOADING set to: LAZY",
        f"GPU models and configuration: {gpus[0] if len(gpus) == 1 else ''}"
        if gpus
        else f"GPU models and configuration: {_NOTHING}",
        *(gpus if len(gpus) > 1 else ()),
        f"Nvidia driver version: {(nvml.driver_release if serves else '') or _NOTHING}",
        "cuDNN version: Could not collect",
        "Is XNNPACK available: True",
        "",
        "Versions of relevant libraries:",
        *_packages(snapshot),
    ]
    return "\n".join(lines) + "\n"


def _available(snapshot: Snapshot) -> bool:
    """Say what torch would: on ROCm, too, it is called CUDA."""
    cuda, build = snapshot.get(CudaDriver), snapshot.get(TorchBuild).built_for
    works = cuda.init_code == 0 and bool(cuda.device_count)
    passed = any(result.status == "passed" for result in snapshot.get(SelfTests).results or ())
    return build == "rocm" or (build == "cuda" and (works or passed))


def _packages(snapshot: Snapshot) -> list[str]:
    wanted = ("numpy", "torch", "torchvision", "torchaudio", "triton")
    return [
        f"[pip3] {distribution.project}=={distribution.version}"
        for distribution in snapshot.get(Packages).distributions or ()
        if distribution.project in wanted or (distribution.project or "").startswith("nvidia-")
    ]


def nvidia_smi(snapshot: Snapshot, tables: Tables) -> str:
    """Return the table of nvidia-smi, or what it says when it fails."""
    nvml = snapshot.get(Nvml)
    if nvml.library_found is False or nvml.init_code is None:
        return "bash: nvidia-smi: command not found\n"
    if nvml.init_code:
        row = tables.get(NvmlErrors).error(nvml.init_code)
        return _NVML_MESSAGES.get(nvml.init_code, f"Failed to initialize NVML: {row}") + "\n"
    if not nvml.gpus:
        return "No devices were found\n"
    head = (
        f"| NVIDIA-SMI {nvml.driver_release:<14} Driver Version: {nvml.driver_release:<14} "
        f"CUDA Version: {nvml.cuda or 'N/A':<9}|"
    )
    rule = "+" + "-" * 77 + "+"
    rows = [line for gpu in nvml.gpus for line in _gpu(gpu)]
    return "\n".join([rule, head, rule, *rows, rule]) + "\n"


def _gpu(gpu: NvmlGpu) -> list[str]:
    mode = {"exclusive-process": "E. Process", "prohibited": "Prohibited"}.get(
        gpu.compute_mode or "", "Default"
    )
    used, total = (gpu.memory_used_bytes or 0) // _MIB, (gpu.memory_total_bytes or 0) // _MIB
    return [
        f"|   {gpu.index}  {gpu.device_name:<26} Off  | 00000000:01:00.0 Off |          0 |",
        f"| N/A   34C    P0    52W / 400W | {used:>6}MiB / {total:>6}MiB |  0%   {mode:>10} |",
        f"|{' ' * 31}|{' ' * 22}| {'Enabled' if gpu.mig_enabled else 'N/A':>18} |",
        "+-------------------------------+----------------------+----------------------+",
    ]
