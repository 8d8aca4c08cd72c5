# ruff: noqa: INP001  # a script of this repository
"""Writes a recorded machine as a test machine's file: by its differences from another machine.

``docs/machines.md`` has the form; ``tests/machine_sections.py`` reads it back.
"""

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import msgspec
from machine_files import MODES
from machine_sections import BY_PATH, CONTENTS, DEPTH, SECTIONS, Sections, Table
from toml_text import Octal

from gpucheck.machine import Recording, Stat

_BINARY = (b"\x7fELF", b"MZ")
_FEW = 0.2
"""How much of a text may be control characters."""
_BEGINNING = 5
"""How much of their names paths have in common that one pattern names."""
_SHORT = 3
"""A record with at most this many keys is written out, even if it is like another."""
_SIGNS = 6
"""What quotes, commas and short numbers take."""
_LINE = 40
"""What a line more is worth in characters, when two ways to write something are compared."""


def sections_of(recording: Recording) -> tuple[Sections, dict[str, bytes]]:
    """Return all that a machine answers as sections, and the blobs that they name."""
    blobs: dict[str, bytes] = {}
    files: Table = {}
    named: Table = {}
    for path, data in sorted(recording.files.items()):
        text = _readable(data)
        if text is not None:
            files[path] = text
        else:
            named[path] = _blob(path, data, blobs)
    ranges = {
        path: _blob(path, msgspec.json.encode(parts), blobs)
        for path, parts in sorted(recording.ranges.items())
    }
    own: Table = {
        **{name: getattr(recording, name) for name in SECTIONS if name not in ("blobs", "folders")},
        "identity": _beyond_defaults(recording.identity),
        "limits": _beyond_defaults(recording.limits),
        "files": files,
        "blobs": named,
        "ranges": ranges,
        "stat": {path: _stat(value) for path, value in recording.stat.items()},
        "space": msgspec.to_builtins(recording.space),
        "commands": msgspec.to_builtins(recording.commands),
    }
    if (site := _site_packages(recording)) is not None:
        own["folders"] = {"site": site}
    return {name: _in_order(name, own[name]) for name in SECTIONS if own.get(name)}, blobs


def _site_packages(recording: Recording) -> str | None:
    """Return the folder of the target's packages, in which most of a machine's paths are."""
    answer = (recording.worker or {}).get("answer") or {}
    folders = answer.get("site_packages") or ()
    return next((folder for folder in folders if folder.endswith("-packages")), None)


def _in_order(name: str, table: Table) -> Table:
    return dict(sorted(table.items())) if name in BY_PATH else table


def _readable(data: bytes) -> str | None:
    """Return a file's text; None for one that is no text to be read in a machine's file."""
    if data.startswith(_BINARY):
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    control = sum(1 for sign in text if ord(sign) < ord(" ") and sign not in "\n\t\r")
    return text if control <= _FEW * len(text) else None


def _blob(path: str, data: bytes, blobs: dict[str, bytes]) -> str:
    """Name a shared file by what it is called and what is in it."""
    plain = PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
    name = f"{plain}-{hashlib.sha256(data).hexdigest()[:8]}"
    blobs[name] = data
    return name


def _beyond_defaults(struct: msgspec.Struct) -> Table:
    """Return what a struct says beyond its defaults."""
    stated = {}
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if value != field.default:
            stated[field.name] = list(value) if isinstance(value, tuple) else value
    return stated


def _stat(stat: Stat) -> str | Table:
    stated = _beyond_defaults(stat)
    kind = stated["kind"]
    if stated.get("mode", 0) == MODES.get(kind, 0):
        stated.pop("mode", None)
    else:
        stated["mode"] = Octal(stat.mode)
    if stated == {"kind": kind}:
        return stat.kind
    if kind == ("character" if "device" in stated else "file"):
        del stated["kind"]
    return stated


def difference(base: Sections, own: Sections) -> Table:
    """Return what a machine has otherwise than a base: ``absent`` and sections."""
    absent: dict[str, list[str]] = {}
    if "folders" in base and "folders" not in own:
        own = {"folders": base["folders"], **own}  # a name for a folder does no harm
    gone = [
        name
        for name in base.keys() - {*BY_PATH}
        if name not in own or _is_other(base[name], own[name], name)
    ]
    if gone:
        absent["sections"] = sorted(gone)
    base = {name: table for name, table in base.items() if name not in gone}
    absent.update(_absent_paths(base, own))
    changes: Table = {}
    for name, table in own.items():
        change, lost = _change(base.get(name, {}), table, DEPTH.get(name, 1))
        if lost and name not in BY_PATH:
            absent[name] = lost
        if change:
            changes[name] = change
    return {**({"absent": absent} if absent else {}), **changes}


def abbreviated(document: Table, folders: Mapping[str, str]) -> Table:
    """Return what ``difference`` makes with the names of folders in its paths."""
    result = {
        name: {_short(path, folders): entry for path, entry in table.items()}
        if name in BY_PATH
        else table
        for name, table in document.items()
    }
    for name, paths in document.get("absent", {}).items():
        result["absent"][name] = [_short(path, folders) for path in paths]
    return result


def _short(path: str, folders: Mapping[str, str]) -> str:
    for name, folder in folders.items():
        if path.startswith((f"{folder}/", f"{folder}\\")):
            return f"${name}{path[len(folder) :]}"
    return path


