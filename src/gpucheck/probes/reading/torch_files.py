"""An installed torch: where it is, ``torch/version.py``, and its CUDA, cuDNN and NCCL."""

import ast
import re
import warnings
from typing import Literal

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.torch import Platform
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, is_windows, join, name, pattern
from gpucheck.probes.reading.dist_info import CondaRecord
from gpucheck.probes.reading.requirements import exact

# Python of the machine that is examined: it is parsed, and never executed.


def parsed(text: str) -> ast.Module:
    """Parse a file without a word of Python's own about it, such as a SyntaxWarning.

    Raises:
        ValueError: it is not Python, or nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(str(error) or type(error).__name__) from error


_VERSION_FILE_LIMIT = 64 * 1024  # bytes; that of torch 2.13 has 313
_ARCHIVES = (".zip", ".egg", ".whl")
_END_OF_ARCHIVE = 1 << 20  # bytes: the list of files is at the end of a zip file
_TORCH_IN_ARCHIVE = rb"PK\x01\x02.{42}torch(?:/__init__)?\.pyc?"
"""An entry of the list: 46 bytes, then the name."""
MAX_ENTRIES = 256
"""Maximum number of entries of sys.path that are searched."""


class TorchFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Something on sys.path that ``import torch`` would take."""

    kind: Literal["package", "module", "folder", "archive"]
    path: str
    """The package's folder, the file, or the archive."""
    entry: str
    """The entry of sys.path that contains it."""


class VersionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``torch/version.py``; "" is its None, None a name that it does not define."""

    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None
    git_version: str | None = None


def find_torch(host: Host, sys_path: list[str]) -> tuple[list[TorchFiles], list[str]]:
    """Return every torch in the order of import, and the problems of the search.

    Within one entry a package takes priority over a module. A folder without ``__init__.py`` is
    left out: any package or module takes priority over it, wherever it is, so it never hides a
    torch.
    """
    found: list[TorchFiles] = []
    problems: list[str] = []
    seen: set[str] = set()
    entries = distinct(sys_path)
    for entry in entries[:MAX_ENTRIES]:
        if "\ufffd" in entry:
            problems.append(
                say("{path}: its name is not UTF-8, so gpucheck does not follow it", path=entry)
            )
            continue
        folder = join(entry, "torch")
        init = host.stat(join(folder, "__init__.py"))
        if init.value is None and not init.missing:
            problems.append(say("{source}: {why}", source=folder, why=init.problem))
        elif init.value is not None:
            real = host.real_path(folder).value or folder
            if real not in seen:
                found.append(TorchFiles(kind=_kind(host, folder), path=folder, entry=entry))
            seen.add(real)
        elif host.exists(join(entry, "torch.py")).value:
            module = join(entry, "torch.py")
            found.append(TorchFiles(kind="module", path=module, entry=entry))
        elif entry.endswith(_ARCHIVES) and _is_in_archive(host, entry):
            found.append(TorchFiles(kind="archive", path=entry, entry=entry))
    if len(entries) > MAX_ENTRIES:
        problems.append(
            say(
                "sys.path has {count} entries, of which gpucheck has searched {most}",
                count=len(entries),
                most=MAX_ENTRIES,
            )
        )
    return found, problems


def _is_in_archive(host: Host, path: str) -> bool:
    """Whether a zip file has a torch, by the list of its files, which is at its end."""
    seen = host.stat(path).value
    if seen is None or seen.kind != "file":
        return False
    start = max(0, seen.size - _END_OF_ARCHIVE)
    parts = host.read_ranges(path, [(start, _END_OF_ARCHIVE)]).value or [b""]
    return re.search(_TORCH_IN_ARCHIVE, parts[0], re.DOTALL) is not None


def _kind(host: Host, folder: str) -> Literal["package", "folder"]:
    """Return whether this is an installed torch, even a damaged one, or a source checkout."""
    if host.exists(join(folder, "version.py")).value is not False:
        return "package"
    return "package" if host.glob(pattern(folder, "_C.*")).value else "folder"


def version_facts(host: Host, path: str) -> Answer[VersionFacts]:
    """Read ``torch/version.py`` without running it."""
    return host.read(path, _VERSION_FILE_LIMIT).map(_understand)


def _understand(text: str) -> VersionFacts:
    """Return the literals that are assigned.

    Raises:
        ValueError: the text is not Python, or assigns no version.
    """
    try:
        tree = parsed(text)
    except ValueError as error:
        raise ValueError(say("it is not Python: {error}", error=error)) from error
    assigned: dict[str, str] = {}
    for statement in tree.body:
        target, value = _assignment(statement)
        literal = value.value if isinstance(value, ast.Constant) else ...
        if literal is None or isinstance(literal, str):
            assigned[target] = literal or ""
    if not assigned.get("__version__"):
        raise ValueError(say("it has no __version__"))
    return VersionFacts(
        version=assigned.get("__version__"),
        cuda=assigned.get("cuda"),
        hip=assigned.get("hip"),
        xpu=assigned.get("xpu"),
        git_version=assigned.get("git_version"),
    )


def _assignment(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        return "", None
    return (target.id, statement.value) if isinstance(target, ast.Name) else ("", None)


# The CUDA, cuDNN and NCCL of a torch package, pinned or bundled.

# Copies that auditwheel makes have 8 digits of a hash in their names.
_CARRIED = {
    "cudnn": ("libcudnn*.so*", r"libcudnn(?:-[0-9a-f]{8})?\.so\.([0-9]+(?:\.[0-9]+)*)"),
    "nccl": ("libnccl*.so*", r"libnccl(?:-[0-9a-f]{8})?\.so\.([0-9]+(?:\.[0-9]+)*)"),
}
_CUDNN_DLL = r"cudnn64_([0-9]+)\.dll"
_CUDNN_IN_BUILD = r"cudnn([0-9]+(?:\.[0-9]+)*)"
_CONDA_NAMES = {"cudnn": ("cudnn", "libcudnn"), "nccl": ("nccl",)}

_CODE = rb"(?:sm|compute)_[0-9]{2,3}[af]?"
# Between zero bytes: the whole constant, not a part of a message.
_ARCH_LIST = rb"\x00(" + _CODE + rb"(?: " + _CODE + rb")*)\x00"
_LONG_LIST = _CODE + rb"(?: " + _CODE + rb"){2,31}(?=\x00)"
"""So many codes in a row, up to the end of a string, are not a coincidence."""
_CHECK_FAIL = b"torchCheckFailEPKcS2_jRK"
"""Prefix of a symbol of libc10 whose last argument is a std::string."""
_NEW_STRING = b"NSt7__cxx11"
_OLD_STRING = b"Ss"


class Libraries:
    """The libraries of one torch package.

    Args:
        host: the machine.
        package: the location of torch.
        prefix: the prefix of the interpreter; conda-forge installs torch's libraries there.
        built_for: "cuda", another platform, or None if unknown.
    """

    def __init__(
        self, host: Host, package: TorchFiles, prefix: str, built_for: Platform | None
    ) -> None:
        self._host = host
        self._lib = join(package.path, "lib")
        self._prefix = prefix
        self._built_for = built_for

    def arch_list(self) -> Answer[list[str]]:
        """Return the codes compiled in; [] for a build without CUDA."""
        if self._built_for is None:
            return Answer(None, self._lib, say("the platform that torch was built for is unknown"))
        if self._built_for != "cuda":
            return Answer([], say("torch/version.py: it is not a CUDA build"))
        path = self._find("torch_python")
        if path is None:
            return Answer(None, self._lib, say("there is no {library}", library="libtorch_python"))
        return _arch_list(self._host, path)

    def has_cuda(self) -> Answer[bool]:
        """Whether the library with the CUDA code exists."""
        path = self._find("torch_cuda") or self._find("torch_cuda_cpp")
        if path is not None:
            return Answer(value=True, source=path)
        return self._host.stat(self._lib).map(lambda _stat: False)

    def mapped_bytes(self) -> Answer[int]:
        """Return how much of the address space the libraries of an import take, if it is limited.

        Those with the code for the CPU and for CUDA are nearly all of it.
        """
        limited = self._host.origin == "live" and self._host.limits().address_space_bytes
        if not limited or limited < 0:
            return Answer(None, self._lib, say("the address space is not known to be limited"))
        from gpucheck.machine.binaries.elf import mapped_bytes  # noqa: PLC0415  # rarely needed

        names = ("torch_cpu", "torch_cuda", "torch_cuda_linalg")
        found = [path for name in names if (path := self._find(name)) is not None]
        return Answer(sum(mapped_bytes(self._host, path) for path in found), self._lib)

    def cxx11_abi(self) -> Answer[bool]:
        """Whether std::string is that of C++11; on Linux only."""
        if is_windows(self._lib):
            return Answer(None, self._lib, say("Windows has only one C++ ABI"))
        path = self._find("c10")
        if path is None:
            return Answer(None, self._lib, say("there is no {library}", library="libc10"))
        return _cxx11_abi(self._host, path)

    def cudnn(self, pins: Answer[dict[str, str]], conda: list[CondaRecord]) -> Answer[str]:
        """Return the cuDNN that is pinned or bundled; "" if there is neither."""
        found = self._pinned_or_carried("cudnn", pins)
        if found is not None:
            return found
        dlls = self._host.glob(pattern(self._lib, "cudnn64_*.dll")).value or ()
        for path in dlls:
            match = re.fullmatch(_CUDNN_DLL, name(path))
            if match:
                return Answer(match.group(1), path)
        for record in conda:
            match = (
                re.search(_CUDNN_IN_BUILD, record.build) if record.project == "pytorch" else None
            )
            if match:
                return Answer(match.group(1), record.path)
        return self._in_conda("cudnn", conda) or self._neither(pins)

    def nccl(self, pins: Answer[dict[str, str]], conda: list[CondaRecord]) -> Answer[str]:
        """Return the NCCL that is pinned or bundled; "" for a build without NCCL."""
        found = self._pinned_or_carried("nccl", pins)
        if found is not None:
            return found
        if is_windows(self._lib):
            return Answer("", say("Windows builds have no NCCL"))
        inside = Answer[str](
            None, self._lib, say("it is compiled into libtorch_cuda, and no file names its version")
        )
        return self._in_conda("nccl", conda) or inside

    def _pinned_or_carried(self, library: str, pins: Answer[dict[str, str]]) -> Answer[str] | None:
        if self._built_for is None:
            return Answer(None, self._lib, say("the platform that torch was built for is unknown"))
        if self._built_for != "cuda":
            return Answer("", say("torch/version.py: it is not a CUDA build"))
        for project, specifier in (pins.value or {}).items():
            if project.startswith(f"nvidia-{library}"):
                return Answer(exact(specifier) or specifier, pins.source)
        files, shape = _CARRIED[library]
        carried = [
            (match.group(1), path)
            for path in self._host.glob(pattern(self._lib, files)).value or ()
            if (match := re.fullmatch(shape, name(path)))
        ]
        return Answer(*max(carried, key=lambda found: len(found[0]))) if carried else None

    def _in_conda(self, library: str, conda: list[CondaRecord]) -> Answer[str] | None:
        """Return the version that conda has installed for its own torch."""
        if not any(record.project == "pytorch" for record in conda):
            return None
        records = [r for r in conda if r.project in _CONDA_NAMES[library]]
        return Answer(records[0].version, records[0].path) if records else None

    def _neither(self, pins: Answer[dict[str, str]]) -> Answer[str]:
        if pins.value is None:
            return Answer(None, pins.source, pins.problem)
        return Answer("", f"{pins.source}, {self._lib}")

    def _find(self, stem: str) -> str | None:
        """Return the path of one of torch's own libraries, such as ``torch_python``."""
        paths = (
            join(self._lib, f"lib{stem}.so"),
            join(self._lib, f"{stem}.dll"),
            join(self._lib, f"lib{stem}.dylib"),
            join(self._prefix, "lib", f"lib{stem}.so"),
            join(self._prefix, "Library", "bin", f"{stem}.dll"),
        )
        return next((path for path in paths if self._host.exists(path).value), None)


