"""CUDA toolkits on disk, the one that a build would use, and the host compilers."""

import re

import msgspec

from gpucheck.facts import Answer, Notes
from gpucheck.facts.libraries import Compiler, Toolkit, ToolkitFoundVia, Toolkits
from gpucheck.facts.torch import Interpreter
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, is_windows, join, name, parent, pattern
from gpucheck.probes.reading.dist_info import conda_records, dist_infos
from gpucheck.probes.reading.versions import nvcc_says, toolkit_version

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "packages"

_ONLY_LIVE = say("gpucheck looks for it on a running Linux alone")

_COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "clang++")
_NUMBERED = r"(?:^|-)(?:gcc|g\+\+|clang)-([0-9]+(?:\.[0-9]+)*)$"
_COMPILER_VERSION = r"[0-9]{1,3}(?:\.[0-9]{1,4}){0,3}"
_COMPILER_SECONDS = 2.0  # seconds of the 5 of the probe; it prints one number

_NVCC = ("nvcc", "nvcc.exe")
_SCRIPT_LIMIT = 4096  # bytes; wrappers such as ccache's have a few lines
# Seconds of the 5 of the probe; chosen: it is asked only if no file says the version.
_NVCC_LIMIT = 3.0
_IN_DISTRIBUTION = "/usr/lib/nvidia-cuda-toolkit"
_WINDOWS = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA"
_IN_NAME = r"(?:cuda-|v|cu)([0-9]{1,2}(?:\.[0-9]+)*)"
_INCLUDES = ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include")
_LIBRARIES = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib",
              "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")  # fmt: skip
# First the package that has the version of the whole toolkit, last a single tool of it.
_CONDA_VERSIONS = ("cuda-version", "cuda-toolkit", "cuda-nvcc", "cudatoolkit-dev")


def collect(host: Host, interpreter: Interpreter) -> Toolkits:
    """Search for toolkits; run nvcc or a compiler only if no file has the version."""
    notes = Notes()
    notes.known(
        "*", say("CUDA_HOME, CUDA_PATH, PATH, /usr/local, the distribution, conda and wheels")
    )
    found = _roots(host, interpreter)
    taken = _selected(host)
    version: str | None = ""
    if taken is not None:
        notes.known("selected", taken[1])
        version = notes.take("selected_version", _version_of(host, taken[0]))
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


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of a toolkit."""

    path: str
    via: ToolkitFoundVia
    nvcc: str = ""
    """The nvcc that led here, if it is not in ``bin``."""
    version: str = ""
    """The version in the metadata of a wheel or of conda."""
    exists: bool = True


def _toolkit(host: Host, root: Root) -> Toolkit:
    notes = Notes()
    notes.known("*", root.path)
    return Toolkit(
        path=root.path,
        version=notes.take("version", _version_of(host, root)),
        has_nvcc=_has_nvcc(host, root),
        has_headers=has_headers(host, root),
        has_cudart=_has_cudart(host, root),
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


def _roots(host: Host, interpreter: Interpreter) -> list[Root]:
    """Return every toolkit once, with the way by which it is found first."""
    found = [
        *_of_environment(host),
        *_on_path(host),
        *_installed(host),
        *_of_conda(host, interpreter),
        *_of_wheels(host, interpreter),
    ]
    kept: dict[str, Root] = {}
    for root in found:
        kept.setdefault(host.real_path(root.path).value or root.path, root)
    return list(kept.values())


def _selected(host: Host) -> tuple[Root, str] | None:
    """Return the toolkit that torch's extension builder takes and why; None if there is none."""
    for root, why in (
        *((r, say("CUDA_HOME or CUDA_PATH")) for r in _of_environment(host)),
        *((r, say("nvcc on PATH")) for r in _on_path(host)),
    ):
        return root, why
    if host.identity().os == "windows":
        return next(((root, _WINDOWS) for root in _installed(host)), None)
    default = "/usr/local/cuda"
    if host.exists(default).value:
        return Root(path=default, via="/usr/local"), default
    return None


def _of_environment(host: Host) -> list[Root]:
    env = host.env()
    folder = (env.get("CUDA_HOME") or env.get("CUDA_PATH") or "").rstrip("/")
    if not folder:
        return []
    return [Root(path=folder, via="CUDA_HOME", exists=host.exists(folder).value is not False)]


def _on_path(host: Host) -> list[Root]:
    nvcc = host.which("nvcc").value
    if nvcc is None:
        return []
    real = _behind_script(host, host.real_path(nvcc).value or nvcc)
    if name(real) not in _NVCC:
        real = nvcc  # a compiler cache is in its place
    folder = parent(parent(real))
    if folder in ("/", "/usr", _IN_DISTRIBUTION):
        return [Root(path="/usr", via="distribution", nvcc=nvcc)]
    return [Root(path=folder, via="PATH", nvcc=nvcc)]


