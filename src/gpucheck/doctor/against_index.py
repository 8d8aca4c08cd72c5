"""What ``gpucheck tables check --against-index`` asks, reads on the pages of an index, and says."""

import re
from collections.abc import Iterable
from html import unescape
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gpucheck.interface.text import printable, words_of
from gpucheck.language import in_series, say
from gpucheck.tables.companions import PinRow, TorchCompanions
from gpucheck.tables.packages import Triton
from gpucheck.tables.torch import TorchReleases

if TYPE_CHECKING:
    from packaging.version import Version

    from gpucheck.machine.package_index import PackageIndex
    from gpucheck.tables import Tables

# Exit statuses, as everywhere: 1 for what was found, 2 for what could not be asked.
_UNKNOWN = 1
_NO_ANSWER = 2
_FIRST = "torch"

_JSON_TYPE = "application/vnd.pypi.simple.v1+json"
_HTML_TYPES = ("application/vnd.pypi.simple.v1+html", "text/html")
_MOST_FILES = 100_000  # chosen: the page limit of 32 MiB has room for more; no project has so many
_LONGEST_NAME = 300  # chosen: longer than a file name may be (255 bytes)
_LINK = re.compile(
    r"""<a\b(?P<attributes>(?:[^<>"']|"[^"]{0,2000}"|'[^']{0,2000}'){0,4000})>"""
    r"""(?P<text>[^<]{1,400})</a""",
    re.IGNORECASE,
)
"""A link. A pattern, as the parser of the library takes quadratic time on hostile pages."""
_YANKED = re.compile(r"\sdata-yanked\b", re.IGNORECASE)
_REQUIRES_PYTHON = re.compile(
    r"""\sdata-requires-python=(?P<quote>["'])(?P<value>[^"']{0,200})(?P=quote)""", re.IGNORECASE
)


def against_index(tables: "Tables", address: str | None) -> tuple[dict[str, Any], list[str], int]:
    """Compare the tables with a package index: the answer as data, its lines, the exit status."""
    index = _index(address)
    shown = printable(index.shown)
    lacks: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    for project, known in known_releases(tables).items():
        there, problem = _releases(index, project)
        lacks[project] = unknown_releases(known, there)
        if problem:
            problems[project] = printable(problem)
        if problem and project == _FIRST:
            break  # the others would say the same
    lines: list[str] = [
        say(
            "{project} {release} is on {index} and not in the tables.",
            project=project,
            release=release,
            index=shown,
        )
        for project, releases in lacks.items()
        for release in releases
    ]
    lines += [
        say("{project}: {problem}.", project=project, problem=problem)
        for project, problem in problems.items()
    ]
    asked = in_series([project for project in lacks if project not in problems])
    if not lines:
        lines.append(
            say(
                "{index} has no release that the tables lack: {projects}.",
                index=shown,
                projects=asked,
            )
        )
    answer = {"address": index.shown, "unknown": lacks, "problems": problems}
    return answer, lines, _NO_ANSWER if problems else _UNKNOWN if any(lacks.values()) else 0


def _index(address: str | None) -> "PackageIndex":
    """Return the index that was named, else the one that pip is configured for.

    Raises:
        click.UsageError: pip is configured for none, or is told to use none.
    """
    from gpucheck.machine import LiveHost  # noqa: PLC0415
    from gpucheck.machine.package_index import (  # noqa: PLC0415
        configured,
        named,
        pip_settings,
    )

    settings = pip_settings(LiveHost().run)
    if address is not None:
        return named(address, settings)
    found = configured(settings)
    if found.value is None:
        raise click.UsageError(found.problem)
    return found.value


def _releases(index: "PackageIndex", project: str) -> tuple[list[str], str]:
    """Return the releases of a project, or why they are not known.

    An index that has no page of a companion is no fault; one without torch is no index of use.
    """
    from gpucheck.machine.package_index import read_page  # noqa: PLC0415

    page = read_page(index, project)
    if page.value is None:
        return [], "" if page.missing and project != _FIRST else page.problem
    try:
        return releases(page.value.media_type, page.value.body, project), ""
    except PageError as error:
        return [], words_of(error)


