"""The locations of CUDA toolkits, and the facts in their files."""

import re

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.toolkits import FoundVia
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, is_windows, join, name, parent, pattern
from gpucheck.probes.toolkit.reading.cuda_version import nvcc_says, toolkit_version
from gpucheck.probes.torch.reading.conda import conda_records
from gpucheck.probes.torch.reading.dist_info import dist_infos

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


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of a toolkit."""

    path: str
    via: FoundVia
    nvcc: str = ""
    """The nvcc that led here, if it is not in ``bin``."""
    version: str = ""
    """The version in the metadata of a wheel or of conda."""
    exists: bool = True


def roots(host: Host, interpreter: Interpreter) -> list[Root]:
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


def selected(host: Host) -> tuple[Root, str] | None:
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


def version_of(host: Host, root: Root) -> Answer[str]:
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


def has_nvcc(host: Host, root: Root) -> bool:
    """Whether the compiler exists."""
    return bool(root.nvcc) or any(host.exists(path).value for path in _nvccs(root.path))


def has_headers(host: Host, root: Root) -> bool:
    """Whether the headers of the runtime exist."""
    return _has_headers(host, root.path)


def has_cudart(host: Host, root: Root) -> bool:
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
