"""The files of compiled packages in site-packages, and their Python side."""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, name, pattern
from gpucheck.probes.reading.dist_info import DistInfo, header, normalise, values
from gpucheck.probes.reading.requirements import torch_requirement
from gpucheck.probes.reading.versions import is_cuda, stem

if TYPE_CHECKING:
    from gpucheck.probes.reading.extension_needs import Needs


# The compiled files in the target's site-packages that may be extensions of PyTorch.

_SITES = ("site-packages", "dist-packages")
_PROJECT_FILES = ("setup.py", "pyproject.toml")
_SECONDS = 0.6
"""Time limit for looking below packages; on a slow disk only the packages' own files are read."""
# Of the 5 s of the probe, whose later steps read the files. What the limits cut off is said, so
# that nobody takes silence for health, but for entries of sys.path, of which there are some ten.
_MOST_SECONDS = 1.5
_MOST_ENTRIES = 64
_MOST_FOLDERS = 4000
_MOST_OF_PACKAGE = 512
_MOST_FILES = 8000
# Chosen: only the owner of a file without a telling name is looked for here, so a RECORD that is
# cut costs a name in a sentence. That of torch 2.13 has 1.4 MB, but its files are known anyway.
_MOST_RECORDS = 300
_RECORD_LIMIT = 256 * 1024
# A line of RECORD: path, hash, size; a path with a comma stands in quotes and is skipped.
_RECORDED = re.compile(r"^([^,\n]{1,400}\.(?:so|pyd|dll)),", re.MULTILINE)
# PEP 3149's tags; t is the build without a GIL, d a debug build.
_CPYTHON = r"\.cpython-([0-9]{2,4})(t?)(?:d|-[^.]{1,60})?\.so|\.cp([0-9]{2,4})(t?)-[^.]{1,60}\.pyd"
_OF_TORCH = ("torch", "torchgen", "functorch")
"""The folders of the torch installation itself."""
LINUX, WINDOWS = (".so",), (".pyd", ".dll")
"""File name suffixes of compiled files."""
_VERSION = r"[0-9]+"
_KIND = r"(?<=[-_.])(?:cpu|cuda|gpu|hip|rocm|xpu)(?=[-_.])"
# CUDA 10 to 19, so that a version such as cu2 is not taken for one.
_FOR_CUDA = r"[-_.]cu(?:da)?1[0-9]{1,2}(?=[-_.])"