def known_releases(tables: "Tables") -> dict[str, set[str]]:
    """Return the releases that the tables know, by project."""
    known = {
        "torch": {row.torch for row in tables.get(TorchReleases).rows},
        "torchvision": set[str](),
        "torchaudio": set[str](),
        "torchtext": set[str](),
        "triton": {row.triton for row in tables.get(Triton).rows},
    }
    for row in tables.get(TorchCompanions).rows:
        if isinstance(row, PinRow):
            known[row.package].add(row.version)
    return known


def unknown_releases(known: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return the releases of an index that are not known, newest first.

    Releases before the oldest known one are left out, because the tables begin with it.
    """
    from packaging.version import Version  # noqa: PLC0415

    had = {Version(version) for version in known}
    if not had:
        return []
    found = {Version(version) for version in there}
    return [str(release) for release in sorted(found - had, reverse=True) if release > min(had)]


# The page is untrusted: its text is parsed, and nothing in it is followed or executed.
class PageError(Exception):
    """Why a page cannot be read, in one sentence without a full stop."""


class PageFile(msgspec.Struct, rename={"requires_python": "requires-python"}):
    """A file on the page; `yanked` is its reason or True where it was withdrawn."""

    filename: str
    yanked: bool | str = False
    requires_python: str | None = None


class _Page(msgspec.Struct):
    files: list[PageFile] = []


def releases(media_type: str, body: bytes, project: str) -> list[str]:
    """Return the final releases of a project that have a file and were not withdrawn, oldest first.

    Raises:
        PageError: the page has another form.
    """
    return _versions((file.filename for file in files(media_type, body)), project)


def files(media_type: str, body: bytes) -> list[PageFile]:
    """Return the files of a page that were not withdrawn.

    Raises:
        PageError: the page has another form.
    """
    if media_type == _JSON_TYPE:
        found = _of_json(body)
    elif media_type in _HTML_TYPES:
        found = _of_html(body)
    else:
        message = say(
            "the page is {media_type}, which is neither the JSON nor the HTML of an index",
            media_type=repr(media_type[:60]),
        )
        raise PageError(message)
    if len(found) > _MOST_FILES:
        message = say("the page lists more than {most} files", most=_MOST_FILES)
        raise PageError(message)
    return [file for file in found if file.yanked is False]


def _of_json(body: bytes) -> list[PageFile]:
    try:
        return msgspec.json.decode(body, type=_Page).files
    except (ValueError, RecursionError) as error:
        message = say("the page is not the JSON of an index: {why}", why=error)
        raise PageError(message) from error


def _of_html(body: bytes) -> list[PageFile]:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        message = say("the page is not HTML in UTF-8")
        raise PageError(message) from error
    return [_of_link(link["attributes"], unescape(link["text"])) for link in _LINK.finditer(text)]


def _of_link(attributes: str, text: str) -> PageFile:
    wanted = _REQUIRES_PYTHON.search(attributes)
    return PageFile(
        text.strip(),
        bool(_YANKED.search(attributes)),
        unescape(wanted["value"]) if wanted else None,
    )


def _versions(names: Iterable[str], project: str) -> list[str]:
    from packaging.version import Version  # noqa: PLC0415

    found = {version for name in names if (version := _version(name, project)) is not None}
    public = {Version(version.public) for version in found if not version.is_prerelease}
    return [str(version) for version in sorted(public)]


def _version(name: str, project: str) -> "Version | None":
    from packaging.utils import (  # noqa: PLC0415
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )

    if len(name) > _LONGEST_NAME:
        return None
    try:
        if name.endswith(".whl"):
            of, version = parse_wheel_filename(name)[:2]
        else:
            of, version = parse_sdist_filename(name)
    except (InvalidSdistFilename, InvalidWheelFilename, ValueError):
        return None
    return version if of == project else None
