"""Errors of CUDA in a text: their words, if a text has the number only, and the first one."""

import re

import msgspec

from gpucheck.findings.gpu_memory import OUT_OF_MEMORY
from gpucheck.log_patterns.roles import SILENT, Role, role_of
from gpucheck.log_patterns.source_code import is_statement
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.tables.error_codes import CudaErrorRow, CudaErrors

_LITERALS_OF_NUMBERS = (
    "cuda error", "cuda runtime error", "cuda driver error", "cuda api error", "cuda failure",
    "cuda failed", "thcudacheck", "cudaget", "cudaset", "cudamalloc", "cudadevice", "cudastream",
    "cudaerror", "cuda_error", "cuinit", "cudeviceget", "call to cu", "error code", "with error",
    "cudamem", "cumem", "cuctx",
    "cudapeek", "cudafree", "cudaevent", "cudalaunch", "init failure:",
)  # fmt: skip
# A number that counts something ("2 GPUs") or goes on ("2.1", "2%") is no code.
_ERROR_NUMBER = (
    r"(?P<code>\d{1,3})(?![\w%]|\.\w)(?! ?(?:gpus?|devices?|times|errors?|ranks?|process\w*)\b)"
)
_WORD = r"(?:error|failure|failed)"
_TO_NUMBER = r"(?: ?code)?\s?[:=#]?\s?[(\[]?" + _ERROR_NUMBER
_CALLED = (
    r"\bcu(?:da(?:Get|Set|Malloc|Device|Stream|Mem|Peek|Free|Event|Launch)|Init|DeviceGet|Mem|Ctx)"
    r"\w{0,40}"
    r"(?:\([^()]{0,80}\))?,?\s"
)
_ERROR_NAME = re.compile(r"\b(?:cudaError[A-Z]\w{3,60}|CUDA_ERROR_\w{3,60})")
_CALLS_WITHOUT_MEMORY = ("cudagetdevice", "cuinit", "cudeviceget")
"""Calls that use no GPU memory: their 2 may be a count, or something else is short."""
_MOST = 50  # chosen: lines with such a word; 12 change no answer on 752 labelled tickets
_LONGEST = 1000  # of a line; chosen: a number of CUDA stands near its words


# The words, as the tables have them, are added to the line in brackets, where the matcher finds
# them.
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\bCUDA (?:runtime |driver |API )?{_WORD}(?: ?code)?(?:[:=]? {_WORD} code)?{_TO_NUMBER}",
        rf"\bTHCudaCheck\w{{0,8}} FAIL\b.{{0,200}}\berror={_ERROR_NUMBER}",
        rf"{_CALLED}(?:returned|returns|return|{_WORD}|==|=|->)(?: with)?(?:[:,]? {_WORD})?"
        + _TO_NUMBER,
        rf"\bcudaError(?:_t|_enum)?\s?[:=(]{{0,2}}\s?{_ERROR_NUMBER}",
        rf"\bcode ?= ?{_ERROR_NUMBER}\s?\(cuda",
        rf"\[{_ERROR_NUMBER}\] Call to cu\w{{1,40}} results in",
        rf"\bCall to cu\w{{1,40}} results in [A-Z_]{{3,60}} \({_ERROR_NUMBER}\)",  # Numba
        rf"\bCUDA\b.{{0,60}}\b{_WORD}\b.{{0,30}}?\berror{_TO_NUMBER}",
        rf"\b(?:cuda driver library|cudart) init failure: {_ERROR_NUMBER}",  # Ollama
    )
)