def _is_other(base: Table, own: Table, name: str) -> bool:
    """Whether a section is shorter when it is written anew."""
    change, lost = _change(base, own, DEPTH.get(name, 1))
    if not lost:
        return False
    changed = {name: change} if change else {}
    return cost({"absent": {name: lost}, **changed}) > cost({name: own}) + len(name) + _LINE


def _absent_paths(base: Sections, own: Sections) -> dict[str, list[str]]:
    """Return the paths at and below which there is nothing more, and keys of single sections."""
    there = {path for name in BY_PATH for path in own.get(name, ())}
    folders = {above for path in there for above in _above(path)}
    found: dict[str, list[str]] = {}
    everywhere = set()
    for name in BY_PATH:
        others = {path for kind in CONTENTS for path in own.get(kind, ())}
        for path in base.get(name, {}).keys() - own.get(name, {}).keys():
            if name in CONTENTS and path in others:
                continue  # something else is there now
            if path in there or path in folders:
                found.setdefault(name, []).append(path)
            else:
                everywhere.add(_highest(path, there | folders))
    lists = {name: sorted(paths) for name, paths in found.items()}
    if everywhere:
        lists = {"paths": _patterns(sorted(everywhere), there | folders), **lists}
    return lists


def _patterns(paths: list[str], known: set[str]) -> list[str]:
    """Return shell patterns for neighbours that begin alike, where nothing known begins so."""
    found: list[list[str]] = []
    for path in paths:
        if found and _begin_alike([*found[-1], path], known):
            found[-1].append(path)
        else:
            found.append([path])
    return [group[0] if len(group) == 1 else f"{_beginning(group)}*" for group in found]


def _begin_alike(paths: list[str], known: set[str]) -> bool:
    start = _beginning(paths)
    folder, _, name = start.rpartition("/")
    if len(name) < _BEGINNING or any(path.rpartition("/")[0] != folder for path in paths):
        return False
    return not any(path.startswith(start) for path in known)


def _beginning(paths: list[str]) -> str:
    """Return what the first and the last of sorted texts begin with alike."""
    pairs = zip(paths[0], paths[-1], strict=False)
    return paths[0][: next((at for at, (a, b) in enumerate(pairs) if a != b), None)]


def _above(path: str) -> list[str]:
    sign = "\\" if "\\" in path else "/"
    parts = path.split(sign)
    return [sign.join(parts[:end]) for end in range(1, len(parts))]


def _highest(path: str, known: set[str]) -> str:
    """Return the highest folder above a path that is not known, or the path itself."""
    return next((above for above in _above(path) if above and above not in known), path)


def _change(base: Any, own: Any, depth: int) -> tuple[Any, list[str]]:  # noqa: ANN401  # JSON-like
    """Return what is to be said over the base, and the keys of it that are lost."""
    changes: Table = {}
    lost = [key for key in base if key not in own]
    for key, value in own.items():
        if key in base and base[key] == value:
            continue
        change, below = shortened(value), None
        if key in base and depth > 1:
            change, below = _change_within(base[key], value, depth - 1)
        changes[key] = change
        lost += [f"{key}.{inner}" for inner in below or ()]
    return {key: value for key, value in changes.items() if value != {} or own[key] == {}}, lost


def _change_within(base: Any, own: Any, depth: int) -> tuple[Any, list[str]]:  # noqa: ANN401  # JSON-like
    if isinstance(base, dict) and isinstance(own, dict):
        return _change(base, own, depth)
    if not _records(base) or not _records(own):
        return own, []
    changes: Table = {}
    lost = [str(number) for number in reversed(range(len(own), len(base)))]
    for number, element in enumerate(own):
        if number >= len(base):
            changes[str(number)] = _like_before(element, own[:number])
            continue
        change, below = _change(base[number], element, depth - 1)
        if change:
            changes[str(number)] = change
        lost += [f"{number}.{inner}" for inner in below]
    whole = shortened(own)
    if cost({"x": {"y": changes, "lost": lost}}) > cost({"x": {"y": whole}}):
        return whole, []
    return changes, lost


def _records(value: Any) -> bool:  # noqa: ANN401  # JSON-like
    return isinstance(value, list) and value != [] and all(isinstance(item, dict) for item in value)


def shortened(value: Any) -> Any:  # noqa: ANN401  # JSON-like
    """Return a table in which elements of lists are like ones before them."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if not _records(value):
        return value
    return [_like_before(element, value[:number]) for number, element in enumerate(value)]


def _like_before(element: Table, before: list[Table]) -> Table:
    """Return an element of a list by what it has otherwise than one before it."""
    ways = [
        {
            "like": number,
            **{key: field for key, field in element.items() if other.get(key) != field},
        }
        for number, other in enumerate(before)
        if other.keys() <= element.keys() and len(other) > _SHORT
    ]
    ways.append(element)
    return min(ways, key=len)


def cost(document: Any) -> int:  # noqa: ANN401  # JSON-like
    """Return about how long a document is to its reader, in characters."""
    if isinstance(document, str):
        return len(document) + _LINE * document.count("\n")
    if isinstance(document, dict):
        in_one_line = len(document) <= _SHORT
        return sum(
            len(key) + cost(value) + (_SIGNS if in_one_line else _LINE)
            for key, value in document.items()
        )
    if isinstance(document, list):
        return sum(cost(value) + _SIGNS for value in document)
    return _SIGNS
