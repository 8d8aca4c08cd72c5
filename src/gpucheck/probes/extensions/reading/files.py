"""The compiled files in the target's site-packages that may be extensions of PyTorch."""

import re

import msgspec

from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, name, pattern
from gpucheck.probes.torch.reading.dist_info import DistInfo, normalise

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
