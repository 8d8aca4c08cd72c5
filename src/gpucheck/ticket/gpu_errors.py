"""The line in which CUDA reports an error: with one, no text is called healthy."""

import re

from gpucheck.readers.pasted._source_code import is_code
from gpucheck.readers.pasted.base import Line, Text

_LITERALS = (
    "cuda error",
    "cuda failure",
    "cudaerror",
    "_status_",
    "cuda runtime error",
    "cuda driver error",
    "nccl error",
    "nccl failure",
    "nvrtc: error",
    "ncclunhandledcudaerror",
    "ncclsystemerror",
    "ncclinternalerror",
    "ncclinvalid",
    "ncclremoteerror",
    "cudnn error",
    "cublas error",
    "cusolver error",
    "cusparse error",
    "cufft error",
    "nvrm: xid",
)
_WORDS = (
    "out of memory", "out of cuda memory", "out of gpu memory", "out of video memory",
    "out of vram", "oom", "illegal memory access",
    "error 80", "800 error", "801 error", "802 error", "803 error", "804 error",
)  # fmt: skip
"""What people write of such an error where they do not quote it."""
_ERROR = re.compile(
    r"\b(?:CUDA (?:runtime |driver )?error\b|CUDA failure\b|NCCL (?:error|failure)\b"
    r"|cudaError\w{3,60}|nvrtc: error\b|nccl(?:UnhandledCuda|System|Internal|Remote)Error\b"
    r"|ncclInvalid(?:Argument|Usage)\b|cu(?:DNN|BLAS|SOLVER|SPARSE|FFT) error\b|NVRM: Xid \("
    r"|(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CUFFT|CURAND)_STATUS_(?!SUCCESS)[A-Z]\w{2,60})",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\bout of (?:(?:CUDA |GPU |video )?memory|VRAM)\b|\bOOMs?\b|\billegal memory access\b"
    r"|\berror 80[0-4]\b|\b80[0-4] errors?\b",
    re.IGNORECASE,
)
_MOST = 50


def first_gpu_error(text: Text) -> Line | None:
    """Return the first line that reports an error of CUDA, cuBLAS, cuDNN or NCCL."""
    return _first(text, _LITERALS, _ERROR) or _first(text, _WORDS, _SAID)


def _first(text: Text, literals: tuple[str, ...], form: re.Pattern[str]) -> Line | None:
    for index in text.find(*literals, most=_MOST):
        if form.search(text.lines[index].text) and not is_code(text, index):
            return text.lines[index]
    return None
