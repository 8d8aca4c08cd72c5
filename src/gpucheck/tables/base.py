"""What all tables have in common: rows with sources, one JSON form, where and how they are read."""

# Names are strings here: every check would pay two milliseconds for importing pathlib.
# ruff: noqa: PTH112, PTH113, PTH116, PTH118, PTH120, PTH123
import functools
import os
import re
import stat
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from gpucheck.language import any_of, say

if TYPE_CHECKING:
    from pathlib import Path

OperatingSystem = Literal["linux", "windows"]
_VERSION = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,7}"
VersionText = Annotated[str, Meta(pattern=rf"\A{_VERSION}\Z", max_length=64)]
"""A column that is computed with: ``versions.numbers`` takes it."""
Specifier = Annotated[
    str,
    Meta(
        pattern=rf"\A(?:(?:\A|, ?)(?:[=!]= ?{_VERSION}(?:\.\*)?"
        rf"|(?:~=(?=[^.,]+\.)|[<>]=?) ?{_VERSION}))*\Z",
        max_length=200,
    ),
]
"""A column that ``packaging`` reads as a specifier: ``>=2.1,<2.5``."""
_RELEASE = rf"{_VERSION}(?:\.?[a-z]{{1,4}}[0-9]{{1,9}})?"
Requirement = Annotated[
    str,
    Meta(
        pattern=rf"\A(?:(?:\A|, ?)(?:==|!=|~=|[<>]=?) ?{_RELEASE}(?:\.\*)?)+\Z",
        max_length=200,
    ),
]
"""A specifier that may name pre-releases and post-releases: ``==0.7.2.post1``."""
Branch = Annotated[str, Meta(pattern=r"\A[0-9]{1,4}\Z")]
"""The number of a driver branch."""
Major = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\Z")]
"""A major release: ``12``."""
Line = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\.[0-9]{1,3}\Z")]
"""A minor release, as ``versions.minor`` writes it: ``12.8``."""
Lines = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\.[0-9]{1,3}(?:-[0-9]{1,3}\.[0-9]{1,3})?\Z")]
"""A minor release or the range in which it is: ``8.0-9.1``."""
CapabilityText = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\.[0-9]\Z")]
"""A compute capability: ``8.9``."""
Code = Annotated[str, Meta(pattern=r"\A(?:sm|compute)_[0-9]{2,4}[af]?\Z")]
"""Code for a GPU: ``sm_90a``, ``compute_120``."""
Build = Annotated[str, Meta(pattern=r"\A[a-z]{2,9}[0-9.]{0,9}\Z")]
"""A build of PyTorch: ``cpu``, ``cu128``."""
Release = Annotated[str, Meta(pattern=rf"\A{_RELEASE}\Z", max_length=64)]
"""A release as package indexes write it: ``0.0.27.post2``."""
AtLeast = Annotated[str, Meta(pattern=rf"\A{_VERSION}\+?\Z", max_length=64)]
"""A release, or with a plus this and all newer ones: ``12.0+``."""
Platform = Literal["linux_x86_64", "linux_aarch64", "windows", "windows_aarch64"]
Month = Annotated[str, Meta(pattern=r"\A[0-9]{4}-[0-9]{2}\Z")]
Project = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._+-]{0,99}\Z")]
"""A name on a package index, or of a package of a system."""
Library = Annotated[
    str, Meta(pattern=r"\Alib[A-Za-z0-9_+.-]{1,80}\.so(?:\.[0-9]{1,9}){0,4}(?:\.\{version\})?\Z")
]
"""The name of a library's file: ``libcudart.so.12``; ``{version}`` is a release."""
Address = Annotated[str, Meta(pattern=r"\Ahttps://(?:[A-Za-z0-9._~%/+-]|\{build\}){1,290}\Z")]
"""``{build}`` is a build of PyTorch."""
Link = Annotated[str, Meta(pattern=r"\A(?:https://[A-Za-z0-9][!-~]{3,400})?\Z")]
"""An address that a reader can open, or ""."""
Words = Annotated[str, Meta(min_length=1, max_length=500)]
"""Text for people, or a name that is only compared."""


