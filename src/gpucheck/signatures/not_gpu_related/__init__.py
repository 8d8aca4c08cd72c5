"""Texts that point to not-gpu-related, by subject."""

from gpucheck.signatures.base import Cure, Signs
from gpucheck.signatures.not_gpu_related import _other_programs, _python

SIGNS = Signs(
    slug="not-gpu-related",
    zh="这个错误与 GPU 无关",
    signatures=(*_python.SIGNATURES, *_other_programs.SIGNATURES),
    cures=(
        Cure(
            text="Do what the message says; the GPU is not involved.",
            zh="按错误信息处理即可，与 GPU 无关。",
        ),
    ),
)
