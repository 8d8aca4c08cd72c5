"""Reads the versions that CUDA, cuDNN and NCCL write into headers and files."""

import re

import msgspec

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import join

_DEFINE = r"#[ \t]*define[ \t]+(\w+)[ \t]+([0-9]+)"
_TEXT_VERSION = r"CUDA Version ([0-9]+(?:\.[0-9]+){1,3})"
_NVCC_VERSION = r"release [0-9.]+, V([0-9]+(?:\.[0-9]+){1,3})"
_HEADER_LIMIT = 64 * 1024
_CUDNN_NEW_CODE = 90000
"""From cuDNN 9 on the code has five digits, two of them for the minor release."""
_NCCL_NEW_CODE = 10000
"""From NCCL 2.9 on the code has five digits as well."""

_DAY_DIGITS = 8


class _Part(msgspec.Struct):
    """One component in ``version.json``."""

    version: str = ""


def cudnn_version(code: int) -> str:
    """Decode ``CUDNN_VERSION``: 8907 is 8.9.7, 91900 is 9.19.0."""
    if code >= _CUDNN_NEW_CODE:
        return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
    return f"{code // 1000}.{code // 100 % 10}.{code % 100}"


def nccl_version(code: int) -> str:
    """Decode ``NCCL_VERSION_CODE``: 2708 is 2.7.8, 22105 is 2.21.5."""
    if code >= _NCCL_NEW_CODE:
        return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
    return f"{code // 1000}.{code // 100 % 10}.{code % 100}"


def cuda_version(code: int) -> str:
    """Decode ``CUDA_VERSION``: 12040 is 12.4."""
    return f"{code // 1000}.{code // 10 % 100}"


def defines(text: str) -> dict[str, int]:
    """Return the numbers that a header defines, by name; the first definition wins."""
    found: dict[str, int] = {}
    for name, number in re.findall(_DEFINE, text):
        found.setdefault(name, int(number[:9]))
    return found


def cudnn_header(host: Host, folder: str) -> Answer[str]:
    """Return the version in ``cudnn_version.h``, or in ``cudnn.h`` of cuDNN 7 and older."""
    new = host.read(join(folder, "cudnn_version.h"), _HEADER_LIMIT)
    old = host.read(join(folder, "cudnn.h"), _HEADER_LIMIT) if new.missing else new
    return old.map(_cudnn_parts)


def _cudnn_parts(text: str) -> str | None:
    numbers = defines(text)
    names = ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL")
    if not all(name in numbers for name in names):
        return None
    return ".".join(str(numbers[name]) for name in names)


def nccl_header(host: Host, folder: str) -> Answer[str]:
    """Return the version in ``nccl.h``."""
    text = host.read(join(folder, "nccl.h"), _HEADER_LIMIT)
    return text.map(lambda header: nccl_version(defines(header)["NCCL_VERSION_CODE"]))


def toolkit_version(host: Host, folder: str, *includes: str) -> Answer[str]:
    """Return the version of a toolkit from ``version.json``, ``version.txt`` or ``cuda.h``."""
    answers = [
        host.read(join(folder, "version.json"), _HEADER_LIMIT).map(_in_json),
        host.read(join(folder, "version.txt"), _HEADER_LIMIT).map(_in_text),
    ]
    for include in (join(folder, "include"), *includes):
        if any(answer.value for answer in answers):
            break
        header = join(include, "cuda.h")
        answers.append(host.find_in_file(header, b"#define CUDA_VERSION ", 24).map(_in_cuda_h))
    good = next((answer for answer in answers if answer.value), None)
    worst = next((answer for answer in answers if not answer.missing), None)
    return good or worst or Answer(None, folder, say("no file there names a version"))


def _in_json(text: str) -> str | None:
    """Return the version of the whole toolkit: ``12.4.1``, or 11.8 for ``11.8.20220929``.

    Raises:
        ValueError, LookupError, RecursionError: the text is not JSON of the known form.
    """
    version = msgspec.json.decode(text, type=dict[str, _Part])["cuda"].version
    parts = [part for part in version.split(".") if part.isdecimal() and len(part) < _DAY_DIGITS]
    return ".".join(parts) or None


def _in_text(text: str) -> str | None:
    match = re.search(_TEXT_VERSION, text)
    return match.group(1) if match else None


def _in_cuda_h(hits: list[bytes]) -> str | None:
    for hit in hits:
        macros = defines(hit.decode("utf-8", "replace"))
        if "CUDA_VERSION" in macros:
            return cuda_version(macros["CUDA_VERSION"])
    return None


def nvcc_says(text: str) -> str | None:
    """Return the version in the output of ``nvcc --version``."""
    match = re.search(_NVCC_VERSION, text)
    return match.group(1) if match else None
