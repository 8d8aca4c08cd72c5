"""pyproject.toml: the dependencies of the project, with the indexes of uv and Poetry."""

import re
from typing import Any

from gpucheck.whatif.files.model import UNKNOWN, Index, Install, Pin, Project
from gpucheck.whatif.files.readers.toml import table, table_of, tables, text, texts
from gpucheck.whatif.files.requirement import name_of, pin_of
from gpucheck.whatif.files.text import line_with, lines_of_keys, lines_of_texts

_LONGEST = 200
_OLDEST = re.compile(r">=[ \t]{0,9}(3\.[0-9]{1,2})(?![0-9*])")
_VERSION = re.compile(
    r"(?:==)?[ ]{0,9}([0-9]{1,4}(?:\.[0-9]{1,4}){2,3}[A-Za-z0-9.-]{0,30}(?:\+[A-Za-z0-9.]{1,30})?)"
)


def read(content: str) -> Project:
    """Return what every installation gets; extras and groups may exclude one another."""
    data, lines = table_of(content), content.split("\n")
    poetry = table(data, "tool", "poetry", "dependencies")
    if poetry and not table(data, "project").get("dependencies"):
        one = _by_poetry(data, poetry, lines)
    else:
        one = _by_project(data, lines)
    return Project(kind="pyproject", installs=(one,) if one.pins else ())


def _by_project(data: dict[str, Any], lines: list[str]) -> Install:
    pins = []
    places = lines_of_texts(lines)
    for requirement in texts(table(data, "project").get("dependencies")):
        pin = pin_of(requirement, places.get(requirement, 1))
        if pin is not None:
            pins.append(pin)
    return Install(
        line=pins[0].line if pins else 1,
        pins=tuple(pins),
        indexes=_indexes_of_uv(data, lines, places),
        tool="uv" if table(data, "tool", "uv") else "pip",
        python_from=_oldest_python(text(table(data, "project").get("requires-python")), lines),
    )


def _oldest_python(specifier: str, lines: list[str]) -> Pin | None:
    found = _OLDEST.search(specifier) if len(specifier) < _LONGEST else None
    if found is None:
        return None
    return Pin("python", found[1], line_with(lines, ("python", specifier)))


def _indexes_of_uv(
    data: dict[str, Any], lines: list[str], places: dict[str, int]
) -> tuple[Index, ...]:
    """Return the indexes that packages come from whatever extra, group or system is asked for."""
    of: dict[str, list[str]] = {}
    for package, source in table(data, "tool", "uv", "sources").items():
        sources = source if isinstance(source, list) else [source]
        for one in tables(sources):
            place = text(one.get("index")) or UNKNOWN  # a file, an address, a repository
            certain = len(sources) == 1 and not {"marker", "extra", "group"} & set(one)
            of.setdefault(place, []).append(name_of(package) if certain else "")
    sources_line = line_with(lines, ("[tool.uv.sources]",))
    found = [Index(UNKNOWN, sources_line, "only", (one,)) for one in of.pop(UNKNOWN, []) if one]
    for index in tables(table(data, "tool", "uv").get("index")):
        address, packages = text(index.get("url")), of.get(text(index.get("name")), [])
        line = places.get(address, 1)
        if packages:
            named = tuple(one for one in packages if one)
            found.append(Index(address, line, "only", named or ("",)))
        elif not index.get("explicit"):
            found.append(Index(address, line))
    for key in ("index-url", "extra-index-url"):
        value = table(data, "tool", "uv").get(key)
        for address in [value] if isinstance(value, str) else texts(value):
            role = "main" if key == "index-url" else "extra"
            found.append(Index(address, places.get(address, 1), role))
    return tuple(found)


def _by_poetry(data: dict[str, Any], packages: dict[str, Any], lines: list[str]) -> Install:
    places = {
        text(one.get("name")): text(one.get("url"))
        for one in tables(table(data, "tool", "poetry").get("source"))
    }
    start = line_with(lines, ("[tool.poetry.dependencies]",))
    pins, indexes, python = [], [], None
    places_of_keys = lines_of_keys(lines, start)
    for name, value in packages.items():
        line = places_of_keys.get(name, start)
        asked = value if isinstance(value, dict) else {"version": value}
        if name == "python":
            python = _oldest_python(_caret(text(asked.get("version"))), lines)
            python = Pin("python", python.version, line) if python else None
            continue
        if {"markers", "platform", "python", "optional"} & set(asked):
            continue
        found = _VERSION.fullmatch(text(asked.get("version")).strip())
        pins.append(Pin(name_of(name), found[1] if found else "", line))
        source = text(asked.get("source"))
        if source:
            indexes.append(Index(places.get(source, ""), line, "only", (name_of(name),)))
    return Install(
        line=start, pins=tuple(pins), indexes=tuple(indexes), tool="poetry", python_from=python
    )


def _caret(version: str) -> str:
    return ">=" + version[1:] if version[:1] in ("^", "~") and version[1:2] != "=" else version
