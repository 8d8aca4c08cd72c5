"""Texts that point to driver-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs

_ABOUT_A_GPU = (
    ("fact:gpu|geforce|rtx |gtx |tesla|cuda driver|no cuda|cuda error|torch.cuda|found no nvidia"),
)
_NO_CUDA_BUILD = (
    "fact:built_for=cpu",
    "fact:built_for=rocm",
    "fact:os=macos",
)

_ASIDE = ("collecting environment information",)
"""Beside this line torch may say so when a report is made, and nobody complain of it."""

SIGNS = Signs(
    slug="driver-missing",
    zh="没有安装 NVIDIA 驱动（或找不到 libcuda）",
    signatures=(
        Signature(
            name="torch-no-driver",
            literal="found no nvidia driver on your system",
            pattern=r"found no nvidia driver on your system",
            weight=55,
            says="PyTorch found no NVIDIA driver",
            sample=(
                "RuntimeError: Found no NVIDIA driver on your system. Please "
                "check that you have an NVIDIA GPU"
            ),
            other="The NVIDIA driver on your system is too old",
            unless=_ASIDE,
        ),
        Signature(
            name="torch-no-driver-asked",
            literal="found no nvidia driver on your system",
            pattern=r"found no nvidia driver on your system",
            weight=55,
            says="PyTorch found no NVIDIA driver",
            sample=(
                "UserWarning: CUDA initialization: Found no NVIDIA driver on your system. Please "
                "check that you have an NVIDIA GPU"
            ),
            other="The NVIDIA driver on your system is too old",
            beside=(
                *_ASIDE,
                (
                    "fact:gpu|runtimeerror: found no nvidia|assertionerror: found no nvidia|"
                    "is_available|nvidia-smi|no cuda gpus|cuda error|not available|unavailable|"
                    "--gpus|lspci|my gpu|the gpu|no gpu|use gpu|on gpu"
                ),
            ),
        ),
        Signature(
            name="no-smi",
            literal="nvidia-smi",
            pattern=(
                r"nvidia-smi: (?:command )?not found|no such file or directory: "
                r"'?nvidia-smi|'nvidia-smi' is not recognized|command 'nvidia-smi' "
                r"not found|nvidia-smi\": executable file not found"
            ),
            weight=58,
            says="nvidia-smi is not there",
            sample="bash: nvidia-smi: command not found",
            other="nvidia-smi works fine",
            beside=_ABOUT_A_GPU,
            unless=_NO_CUDA_BUILD,
        ),
        Signature(
            name="no-libnvidia-ml",
            literal="libnvidia-ml.so",
            pattern=(
                r"couldn't find libnvidia-ml\.so|libnvidia-ml\.so(?:\.1)?: "
                r"cannot open shared object"
            ),
            weight=58,
            says="The driver's libnvidia-ml.so is not found",
            sample="NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
            other="/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 is there",
        ),
        Signature(
            name="no-libcuda",
            literal="libcuda.so",
            pattern=(
                r"""libcuda\.so(?:\.1)?['\"]?:? (?:cannot open shared object|"""
                r"not found|cannot found)"
            ),
            weight=60,
            says="The driver's libcuda.so.1 is not found",
            sample=(
                "ImportError: libcuda.so.1: cannot open shared object file: "
                "No such file or directory"
            ),
            other="Loaded from libcuda.so.1",
        ),
        Signature(
            name="nvml-not-found",
            literal="nvml shared library not found",
            pattern=r"nvml shared library not found|NVMLError_LibraryNotFound",
            weight=60,
            says="The driver's NVML library is not found",
            sample="pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",
            other="NVML found",
        ),
        Signature(
            name="nvcuda-dll",
            literal="nvcuda.dll",
            pattern=(
                r"(?:could not|cannot|failed to|unable to) (?:find|load|open).{0,40}nvcuda\.dll|"
                r"nvcuda\.dll.{0,20}not found"
            ),
            weight=70,
            says="Windows finds no nvcuda.dll: no NVIDIA driver is installed",
            sample="Could not load dynamic library 'nvcuda.dll'; dlerror: nvcuda.dll not found",
            other="nvcuda.dll was loaded",
        ),
        Signature(
            name="nouveau",
            literal="driver=nouveau",
            pattern=r"configuration: driver=nouveau",
            weight=62,
            says="nouveau drives the GPU; NVIDIA's driver is not in use",
            sample="       configuration: driver=nouveau latency=0",
            other="configuration: driver=nvidia latency=0",
        ),
        Signature(
            name="smi-any",
            literal="nvidia-smi",
            pattern=r"nvidia-smi.{0,60}(?:no such file|not found|not recognized)",
            weight=56,
            says="nvidia-smi is not there",
            sample="nvidia-smi: no such file or directory",
            other="nvidia-smi works",
            beside=_ABOUT_A_GPU,
            unless=_NO_CUDA_BUILD,
        ),
        Signature(
            name="collect-env",
            literal="nvidia driver version",
            pattern=r"Nvidia driver version: (?:Could not collect|N/A)",
            weight=52,
            says="nvidia-smi could not be asked: no driver is installed, or it does not work",
            sample="Nvidia driver version: Could not collect",
            other="Nvidia driver version: 535.54",
            beside=(
                "fact:cuda_available=false",
                "fact:built_for=cuda",
                "fact:gpu",
            ),
        ),
        Signature(
            name="words",
            literal="driver",
            pattern=(
                r"(?:no|without(?: an?)?|missing|not? installed?) (?:nvidia "
                r")?(?:gpu )?drivers?\b|drivers? (?:is|are|was|were)? ?(?:not "
                r"installed|missing|not found)"
            ),
            weight=58,
            says="No NVIDIA driver is installed",
            sample="no NVIDIA driver is installed",
            other="driver 535",
            beside=("nvidia|cuda",),
            unless=(
                "found no nvidia driver",
                "on your system is too old",
            ),
        ),
        Signature(
            name="cuda-init-failed",
            literal="you might not have a cuda gpu",
            pattern=r"CUDA driver initialization failed, you might not have a CUDA gpu",
            weight=48,
            says="CUDA cannot start: no driver, or no GPU that it serves",
            sample=(
                "UserWarning: CUDA initialization: CUDA driver initialization "
                "failed, you might not have a CUDA gpu."
            ),
            other="a CUDA gpu",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install the NVIDIA driver and restart; in a container start "
                "it with GPU access instead."
            ),
            zh="安装 NVIDIA 驱动并重启；在容器里则需要带 GPU 启动容器。",
            commands=("sudo ubuntu-drivers install",),
        ),
    ),
)