class CandidateFile(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled file: its path, the entry of sys.path that contains it, and the path below it."""

    path: str
    entry: str
    inside: str

    @property
    def top(self) -> str:
        """The folder below the entry that contains it, or its own name up to the first dot."""
        folder, slash, _ = self.inside.partition("/")
        return folder if slash else folder.partition(".")[0]

    @property
    def python(self) -> str:
        """The CPython version in the file name's tag, such as ``311``; "" if there is no tag."""
        match = re.search(_CPYTHON, self.inside)
        return "".join(part or "" for part in match.groups()) if match else ""

    @property
    def variant_of(self) -> str:
        """The name without the part that differs between variants; a package loads one of them.

        Variants are, for example, ``libbitsandbytes_cuda118.so`` and
        ``libbitsandbytes_cuda128.so``, or ``addon_torch29-cpu.so`` and ``addon_torch29-cuda.so``,
        or ``hook.so``, ``hook_cu12.so`` and ``hook_cu13.so``.
        """
        plain = re.sub(_CPYTHON, "", self.inside)
        numberless = re.sub(_VERSION, "#", re.sub(_FOR_CUDA, "", self.inside))
        return re.sub(_KIND, "#", numberless) if re.search(_VERSION, name(plain)) else numberless


class Candidates(msgspec.Struct, frozen=True):
    """The files found, and why the list may be incomplete; "" if it is complete."""

    files: list[CandidateFile]
    problem: str = ""


def candidates(host: Host, sys_path: list[str], endings: tuple[str, ...] = LINUX) -> Candidates:
    """Return the compiled files at most two folders deep in the target's site-packages.

    If several entries contain the same name, an import takes the first. Outside site-packages only
    the folders of projects are searched that an editable installation puts on sys.path. torch's own
    folders are left out.
    """
    look = _Look(host, endings)
    for entry in distinct(sys_path)[:_MOST_ENTRIES]:
        if name(entry).lower() in _SITES or _is_project(host, entry):
            look.into(entry)
    if len(look.files) > _MOST_FILES:
        look.problems.append(
            say(
                "{count} compiled files, {looked} were looked at",
                count=len(look.files),
                looked=_MOST_FILES,
            )
        )
    return Candidates(look.files[:_MOST_FILES], next(iter(look.problems), ""))


def _is_project(host: Host, entry: str) -> bool:
    return any(host.exists(join(entry, file)).value for file in _PROJECT_FILES)


class _Look:
    """Goes through the packages; each name is examined once."""

    def __init__(self, host: Host, endings: tuple[str, ...]) -> None:
        self._host = host
        self._endings = endings
        self._seen = set(_OF_TORCH)
        self._start = host.clock()
        self.files: list[CandidateFile] = []
        self.problems: list[str] = []

    def into(self, entry: str) -> None:
        """Look at every file and folder in an entry of sys.path that may contain an extension."""
        listed = self._host.glob(pattern(entry, "*"))
        if listed.value is None:
            self.problems.append(listed.complaint)
        tops = [top for path in listed.value or () if self._may_hold_one(top := name(path))]
        if len(tops) > _MOST_FOLDERS:
            self.problems.append(
                say(
                    "{count} packages, {looked} were looked at",
                    count=len(tops),
                    looked=_MOST_FOLDERS,
                )
            )
        for top in tops[:_MOST_FOLDERS]:
            spent = self._host.clock() - self._start
            if spent > _MOST_SECONDS:
                self.problems.append(
                    say("the disk is slow: from {package} on nothing was looked at", package=top)
                )
                break
            if top in self._seen:
                continue
            self._seen.add(top)
            if spent > _SECONDS and not top.endswith(self._endings):
                self.problems.append(
                    say(
                        "the disk is slow: from {package} on no folder below a package was looked "
                        "at",
                        package=top,
                    )
                )
            self._below(entry, top, deep=spent <= _SECONDS)

    def _may_hold_one(self, top: str) -> bool:
        """Whether it is a compiled file or a package, not a module, metadata or ``.libs``."""
        return "." not in top or top.endswith(self._endings)

    def _below(self, entry: str, top: str, *, deep: bool) -> None:
        if "." in top:
            self.files.append(CandidateFile(path=join(entry, top), entry=entry, inside=top))
            return
        folder = join(entry, top)
        paths: list[str] = []
        for depth in (("*",), ("*", "*"))[: 2 if deep else 1]:
            for ending in self._endings:
                paths += self._host.glob(pattern(folder, *depth) + ending).value or ()
        if len(paths) > _MOST_OF_PACKAGE:
            self.problems.append(
                say(
                    "{package}: {count} compiled files, {looked} were looked at",
                    package=top,
                    count=len(paths),
                    looked=_MOST_OF_PACKAGE,
                )
            )
        start = len(join(entry, "x")) - 1
        self.files += [
            CandidateFile(path=path, entry=entry, inside=path[start:].replace("\\", "/"))
            for path in paths[:_MOST_OF_PACKAGE]
        ]


class FileOwners:
    """Finds the installed distribution that owns a file."""

    def __init__(self, host: Host, infos: list[DistInfo]) -> None:
        self._host = host
        self._infos = infos
        self._recorded: dict[tuple[str, str], DistInfo] | None = None

    def of(self, file: CandidateFile) -> DistInfo | None:
        """Return the owner, by the name of the folder, then by the file lists of distributions.

        None if no distribution owns the file: it was built in place or copied there.
        """
        plain = normalise(file.top)
        here = [info for info in self._infos if info.entry == file.entry]
        for info in here:
            if info.project == plain:
                return info
        # transformer_engine belongs to transformer-engine-cu12, flash_attn_2_cuda to flash-attn.
        related = [
            info
            for info in here
            if info.project.startswith(f"{plain}-") or plain.startswith(f"{info.project}-")
        ]
        if related:
            return max(related, key=lambda info: len(info.project))
        return self._by_record().get((file.entry, file.inside))

    def _by_record(self) -> dict[tuple[str, str], DistInfo]:
        """Read the lists of installed files, once, and only if a file name is not enough."""
        if self._recorded is None:
            self._recorded = {}
            for info in self._infos[:_MOST_RECORDS]:
                text = self._host.read(join(info.path, "RECORD"), _RECORD_LIMIT).value or ""
                for inside in _RECORDED.findall(text):
                    self._recorded.setdefault((info.entry, inside), info)
        return self._recorded


# The Python side of a compiled package: whether it requires torch, what it loads, from where.

# The Python side of a compiled package: whether it requires torch, and what it loads.

_LOADS = re.compile(
    r"\b(?:CDLL|LoadLibrary[A-Za-z]{0,10}|dlopen|add_dll_directory|load_nvidia_dynamic_lib)\s{0,4}\("
)
"""Calls by which Python code loads a library or adds a DLL folder to the search path."""
_FILES = (("*.py",), ("*", "__init__.py"))
_PYTHON_SIDE_MOST_FILES = 96  # chosen: modules near the top of a package; each is read as a whole


class PythonSide:
    """Reads metadata and modules of packages, each once, and only if the result depends on it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._required: dict[str, Answer[bool]] = {}
        self._texts: dict[str, list[str]] = {}

    def requires_torch(self, owner: DistInfo | None) -> Answer[bool]:
        """Return whether the metadata of a distribution requires torch, not counting extras."""
        if owner is None:
            return Answer(value=False, source=say("the file belongs to no installed package"))
        if owner.path not in self._required:
            lines = header(self._host, owner)
            self._required[owner.path] = lines.map(
                lambda lines: torch_requirement(values(lines, "Requires-Dist")) is not None
            )
        return self._required[owner.path]

    def loads(self, file: CandidateFile, owner: DistInfo | None, missing: Iterable[str]) -> bool:
        """Return whether the package's own modules load one of the missing libraries.

        This is assumed of a module that calls the loader and names the library: ``cudart`` for
        ``libcudart.so.12``. The modules of the package and each ``__init__`` below are read.
        """
        names = [plain_name for soname in missing if (plain_name := _plain(soname))]
        tops = [file.top] if "/" in file.inside else []
        tops += [owner.project.replace("-", "_")] if owner is not None else []
        texts = (text for top in dict.fromkeys(tops) for text in self._of(join(file.entry, top)))
        return any(name in text for text in texts for name in names)

    def _of(self, folder: str) -> list[str]:
        """Return the source of modules that call the loader, in lower case."""
        if folder not in self._texts:
            paths = [
                path
                for names in _FILES
                for path in self._host.glob(pattern(folder, *names)).value or ()
            ]
            texts = (self._host.read(path).value or "" for path in paths[:_PYTHON_SIDE_MOST_FILES])
            self._texts[folder] = [text.lower() for text in texts if _LOADS.search(text)]
        return self._texts[folder]


def _plain(soname: str) -> str:
    """Return the name without platform-specific parts: ``cudart``, for ``cudart64_12.dll`` too."""
    if soname.endswith(".dll"):
        return re.sub(r"(?:64)?_[0-9_]{1,20}\Z", "", soname.removesuffix(".dll")).lower()
    return stem(soname).lower()


# Libraries that the loader does not find, but that a package may find by other means.

_IN_PACKAGES = (
    ("nvidia", "*", "lib"), ("nvidia", "*", "lib64"), ("*", "lib"), ("*", "lib64"), ("*.libs",),
)  # fmt: skip
"""Folders of site-packages that contain libraries: NVIDIA's wheels, and what packages bundle."""
_OF_TOOLKITS = (
    "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda*/lib64",
    "/opt/cuda*/targets/*/lib", "/usr/lib/cuda/lib64", "/opt/nvidia/hpc_sdk/*/*/cuda/*/lib64",
    "/opt/nvidia/hpc_sdk/*/*/math_libs/*/lib64", "/usr/local/lib", "/opt/conda/lib",
)  # fmt: skip
_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDNN_HOME", "CUDNN_PATH", "CONDA_PREFIX")
_BELOW = ("lib", "lib64")
_LIBRARIES = "lib*.so*"
_DEPTH = 4
"""How many levels of a package's own folder are searched."""
_OF_WINDOWS = (".pyd", ".dll")


class Elsewhere:
    """Lists the libraries where packages look for CUDA; each place is listed once."""

    def __init__(self, host: Host, sys_path: list[str]) -> None:
        self._host = host
        self._entries = [entry for entry in distinct(sys_path) if "-packages" in entry]
        self._of_packages: dict[str, _Names] = {}

    def lacks(self, needs: "Needs", *, has_variant: bool) -> Answer[list[str]]:
        """Return the CUDA libraries that a file needs and that are not found.

        Args:
            needs: the file.
            has_variant: whether its package can load a variant of the file instead.
        """
        if needs.needs_torch:
            return Answer(None, needs.file.path, say("not searched: the file is linked with torch"))
        if has_variant:
            return Answer(
                None,
                needs.file.path,
                say("not searched: another variant of the file can be loaded"),
            )
        if needs.file.inside.endswith(_OF_WINDOWS):
            return Answer(None, needs.file.path, say("not searched on Windows"))
        package = join(needs.file.entry, needs.file.top)
        return needs.missing_libraries.map(
            lambda names: [
                soname for soname in names if is_cuda(soname) and not self._has(soname, package)
            ]
        )

    def _has(self, soname: str, package: str) -> bool:
        """Whether a file of that name is in one of the places, or in the package's folder."""
        if package not in self._of_packages:
            depths = (pattern(package, *("*",) * depth, _LIBRARIES) for depth in range(_DEPTH))
            self._of_packages[package] = _Names(self._host, depths)
        return self._of_packages[package].may_have(soname) or self._around.may_have(soname)

    @cached_property
    def _around(self) -> "_Names":
        variables = self._host.env()
        set_to = [value for variable in _VARIABLES if (value := variables.get(variable))]
        return _Names(
            self._host,
            [
                *(
                    pattern(of, *inner, _LIBRARIES)
                    for of in self._entries
                    for inner in _IN_PACKAGES
                ),
                *(f"{folder}/{_LIBRARIES}" for folder in _OF_TOOLKITS),
                *(
                    pattern(join(folder, below), _LIBRARIES)
                    for folder in set_to
                    for below in _BELOW
                ),
            ],
        )


class _Names:
    """The names of the files that match some patterns."""

    def __init__(self, host: Host, patterns: Iterable[str]) -> None:
        answers = [host.glob(path_pattern) for path_pattern in patterns]
        self._names = {name(path) for answer in answers for path in answer.value or ()}
        self._is_complete = all(answer.value is not None for answer in answers)

    def may_have(self, file: str) -> bool:
        """Whether there is such a file, or a folder that may hold it could not be listed."""
        return file in self._names or not self._is_complete
