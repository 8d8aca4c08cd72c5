"""CUDA toolkits on disk, the one that a build would use, and the host compilers."""

from typing import Annotated, ClassVar

from gpucheck.facts import Answer, Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes import _compilers, _toolkit_files
from gpucheck.probes._paths import is_windows, join
from gpucheck.probes._toolkit_files import FoundVia, Root
from gpucheck.probes.interpreter import Interpreter

DEADLINE = 5.0
LANE = "target"


class Toolkit(Facts, frozen=True, kw_only=True):
    """One CUDA toolkit or a part of one."""

    path: Annotated[str | None, Private("path")] = None
    version: str | None = None
    """``12.4`` or ``12.4.1``, as complete as its files allow."""
    has_nvcc: bool | None = None
    has_headers: bool | None = None
    has_cudart: bool | None = None
    found_via: FoundVia | None = None


class Compiler(Facts, frozen=True, kw_only=True):
    """A host compiler on PATH."""

    command: str | None = None
    path: Annotated[str | None, Private("path")] = None
    version: str | None = None


class Toolkits(Section, frozen=True, kw_only=True):
    """What an extension build would find."""

    name: ClassVar[str] = "toolkits"

    toolkits: list[Toolkit] | None = None
    selected: Annotated[str | None, Private("path")] = None
    """The toolkit that torch's extension builder would use (CUDA_HOME, CUDA_PATH, nvcc on PATH,
    /usr/local/cuda, in this order); "" if there is none."""
    selected_version: str | None = None
    selected_via: str | None = None
    compilers: list[Compiler] | None = None
    python_headers: bool | None = None
    """Whether Python.h of the target exists, which extensions are compiled with."""


def collect(host: Host, interpreter: Interpreter) -> Toolkits:
    """Search for toolkits; run nvcc or a compiler only if no file has the version."""
    notes = Notes()
    notes.said("*", "CUDA_HOME, CUDA_PATH, PATH, /usr/local, the distribution, conda and wheels")
    found = _toolkit_files.roots(host, interpreter)
    taken = _toolkit_files.selected(host)
    version: str | None = ""
    if taken is not None:
        notes.said("selected", taken[1])
        version = notes.take("selected_version", _toolkit_files.version_of(host, taken[0]))
    return Toolkits(
        toolkits=[_toolkit(host, root) for root in found if root.exists],
        selected=taken[0].path if taken is not None else "",
        selected_version=version,
        selected_via=taken[1] if taken is not None else "",
        compilers=_compilers_of(host, notes),
        python_headers=notes.take("python_headers", _python_headers(host, interpreter)),
        sources=notes.sources,
        problems=notes.problems,
    )


def _toolkit(host: Host, root: Root) -> Toolkit:
    notes = Notes()
    notes.said("*", root.path)
    return Toolkit(
        path=root.path,
        version=notes.take("version", _toolkit_files.version_of(host, root)),
        has_nvcc=_toolkit_files.has_nvcc(host, root),
        has_headers=_toolkit_files.has_headers(host, root),
        has_cudart=_toolkit_files.has_cudart(host, root),
        found_via=root.via,
        sources=notes.sources,
        problems=notes.problems,
    )


def _python_headers(host: Host, interpreter: Interpreter) -> Answer[bool]:
    """Look where a Python that was not relocated keeps its headers."""
    if not interpreter.base_prefix or not interpreter.version:
        return Answer(None, "", interpreter.problem("base_prefix") or "the interpreter is unknown")
    if is_windows(interpreter.base_prefix):
        return host.exists(join(interpreter.base_prefix, "include", "Python.h"))
    version = ".".join(interpreter.version.split(".")[:2])
    folder = f"python{version}{'t' if interpreter.free_threaded else ''}"
    return host.exists(join(interpreter.base_prefix, "include", folder, "Python.h"))


def _compilers_of(host: Host, notes: Notes) -> list[Compiler] | None:
    if host.identity().os == "windows":
        notes.unknown("compilers", "MSVC is not looked for")
        return None
    notes.said("compilers", "PATH")
    return [_compiler(found) for found in _compilers.compilers(host)]


def _compiler(found: _compilers.FoundCompiler) -> Compiler:
    notes = Notes()
    notes.said("*", found.path)
    return Compiler(
        command=found.command,
        path=found.path,
        version=notes.take("version", found.version),
        sources=notes.sources,
        problems=notes.problems,
    )
