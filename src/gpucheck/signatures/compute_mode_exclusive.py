"""Texts that point to compute-mode-exclusive."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="compute-mode-exclusive",
    zh="GPU 处于独占或禁止计算模式",
    signatures=(
        Signature(
            name="busy",
            literal="devices are busy or unavailable",
            pattern=r"all CUDA-capable devices are busy or unavailable",
            weight=76,
            says=(
                "CUDA refuses another process: compute mode is exclusive or "
                "prohibited, or the GPU is taken"
            ),
            sample="RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
            other="the devices are busy",
        ),
        Signature(
            name="unavailable",
            literal="device(s) is/are busy or unavailable",
            pattern=r"device\(s\) is/are busy or unavailable",
            weight=74,
            says="CUDA refuses another process: compute mode is exclusive or prohibited",
            sample="CUDA-capable device(s) is/are busy or unavailable",
            other="busy",
        ),
        Signature(
            name="unavailable-name",
            literal="devicesunavailable",
            pattern=r"\bcudaErrorDevicesUnavailable\b",
            weight=72,
            says="CUDA refuses another process: compute mode is exclusive or prohibited",
            sample="CUDA error at main.cu:20 code=46(cudaErrorDevicesUnavailable)",
            other="cudaErrorNoDevice",
        ),
        Signature(
            name="exclusive",
            literal="exclusive",
            pattern=(
                r"(?:compute ?mode|compute m\.).{0,40}exclusive|exclusive.?(?:process|"
                r"thread) mode|EXCLUSIVE_PROCESS"
            ),
            weight=84,
            says="The GPU is in exclusive compute mode: one process only",
            sample="Compute Mode : Exclusive_Process",
            other="an exclusive offer",
        ),
        Signature(
            name="prohibited",
            literal="prohibited",
            pattern=r"compute mode.{0,40}prohibited",
            weight=86,
            says="The GPU is in prohibited compute mode",
            sample="Compute Mode                          : Prohibited",
            other="smoking is prohibited",
        ),
        Signature(
            name="context",
            literal="exclusive",
            pattern=(
                r"\bexclusive(?:[ _-]?(?:process|thread|mode|compute)|ly)?\b.{0,60}(?:process|"
                r"mode|gpu|cuda)|(?:compute|gpu).{0,30}exclusive"
            ),
            weight=60,
            says="Exclusive compute mode is in use",
            sample="the GPU is in exclusive mode",
            other="exclusively",
            beside=("cuda|gpu",),
        ),
        Signature(
            name="smi",
            literal="process",
            pattern=r"\bE\. ?Process\b",
            weight=66,
            says="The GPU is in exclusive compute mode: one process only",
            sample=(
                "|   0%   30C    P8    9W / 125W |    300MiB / 16384MiB |      0%   E. Process |"
            ),
            other="E-mail process",
            beside=("busy|unavailable|error|fail|second process|another process|all cuda",),
        ),
        Signature(
            name="busy-words",
            literal="busy",
            pattern=r"(?:gpu|device|cuda).{0,60}\bbusy\b",
            weight=54,
            says="CUDA refuses another process: compute mode is exclusive, or the GPU is taken",
            sample="the GPU is busy",
            other="busy day",
        ),
    ),
    cures=(
        Cure(
            text="Set the compute mode back to default, or end the process that has the GPU.",
            zh="把计算模式改回默认，或结束占用 GPU 的进程。",
            commands=(
                "sudo nvidia-smi -c DEFAULT",
                "nvidia-smi",
            ),
        ),
    ),
)
