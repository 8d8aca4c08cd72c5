"""Opens tables: each is read on first use, and checked while it is read."""
# Names are strings here: every check would pay two milliseconds for importing pathlib.
# ruff: noqa: PTH116, PTH118, PTH123

import os
import re
import stat
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from gpucheck.language import say
from gpucheck.tables.base import Table
from gpucheck.tables.errors import TablesError
from gpucheck.tables.location import INDEX, folder_of_tables

if TYPE_CHECKING:
    from pathlib import Path

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
        return msgspec.json.decode(_content(path), type=cls)
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
