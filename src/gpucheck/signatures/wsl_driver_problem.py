"""Texts that point to wsl-driver-problem."""

from gpucheck.signatures.base import Cure, Signature, Signs

_IN_WSL = ("word:wsl|windows subsystem for linux|/mnt/c/|-microsoft",)

SIGNS = Signs(
    slug="wsl-driver-problem",
    zh="WSL 中 GPU 不可用：WSL 1、Windows 驱动过旧或在 WSL 里装了 Linux 驱动",
    signatures=(
        Signature(
            name="blocked",
            literal="blocked by the operating system",
            pattern=r"gpu access (?:is |was )?blocked by the operating system",
            weight=93,
            says="WSL: Windows blocks the GPU (driver model, Windows build or driver too old)",
            sample="Failed to initialize NVML: GPU access blocked by the operating system",
            other="this site is blocked by the operating system",
            stands=True,
        ),
        Signature(
            name="no-adapters",
            literal="no adapters were found",
            pattern=r"WSL environment detected but no adapters were found",
            weight=95,
            says="WSL sees no GPU: the Windows driver is missing or too old",
            sample=(
                "nvidia-container-cli: initialization error: WSL environment "
                "detected but no adapters were found: unknown"
            ),
            other="no network adapters were found",
            stands=True,
        ),
        Signature(
            name="dxcore",
            literal="libdxcore.so",
            pattern=(
                r"libdxcore\.so.{0,60}(?:cannot open|not found|failed)|failed.{0,40}libdxcore\.s"
                r"o"
            ),
            weight=92,
            says="WSL: libdxcore.so cannot be loaded",
            sample=(
                "nvidia-container-cli: initialization error: load library "
                "failed: libdxcore.so: cannot open shared object file"
            ),
            other="libdxcore.so is there",
            stands=True,
        ),
        Signature(
            name="wsl1",
            literal="-microsoft",
            pattern=r"Linux-4\.4\.0-\d{5}-Microsoft",
            weight=90,
            says="WSL 1 has no GPU",
            sample="Platform: Linux-4.4.0-18362-Microsoft-x86_64-with-glibc2.31",
            other="Linux-5.15.153.1-microsoft-standard-WSL2",
            stands=True,
        ),
        Signature(
            name="wsl1-uname",
            literal="4.4.0-",
            pattern=r"\b4\.4\.0-\d{5}-Microsoft",
            weight=90,
            says="WSL 1 has no GPU",
            sample="Linux host 4.4.0-18362-Microsoft #1",
            other="4.4.0-210-generic",
            stands=True,
        ),
        Signature(
            name="no-libcuda",
            literal="libcuda.so",
            pattern=(
                r"""libcuda\.so(?:\.1)?['\"]?:? (?:cannot open shared object|"""
                r"not found|cannot found)"
            ),
            weight=76,
            says="WSL: libcuda is not on the loader's path (it lies in /usr/lib/wsl/lib)",
            sample=(
                "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: "
                "cannot open shared object file: No such file or directory"
            ),
            other="libcuda.so.1 is loaded",
            beside=_IN_WSL,
        ),
        Signature(
            name="no-device",
            literal="no_device",
            pattern=r"CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice",
            weight=72,
            says="WSL: CUDA sees no GPU (a Linux driver inside WSL, or an old Windows driver)",
            sample="Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)",
            other="CUDA_ERROR_UNKNOWN",
            beside=_IN_WSL,
        ),
        Signature(
            name="no-capable",
            literal="no cuda-capable device",
            pattern=r"no CUDA-capable device is detected",
            weight=70,
            says="WSL: CUDA sees no GPU",
            sample="cudaGetDeviceCount returned 100: no CUDA-capable device is detected",
            other="a CUDA-capable device",
            beside=_IN_WSL,
        ),
        Signature(
            name="no-driver",
            literal="found no nvidia driver",
            pattern=r"found no nvidia driver on your system",
            weight=72,
            says="WSL: PyTorch finds no driver",
            sample="RuntimeError: Found no NVIDIA driver on your system.",
            other="driver found",
            beside=_IN_WSL,
        ),
        Signature(
            name="smi",
            literal="couldn't communicate with the nvidia driver",
            pattern=r"couldn't communicate with the NVIDIA driver",
            weight=90,
            says="WSL: nvidia-smi of a Linux driver cannot work; the driver belongs to Windows",
            sample=(
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
            ),
            other="communicate with the driver",
            beside=("fact:wsl|wsl2|wsl 2|microsoft-standard",),
        ),
        Signature(
            name="unknown",
            literal="unknown error",
            pattern=(
                r"(?:error 999|CUDA unknown error|cuInit.{0,40}unknown error|"
                r"error 500|named symbol not found)"
            ),
            weight=68,
            says="WSL: CUDA cannot start; the Windows driver or WSL kernel does not fit",
            sample="CUDA unknown error - this may be due to an incorrectly set up environment",
            other="an unknown error",
            beside=_IN_WSL,
        ),
        Signature(
            name="wsl1-words",
            literal="wsl",
            pattern=r"\bWSL ?1\b(?!\.)",
            weight=84,
            says="WSL 1 has no GPU",
            sample="on WSL 1 under Windows 10",
            other="WSL 2",
            beside=("cuda|nvidia|gpu",),
        ),
        Signature(
            name="context",
            literal="wsl",
            pattern=r"\bWSL ?2?\b",
            weight=50,
            says="WSL: the GPU is not reached",
            sample="on WSL 2 with Ubuntu 22.04",
            other="towsley",
            beside=(
                "is_available|nvidia-smi|libcuda|no cuda|cuda driver|not find|gpu",
                "false|error|not find|fail|cannot|can't|no devices|not available|does not",
            ),
        ),
        Signature(
            name="libpath",
            literal="/usr/lib/wsl/lib",
            pattern=r"/usr/lib/wsl/lib",
            weight=70,
            says="WSL: libcuda lies in /usr/lib/wsl/lib, which the loader does not search",
            sample="libcuda.so.1 => /usr/lib/wsl/lib/libcuda.so.1",
            other="/usr/lib",
            beside=("not find|cannot|can't|no such|failed|does not|error",),
        ),
        Signature(
            name="kernel",
            literal="microsoft",
            pattern=r"microsoft-standard|-Microsoft\b",
            weight=58,
            says="WSL: CUDA does not reach the GPU",
            sample="Linux-5.10.16.3-microsoft-standard-WSL2-x86_64",
            other="Microsoft Windows",
            beside=("fact:cuda_available=false|no cuda|not found|libcuda|error",),
        ),
        Signature(
            name="fact",
            literal="wsl",
            pattern=r"\bWSL",
            weight=56,
            says="WSL: CUDA does not reach the GPU",
            sample="in WSL2",
            other="towsley",
            beside=("fact:cuda_available=false",),
        ),
        Signature(
            name="driver-inside",
            literal="wsl",
            pattern=(
                r"install(?:ed|ing)? (?:the |a )?(?:nvidia|linux)[\w -]{0,12}driver.{0,30}"
                r"(?:inside|in|within|into) (?:the )?WSL"
            ),
            weight=76,
            says="A Linux driver was installed inside WSL, which has Windows' driver",
            sample="I installed nvidia-driver-535 inside WSL",
            other="installed the driver on Windows for WSL",
        ),
        Signature(
            name="smi-segfault",
            literal="nvidia-smi",
            pattern=(
                r"nvidia-smi.{0,60}(?:segmentation fault|segfault|error|fail|returns "
                r"an error|not found|no devices)"
            ),
            weight=66,
            says="WSL: nvidia-smi fails",
            sample="nvidia-smi returns an error",
            other="nvidia-smi works",
            beside=("word:wsl",),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Update WSL and the Windows driver, and have no Linux driver "
                "inside WSL; WSL 1 must become WSL 2."
            ),
            zh="更新 WSL 和 Windows 驱动，WSL 内不要安装 Linux 驱动；WSL 1 需转换为 WSL 2。",
            commands=(
                "wsl --update",
                "wsl --set-version DISTRIBUTION 2",
            ),
        ),
        Cure(
            text="Let the loader find libcuda.",
            zh="让加载器找到 libcuda。",
            commands=("export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH",),
        ),
    ),
)
