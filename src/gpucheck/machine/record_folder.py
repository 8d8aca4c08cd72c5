"""A recorded machine: all its answers, and the folder in which ``collect --record`` keeps them.

In the folder, ``files/`` holds file contents at their paths (``:`` as ``%3A``, a link as
``NAME%link`` with its target as text). ``ranges.json`` holds parts of large files by offset, in
base64, and ``host.json`` the kernel's other answers. ``commands.json``, ``env.json``,
``nvml.json``, ``cuinit.json``, ``worker.json`` and ``selftests.json`` hold the answers to the other
questions.
"""

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gpucheck.facts.answer import message_of
from gpucheck.facts.device_nodes import OpenResult
from gpucheck.facts.numbers import refuse_long_numbers
from gpucheck.language import say
from gpucheck.machine.base import Identity, Limits, Space, Stat

if TYPE_CHECKING:  # importing it takes two milliseconds
    from pathlib import Path

T = TypeVar("T")

_LINK = "%link"
_JSON_LIMIT = 16 * 1024 * 1024


class RecordedCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a command: how it ended, or why it could not be run."""

    status: int = 0
    out: str = ""
    err: str = ""
    problem: str = ""


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


class Recording(HostRecord, kw_only=True, omit_defaults=True):
    """A recorded machine in memory. Paths are written as its own system writes them."""

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


def read_folder(folder: "Path") -> Recording:
    """Read a machine that ``collect --record`` wrote.

    Raises:
        ValueError: the folder is not a recorded machine, in one sentence.
    """
    if not (folder / "host.json").is_file():
        raise ValueError(
            say("{folder} is not a recorded machine: it has no host.json", folder=folder)
        )
    record = _load(folder / "host.json", HostRecord) or HostRecord()
    recording = Recording(
        **{name: getattr(record, name) for name in HostRecord.__struct_fields__},
        ranges=_load(folder / "ranges.json", dict[str, list[tuple[int, bytes]]]) or {},
        env=_load(folder / "env.json", dict[str, str]) or {},
        commands=_load(folder / "commands.json", dict[str, RecordedCommand]) or {},
        nvml=_load(folder / "nvml.json", dict[str, Any]),
        cuinit=_load(folder / "cuinit.json", dict[str, Any]),
        worker=_load(folder / "worker.json", dict[str, Any]),
        selftests=_load(folder / "selftests.json", dict[str, Any]),
    )
    _read_files(folder / "files", recording)
    return recording


def _read_files(files: "Path", recording: Recording) -> None:
    windows = recording.identity.os == "windows"
    for file in sorted(files.rglob("*")):
        name = file.relative_to(files).as_posix().replace("%3A", ":")
        path = name.replace("/", "\\") if windows else f"/{name}"
        if name.endswith(_LINK):
            target = file.read_text(encoding="utf-8", errors="surrogateescape")
            recording.links[path.removesuffix(_LINK)] = target.strip()
        elif file.is_file():
            recording.files[path] = file.read_bytes()
        elif file.is_dir() and not any(file.iterdir()):
            recording.stat.setdefault(path, Stat(kind="directory", mode=0o755))


def _load(file: "Path", shape: type[T]) -> T | None:
    """Read one JSON file of a recorded machine; None if it does not exist.

    Raises:
        ValueError: the file is too large, not JSON or not of this shape, in one sentence.
    """
    if not file.is_file():
        return None
    if file.stat().st_size > _JSON_LIMIT:
        raise ValueError(
            say("{file} is larger than {limit} MiB", file=file, limit=_JSON_LIMIT >> 20)
        )
    data = file.read_bytes()
    try:
        refuse_long_numbers(data)
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ValueError(
            say("{file} cannot be read: {why}", file=file, why=message_of(error))
        ) from error
