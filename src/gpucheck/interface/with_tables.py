"""Opens the tables that whoever asks wants to use: the user's own, or this release's."""

# Names are strings here: every check would pay two milliseconds for importing pathlib.
# ruff: noqa: PTH113, PTH118, PTH123

import os
import re
from typing import TYPE_CHECKING

from gpucheck._about import VERSION
from gpucheck.interface.errors import UsageError, printable, words_of
from gpucheck.language import say
from gpucheck.machine.data_folder import data_folder

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.tables import Tables


# The tables that ``gpucheck tables update`` has put into the user's data folder.
#
# They are in use until gpucheck or its own tables become newer, or ``gpucheck tables reset``. Each
# set has a folder of its own, and one small file names the set in use, so a reader sees the old or
# the new one.

_FOLDER = "tables"
_CURRENT = "current"
_NAME = re.compile(r"[0-9]{4}(?:\.[0-9]{1,6}){1,3}-[0-9a-f]{12}")
_MOST = 200  # bytes: a name and a version of gpucheck


def sets_folder() -> str:
    """Return the folder with the sets; "" if there can be none."""
    data = data_folder()
    return os.path.join(data, _FOLDER) if data else ""


def current_file(sets: str) -> str:
    """Return the file that names the set in use."""
    return os.path.join(sets, _CURRENT)


def named(name: str) -> str:
    """Return what ``current_file`` says if the set of this name is in use."""
    return f"{name} {VERSION}\n"


def is_name(name: str) -> bool:
    """Return whether this is the name of a set: its version, and the beginning of its hash."""
    return _NAME.fullmatch(name) is not None


def updated_tables() -> str | None:
    """Return the folder of the tables that the user has brought, None if there are none.

    Those that an older gpucheck put there do not count: their columns may be others.
    """
    sets = sets_folder()
    if not sets:
        return None
    try:
        with open(current_file(sets), encoding="ascii") as file:
            name, _, version = file.read(_MOST).strip().partition(" ")
    except (OSError, ValueError):
        return None
    if version != VERSION or not is_name(name):
        return None
    folder = os.path.join(sets, name)
    return folder if os.path.isfile(os.path.join(folder, "index.json")) else None


# Opens the compatibility tables that whoever asks wants to use.


def open_tables(directory: str | None, *, whole: bool = True) -> "Tables":
    """Open the compatibility tables: of a folder, else those that the user has brought.

    These count while they are newer than the built-in ones. With ``whole``, tables from another
    folder than the built-in one are read and checked at once, because they are untrusted data.

    Raises:
        UsageError: there are none in the folder, or they are broken.
    """
    from gpucheck.tables import Tables, TablesError  # noqa: PLC0415
    from gpucheck.tables.base import folder_of_tables  # noqa: PLC0415

    try:
        tables = Tables(folder_of_tables(directory))
        tables.index()
    except TablesError as error:
        raise UsageError(words_of(error)) from error
    if directory is None and (brought := updated_tables()):
        return _brought(Tables(brought), tables, whole=whole)
    if whole and directory is not None:
        refuse_broken(tables)
    return tables


def _brought(tables: "Tables", own: "Tables", *, whole: bool) -> "Tables":
    """Return the tables that the user has brought, or the built-in ones if these are newer.

    Raises:
        UsageError: they have become unreadable; the sentence says how to go back.
    """
    from gpucheck.tables import TablesError  # noqa: PLC0415
    from gpucheck.tables.versions import numbers  # noqa: PLC0415

    try:
        if numbers(tables.version) <= numbers(own.version):
            return own
        if whole:
            refuse_broken(tables)
    except (TablesError, UsageError, ValueError) as error:
        raise UsageError(
            say(
                "{why} gpucheck tables reset goes back to the tables of this gpucheck.",
                why=words_of(error),
            )
        ) from error
    return tables


def refuse_broken(tables: "Tables") -> None:
    """Read every row and look up its source.

    Raises:
        UsageError: a row cannot be read, or has no known source; the sentence names it.
    """
    from gpucheck.tables import TablesError  # noqa: PLC0415
    from gpucheck.tables.check import untrustworthy  # noqa: PLC0415

    try:
        broken = untrustworthy(tables)
    except TablesError as error:
        raise UsageError(words_of(error)) from error
    if broken:
        raise UsageError(
            say("{broken} (gpucheck tables check shows all)", broken=printable(broken[0]))
        )
