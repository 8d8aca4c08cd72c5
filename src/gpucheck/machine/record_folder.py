"""A recorded machine: all its answers, and where ``baseline collect --record`` keeps them.

That is a folder, or a zip archive of one; nothing of an archive is ever unpacked. In it, ``files/``
holds file contents at their paths (``:`` as ``%3A``, a link as ``NAME%link`` with its target as
text). ``ranges.json`` holds parts of large files by offset, in base64, and ``host.json`` the
kernel's other answers. ``commands.json``, ``env.json``, ``nvml.json``, ``cuinit.json``,
``worker.json`` and ``selftests.json`` hold the answers to the other questions. ``recorded.json``
says when and by which gpucheck it was recorded.

Others write these files, so everything has a limit, and no link in a folder is followed.
"""

import io
import os
import re
import stat
from collections.abc import Iterator, Mapping
from functools import partial
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec

from gpucheck.facts.base import message_of
from gpucheck.facts.driver import OpenResult
from gpucheck.facts.numbers import refuse_long_numbers
from gpucheck.facts.snapshot import refuse_too_many_entries
from gpucheck.language import say
from gpucheck.language.read_back import said_again
from gpucheck.machine.base import Identity, Limits, RegistryValue, Space, Stat

if TYPE_CHECKING:  # importing it takes two milliseconds
    from pathlib import Path

T = TypeVar("T")

_LINK = "%link"
_JSON_LIMIT = 16 * 1024 * 1024  # bytes; chosen: a recorded H100 has 182 KB
_ARCHIVE_LIMIT = 32 * 1024 * 1024
_WHOLE_LIMIT = 128 * 1024 * 1024
_MOST_FILES = 50_000
"""Bytes of an archive, of everything in it or in a folder, and files in that. Chosen: the largest
machine of the tests, a real one, has 2.4 MB in 158 files."""
_HEAD_OF_A_FILE = b"PK\x01\x02"
"""Each file in a zip archive has this in the list at its end."""
_COMPRESSIONS = (0, 8)
"""Stored, and deflated: what zip programs write."""
_ENCRYPTED = 1
"""The flag of a file that has a password."""
_HOST, _MADE = "host.json", "recorded.json"
_AT_THE_TOP = re.compile(r"((?:[^/]{1,255}/)?)host\.json")


class RecordedCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a command: how it ended, or why it could not be run."""

    status: int = 0
    out: str = ""
    err: str = ""
    problem: str = ""
    sentences: dict[str, Any] = msgspec.field(default_factory=dict, name="said")


class HostRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The kernel's answers other than file contents, by path: ``host.json``."""

    identity: Identity = Identity(os="linux")
    limits: Limits = Limits()
    stat: dict[str, Stat] = {}
    open: dict[str, OpenResult] = {}
    space: dict[str, Space] = {}
    which: dict[str, str] = {}
    listings: dict[str, list[str]] = {}
    sha256: dict[str, str] = {}
    problems: dict[str, str] = {}
    registry: dict[str, dict[str, RegistryValue]] = {}
    """Values by the key of the registry; {} if nobody asked."""


