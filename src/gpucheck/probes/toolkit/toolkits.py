"""CUDA toolkits on disk, the one that a build would use, and the host compilers."""

import re

import msgspec

from gpucheck.facts import Answer, Notes
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.toolkits import Compiler, Toolkit, Toolkits
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import is_windows, join, name
from gpucheck.probes.toolkit.reading import files
from gpucheck.probes.toolkit.reading.files import Root

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "packages"

_ONLY_LIVE = say("gpucheck looks for it on a running Linux alone")

_COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "clang++")
_NUMBERED = r"(?:^|-)(?:gcc|g\+\+|clang)-([0-9]+(?:\.[0-9]+)*)$"
_COMPILER_VERSION = r"[0-9]{1,3}(?:\.[0-9]{1,4}){0,3}"
_COMPILER_SECONDS = 2.0  # seconds of the 5 of the probe; it prints one number


def collect(host: Host, interpreter: Interpreter) -> Toolkits:
    """Search for toolkits; run nvcc or a compiler only if no file has the version."""
    notes = Notes()
    notes.known(
        "*", say("CUDA_HOME, CUDA_PATH, PATH, /usr/local, the distribution, conda and wheels")
    )
    found = files.roots(host, interpreter)
    taken = files.selected(host)
    version: str | None = ""
    if taken is not None:
        notes.known("selected", taken[1])
        version = notes.take("selected_version", files.version_of(host, taken[0]))
    return Toolkits(
        toolkits=[_toolkit(host, root) for root in found if root.exists],
        selected=taken[0].path if taken is not None else "",
        selected_version=version,
        selected_via=taken[1] if taken is not None else "",
        compilers=_compilers_of(host, notes),
        named_in_vain=_named_in_vain(host, notes),
        setuptools=notes.take("setuptools", _has_setuptools(host, interpreter)),
        python_headers=notes.take("python_headers", _python_headers(host, interpreter)),
        sources=notes.sources,
        problems=notes.problems,
    )


def _toolkit(host: Host, root: Root) -> Toolkit:
    notes = Notes()
    notes.known("*", root.path)
    return Toolkit(
        path=root.path,
        version=notes.take("version", files.version_of(host, root)),
        has_nvcc=files.has_nvcc(host, root),
        has_headers=files.has_headers(host, root),
        has_cudart=files.has_cudart(host, root),
        found_via=root.via,
        sources=notes.sources,
        problems=notes.problems,
    )


def _python_headers(host: Host, interpreter: Interpreter) -> Answer[bool]:
    """Look where a Python that was not relocated keeps its headers."""
    if not interpreter.base_prefix or not interpreter.version:
        return Answer(
            None, "", interpreter.problem("base_prefix") or say("the interpreter is unknown")
        )
    if is_windows(interpreter.base_prefix):
        return host.exists(join(interpreter.base_prefix, "include", "Python.h"))
    version = ".".join(interpreter.version.split(".")[:2])
    folder = f"python{version}{'t' if interpreter.free_threaded else ''}"
    return host.exists(join(interpreter.base_prefix, "include", folder, "Python.h"))


def _compilers_of(host: Host, notes: Notes) -> list[Compiler] | None:
    if host.identity().os == "windows":
        notes.unknown("compilers", say("gpucheck does not look for MSVC"))
        return None
    notes.known("compilers", "PATH")
    return [_compiler(found) for found in _compilers(host)]


def _named_in_vain(host: Host, notes: Notes) -> list[str] | None:
    """Look for the programs that CC and CXX name: their first words."""
    if host.identity().os == "windows" or host.origin != "live":
        notes.unknown("named_in_vain", _ONLY_LIVE)
        return None
    notes.known("named_in_vain", say("the environment of gpucheck"))
    named = {name: host.env().get(name, "").split()[:1] for name in ("CC", "CXX")}
    return [name for name, words in named.items() if words and not _is_there(host, words[0])]


def _is_there(host: Host, program: str) -> bool:
    found = host.exists(program) if "/" in program else host.which(program)
    return bool(found.value) or not (found.missing or found.value is False)


def _has_setuptools(host: Host, interpreter: Interpreter) -> Answer[bool]:
    if host.origin == "recorded" or not interpreter.sys_path:
        return Answer(None, "sys.path", _ONLY_LIVE)
    inside = (join(folder, "setuptools", "__init__.py") for folder in interpreter.sys_path)
    return Answer(any(host.exists(path).value for path in inside), "sys.path")


class FoundCompiler(msgspec.Struct, frozen=True):
    """A command on PATH, the file behind it and its version."""

    command: str
    path: str
    version: Answer[str]


def _compiler(found: FoundCompiler) -> Compiler:
    notes = Notes()
    notes.known("*", found.path)
    return Compiler(
        command=found.command,
        path=found.path,
        version=notes.take("version", found.version),
        sources=notes.sources,
        problems=notes.problems,
    )


def _compilers(host: Host) -> list[FoundCompiler]:
    """Return the compilers; run one only if the name of its file has no version."""
    found: list[FoundCompiler] = []
    by_file: dict[str, Answer[str]] = {}
    for command in _COMPILERS:
        path = host.which(command).value
        if path is None:
            continue
        real = host.real_path(path).value or path
        if real not in by_file:
            by_file[real] = _compiler_version(host, path, real)
        found.append(FoundCompiler(command, path, by_file[real]))
    return found


def _compiler_version(host: Host, path: str, real: str) -> Answer[str]:
    numbered = re.search(_NUMBERED, name(real))
    if numbered:
        return Answer(numbered.group(1), real)
    clang = "clang" in name(real)
    # gcc before 7 knows only the second option; newer releases answer the first in full.
    options = ["-dumpversion"] if clang else ["-dumpfullversion", "-dumpversion"]
    ran = host.run([path, *options], timeout=_COMPILER_SECONDS)
    return ran.map(lambda finished: _only_version(finished.out) if finished.status == 0 else None)


def _only_version(text: str) -> str | None:
    match = re.fullmatch(_COMPILER_VERSION, text.strip())
    return match.group() if match else None
