"""Packages around PyTorch: public ones, NVIDIA's wheels, those of a system, NumPy and Triton."""

import re
from collections.abc import Collection
from functools import cached_property
from typing import ClassVar, Literal

from gpucheck.tables.base import Library, OperatingSystem, Project, Row, Table, VersionText, Words
from gpucheck.tables.versions import at_least, compare, numbers, parse, released

# Public packages: the location of their source, and what they compile.

_SEPARATORS = r"[-_.]+"

Form = Literal["source", "wheel"]
Code = Literal["cuda", "triton", "c++"]


class KnownPackageRow(Row, frozen=True):
    """A distribution by its name on PyPI, and the public repository of its source.

    `pypi` is the form in which PyPI has it, missing if nobody has looked. If PyPI has only the
    source, pip compiles it for the installed torch. `compiles` is the code that it compiles when it
    is used: "cuda" with nvcc, "triton" kernels, for which Triton compiles C, or "c++". If one of
    `unless` is installed, it need not compile. For an `application`, torch is chosen to fit the
    package, not vice versa. A package with a `library_per_cuda` loads the one for torch's CUDA. One
    that `goes_on_without` its compiled code reports this and works. One `for_some_gpus` has
    optional kernels that exist only for some generations.
    """

    package: Project
    repository: Words
    pypi: tuple[Form, ...] = ()
    compiles: tuple[Code, ...] = ()
    unless: tuple[Project, ...] = ()
    application: bool = False
    library_per_cuda: bool = False
    goes_on_without: bool = False
    for_some_gpus: bool = False


class KnownPackages(Table, frozen=True):
    """Answers what is known about a package. Names compare as on PyPI."""

    name: ClassVar[str] = "known_packages"
    rows: tuple[KnownPackageRow, ...]

    def known(self, package: str) -> KnownPackageRow | None:
        """Return the row of a package; None if the table does not have it."""
        return self._by_name.get(re.sub(_SEPARATORS, "-", package).lower())

    def compiling(self, *codes: Code) -> tuple[KnownPackageRow, ...]:
        """Return the packages that compile one of these kinds of code when they are used."""
        return tuple(row for row in self.rows if set(codes) & set(row.compiles))

    @cached_property
    def _by_name(self) -> dict[str, KnownPackageRow]:
        return {row.package: row for row in self.rows}


# Which package of a Linux system contains a library that PyTorch takes from the system.

Manager = Literal["apt", "dnf", "yum"]


class SystemPackageRow(Row, frozen=True):
    """A package manager, a SONAME, and the package that contains it."""

    manager: Manager
    soname: Library
    package: Project


class SystemPackages(Table, frozen=True):
    """Answers what to install for a missing library."""

    name: ClassVar[str] = "system_packages"
    rows: tuple[SystemPackageRow, ...]

    def package(self, manager: str | None, soname: str) -> str | None:
        """Return the package that contains a library; None if the table does not know it."""
        rows = (row for row in self.rows if (row.manager, row.soname) == (manager, soname))
        return next((row.package for row in rows), None)


# The names of NVIDIA's wheels: which library is in which wheel, and for which CUDA.

_SUFFIX = r"-cu([0-9]{2})\Z"
_WHEELS = {
    "cudnn": "nvidia-cudnn", "nccl": "nvidia-nccl", "cudart": "nvidia-cuda-runtime",
    "cublas": "nvidia-cublas", "cublasLt": "nvidia-cublas", "nvrtc": "nvidia-cuda-nvrtc",
    "nvJitLink": "nvidia-nvjitlink", "cusparse": "nvidia-cusparse",
    "cusparseLt": "nvidia-cusparselt", "cusolver": "nvidia-cusolver", "cufft": "nvidia-cufft",
    "curand": "nvidia-curand", "cupti": "nvidia-cuda-cupti", "nvshmem": "nvidia-nvshmem",
    "cufile": "nvidia-cufile", "nvToolsExt": "nvidia-nvtx", "nvtx3interop": "nvidia-nvtx",
}  # fmt: skip
_KEPT_COMPATIBLE = (
    "nvidia-cublas", "nvidia-cuda-cupti", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime",
    "nvidia-cudnn", "nvidia-cufft", "nvidia-cufile", "nvidia-curand", "nvidia-cusolver",
    "nvidia-cusparse", "nvidia-nccl", "nvidia-nvjitlink", "nvidia-nvtx",
)  # fmt: skip
"""Wheels whose newer releases are compatible with older ones of the same major version."""
_UNNUMBERED_FROM = 13
"""From this CUDA on, the wheels of CUDA's own libraries have no number in their names."""
_ONE_PLACE = ("nvidia-cudnn", "nvidia-cusparselt", "nvidia-nccl", "nvidia-nvshmem")
"""Wheels that write the same files for every CUDA."""
_ONE_PLACE_BEFORE_13 = ("nvidia-curand", "nvidia-cusolver", "nvidia-nvtx")
"""Wheels of CUDA's own libraries whose sonames CUDA 11 and 12 share."""
_TRITON_FOLDER = (
    "triton", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu", "triton-rocm",
    "triton-xpu",
)  # fmt: skip
"""Wheels that write the folder ``triton``; CUDA builds of PyTorch require the first one."""
_LIBRARY = r"lib([A-Za-z0-9]+)(?:[_-][A-Za-z0-9_-]+)?\.so"


