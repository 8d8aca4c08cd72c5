"""pyproject.toml: the dependencies of the project, with the indexes of uv and Poetry."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from gpucheck.describe.files.model import UNKNOWN, Install, NamedIndex, Pin, Project
from gpucheck.describe.files.readers.toml import table, table_of, tables, text, texts
from gpucheck.describe.files.requirement import holds_on_linux, name_of, requested
from gpucheck.describe.files.text import line_with, lines_of_keys, lines_of_texts

_LONGEST = 200  # chosen: a range of versions has some dozens, before a pattern looks at it
_OLDEST = re.compile(r">=[ \t]{0,9}(3\.[0-9]{1,2})(?![0-9*])")
_VERSION = re.compile(
    r"(?:==)?[ ]{0,9}([0-9]{1,4}(?:\.[0-9]{1,4}){2,3}[A-Za-z0-9.-]{0,30}(?:\+[A-Za-z0-9.]{1,30})?)"
)


def read(content: str) -> Project:
    """Return what every installation gets; extras and groups may exclude one another."""
    data, lines = table_of(content), content.split("\n")
    poetry = table(data, "tool", "poetry", "dependencies")
    if poetry and not table(data, "project").get("dependencies"):
        install = _by_poetry(data, poetry, lines)
    else:
        install = _by_project(data, lines)
    return Project(kind="pyproject", installs=(install,) if install.pins else ())


def _by_project(data: dict[str, Any], lines: list[str]) -> Install:
    found: list[Pin | NamedIndex] = []
    places = lines_of_texts(lines)
    for requirement in texts(table(data, "project").get("dependencies")):
        found += requested(requirement, places.get(requirement, 1))
    pins = [request for request in found if isinstance(request, Pin)]
    indexes = [request for request in found if isinstance(request, NamedIndex)]
    return Install(
        line=pins[0].line if pins else 1,
        pins=tuple(pins),
        indexes=(*indexes, *_indexes(data, lines, places, [pin.name for pin in pins])),
        tool="uv" if table(data, "tool", "uv") else "pip",
        without_dependencies=_overrides(data),
        python_from=_oldest_python(text(table(data, "project").get("requires-python")), lines),
    )


def _overrides(data: dict[str, Any]) -> bool:
    """Whether uv or PDM is told to take other versions than packages require."""
    return bool(
        table(data, "tool", "uv").get("override-dependencies")
        or table(data, "tool", "pdm", "resolution").get("overrides")
    )


def _indexes(
    data: dict[str, Any], lines: list[str], places: dict[str, int], names: list[str]
) -> tuple[NamedIndex, ...]:
    """Return the indexes of uv, PDM and Poetry, of which a project uses one."""
    return (
        *_indexes_of_uv(data, lines, places),
        *_indexes_of_pdm(data, places),
        *_indexes_of_poetry(data, lines, names),
    )


def _indexes_of_pdm(data: dict[str, Any], places: dict[str, int]) -> Iterator[NamedIndex]:
    """Yield the sources of PDM; one whose packages are named by patterns may have any."""
    for source in tables(table(data, "tool", "pdm").get("source")):
        address, included = text(source.get("url")), texts(source.get("include_packages"))
        plain = tuple(name_of(name) for name in included)
        if "$" in address or any("*" in name for name in plain) or source.get("exclude_packages"):
            address, plain = UNKNOWN, ()
        yield NamedIndex(address, places.get(address, 1), "extra", plain)


def _oldest_python(specifier: str, lines: list[str]) -> Pin | None:
    found = _OLDEST.search(specifier) if len(specifier) < _LONGEST else None
    if found is None:
        return None
    return Pin("python", found[1], line_with(lines, ("python", specifier)))


def _indexes_of_uv(
    data: dict[str, Any], lines: list[str], places: dict[str, int]
) -> tuple[NamedIndex, ...]:
    """Return the indexes that packages come from whatever extra, group or system is asked for."""
    of: dict[str, list[str]] = {}
    for package, source in table(data, "tool", "uv", "sources").items():
        sources = source if isinstance(source, list) else [source]
        for alternative in tables(sources):
            place = text(alternative.get("index")) or UNKNOWN  # a file, an address, a repository
            if (
                isinstance(alternative.get("marker"), str)
                and holds_on_linux(alternative["marker"]) is False
            ):
                continue
            certain = _is_only(alternative, sources)
            of.setdefault(place, []).append(name_of(package) if certain else "")
    sources_line = line_with(lines, ("[tool.uv.sources]",))
    found = [
        NamedIndex(UNKNOWN, sources_line, "only", (package_name,))
        for package_name in of.pop(UNKNOWN, [])
        if package_name
    ]
    for index in tables(table(data, "tool", "uv").get("index")):
        address, packages = text(index.get("url")), of.get(text(index.get("name")), [])
        line = places.get(address, 1)
        if packages:
            named = tuple(package_name for package_name in packages if package_name)
            found.append(NamedIndex(address, line, "only", named or ("",)))
        elif not index.get("explicit"):
            found.append(NamedIndex(address, line))
    for key in ("index-url", "extra-index-url", "find-links"):
        value = table(data, "tool", "uv").get(key)
        for address in [value] if isinstance(value, str) else texts(value):
            role = "main" if key == "index-url" else "extra"
            found.append(NamedIndex(address, places.get(address, 1), role))
    if table(data, "tool", "uv").get("no-index"):
        found.append(NamedIndex(UNKNOWN, 1))
    return tuple(found)


def _is_only(source: dict[str, Any], sources: list[Any]) -> bool:
    """Whether a package surely comes from this source on Linux."""
    others = [alternative for alternative in tables(sources) if alternative is not source]
    marker = source.get("marker", "os_name == 'posix'")
    return (
        not {"extra", "group"} & set(source)
        and isinstance(marker, str)
        and holds_on_linux(marker) is True
        and all(holds_on_linux(text(alternative.get("marker"))) is False for alternative in others)
    )


def _indexes_of_poetry(
    data: dict[str, Any], lines: list[str], names: Sequence[str]
) -> Iterator[NamedIndex]:
    """Yield the sources that packages name, and one that may have the others.

    Poetry asks supplemental sources only for what the others do not have, and explicit ones only
    for the packages that name them.
    """
    sources = tables(table(data, "tool", "poetry").get("source"))
    places = {text(source.get("name")): text(source.get("url")) for source in sources}
    packages = table(data, "tool", "poetry", "dependencies")
    start = line_with(lines, ("[tool.poetry.dependencies]",))
    places_of_keys = lines_of_keys(lines, start)
    own = set()
    for name, value in packages.items():
        if not isinstance(value, dict) or not text(value.get("source")):
            continue
        own.add(name_of(name))
        address = places.get(text(value.get("source")), "")
        yield NamedIndex(address, places_of_keys.get(name, start), "only", (name_of(name),))
    general = any(text(source.get("priority")) in ("", "primary", "default") for source in sources)
    others = tuple(name for name in names if name not in own)
    if general and others and not all(_adds_nothing(source) for source in sources):
        yield NamedIndex(UNKNOWN, start, "extra", others)


def _adds_nothing(source: dict[str, Any]) -> bool:
    """Whether a package that names no source surely comes from PyPI despite this one."""
    return text(source.get("name")).lower() == "pypi" or text(source.get("priority")) in (
        "explicit", "supplemental",
    )  # fmt: skip


def _by_poetry(data: dict[str, Any], packages: dict[str, Any], lines: list[str]) -> Install:
    start = line_with(lines, ("[tool.poetry.dependencies]",))
    pins, python = [], None
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
    indexes = _indexes_of_poetry(data, lines, [pin.name for pin in pins])
    return Install(
        line=start, pins=tuple(pins), indexes=tuple(indexes), tool="poetry", python_from=python
    )


def _caret(version: str) -> str:
    return ">=" + version[1:] if version[:1] in ("^", "~") and version[1:2] != "=" else version
