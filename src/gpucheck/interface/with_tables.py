"""Opens the compatibility tables that whoever asks wants to use."""

from typing import TYPE_CHECKING

from gpucheck.interface.errors import UsageError, printable, words_of
from gpucheck.interface.own_tables import updated_tables
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.tables import Tables


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
