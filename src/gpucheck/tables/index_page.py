"""The releases on a project's page of a package index, in the JSON or the HTML of the simple API.

The page is untrusted: its text is parsed, and nothing in it is followed or executed.
"""

import re
from collections.abc import Iterable
from html import unescape
from typing import TYPE_CHECKING

import msgspec

from gpucheck.language import say

if TYPE_CHECKING:
    from packaging.version import Version

_JSON = "application/vnd.pypi.simple.v1+json"
_HTML = ("application/vnd.pypi.simple.v1+html", "text/html")
_MOST_FILES = 100_000
_LONGEST_NAME = 300
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
    if media_type == _JSON:
        found = _of_json(body)
    elif media_type in _HTML:
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