def wheel_of(library: str) -> str | None:
    """Return the wheel of a library ("cublas"), without the CUDA suffix."""
    return _WHEELS.get(library)


def wheel_of_file(file: str) -> str | None:
    """Return the wheel of a library file such as ``libcudnn_ops.so.9``, without the CUDA suffix."""
    match = re.match(_LIBRARY, file)
    return wheel_of(match.group(1)) if match else None


def stem(project: str) -> str:
    """Return a project name without the CUDA suffix: ``nvidia-cudnn``."""
    return re.sub(_SUFFIX, "", project)


def cuda_of(project: str) -> str:
    """Return the CUDA major of a project ("12"); "" if its name has none, from CUDA 13 on."""
    match = re.search(_SUFFIX, project)
    return match.group(1) if match else ""


def wheel_for_cuda(wheel: str, major: str) -> str:
    """Return the project of a CUDA library's wheel ("nvidia-cublas") for a CUDA major."""
    return f"{wheel}-cu{major}" if int(major) < _UNNUMBERED_FROM else wheel


def is_kept_compatible(project: str) -> bool:
    """Whether newer releases of a wheel are compatible with older ones of the same major."""
    return stem(project) in _KEPT_COMPATIBLE


def overwritten_by(major: str, projects: Collection[str]) -> list[str]:
    """Return the projects whose files the wheels of a PyTorch for a CUDA major overwrite.

    If they are removed after that, the files of the new wheels are gone.
    """
    before = _ONE_PLACE_BEFORE_13 if int(major) < _UNNUMBERED_FROM else ()
    found = [
        project
        for project in projects
        if cuda_of(project) not in {"", major} and stem(project) in (*_ONE_PLACE, *before)
    ]
    tritons = [project for project in projects if project in _TRITON_FOLDER]
    return found + (tritons if set(tritons) - {"triton"} else [])


# Which PyTorch releases work with NumPy 2, and what happens if one does not.


class Numpy2Row(Row, frozen=True):
    """Releases `first` to `last` (absent: open) on operating systems; `effect` when it fails."""

    operating_systems: tuple[OperatingSystem, ...]
    works: bool
    first: VersionText | None = None
    last: VersionText | None = None
    effect: Words | None = None


class Numpy2(Table, frozen=True):
    """Answers whether a torch works with NumPy 2."""

    name: ClassVar[str] = "numpy2"
    rows: tuple[Numpy2Row, ...]

    def works(self, torch: str, os: OperatingSystem) -> bool | None:
        """Return whether a release works with NumPy 2."""
        row = self._row(torch, os)
        return None if row is None else row.works

    def effect(self, torch: str, os: OperatingSystem) -> str | None:
        """Return what happens with NumPy 2; None if it works or the effect is unknown."""
        row = self._row(torch, os)
        return None if row is None else row.effect

    def _row(self, torch: str, os: OperatingSystem) -> Numpy2Row | None:
        version = released(torch)
        if version is None:
            return None
        return next((r for r in self.rows if os in r.operating_systems and _in(version, r)), None)


def _in(version: tuple[int, ...], row: Numpy2Row) -> bool:
    after_first = row.first is None or at_least(version, numbers(row.first))
    return after_first and (row.last is None or at_least(numbers(row.last), version))


# Triton releases on PyPI: Pythons and the oldest glibc.


class TritonRow(Row, frozen=True):
    """A release: first and last Python ("3.9", "3.13"), glibc; PyPI has only Linux wheels."""

    triton: VersionText
    python_first: VersionText
    python_last: VersionText
    glibc: VersionText
    linux_only: bool


class Triton(Table, frozen=True):
    """Answers on which systems a Triton release runs."""

    name: ClassVar[str] = "triton"
    rows: tuple[TritonRow, ...]

    def release(self, triton: str) -> TritonRow | None:
        """Return the row of a release."""
        wanted = released(triton)
        if wanted is None:
            return None
        return next((r for r in self.rows if compare(numbers(r.triton), wanted) == 0), None)

    def has_python(self, triton: str, python: str) -> bool | None:
        """Return whether a release supports a Python such as "3.12"."""
        row, version = self.release(triton), parse(python)
        if row is None or version is None or len(version) == 1:
            return None
        last = numbers(row.python_last)
        return at_least(version[:2], numbers(row.python_first)) and at_least(last, version[:2])
