"""Adds the words to a CUDA error that a text names by its number or name only.

The words, as the tables have them, are added to the line in brackets, where the matcher finds them.
"""

import re

import msgspec

from gpucheck.findings import out_of_memory
from gpucheck.log_patterns.source_code import is_statement
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.tables.cuda_errors import CudaErrorRow, CudaErrors

_LITERALS = (
    "cuda error", "cuda runtime error", "cuda driver error", "cuda api error", "cuda failure",
    "cuda failed", "thcudacheck", "cudaget", "cudaset", "cudamalloc", "cudadevice", "cudastream",
    "cudaerror", "cuda_error", "cuinit", "cudeviceget", "call to cu", "error code", "with error",
    "cudamem",
    "cudapeek", "cudafree", "cudaevent", "cudalaunch",
)  # fmt: skip
_CODE = r"(?P<code>\d{1,3})(?![\w.%])(?! ?(?:gpus?|devices?|times|errors?|ranks?|process\w*)\b)"
_WORD = r"(?:error|failure|failed)"
_TO_CODE = r"(?: ?code)?\s?[:=#]?\s?[(\[]?" + _CODE
_CALLED = (
    r"\bcu(?:da(?:Get|Set|Malloc|Device|Stream|Mem|Peek|Free|Event|Launch)|Init|DeviceGet)\w{0,40}"
    r"(?:\([^()]{0,80}\))?,?\s"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\bCUDA (?:runtime |driver |API )?{_WORD}(?: ?code)?(?:[:=]? {_WORD} code)?{_TO_CODE}",
        rf"\bTHCudaCheck\w{{0,8}} FAIL\b.{{0,200}}\berror={_CODE}",
        rf"{_CALLED}(?:returned|returns|return|{_WORD}|==|=|->)(?: with)?(?:[:,]? {_WORD})?"
        + _TO_CODE,
        rf"\bcudaError(?:_t|_enum)?\s?[:=(]{{0,2}}\s?{_CODE}",
        rf"\bcode ?= ?{_CODE}\s?\(cuda",
        rf"\[{_CODE}\] Call to cu\w{{1,40}} results in",
        rf"\bCUDA\b.{{0,60}}\b{_WORD}\b.{{0,30}}?\berror{_TO_CODE}",
    )
)
_NAME = re.compile(r"\b(?:cudaError[A-Z]\w{3,60}|CUDA_ERROR_\w{3,60})")
_BEFORE_ANY_WORK = ("getdevicecount", "cuinit", "deviceget")
"""Calls that use no GPU memory: if one reports "out of memory", something else is short."""
_MOST = 50
_LONGEST = 1000


def with_names(text: Text, tables: Tables) -> Text:
    """Return the text with each numbered CUDA error named; the same text if there is none."""
    named = {}
    for index in text.find(*_LITERALS, most=_MOST):
        line = text.lines[index]
        row = _row(line.text[:_LONGEST], tables.get(CudaErrors))
        if row is not None and not _is_named_in(line.text, row):
            named[index] = _named(line, row)
    if not named:
        return text
    return Text(named.get(index, line) for index, line in enumerate(text.lines))


def _is_named_in(line: str, row: CudaErrorRow) -> bool:
    """Whether a line has both the name and the words."""
    return row.runtime in (None, *_NAME.findall(line)) and (row.message or "") in line


def _named(line: Line, row: CudaErrorRow) -> Line:
    words = f"{line.text} [{row.runtime}: {row.message}]"
    return msgspec.structs.replace(line, text=words)


def _row(line: str, errors: CudaErrors) -> CudaErrorRow | None:
    if is_statement(line):
        return None
    named = next(filter(None, map(errors.named, _NAME.findall(line))), None)
    if named is not None:
        return named if named.slugs and named.runtime and named.message else None
    found = next(filter(None, (form.search(line) for form in _FORMS)), None)
    if found is None:
        return None
    row = meant(int(found["code"]), line, errors)
    if row is not None and out_of_memory.RULE.slug in row.slugs:
        return None if any(map(line.lower().__contains__, _BEFORE_ANY_WORK)) else row
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
