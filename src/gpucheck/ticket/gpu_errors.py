"""The line in which CUDA reports an error: a text with such a line is never healthy."""

import re

from gpucheck.log_patterns.roles import SILENT, Role, role_of
from gpucheck.log_patterns.text import Line, Text

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
    "cuinit",
    "cudevice",
    "cuctx",
    "cumem",
    "cuipc",
    "cumodule",
    "culaunch",
    "custream",
    "cuevent",
    "cufile",
    "cudamalloc",
    "cudaset",
    "cudaget",
    "cudadevice",
    "cudamem",
    "cudastream",
    "cudalaunch",
    "cudaevent",
)
_WORDS = (
    "out of memory", "out of cuda memory", "out of gpu memory", "out of video memory",
    "out of vram", "oom", "illegal memory access",
    "error 80", "800 error", "801 error", "802 error", "803 error", "804 error",
)  # fmt: skip
"""What people write about such an error without quoting it."""
_FAILING = (
    "fail", "crash", "time out", "times out", "timed out", "timeout", " hang", "unavailable",
    "not available", "t available", "not detect", "t detect", "not found", "not recogni",
    "not initiali", "disappear", "falls off", "fell off", "fallen off", "unknown error",
    "segfault", "segmentation fault", "no devices", "turned false", "became false", "ecc error",
    "error ", "not work", "t work",
)  # fmt: skip
_PART = (
    r"(?<![/\w.-])(?:CUDA|cuDNN|cuBLAS|NCCL|NVML|NVLink|libcuda(?:\.so[.\d]{0,12})?"
    r"|nvidia[- ]smi|(?:nvidia |gpu )?driver)\b(?![/.-]\w)"
)
_FAILS = (
    r"(?:fail(?:s|ed|ures?|ing)?|crash(?:es|ed)?|time[sd] out|timeouts?(?! ?[=:(])|hangs?"
    r"|unavailable|unknown error|error \d{1,3}|seg(?:mentation )?faults?|(?:says|finds) no devices"
    r"|(?:not|n.t)(?: longer| be)? (?:available|detect(?:ed)?|found|recogni[sz]ed|initiali[sz]ed?"
    r"|work(?:s|ing)?)|(?:turned|became) False)\b"
)
_ERROR = re.compile(
    r"\b(?:CUDA (?:runtime |driver )?error\b|CUDA failure\b|NCCL (?:error|failure)\b"
    r"|cudaError\w{3,60}|nvrtc: error\b|nccl(?:UnhandledCuda|System|Internal|Remote)Error\b"
    r"|ncclInvalid(?:Argument|Usage)\b|cu(?:DNN|BLAS|SOLVER|SPARSE|FFT) error\b|NVRM: Xid \("
    r"|(?-i:\bcu(?:da)?(?:Init|Device|Ctx|Mem|Malloc|Ipc|Module|Launch|Stream|Event|File|Set|Get)"
    r"\w{0,40})(?:\(\))? (?:has )?(?:fail|error\b|returned (?:error|[1-9]))"
    r"|(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CUFFT|CURAND)_STATUS_(?!SUCCESS)[A-Z]\w{2,60})",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\bout of (?:(?:CUDA |GPU |video )?memory|VRAM)\b|\bOOMs?\b|\billegal memory access\b"
    r"|\berror 80[0-4]\b|\b80[0-4] errors?\b",
    re.IGNORECASE,
)
_COMPLAINT = re.compile(
    rf"{_PART}.{{0,24}}\b{_FAILS}|\b(?:error \d{{1,3}}|crash(?:es|ed)?|seg(?:mentation )?faults?"
    rf"|failures?) (?:from|in|of) (?:the )?{_PART}"
    r"|\bGPU.{0,24}\b(?:disappears?|disappeared|f[ae]ll(?:s|en)? off)\b|\bECC errors?\b"
    r"|\bis_available\b.{0,20}\b(?:turned|became|now) False\b",
    re.IGNORECASE,
)
_MOST = 50
_NO_FAILURE = SILENT | {Role.CODE, Role.JOURNAL}
_NO_ERROR = _NO_FAILURE - {Role.KERNEL, Role.JOURNAL}
"""An Xid is an error in the kernel's log, too, and so is what CUDA says in the journal."""


def first_gpu_error(text: Text) -> Line | None:
    """Return the first line that reports an error of CUDA, cuBLAS, cuDNN or NCCL."""
    return _first(text, _LITERALS, _ERROR, _NO_ERROR)


def first_complaint(text: Text) -> Line | None:
    """Return the first line that says in words that CUDA, its libraries or a GPU fail."""
    line = _first(text, _WORDS, _SAID, _NO_FAILURE)
    return line or _first(text, _FAILING, _COMPLAINT, _NO_FAILURE)


def _first(
    text: Text, literals: tuple[str, ...], form: re.Pattern[str], but: frozenset[Role]
) -> Line | None:
    for index in text.find(*literals, most=_MOST):
        if form.search(text.lines[index].text) and role_of(text, index) not in but:
            return text.lines[index]
    return None