class Source(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A public document or artefact from which a fact was read, and the day (YYYY-MM-DD).

    ``url`` is where it can be opened; "" if it is no page, such as a program that was run.
    """

    title: str
    read: str
    url: Link = ""


class Row(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A fact. A missing column means that the value is unknown, not that the answer is no."""

    source: tuple[str, ...]
    confirmed: bool = True
    note: str = ""


class Table(Struct, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A table: `name` is that of its file, `sources` describes the ids in `Row.source`."""

    name: ClassVar[str]
    table: str
    sources: dict[str, Source]
    rows: tuple[Row, ...]

    def titles(self, row: Row) -> tuple[str, ...]:
        """Return the titles of the sources of a row."""
        return tuple(self.sources[key].title for key in row.source if key in self.sources)


def serialise(table: Table) -> str:
    """Return the one JSON form of a table: one line per source, one line per row."""
    sources = [f"  {_line(key)}: {_line(source)}" for key, source in sorted(table.sources.items())]
    rows = [f"  {_line(row)}" for row in table.rows]
    return "\n".join(
        (
            f'{{"table": {_line(table.table)},',
            ' "sources": {',
            ",\n".join(sources),
            " },",
            ' "rows": [',
            ",\n".join(rows),
            " ]}",
            "",
        ),
    )


def _line(value: object) -> str:
    import json  # noqa: PLC0415  # only needed to write a table; msgspec reads it

    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


class TablesError(Exception):
    """A table cannot be read; the message is one sentence with the file and, if any, the row."""


# The location of the compatibility tables of this installation.

HOW_TO_RENEW = say("Newer tables come with a newer gpucheck, or alone (gpucheck tables update)")
_FOLDER = "compat_tables"
INDEX = "index.json"


def tables_dir(explicit: str | None = None) -> "Path":
    """Return the folder, as ``folder_of_tables`` does, as a path."""
    from pathlib import Path  # noqa: PLC0415

    return Path(folder_of_tables(explicit))


def folder_of_tables(explicit: str | None = None) -> str:
    """Return the folder with index.json and one JSON file per table.

    `explicit` wins and must exist. Otherwise it is the folder inside the package (a wheel), or the
    one next to `src` (an sdist or an editable checkout).

    Raises:
        TablesError: there is none.
    """
    if explicit is not None:
        if not os.path.isdir(explicit):
            message = say(
                "The folder of compatibility tables {folder} does not exist.", folder=explicit
            )
            raise TablesError(message)
        return explicit
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    source_tree = os.path.dirname(os.path.dirname(package))
    candidates = [os.path.join(folder, _FOLDER) for folder in (package, source_tree)]
    for folder in candidates:
        if os.path.isfile(os.path.join(folder, INDEX)):
            return folder
    message = say(
        "This installation of gpucheck has no compatibility tables: there is no {file} in "
        "{folders}.",
        file=INDEX,
        folders=any_of(candidates),
    )
    raise TablesError(message)


# Opens tables: each is read on first use, and checked while it is read.

SCHEMA = "gpucheck.tables/1"
LARGEST_FILE = 1024 * 1024
"""Eight times the largest table. One byte of it may become thirty in memory."""
_LONGEST_WHY = 300  # chosen: msgspec quotes the value, which may be a whole row
_ROW = r"`\$\.rows\[([0-9]+)\]"

T = TypeVar("T", bound=Table)
S = TypeVar("S", bound=Struct)


class Index(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of index.json: CalVer version, date (YYYY-MM-DD), table names."""

    schema: str
    version: str
    date: str
    tables: tuple[str, ...]


class Tables:
    """The compatibility tables of one folder. Reading raises TablesError and nothing else."""

    def __init__(self, directory: "os.PathLike[str] | str | None" = None) -> None:
        """Open `directory`, or the tables of this installation, without reading anything yet."""
        self._folder = folder_of_tables() if directory is None else os.fspath(directory)
        self._index: Index | None = None
        self._tables: dict[str, Table] = {}

    @property
    def directory(self) -> "Path":
        """The folder of the tables."""
        from pathlib import Path  # noqa: PLC0415

        return Path(self._folder)

    @property
    def version(self) -> str:
        """The tables' CalVer version, such as 2026.11.1."""
        return self.index().version

    @property
    def date(self) -> str:
        """The day (YYYY-MM-DD) the tables were last changed."""
        return self.index().date

    def index(self) -> Index:
        """Return the content of index.json."""
        if self._index is None:
            path = os.path.join(self._folder, INDEX)
            index = _decode(path, Index)
            if index.schema != SCHEMA:
                message = say(
                    "{path} has the schema {found}, not {expected}.",
                    path=path,
                    found=repr(index.schema),
                    expected=repr(SCHEMA),
                )
                raise TablesError(message)
            self._index = index
        return self._index

    def get(self, cls: type[T]) -> T:
        """Return the table of this class; the same object each time."""
        found = self._tables.get(cls.name)
        if isinstance(found, cls):
            return found
        path = os.path.join(self._folder, f"{cls.name}.json")
        table = _decode(path, cls)
        if table.table != cls.name:
            message = say(
                "{path} contains the table {found}, not {expected}.",
                path=path,
                found=repr(table.table),
                expected=repr(cls.name),
            )
            raise TablesError(message)
        if not table.rows:
            message = say("{path} has no rows.", path=path)
            raise TablesError(message)
        self._tables[cls.name] = table
        return table


def _decode(path: str, cls: type[S]) -> S:
    try:
        table: S = _decoded(_content(path), cls)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = _in_short(str(error))
        row = re.search(_ROW, why)
        if row is None:
            message = say("{path} does not have the form of a table: {why}.", path=path, why=why)
        else:
            message = say(
                "{path}, row {row} does not have the form of a table: {why}.",
                path=path,
                row=int(row[1]) + 1,  # users count rows from 1, msgspec from 0
                why=why,
            )
        raise TablesError(message) from error
    return table


@functools.lru_cache(maxsize=64)  # more than there are tables
def _decoded(content: bytes, cls: type[S]) -> S:
    """Decode a file that was not decoded before: each call of ``gpucheck.compat()`` opens all."""
    return msgspec.json.decode(content, type=cls)


def _in_short(why: str) -> str:
    """Leave out the middle of an error that quotes a long value. Its end names the row."""
    return why if len(why) <= _LONGEST_WHY else f"{why[:60]}...{why[-100:]}"


def _content(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            message = say("{path} is not a regular file.", path=path)
            raise TablesError(message)
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        message = say("{path} cannot be read: {why}.", path=path, why=error.strerror or error)
        raise TablesError(message) from error
    if len(content) > LARGEST_FILE:
        message = say(
            "{path} is larger than {limit} MiB.", path=path, limit=LARGEST_FILE // 1024 // 1024
        )
        raise TablesError(message)
    return content
