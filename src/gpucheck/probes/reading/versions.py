"""The owner of a library, and the versions of toolkits and library files."""

import posixpath
import re
from typing import Literal

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.libraries import Owner
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import join, name, parent
from gpucheck.probes.reading.dist_info import CondaRecord, DistInfo
from gpucheck.tables.packages import wheel_of

# The owner of a library: a wheel, torch, conda, a toolkit, the system or the driver.

CUDA_STEMS = frozenset(
    (
        "cudart", "cublas", "cublasLt", "cudnn", "cufft", "cufftw", "cufile", "cupti", "curand",
        "cusolver", "cusolverMg", "cusparse", "cusparseLt", "nccl", "nvJitLink", "nvrtc",
        "nvrtc-builtins", "nvshmem_host", "nvToolsExt", "nvperf_host", "nccl-net", "nccl-tuner",
        "cudla", "nvtx3interop",
    )
)  # fmt: skip
"""Names of CUDA's libraries, without ``lib`` and ``.so``."""
_BASIC = frozenset(("c", "stdc++", "gomp", "iomp5", "omp", "gcc_s", "cuda", "nvidia-ml"))
_DRIVER = r"lib(?:cuda|nvidia-[a-z-]+|nvcuvid)\.so(?:\.[0-9.]+)?"
_DRIVER_FOLDER = r"/usr/lib/(?:[a-z0-9_]+-linux-gnu/(?:nvidia|tegra)|wsl/lib)/"
"""Folders of the driver's libraries; on a Jetson and on WSL they contain nothing else."""
_HASH = r"-[0-9a-f]{8}\Z"
_TOOLKIT = (
    r"(?:/usr/local/cuda[^/]*|/opt/cuda[^/]*|/usr/lib/cuda|.*/hpc_sdk/.*|.*/targets/[a-z0-9_-]+-linux)"
    r"/.*"
)
_SYSTEM = r"/(?:usr/)?(?:local/)?lib(?:32|64)?/.*|/nix/store/.*|/run/.*"
_OWN = r"(?:c10|torch|caffe2|shm)(?:_[a-z_]+)?|nvfuser_codegen"


def stem(soname: str) -> str:
    """Return the name without ``lib``, ``.so``, everything after it, and a wheel's hash."""
    return re.sub(_HASH, "", soname.partition(".so")[0].removeprefix("lib"))


def library_name(soname: str) -> str:
    """Return the short name of a relevant library; "" for any other."""
    name = stem(soname)
    if (
        name in CUDA_STEMS
        or name in _BASIC
        or name.startswith("cudnn_")
        or re.fullmatch(_OWN, name)
    ):
        return "nvshmem" if name == "nvshmem_host" else name
    return ""


def is_cuda(soname: str) -> bool:
    """Whether it is one of CUDA's libraries, including cuDNN and NCCL; libcuda is the driver's."""
    return stem(soname) in CUDA_STEMS or stem(soname).startswith("cudnn_")


class Owners:
    """Determines the owner of a file of the target."""

    def __init__(self, host: Host, interpreter: Interpreter, torch: TorchBuild) -> None:
        self._torch = self._both(host, torch.path)
        entries = [entry for entry in interpreter.sys_path or [] if "-packages" in entry]
        self._packages = tuple(path for entry in entries for path in self._both(host, entry))
        conda = interpreter.prefix if interpreter.kind == "conda" else None
        self._conda = self._both(host, join(conda, "lib") if conda else None)

    def owner(self, soname: str, path: str, real_path: str) -> Owner:
        """Return the owner of the file; the path with links resolved decides first."""
        if re.fullmatch(_DRIVER, soname) or re.match(_DRIVER_FOLDER, real_path):
            return "driver"
        for spelling in (real_path, posixpath.normpath(path)):
            if spelling.startswith(self._torch):
                return "torch"
            if spelling.startswith(self._packages):
                return "wheel"
        if self._conda and real_path.startswith(self._conda):
            return "conda"
        if re.fullmatch(_TOOLKIT, real_path):
            return "toolkit"
        return "system" if re.fullmatch(_SYSTEM, real_path) else "other"

    @staticmethod
    def _both(host: Host, folder: str | None) -> tuple[str, ...]:
        if not folder:
            return ()
        real = host.real_path(folder).value or folder
        return tuple(dict.fromkeys(f"{spelling.rstrip('/')}/" for spelling in (real, folder)))


