"""Texts that point to driver-too-old."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="driver-too-old",
    zh="驱动太旧，不支持 PyTorch 所用的 CUDA 版本",
    signatures=(
        Signature(
            name="torch",
            literal="driver on your system is too old",
            pattern=r"driver on your system is too old",
            weight=90,
            says="The NVIDIA driver is too old for the CUDA that PyTorch was built with",
            sample="The NVIDIA driver on your system is too old (found version 11040).",
            other="Found no NVIDIA driver on your system.",
            stands=True,
        ),
        Signature(
            name="torch-found",
            literal="too old (found version",
            pattern=r"too old \(found version (?P<major>\d{1,2})0(?P<minor>\d)0\)",
            weight=91,
            says="The driver speaks CUDA {major}.{minor} only: too old for this PyTorch",
            sample="The NVIDIA driver on your system is too old (found version 11040).",
            other="too old (found version 450.80)",
            stands=True,
            cures=(
                Cure(
                    text="Update the NVIDIA driver of the machine (of the host for a container).",
                    zh="更新机器（容器则为宿主机）的 NVIDIA 驱动。",
                ),
                Cure(
                    text="Or install the PyTorch that this driver and the GPU can run.",
                    zh="或安装此驱动和 GPU 可以运行的 PyTorch。",
                    commands=(
                        "gpucheck recommend --driver-cuda {major}.{minor} --gpu NAME_OF_THE_GPU",
                    ),
                ),
            ),
        ),
        Signature(
            name="insufficient",
            literal="driver version is insufficient for cuda runtime version",
            pattern=r"driver version is insufficient for cuda runtime version",
            weight=60,
            says="The driver is too old for the CUDA runtime in use, or is not reachable",
            sample=(
                "RuntimeError: CUDA error: CUDA driver version is insufficient "
                "for CUDA runtime version"
            ),
            other="the CUDA driver version is 12.2",
        ),
        Signature(
            name="insufficient-handed-on",
            literal="driver version is insufficient for cuda runtime version",
            pattern=r"driver version is insufficient for CUDA runtime version",
            weight=76,
            says="The host's driver is too old for the CUDA of this container",
            sample="RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
            other="the CUDA driver version is 12.2",
            # The driver answers in the same text, and the container was given the GPU.
            beside=("| nvidia-smi ", "nvidia-docker run|--gpus|--runtime=nvidia|--runtime nvidia"),
        ),
        Signature(
            name="insufficient-name",
            literal="insufficientdriver",
            pattern=r"cudaErrorInsufficientDriver",
            weight=58,
            says="The driver is too old for the CUDA runtime in use, or is not reachable",
            sample="CUDA failure cudaErrorInsufficientDriver at line 20",
            other="cudaErrorNoDevice",
        ),
        Signature(
            name="ptx-toolchain",
            literal="ptx was compiled with an unsupported toolchain",
            pattern=r"PTX was compiled with an unsupported toolchain",
            weight=86,
            says="PTX of a newer CUDA than the driver knows: the driver is too old for it",
            sample=(
                "RuntimeError: CUDA error: the provided PTX was compiled with "
                "an unsupported toolchain."
            ),
            other="PTX was compiled for sm_80",
        ),
        Signature(
            name="ptx-version",
            literal="unsupported ptx version",
            pattern=r"CUDA_ERROR_UNSUPPORTED_PTX_VERSION|Unsupported PTX version",
            weight=84,
            says="PTX of a newer CUDA than the driver knows: the driver is too old for it",
            sample=(
                "cudaErrorUnsupportedPtxVersion: CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "
                "unsupported ptx version"
            ),
            other="supported PTX version 8.0",
        ),
        Signature(
            name="tf-driver",
            literal="is not compatible with cuda",
            pattern=r"driver.{0,40}is not compatible with CUDA|supports CUDA up to \d",
            weight=80,
            says="The driver is too old for this CUDA",
            sample="Your NVIDIA driver 470.57 is not compatible with CUDA 12.1",
            other="compute capability is not compatible with cuda",
        ),
        Signature(
            name="new-enough",
            literal="detected nvidia driver",
            pattern=(
                r"NVIDIA driver.{0,60}(?:older than|requires? (?:at least|a "
                r"newer|version)|too old)"
            ),
            weight=86,
            says="The driver is too old for this program",
            sample="Detected NVIDIA driver 418.67, which is older than the required 450.80",
            other="Detected NVIDIA driver 535.104",
        ),
        Signature(
            name="words",
            literal="driver",
            pattern=(
                r"(?<!support )(?<!support this )(?<!support the )"
                r"(?:update|upgrade|newer|outdated|too old|older?).{0,40}(?:nvidia "
                r"|gpu |cuda )?driver|driver.{0,60}(?:too old|outdated|out "
                r"of date|needs? (?:to be )?(?:an? )?(?:update|upgrade)|older "
                r"than|not support)"
            ),
            weight=62,
            says="The NVIDIA driver may be too old",
            sample="the driver is outdated",
            other="driver 535",
            beside=("cuda",),
            unless=(
                "after the driver update",
                "after a driver update",
                "after updating the driver",
                "after upgrading the driver",
            ),
        ),
        Signature(
            name="api-version",
            literal="cuda driver version",
            pattern=(
                r"CUDA driver version (?:\S{1,12} )?(?:is )?(?:older|lower|"
                r"less|insufficient)"
            ),
            weight=80,
            says="The driver is too old for the CUDA runtime in use",
            sample="CUDA driver version 11.4 is older than the runtime 12.1",
            other="CUDA driver version 12",
            unless=("driver version is insufficient for cuda runtime",),
        ),
        Signature(
            name="cuda-version-in-smi",
            literal="cuda",
            pattern=(
                r"(?:CUDA|cuda) ?(?:1[0-3]\.\d).{0,40}(?:higher|newer|greater) "
                r"than.{0,40}driver|driver.{0,60}(?:only )?supports? (?:up "
                r"to )?CUDA ?1\d\.\d"
            ),
            weight=52,
            says="The driver speaks an older CUDA than is asked of it",
            sample="the driver supports up to CUDA 11.4",
            other="cuda 12",
            beside=(
                (
                    "higher than|newer than|greater than|support cuda|"
                    "supports cuda|support up to cuda|supports up to cuda"
                ),
            ),
        ),
        Signature(
            name="nvidia-words",
            literal="too old",
            pattern=r"(?:nvidia|gpu|graphics|cuda) (?:driver )?version (?:is|was) too old",
            weight=66,
            says="The driver is too old for this PyTorch",
            sample="it tells me that the NVIDIA version is too old",
            other="the python version is too old",
        ),
        Signature(
            name="ngc-compat",
            literal="compatibility mode is unavailable",
            pattern=r"version \d{3}\.[\d.]{2,9} was detected and compatibility mode is UNAVAILABLE",
            weight=92,
            says="The driver is too old for this container, and no compatibility mode helps",
            sample="version 470.82 was detected and compatibility mode is UNAVAILABLE.",
            other="compatibility mode is ENABLED",
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text="Update the NVIDIA driver of the machine (of the host for a container).",
            zh="更新机器（容器则为宿主机）的 NVIDIA 驱动。",
        ),
        Cure(
            text=(
                "Or install a PyTorch built for a CUDA that this driver speaks: "
                "gpucheck recommend names it."
            ),
            zh="或安装该驱动支持的 CUDA 版本的 PyTorch，gpucheck recommend 会给出命令。",
            commands=("gpucheck recommend",),
        ),
    ),
)