def _behind_script(host: Host, path: str) -> str:
    """Return the nvcc that a wrapper script names; the path itself if it is not a script."""
    head = host.read_bytes(path, _SCRIPT_LIMIT).value or b""
    if not head.startswith(b"#!"):
        return path
    words = head.decode("utf-8", "replace").replace('"', " ").replace("'", " ").split()
    named = [word for word in words if word.startswith("/") and name(word) in _NVCC]
    return next((word for word in named if word != path and host.exists(word).value), path)


def _installed(host: Host) -> list[Root]:
    """Return the toolkits in the folders that installers use, the newest first."""
    if host.identity().os == "windows":
        on_windows = host.glob(pattern(_WINDOWS, "v*")).value or []
        return [Root(path=path, via="distribution") for path in sorted(on_windows, reverse=True)]
    found = [
        Root(path=path, via="/usr/local")
        for path in sorted(host.glob("/usr/local/cuda*").value or [], reverse=True)
        if host.exists(join(path, "bin")).value or _has_headers(host, path)
    ]
    if host.exists("/opt/cuda/bin/nvcc").value:
        found.append(Root(path="/opt/cuda", via="distribution"))
    if host.exists(f"{_IN_DISTRIBUTION}/bin/nvcc").value:
        found.append(Root(path="/usr", via="distribution", nvcc="/usr/bin/nvcc"))
    return found


def _of_conda(host: Host, interpreter: Interpreter) -> list[Root]:
    """Return the conda environment, if it has an nvcc."""
    prefix = interpreter.prefix
    if interpreter.kind != "conda" or not prefix:
        return []
    nvcc = next((p for p in _nvccs(prefix) if host.exists(p).value), None)
    return [] if nvcc is None else [Root(path=prefix, via="conda", nvcc=nvcc)]


def _of_wheels(host: Host, interpreter: Interpreter) -> list[Root]:
    found = []
    for entry in distinct(interpreter.sys_path or []):
        paths = host.glob(pattern(entry, "nvidia", "cu[0-9][0-9]")).value or []
        apart = join(entry, "nvidia", "cuda_nvcc")
        if host.exists(apart).value:
            paths = [*paths, apart]
        version = _of_dist_info(host, entry) if paths else ""
        found += [Root(path=path, via="wheel", version=version) for path in paths]
    return found


def _of_dist_info(host: Host, entry: str) -> str:
    """Return the version of nvcc's wheel, shortened to the name of a toolkit: 12.4."""
    infos = dist_infos(host, [entry])
    nvcc = next((i for i in infos if i.project.startswith("nvidia-cuda-nvcc")), None)
    return ".".join(nvcc.version.split(".")[:2]) if nvcc is not None else ""


def _version_of(host: Host, root: Root) -> Answer[str]:
    """Return the version from files, then from metadata and names, last from nvcc itself."""
    includes = [join(root.path, *folder.split("/")) for folder in _INCLUDES[1:]]
    answer = toolkit_version(host, root.path, *includes)
    if answer.value is not None:
        return answer
    if root.version:
        return Answer(root.version, say("the metadata of its wheel"))
    records = {r.project: r for r in conda_records(host, root.path)}
    for project in _CONDA_VERSIONS:
        if project in records:
            version = ".".join(records[project].version.split(".")[:2])
            return Answer(version, records[project].path)
    named = re.fullmatch(_IN_NAME, name(host.real_path(root.path).value or root.path))
    if named and "." in named.group(1):
        return Answer(named.group(1), root.path)
    nvcc = root.nvcc or next((p for p in _nvccs(root.path) if host.exists(p).value), "")
    if not nvcc:
        return answer
    return host.run([nvcc, "--version"], timeout=_NVCC_LIMIT).map(lambda ran: nvcc_says(ran.out))


def _has_nvcc(host: Host, root: Root) -> bool:
    """Whether the compiler exists."""
    return bool(root.nvcc) or any(host.exists(path).value for path in _nvccs(root.path))


def has_headers(host: Host, root: Root) -> bool:
    """Whether the headers of the runtime exist."""
    return _has_headers(host, root.path)


def _has_cudart(host: Host, root: Root) -> bool:
    """Whether the runtime library exists that programs are linked with."""
    if is_windows(root.path):
        return bool(host.exists(join(root.path, "lib", "x64", "cudart.lib")).value)
    real = host.real_path(root.path).value or root.path
    return any(
        host.glob(pattern(join(real, *folder.split("/")), "libcudart.so*")).value
        for folder in _LIBRARIES
    )


def _has_headers(host: Host, folder: str) -> bool:
    headers = (join(folder, *inc.split("/"), "cuda_runtime.h") for inc in _INCLUDES)
    return any(host.exists(path).value for path in headers)


def _nvccs(folder: str) -> list[str]:
    return [join(folder, "bin", program) for program in _NVCC]
