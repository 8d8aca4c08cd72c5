"""Turns an exception into data for checks: its kind, code, text and last frames."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import traceback
from typing import Any, Callable, Dict, Iterator

# Recognises torch's messages for exhausted memory.

_OUT_OF_MEMORY = ("out of memory", "can't allocate", "not enough memory")


def is_out_of_memory(torch: Any, error: RuntimeError) -> bool:  # noqa: ANN401  # the module
    """Whether torch says that there is no memory left."""
    if isinstance(error, getattr(torch.cuda, "OutOfMemoryError", ())):
        return True
    return any(each in str(error) for each in _OUT_OF_MEMORY)


Message = Dict[str, Any]

_WORDS = 1500  # chosen: CUDA's advice about allocation fits (596 characters), with what torch adds
_FRAMES = 6  # chosen: the last ones are those of the self-test and of torch
_LAST_CODE = 999  # CUDA_ERROR_UNKNOWN and cudaErrorUnknown, the last one of both
# How CUDA's libraries name their errors, as torch quotes them; each name is an enum of a header, so
# a bound of 60 is above all of them.
_STATUS = re.compile(r"\b(CUDNN|CUBLAS|CUSPARSE|CUSOLVER|CUFFT)_STATUS_[A-Z0-9_]{2,60}")
_STATUS_KINDS = {"CUDNN": "cudnn-status", "CUBLAS": "cublas-status"}
_CUDA_ERROR = re.compile(r"CUDA (?:driver )?error: ([^\n]{1,200})")
_CUDA_NAME = re.compile(r"\b(?:cudaError[A-Za-z]{2,60}|CUDA_ERROR_[A-Z0-9_]{2,60})")
_CODE = re.compile(r"\bError (\d{1,4}): ([^\n]{1,200})")
_NCCL_WARN = re.compile(r"NCCL WARN ([^\n]{1,300})")
_NCCL_RESULT = re.compile(r"\bnccl[A-Z][A-Za-z]{3,40}(?:Error|Usage|Argument)\b")


def explain(error: BaseException) -> Message:
    """Return kind, detail and data of an exception that a self-test did not expect."""
    words = _words(error)
    data: Message = {
        "type": _name(error),
        "message": words,
        "frames": _frames(error),
    }
    kind = _kind(error, words, data)
    first = words.strip().splitlines()[0] if words.strip() else "without a message"
    return {"kind": kind, "detail": data["type"] + ": " + first[:400], "data": data}


def _kind(error: BaseException, words: str, data: Message) -> str:
    """Return the most specific kind; note other findings in ``data``."""
    status = _STATUS.search(words)
    if status:
        data["status"] = status.group(0)
        if _had_failed_before(data):
            return "cuda-error"
        return _STATUS_KINDS.get(status.group(1), "cuda-error")
    if _is_out_of_memory(error, words):
        return "out-of-memory"
    if "NCCL" in words or "nccl" in words:
        result = _NCCL_RESULT.search(words)
        data["nccl_warnings"] = _NCCL_WARN.findall(words)[-5:]
        if result or "NCCL error" in words:
            data["nccl_result"] = result.group(0) if result else ""
            return "nccl-error"
    if note_cuda_error(error, words, data):
        return "cuda-error"
    if "cuDNN" in words and "not" in words:
        return "cudnn-status"
    return "python-exception"


def _had_failed_before(data: Message) -> bool:
    """Whether a kernel had failed before a library was called; its error is noted.

    Kernels run on their own: a failed one is told by the next call, whosever that is. cuBLAS then
    reports that it could not be initialised or that an execution failed, and cannot say why.
    """
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except Exception as earlier:  # noqa: BLE001  # torch has raised several types for it
        return note_cuda_error(earlier, _words(earlier), data)
    return False


def note_cuda_error(error: BaseException, words: str, data: Message) -> bool:
    """Note the CUDA error that caused the exception: its code, its name and its text."""
    code: int | None = getattr(error, "error_code", None)
    numbered = _CODE.search(words)
    named = _CUDA_NAME.search(words)
    reported = _CUDA_ERROR.search(words)
    is_accelerator = type(error).__name__ == "AcceleratorError"
    if not (is_accelerator or numbered or named or reported):
        return False
    if isinstance(code, int):
        data["cuda_code"] = code
    elif numbered:
        data["cuda_code"] = int(numbered.group(1))
    if named:
        data["cuda_name"] = named.group(0)
    text = numbered.group(2) if numbered else reported.group(1) if reported else ""
    if text:
        data["cuda_text"] = text.strip()
    if text and "cuda_code" not in data and "cuda_name" not in data:
        found = code_of(text.strip())
        if found is not None:
            data["cuda_code"] = found
    return True


def code_of(text: str) -> int | None:
    """Return the CUDA error code that has this text in the libraries of this process."""
    with contextlib.suppress(Exception):
        for library, question in _error_strings():
            for code in range(1, _LAST_CODE + 1):
                if question(library, code) == text:
                    return code
    return None


def _error_strings() -> Iterator[tuple[Any, Callable[[Any, int], str]]]:
    """Yield each loaded CUDA runtime or driver library with the function for its error texts."""
    for path in _loaded("libcudart"):
        library = ctypes.CDLL(path)
        library.cudaGetErrorString.restype = ctypes.c_char_p
        yield library, _runtime_words
    for path in _loaded("libcuda.so"):
        yield ctypes.CDLL(path), _driver_words


def _runtime_words(library: Any, code: int) -> str:  # noqa: ANN401  # a loaded library
    return (library.cudaGetErrorString(code) or b"").decode("utf-8", "replace")


def _driver_words(library: Any, code: int) -> str:  # noqa: ANN401  # a loaded library
    words = ctypes.c_char_p()
    library.cuGetErrorString(code, ctypes.byref(words))
    return (words.value or b"").decode("utf-8", "replace")


def _loaded(name: str) -> list[str]:
    """Return the paths of libraries of this name that this process has mapped (Linux)."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if name in line}
    return sorted(path for path in paths if os.path.basename(path).startswith(name))


def _is_out_of_memory(error: BaseException, words: str) -> bool:
    named = any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)
    return named or "CUDA out of memory" in words or "CUDA error: out of memory" in words


def _words(error: BaseException) -> str:
    try:
        return str(error)[:_WORDS]
    except Exception:  # noqa: BLE001  # an exception may be as broken as what raised it
        return ""


def _name(error: BaseException) -> str:
    kind = type(error)
    inside = kind.__module__ in ("builtins", "__main__")
    return kind.__name__ if inside else kind.__module__ + "." + kind.__name__


def _frames(error: BaseException) -> list[str]:
    """Return the last frames, the innermost last: file, line and function."""
    try:
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    except Exception:  # noqa: BLE001  # no frame is worth a crash
        return []
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