def _arch_list(host: Host, path: str) -> Answer[list[str]]:
    """Return the result of ``torch.cuda.get_arch_list()``: the codes the build was made for.

    The build writes them as one constant into libtorch_python: ``sm_80 sm_90 compute_90``. If there
    are several different constants of this form, the answer is unknown.
    """
    for start in (b"\x00sm_", b"\x00compute_"):
        hits = host.find_in_file(path, start, section=".rodata")
        if hits.value is None:
            return Answer(None, hits.source, hits.problem, hits.missing)
        found = {match for hit in hits.value for match in re.findall(_ARCH_LIST, hit)}
        lists = [match for match in found if b" " in match] or list(found)
        if len(lists) == 1:
            return Answer(lists[0].decode().split(" "), hits.source)
        if lists:
            return Answer(
                None, path, say("it has {count} lists of architectures", count=len(lists))
            )
    return _after_other_bytes(host, path)


def _after_other_bytes(host: Host, path: str) -> Answer[list[str]]:
    """Find a list that does not start a string: a compiler may place it after other bytes."""
    hits = host.find_in_file(path, b" sm_", section=".rodata")
    found = {match for hit in hits.value or () for match in re.findall(_LONG_LIST, hit)}
    # Each code of the list is a match of its own; the later ones have only the rest of the list.
    lists = [
        codes for codes in found if not any(codes != other and codes in other for other in found)
    ]
    if len(lists) == 1:
        return Answer(lists[0].decode().split(" "), hits.source)
    return Answer(None, path, say("it has no list of architectures"))


def _cxx11_abi(host: Host, path: str) -> Answer[bool]:
    """Whether torch was built with C++11 strings, from the symbols of libc10."""
    hits = host.find_in_file(path, _CHECK_FAIL, context=len(_NEW_STRING), section=".dynstr")
    return hits.map(_abi)


def _abi(hits: list[bytes]) -> bool | None:
    ends = [hit.partition(_CHECK_FAIL)[2] for hit in hits]
    if any(end.startswith(_NEW_STRING) for end in ends):
        return True
    return False if any(end.startswith(_OLD_STRING) for end in ends) else None