_LITERALS_OF_ERRORS = (
    "cuda error",
    "gpu api call",
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
    "no devices were found",
    "compiler identification",
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
_COMPLAINT_WORDS = (
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
# Not as a part of a path, of a module or of an option: there it is only a name.
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
    r"\w{0,40})(?:\([^()]{0,80}\))? (?:has )?(?:fail|error\b|returned (?:error|[1-9]))"
    r"|(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CUFFT|CURAND)_STATUS_(?!SUCCESS)[A-Z]\w{2,60}"
    r"|CUDA compiler identification is unknown"
    r"|Gpu API call(?: \(|\) ))|^\W{0,9}no devices were found\W{0,3}$",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\bout of (?:(?:CUDA |GPU |video )?memory|VRAM)\b|\bOOMs?\b|\billegal memory access\b"
    r"|\berror 80[0-4]\b|\b80[0-4] errors?\b",
    re.IGNORECASE,
)
# What fails and how, within 24 characters: farther apart they belong to different clauses.
_COMPLAINT = re.compile(
    rf"{_PART}.{{0,24}}\b{_FAILS}|\b(?:error \d{{1,3}}|crash(?:es|ed)?|seg(?:mentation )?faults?"
    rf"|failures?) (?:from|in|of) (?:the )?{_PART}"
    r"|\bGPU.{0,24}\b(?:disappears?|disappeared|f[ae]ll(?:s|en)? off)\b|\bECC errors?\b"
    r"|\bis_available\b.{0,20}\b(?:turned|became|now) False\b",
    re.IGNORECASE,
)
_NO_FAILURE = SILENT | {Role.CODE, Role.JOURNAL}
_NO_ERROR = _NO_FAILURE - {Role.KERNEL, Role.JOURNAL}
"""An Xid is an error in the kernel's log, too, and so is what CUDA says in the journal."""


def with_names(text: Text, tables: Tables) -> Text:
    """Return the text with each numbered CUDA error named; the same text if there is none."""
    named = {}
    for index in text.find(*_LITERALS_OF_NUMBERS, most=_MOST):
        line = text.lines[index]
        row = _row(line.text[:_LONGEST], tables.get(CudaErrors))
        if row is not None and not _is_named_in(line.text, row):
            named[index] = _named(line, row)
    if not named:
        return text
    return Text(named.get(index, line) for index, line in enumerate(text.lines))


def _is_named_in(line: str, row: CudaErrorRow) -> bool:
    """Whether a line has both the name and the words."""
    return row.runtime in (None, *_ERROR_NAME.findall(line)) and (row.message or "") in line


def _named(line: Line, row: CudaErrorRow) -> Line:
    words = f"{line.text} [{row.runtime}: {row.message}]"
    return msgspec.structs.replace(line, text=words, typed="")


def _row(line: str, errors: CudaErrors) -> CudaErrorRow | None:
    """Return the row of the error in a line; a name decides before a number, code has none."""
    if is_statement(line):
        return None
    named = next(filter(None, map(errors.named, _ERROR_NAME.findall(line))), None)
    if named is not None:
        return named if named.slugs and named.runtime and named.message else None
    found = next(filter(None, (form.search(line) for form in _FORMS)), None)
    if found is None:
        return None
    row = meant(int(found["code"]), line, errors)
    if row is not None and OUT_OF_MEMORY.slug in row.slugs:
        return None if any(map(line.lower().__contains__, _CALLS_WITHOUT_MEMORY)) else row
    return row


def meant(code: int, line: str, errors: CudaErrors) -> CudaErrorRow | None:
    """Return the row of an error number in a line; CUDA before 10.1 used other numbers.

    The words of the line decide. Without words it is the row of a finding, and the newer one of
    two: users hardly ever see the old numbers today.
    """
    rows = [errors.error(code), errors.error_before_10_1(code)]
    known = [row for row in rows if row is not None and row.runtime and row.message]
    for row in known:
        if row.message and row.message.lower() in line.lower():
            return row
    return next((row for row in known if row.slugs), None)


def first_gpu_error(text: Text) -> Line | None:
    """Return the first line that reports an error of CUDA, cuBLAS, cuDNN or NCCL."""
    return _first(text, _LITERALS_OF_ERRORS, _ERROR, _NO_ERROR)


def first_complaint(text: Text) -> Line | None:
    """Return the first line that says in words that CUDA, its libraries or a GPU fail."""
    line = _first(text, _COMPLAINT_WORDS, _SAID, _NO_FAILURE)
    return line or _first(text, _FAILING, _COMPLAINT, _NO_FAILURE)


def _first(
    text: Text, literals: tuple[str, ...], form: re.Pattern[str], but: frozenset[Role]
) -> Line | None:
    for index in text.find(*literals, most=_MOST):
        line = text.lines[index].text
        found = "NCCL INFO" not in line and form.search(line)
        if found and role_of(text, index) not in but:
            return text.lines[index]
    return None
