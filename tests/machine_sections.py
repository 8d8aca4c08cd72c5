"""What a test machine has of another one: what is absent, said instead, or changed.

Sections are the tables of a machine by their names, each by path or by name.
"""

import fnmatch
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

CONTENTS = ("files", "blobs", "links")
"""What may be at a path: a text, the name of a shared file, or the target of a link."""
BY_PATH = (*CONTENTS, "stat", "open", "space", "listings", "sha256", "ranges", "problems")
SECTIONS = (
    "folders", "identity", "limits", *BY_PATH, "env", "which", "commands",
    "registry", "nvml", "cuinit", "worker", "selftests",
)  # fmt: skip
_FOLDER = re.compile(r"\$(\w+)(?=[/\\]|$)")
DEPTH = {"nvml": 3, "cuinit": 3, "worker": 2}
"""Tables within tables that are changed key by key; anything deeper is replaced as a whole."""

Table: TypeAlias = dict[str, Any]
Sections: TypeAlias = dict[str, Table]


def expanded(own: Sections, folders: Mapping[str, str]) -> Sections:
    """Return sections whose paths may begin with ``$NAME`` with the folder of that name there.

    Raises:
        ValueError: no folder has such a name.
    """
    return {
        name: {in_full(path, folders): value for path, value in table.items()}
        if name in BY_PATH
        else table
        for name, table in own.items()
    }


def in_full(path: str, folders: Mapping[str, str]) -> str:
    """Return a path with the folder that it begins with.

    Raises:
        ValueError: no folder has such a name.
    """
    found = _FOLDER.match(path)
    if found is None:
        return path
    if found[1] not in folders:
        raise ValueError(f"{path}: {found[1]!r} is not in [folders]")
    return folders[found[1]] + path[found.end() :]


def without(base: Sections, absent: Mapping[str, list[str]]) -> Sections:
    """Return the sections without what is absent.

    Raises:
        ValueError: it is absent from what the machine is like, too.
    """
    folders = base.get("folders", {})
    result = {name: dict(table) for name, table in base.items()}
    for name in absent.get("sections", ()):
        if result.pop(name, None) is None:
            raise ValueError(f"absent: no section {name!r} is there to begin with")
    for path in (in_full(path, folders) for path in absent.get("paths", ())):
        keys = {(name, key) for name in BY_PATH for key in result.get(name, ()) if at(key, path)}
        if not keys:
            raise ValueError(f"absent: nothing is at {path} to begin with")
        for name, key in keys:
            del result[name][key]
    for name, keys_of_one in absent.items():
        if name in ("sections", "paths"):
            continue
        if name not in SECTIONS:
            raise ValueError(f"absent: {name!r} is no section")
        for key in (in_full(key, folders) for key in keys_of_one):
            result[name] = _without_key(result.get(name, {}), key, nested=name in DEPTH)
    return result


def at(key: str, path: str) -> bool:
    """Whether a path is another one, or matches it as a shell pattern, or lies below."""
    pattern = path.replace("[", "[[]")
    return any(fnmatch.fnmatchcase(key, pattern + below) for below in ("", "/*", "\\*"))


def _without_key(table: Table, key: str, *, nested: bool) -> Table:
    first, _, rest = key.partition(".") if nested else (key, "", "")
    if first not in table:
        raise ValueError(f"absent: no {key!r} is there to begin with")
    if not rest:
        return {name: value for name, value in table.items() if name != first}
    inner = table[first]
    if isinstance(inner, dict):
        return {**table, first: _without_key(inner, rest, nested=True)}
    numbered = {str(number): value for number, value in enumerate(inner)}
    return {**table, first: list(_without_key(numbered, rest, nested=True).values())}


def said_instead(base: Sections, instead: Mapping[str, str]) -> Sections:
    """Return the sections with texts replaced by others, in paths and in what is said.

    Raises:
        ValueError: a text occurs nowhere.
    """
    if not instead:
        return dict(base)
    longest_first = sorted(instead, key=len, reverse=True)
    pattern = re.compile("|".join(re.escape(text) for text in longest_first))
    seen = set()

    def replace(match: re.Match[str]) -> str:
        seen.add(match[0])
        return instead[match[0]]

    def change(value: Any) -> Any:  # noqa: ANN401  # data of TOML
        if isinstance(value, str):
            return pattern.sub(replace, value)
        if isinstance(value, dict):
            return {pattern.sub(replace, key): change(item) for key, item in value.items()}
        return [change(item) for item in value] if isinstance(value, list) else value

    result = {
        name: {pattern.sub(replace, path): blob for path, blob in table.items()}
        if name in ("blobs", "ranges")
        else change(table)
        for name, table in base.items()
    }
    if unseen := instead.keys() - seen:
        raise ValueError(f"instead: {min(unseen)!r} is nowhere to begin with")
    return result


def merged(base: Sections, own: Sections) -> Sections:
    """Return the sections of ``base`` with what ``own`` says otherwise.

    Raises:
        ValueError: an element of a list is changed that is not there.
    """
    result = {name: dict(table) for name, table in base.items()}
    for name, table in own.items():
        for other in CONTENTS if name in CONTENTS else ():
            for path in result.get(other, {}).keys() & table.keys():
                del result[other][path]
        result[name] = _changed(result.get(name, {}), table, DEPTH.get(name, 1))
    return result


def _changed(old: Any, new: Any, depth: int) -> Any:  # noqa: ANN401  # data of TOML
    if depth == 0 or not isinstance(new, dict):
        return new
    if new and all(key.isdecimal() for key in new) and (old is None or isinstance(old, list)):
        return _changed_elements(old or [], new, depth - 1)
    old = old if isinstance(old, dict) else {}
    return {**old, **{key: _changed(old.get(key), new[key], depth - 1) for key in new}}


def _changed_elements(old: list[Any], new: Table, depth: int) -> list[Any]:
    result = list(old)
    for number, change in sorted(new.items(), key=lambda item: int(item[0])):
        place = int(number)
        if place > len(result):
            raise ValueError(f"there is no element {place - 1}, and so none {place}")
        if isinstance(change, dict) and "like" in change:
            element = like_one_before(change, result)
        else:
            element = _changed(result[place] if place < len(result) else None, change, depth)
        result[place : place + 1] = [element]
    return result


def like_one_before(item: Any, before: list[Any]) -> Any:  # noqa: ANN401  # data of TOML
    """Return an element of a list; one with a number as ``like`` has the rest of that element.

    Raises:
        ValueError: there is no such element before it.
    """
    if not isinstance(item, dict) or not isinstance(item.get("like"), int):
        return item
    if not 0 <= item["like"] < len(before):
        raise ValueError(f"there is no element {item['like']} that element {len(before)} is like")
    rest = {key: value for key, value in item.items() if key != "like"}
    return {**before[item["like"]], **rest}
