"""Opens tables: each is read on first use, and checked while it is read."""
# Names are strings here: every check would pay two milliseconds for importing pathlib.
# ruff: noqa: PTH116, PTH118, PTH123

import os
import re
import stat
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from gpucheck.tables.base import Table
from gpucheck.tables.errors import TablesError
from gpucheck.tables.location import INDEX, folder_of_tables

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "gpucheck.tables/1"
LARGEST_FILE = 1024 * 1024
"""Eight times the largest table. One byte of it may become thirty in memory."""
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
                message = f"{path} has schema {index.schema!r}, not {SCHEMA!r}."
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
            message = f"{path} holds the table {table.table!r}, not {cls.name!r}."
            raise TablesError(message)
        if not table.rows:
            message = f"{path} has no rows."
            raise TablesError(message)
        self._tables[cls.name] = table
        return table


def _decode(path: str, cls: type[S]) -> S:
    try:
        return msgspec.json.decode(_content(path), type=cls)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        row = re.search(_ROW, str(error))
        # Users count rows from 1, msgspec from 0.
        place = f", row {int(row[1]) + 1}" if row else ""
        message = f"{path}{place} does not have the form of a table: {error}."
        raise TablesError(message) from error


def _content(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            message = f"{path} is not a regular file."
            raise TablesError(message)
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise TablesError(message) from error
    if len(content) > LARGEST_FILE:
        message = f"{path} is larger than {LARGEST_FILE // 1024 // 1024} MB."
        raise TablesError(message)
    return content