# The versions of toolkits and library files, and the package that installed a file.

# Reads the versions that CUDA, cuDNN and NCCL write into headers and files.

_DEFINE = r"#[ \t]*define[ \t]+(\w+)[ \t]+([0-9]+)"
_TEXT_VERSION = r"CUDA Version ([0-9]+(?:\.[0-9]+){1,3})"
# The V has the patch, the release has not.
_NVCC_VERSION = r"release [0-9.]+, V([0-9]+(?:\.[0-9]+){1,3})"
_HEADER_LIMIT = 64 * 1024  # bytes; the versions stand near the beginning of longer headers
_CUDNN_NEW_CODE = 90000
"""From cuDNN 9 on the code has five digits, two of them for the minor release."""
_NCCL_NEW_CODE = 10000
"""From NCCL 2.9 on the code has five digits as well."""

_DAY_DIGITS = 8  # 11.8.20220929: the last part is the day of the build


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
    for word, number in re.findall(_DEFINE, text):
        found.setdefault(word, int(number[:9]))
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


# The version of a library file, and the package that installed it.

Place = Literal["wheel", "conda", "system", "other"]

_CONDA = {
    "cudnn": ("libcudnn", "cudnn"), "nccl": ("nccl",), "cudart": ("cuda-cudart", "cudatoolkit"),
    "cublas": ("libcublas", "cudatoolkit"), "cublasLt": ("libcublas", "cudatoolkit"),
    "nvrtc": ("cuda-nvrtc", "cudatoolkit"), "nvJitLink": ("libnvjitlink",),
    "cusparse": ("libcusparse", "cudatoolkit"), "cusolver": ("libcusolver", "cudatoolkit"),
    "cufft": ("libcufft", "cudatoolkit"), "curand": ("libcurand", "cudatoolkit"),
    "cupti": ("cuda-cupti", "cudatoolkit"),
}  # fmt: skip
_HEADERS = {"cudnn": cudnn_header, "nccl": nccl_header}
_SHARED_FOLDER = r"cu[0-9]{2}"
_NUMBER = r"\.so\.([0-9]+(?:\.[0-9]+)*)\Z|64_([0-9]+(?:\.[0-9]+)*)(?:_0)?\.dll\Z"
_FULL = 3
"""Number of parts of a complete version, which needs no header."""
_CUDNN = r"libcudnn(?:_([a-z_]{1,40}))?\.so\.([0-9]{1,2})"
_LEADING_PARTS = ("graph", "ops_infer")
"""The first of these that exists has the version of the whole."""
VERSION_BYTES = 4  # patch, minor, major and a zero, as _code reads them


def version_symbols(file: str) -> tuple[str, ...]:
    """Return the variables that may contain the version of a part of cuDNN; () for other files."""
    match = re.fullmatch(_CUDNN, file)
    part = match.group(1) if match is not None else None
    return (f"cudnn_{part}_version", f"cudnn_{part}_infer_version") if part else ()


def file_number(path: str) -> str:
    """Return the version in a file name: 12.4.127 for libcudart.so.12.4.127, "" for none."""
    match = re.search(_NUMBER, name(path))
    return (match.group(1) or match.group(2)) if match else ""


