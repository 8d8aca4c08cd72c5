# ruff: noqa: INP001  # part of a script
"""Where the rows that are there differ from the package index, as lines to look at.

A wheel's name says its Python and its platform, the index says what Python a release requires. So
a wrong `requires_python` or a missing Python shows without a wheel.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from gpucheck.doctor.against_index import PageError, PageFile, files
from gpucheck.machine import LiveHost
from gpucheck.machine.package_index import configured, pip_settings, read_page
from gpucheck.tables.versions import numbers

Read = Callable[[str], list[PageFile]]
Pythons = dict[str, set[str]]
_PLATFORMS = {
    "linux_x86_64": r"(?:many)?linux.*_x86_64",
    "linux_aarch64": r"(?:many)?linux.*_aarch64",
    "windows": r"win_amd64",
    "macos_arm64": r"macosx_.*_arm64",
    "macos_x86_64": r"macosx_.*_x86_64",
}


_STABLE = "abi3"
"""A wheel for the stable ABI: newer Pythons take it as well."""


class NoIndexError(Exception):
    """Why the package index gave no answer, in one sentence."""


def read_files(project: str) -> list[PageFile]:
    """Return the files that the index, for which pip is configured, has of a project."""
    index = configured(pip_settings(LiveHost().run))
    if index.value is None:
        raise NoIndexError(index.problem)
    page = read_page(index.value, project)
    if page.value is None:
        message = f"{page.source}: {page.problem}"
        raise NoIndexError(message)
    try:
        return files(page.value.media_type, page.value.body)
    except PageError as error:
        raise NoIndexError(str(error)) from error


def corrections(load: Callable[[str], dict[str, Any]], read: Read = read_files) -> list[str]:
    """Return a line for each cell of the tables that the index contradicts."""
    return [
        *_of_torch(load("torch_releases")["rows"], read("torch")),
        *_of_triton(load("triton")["rows"], read("triton")),
    ]


def _of_torch(rows: Iterable[dict[str, Any]], there: list[PageFile]) -> Iterator[str]:
    wheels, required = _wheels(there)
    for row in rows:
        place, version = f"torch_releases {row['torch']}", Version(row["torch"])
        if version not in wheels:
            yield f"{place}: the index has no wheel of it"
            continue
        says = {SpecifierSet(specifier) for specifier in required[version] if specifier}
        if len(says) == 1 and SpecifierSet(row["requires_python"]) not in says:
            yield f"{place}: requires_python is {row['requires_python']}, {says.pop()} on the index"
        for platform in sorted({*row["pythons"], *wheels[version]}):
            yield from _difference(
                f"{place}: pythons of {platform}",
                set(row["pythons"].get(platform, ())),
                wheels[version].get(platform, set()) - {_STABLE},
            )


def _of_triton(rows: Iterable[dict[str, Any]], there: list[PageFile]) -> Iterator[str]:
    wheels, _required = _wheels(there)
    for row in rows:
        pythons = wheels.get(Version(row["triton"]), {}).get("linux_x86_64", set())
        plain = (python for python in pythons if python != _STABLE and not python.endswith("t"))
        ordered = sorted(plain, key=numbers)
        stated = (row["python_first"], row["python_last"])
        last = stated[1] if _STABLE in pythons else None
        ends = (ordered[0], last or ordered[-1]) if ordered else None
        if ends is not None and ends != stated:
            yield (
                f"triton {row['triton']}: Pythons {stated[0]} to {stated[1]}, "
                f"{ends[0]} to {ends[1]} on the index"
            )


def _difference(place: str, here: set[str], there: set[str]) -> Iterator[str]:
    for title, more in (("only in the table", here - there), ("only on the index", there - here)):
        if more:
            yield f"{place}: {', '.join(sorted(more, key=_order))} {title}"


def _order(python: str) -> tuple[tuple[int, ...], str]:
    return numbers(python.removesuffix("t")), python


def _wheels(
    there: Iterable[PageFile],
) -> tuple[dict[Version, Pythons], dict[Version, set[str | None]]]:
    """Return the Pythons that have a wheel, by release and platform, and what each requires."""
    wheels: dict[Version, Pythons] = {}
    required: dict[Version, set[str | None]] = {}
    for file in there:
        try:
            _name, version, _build, tags = parse_wheel_filename(file.filename)
        except (InvalidWheelFilename, ValueError):
            continue
        required.setdefault(version, set()).add(file.requires_python)
        for tag in tags:
            python = _python(tag.interpreter, tag.abi)
            for platform, pattern in _PLATFORMS.items():
                if python and re.fullmatch(pattern, tag.platform):
                    found = wheels.setdefault(version, {}).setdefault(platform, set())
                    found.update({python, _STABLE} if tag.abi == _STABLE else {python})
    return wheels, required


def _python(interpreter: str, abi: str) -> str | None:
    """Return "3.13t" for a wheel of cp313 and cp313t."""
    found = re.fullmatch(r"cp([23])([0-9]{1,2})", interpreter)
    return f"{found[1]}.{found[2]}{'t' if abi.endswith('t') else ''}" if found else None
