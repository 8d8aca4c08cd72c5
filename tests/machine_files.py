"""Reads test machines, ``machines/NAME.toml``: ``docs/machines.md`` says what may stand in one.

A machine is read as sections, which are tables by path or by name. Those of the machine that it is
``like`` come first, then ``[instead]``, ``[absent]`` and what the file itself says.
"""

import copy
import functools
import sys
from pathlib import Path
from typing import Any

import msgspec
from machine_sections import (
    SECTIONS,
    Sections,
    Table,
    expanded,
    like_one_before,
    merged,
    said_instead,
    without,
)

from gpucheck.machine import Identity, Limits, RecordedHost, Recording, Stat

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MACHINES = Path(__file__).parent / "machines"
LONGEST_CHAIN = 2
"""Steps of ``like`` at most, so that a reader can follow them."""
MODES = {"directory": 0o755, "file": 0o644, "character": 0o666}
"""Permissions of what a ``stat`` says no others of."""
_OTHERS = ("about", "like", "expect", "absent", "instead")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A test machine: what it is, what must come of it, and what it answers."""

    about: str
    expect: Table
    recording: Recording


def parsed(text: str) -> Table:
    """Return what a text says in TOML.

    Raises:
        ValueError: it is not TOML.
    """
    table: Table = tomllib.loads(text)
    return table


def names() -> list[str]:
    """Return the names of all test machines; what lies in ``base/`` is none."""
    return sorted(file.stem for file in MACHINES.glob("*.toml"))


def host(name: str) -> RecordedHost:
    """Return the door to a test machine."""
    return RecordedHost(load(name).recording)


def copied(name: str) -> Recording:
    """Return what a test machine answers, to be altered."""
    return copy.deepcopy(load(name).recording)


@functools.cache
def load(name: str, root: Path = MACHINES) -> Machine:
    """Read a test machine; callers share it and must not alter it.

    Args:
        name: the file without its suffix, such as ``base/ubuntu``.
        root: the folder it is in. What it is like, and blobs, may also be in this repository.

    Raises:
        ValueError: something in the file is wrong, in one sentence.
    """
    document = _document(name, root)
    found = sections(name, root)
    try:
        recording = recording_of(found, root)
    except ValueError as error:
        raise ValueError(f"{name}.toml: {error}") from error
    return Machine(
        about=document.get("about", ""), expect=document.get("expect", {}), recording=recording
    )


@functools.cache
def sections(name: str, root: Path = MACHINES) -> Sections:
    """Return the sections of a machine, with those of the machines that it is like.

    Raises:
        ValueError: something in the file, or in one that it is like, is wrong.
    """
    chain(name, root)
    document = _document(name, root)
    like = document.get("like")
    base = sections(like, _root_of(like, root)) if like else {}
    try:
        base = said_instead(base, document.get("instead", {}))
        own = {part: document[part] for part in SECTIONS if part in document}
        base["folders"] = folders = {**base.get("folders", {}), **own.get("folders", {})}
        base = without(base, document.get("absent", {}))
        return merged(base, expanded(own, folders))
    except ValueError as error:
        raise ValueError(f"{name}.toml: {error}") from error


def chain(name: str, root: Path = MACHINES) -> list[str]:
    """Return a machine and those that it is like, one after the other.

    Raises:
        ValueError: ``like`` leads nowhere, in a circle, or too far.
    """
    found = [name]
    while like := _document(found[-1], root).get("like"):
        if not any((folder / f"{like}.toml").is_file() for folder in (root, MACHINES)):
            raise ValueError(f"{found[-1]}.toml: there is no machine {like!r} that it is like")
        steps = " -> ".join((*found, like))
        if like in found:
            raise ValueError(f"{name}.toml: like goes in a circle: {steps}")
        if len(found) > LONGEST_CHAIN:
            raise ValueError(f"{name}.toml: {steps}: at most {LONGEST_CHAIN} steps of like")
        root = _root_of(like, root)
        found.append(like)
    return found


def forget() -> None:
    """Read every file anew from now on: a tool has written one."""
    for cached in (load, sections, _document, _blob):
        cached.cache_clear()


def _root_of(name: str, root: Path) -> Path:
    return root if (root / f"{name}.toml").is_file() else MACHINES


@functools.cache
def _document(name: str, root: Path) -> Table:
    file = root / f"{name}.toml"
    try:
        document: Table = _plain(parsed(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ValueError(f"{name}.toml: there is no such machine in {root}") from None
    except ValueError as error:
        raise ValueError(f"{name}.toml: {error}") from error
    for key, value in document.items():
        if key not in (*_OTHERS, *SECTIONS):
            allowed = ", ".join((*_OTHERS, *SECTIONS))
            raise ValueError(f"{name}.toml: {key!r} is no part of a machine; these are: {allowed}")
        if isinstance(value, dict) == (key in ("about", "like")):
            raise ValueError(
                f"{name}.toml: {key!r} must be a {'text' if key in _OTHERS[:2] else 'table'}"
            )
    return document


def _plain(value: Any) -> Any:  # noqa: ANN401  # data of TOML
    """Write ``{null = true}`` and the ``like`` of list elements out."""
    if isinstance(value, dict):
        if value == {"null": True}:
            return None
        return {key: _plain(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    found: list[Any] = []
    for item in value:
        found.append(like_one_before(_plain(item), found))
    return found


def recording_of(found: Sections, root: Path = MACHINES) -> Recording:
    """Return what a machine of these sections answers.

    Raises:
        ValueError: a value has a wrong type, or there is no such blob.
    """
    named = msgspec.convert(found, _Named)
    files = {path: text.encode() for path, text in named.files.items()}
    files |= {path: _blob(name, root) for path, name in named.blobs.items()}
    ranges = {path: msgspec.json.decode(_blob(name, root)) for path, name in named.ranges.items()}
    stat = {path: _stat(value) for path, value in found.get("stat", {}).items()}
    _check_keys(found.get("identity", {}), Identity, "identity")
    _check_keys(found.get("limits", {}), Limits, "limits")
    for path, value in stat.items():
        _check_keys(value, Stat, f"stat of {path}")
    rest = {name: table for name, table in found.items() if name != "blobs"}
    return msgspec.convert({**rest, "files": files, "ranges": ranges, "stat": stat}, Recording)


class _Named(msgspec.Struct, frozen=True):
    """What of the sections is put together before the rest is understood."""

    files: dict[str, str] = {}
    blobs: dict[str, str] = {}
    ranges: dict[str, str] = {}


def _check_keys(table: Table, shape: type[msgspec.Struct], where: str) -> None:
    allowed = shape.__struct_fields__
    for key in table:
        if key not in allowed:
            raise ValueError(f"{where} has no {key!r}; it may have: {', '.join(allowed)}")


def _stat(value: Any) -> Any:  # noqa: ANN401  # data of TOML, to be checked by its type
    if not isinstance(value, dict):
        value = {"kind": value}
    kind = value.get("kind", "character" if "device" in value else "file")
    return {"kind": kind, "mode": MODES.get(kind, 0), **value}


@functools.cache
def _blob(name: str, root: Path) -> bytes:
    for folder in (root, MACHINES):
        if (folder / "blobs" / name).is_file():
            return (folder / "blobs" / name).read_bytes()
    raise ValueError(f"there is no blob {name!r}")