def library_version(  # several sources of a version
    host: Host,
    library: str,
    path: str,
    place: Place,
    infos: list[DistInfo],
    conda: list[CondaRecord],
) -> tuple[Answer[str], str]:
    """Return the version of a library and the package that installed it, "" if unknown.

    If the file name (``path``, links resolved) has no complete version, these are asked in order:
    the file itself (cuDNN), the header next to it, and the package metadata. The number in the name
    is the last resort.
    """
    number = file_number(path)
    header = _inner_version(host, library, path, number)
    if header.value is None:
        header = _header_version(host, library, path, place, number)
    owner = _owner(library, path, infos, header.value or "") if place == "wheel" else None
    record = _record(library, conda) if place == "conda" else None
    package = owner.project if owner is not None else record.project if record is not None else ""
    version = header
    if version.value is None and owner is not None:
        version = Answer(owner.version, owner.path)
    if version.value is None:
        version = Answer(number or None, path, say("its name has no version"))
    return version, package


def _inner_version(host: Host, library: str, path: str, number: str) -> Answer[str]:
    """Return the version in a cuDNN library, by which the parts of cuDNN check each other.

    The main library has none; its version is that of its leading part.
    """
    match = re.fullmatch(_CUDNN, name(path))
    if library != "cudnn" or match is None or len(number.split(".")) >= _FULL:
        return Answer(None, path, say("gpucheck does not ask it"))
    part, major = match.groups()
    if part:
        return _version_of_part(host, path)
    beside = [
        _version_of_part(host, join(parent(path), f"libcudnn_{each}.so.{major}"))
        for each in _LEADING_PARTS
    ]
    return next((answer for answer in beside if not answer.missing), beside[0])


def _version_of_part(host: Host, path: str) -> Answer[str]:
    from gpucheck.machine.binaries.elf import read_elf  # noqa: PLC0415  # needed in the child only
    from gpucheck.machine.binaries.elf_symbols import symbol_data  # noqa: PLC0415  # needed in the child only

    elf = read_elf(host, path)
    if elf.value is None:
        return Answer(None, path, elf.problem, elf.missing)
    for symbol in version_symbols(name(path)):
        data = symbol_data(host, elf.value, symbol, VERSION_BYTES)
        if data.value is not None and len(data.value) == VERSION_BYTES:
            return data.map(_code)
    return Answer(None, path, say("it has no version"))


def _code(data: bytes) -> str | None:
    """Decode the patch, minor and major release, one byte each."""
    patch, minor, major, rest = data
    return f"{major}.{minor}.{patch}" if major and not rest else None


def _header_version(host: Host, library: str, path: str, place: Place, number: str) -> Answer[str]:
    """Return the version in the header next to the library, if the file name is not enough."""
    read = _HEADERS.get(library)
    if read is None or len(number.split(".")) >= _FULL:
        return Answer(None, path, say("gpucheck reads no header for it"))
    folder = parent(path)
    includes = [join(parent(folder), "include")]
    if place == "system":
        includes.append(join(parent(parent(folder)), "include"))
    answers = [read(host, include) for include in includes]
    return next((answer for answer in answers if answer.value is not None), answers[0])


def _owner(library: str, path: str, infos: list[DistInfo], version: str) -> DistInfo | None:
    """Return the distribution that owns a wheel's library; None if two could have written it.

    ``nvidia/cu13`` contains the libraries of projects without a suffix, ``nvidia/cudnn`` those of
    projects such as ``nvidia-cudnn-cu12``.
    """
    base = wheel_of(library)
    if base is None:
        return None
    folder = parent(parent(path))
    entry = parent(parent(folder))
    shared = bool(re.fullmatch(_SHARED_FOLDER, name(folder)))
    owners = [
        info
        for info in infos
        if info.entry == entry
        and (info.project == base if shared else info.project.startswith(f"{base}-cu"))
    ]
    if len(owners) > 1 and version:
        owners = [info for info in owners if info.version.startswith(version)]
    return owners[0] if len(owners) == 1 else None


def _record(library: str, conda: list[CondaRecord]) -> CondaRecord | None:
    projects = _CONDA.get(library, ())
    return next((r for project in projects for r in conda if r.project == project), None)