_Words = Annotated[str, msgspec.Meta(max_length=80)]


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A probe that gave no answer where the machine was recorded, so that nothing was noted."""

    status: Literal["crashed", "timed-out"]
    problem: Annotated[str, msgspec.Meta(max_length=2000)]
    sentences: dict[str, Any] = msgspec.field(default_factory=dict, name="said")

    @property
    def words(self) -> str:
        """The problem; a sentence if one of ours was noted."""
        return said_again(self.problem, self.sentences.get("problem"))


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """When and by which gpucheck a machine was recorded: ``recorded.json``."""

    taken: _Words
    gpucheck: _Words
    tables: _Words
    redacted: bool
    failed: dict[str, Failed] = {}
    """By the name of the probe. What it would have read was not absent."""


class Recording(HostRecord, kw_only=True, omit_defaults=True):
    """A recorded machine in memory. Paths are written as its own system writes them."""

    made: Made | None = None
    """None of a test machine, and of one that an older gpucheck recorded."""
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    ranges: dict[str, list[tuple[int, bytes]]] = {}
    env: dict[str, str] = {}
    commands: dict[str, RecordedCommand] = {}
    nvml: dict[str, Any] | None = None
    """None if nothing answered; likewise for the next three."""
    cuinit: dict[str, Any] | None = None
    worker: dict[str, Any] | None = None
    selftests: dict[str, Any] | None = None


def place_in_folder(path: str, *, link: bool = False) -> str:
    """Return where the folder keeps the file or link at this path of the machine."""
    inside = path.replace("\\", "/").replace(":", "%3A").lstrip("/")
    return f"files/{inside}{_LINK if link else ''}"


def read_machine(place: "Path") -> Recording:
    """Read a machine that ``baseline collect --record`` wrote, from a folder or a zip archive.

    Raises:
        ValueError: it is no recorded machine, or too large, in one sentence.
    """
    try:
        content = dict(_of_folder(place) if place.is_dir() else _of_archive(place))
    except OSError as error:
        why = error.strerror or error
        raise ValueError(say("{file} cannot be read: {why}", file=place, why=why)) from error
    if _HOST not in content:
        raise ValueError(
            say(
                "{file} is not a recorded machine. gpucheck baseline collect --record writes one, "
                "as a folder or a zip file; gpucheck triage reads a saved snapshot or report.",
                file=place,
            )
        )
    return _recording(place, content)


def _of_folder(folder: "Path") -> Iterator[tuple[str, bytes]]:
    """Yield what is in a folder by its place there; an empty folder's ends with a slash.

    Raises:
        ValueError: it is too large.
    """
    if not (folder / _HOST).is_file():
        return  # it may be the root of this machine
    room = _Room(folder)
    for where, folders, files in os.walk(folder):  # it follows no link
        inside = os.path.relpath(where, folder).replace(os.sep, "/")
        inside = "" if inside == "." else f"{inside}/"
        if inside and not folders and not files:
            yield inside, b""
        for name in sorted(files):
            path = os.path.join(where, name)  # noqa: PTH118  # thousands of them
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as opened:  # noqa: PTH123  # as above
                    yield f"{inside}{name}", room.read(opened)


def _of_archive(file: "Path") -> Iterator[tuple[str, bytes]]:
    """Yield what is in a zip archive by its place in the folder that was archived.

    Raises:
        ValueError: it is no such archive, or too large.
    """
    import zipfile  # noqa: PLC0415  # a check of this machine reads no archive
    import zlib  # noqa: PLC0415

    from gpucheck.facts.streams import reading  # noqa: PLC0415

    with reading(file) as opened:
        data = opened.read(_ARCHIVE_LIMIT + 1)
    if len(data) > _ARCHIVE_LIMIT or data.count(_HEAD_OF_A_FILE) > _MOST_FILES:
        raise _too_large(file)
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return
    room = _Room(file)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            top = _top_of(archive.namelist())
            for entry in archive.infolist():
                if not entry.filename.startswith(top):
                    continue  # of the system that archived it
                if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _COMPRESSIONS:
                    raise ValueError(
                        say(
                            "{file} has a password, or is compressed in a way that gpucheck does "
                            "not read",
                            file=file,
                        )
                    )
                with archive.open(entry) as inner:
                    yield entry.filename.removeprefix(top), room.read(inner)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ValueError(say("{file} is damaged: {why}", file=file, why=error)) from error


def _top_of(names: list[str]) -> str:
    """Return the folder in an archive that has the machine: "" or the one that was archived."""
    found = filter(None, map(_AT_THE_TOP.fullmatch, names))
    return min((name[1] for name in found), key=len, default="")


class _Room:
    """How much may still be read of a machine."""

    def __init__(self, place: "Path") -> None:
        self._place = place
        self._bytes = _WHOLE_LIMIT
        self._files = _MOST_FILES

    def read(self, opened: IO[bytes]) -> bytes:
        """Return all that is in a file.

        Raises:
            ValueError: it is more than there is room for.
        """
        data = opened.read(self._bytes + 1)
        self._bytes -= len(data)
        self._files -= 1
        if self._bytes < 0 or self._files < 0:
            raise _too_large(self._place)
        return data


def _too_large(place: "Path") -> ValueError:
    return ValueError(
        say("{file} is larger than any recorded machine, so it is not read", file=place)
    )


def _recording(place: "Path", content: Mapping[str, bytes]) -> Recording:
    load = partial(_load, place, content)
    record = load(_HOST, HostRecord) or HostRecord()
    recording = Recording(
        **{name: getattr(record, name) for name in HostRecord.__struct_fields__},
        made=load(_MADE, Made),
        ranges=load("ranges.json", dict[str, list[tuple[int, bytes]]]) or {},
        env=load("env.json", dict[str, str]) or {},
        commands=load("commands.json", dict[str, RecordedCommand]) or {},
        nvml=load("nvml.json", dict[str, Any]),
        cuinit=load("cuinit.json", dict[str, Any]),
        worker=load("worker.json", dict[str, Any]),
        selftests=load("selftests.json", dict[str, Any]),
    )
    _take_files(content, recording)
    return recording


def _take_files(content: Mapping[str, bytes], recording: Recording) -> None:
    windows = recording.identity.os == "windows"
    for place, data in content.items():
        top, _, name = place.replace("%3A", ":").partition("/")
        if top != "files" or not name:
            continue
        path = (name.replace("/", "\\") if windows else f"/{name}").rstrip("/\\")
        if place.endswith("/"):
            recording.stat.setdefault(path, Stat(kind="directory", mode=0o755))
        elif place.endswith(_LINK):
            target = data.decode("utf-8", "surrogateescape")
            recording.links[path.removesuffix(_LINK)] = target.strip()
        else:
            recording.files[path] = data


def _load(place: "Path", content: Mapping[str, bytes], name: str, shape: type[T]) -> T | None:
    """Read one JSON file of a recorded machine; None if it does not exist.

    Raises:
        ValueError: the file is too large, not JSON or not of this shape, in one sentence.
    """
    data = content.get(name)
    if data is None:
        return None
    file = place / name
    if len(data) > _JSON_LIMIT:
        raise ValueError(
            say("{file} is larger than {limit} MiB", file=file, limit=_JSON_LIMIT >> 20)
        )
    try:
        refuse_too_many_entries(data)
        refuse_long_numbers(data)
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ValueError(
            say("{file} cannot be read: {why}", file=file, why=message_of(error))
        ) from error
