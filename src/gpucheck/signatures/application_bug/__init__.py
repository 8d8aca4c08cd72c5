"""Texts that point to application-bug, by subject."""

from gpucheck.signatures.application_bug import (
    _kernels,
    _python,
    _ranks,
    _shapes,
    _training,
    _types,
)
from gpucheck.signatures.base import Cure, Signs

SIGNS = Signs(
    slug="application-bug",
    zh="程序本身的错误，不是机器或安装的问题",
    signatures=(
        *_kernels.SIGNATURES,
        *_shapes.SIGNATURES,
        *_types.SIGNATURES,
        *_training.SIGNATURES,
        *_ranks.SIGNATURES,
        *_python.SIGNATURES,
    ),
    cures=(
        Cure(
            text=(
                "Run with CUDA_LAUNCH_BLOCKING=1, or on the CPU: the fault "
                "then shows at its own line."
            ),
            zh="用 CUDA_LAUNCH_BLOCKING=1 或在 CPU 上运行，错误会在出错的那一行显示。",
            commands=("CUDA_LAUNCH_BLOCKING=1 python SCRIPT",),
        ),
    ),
)
