"""Opens the compatibility tables that whoever asks wants to use."""

from typing import TYPE_CHECKING

from gpucheck.interface.errors import UsageError, printable, words_of
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.tables import Tables


def open_tables(directory: str | None, *, whole: bool = True) -> "Tables":
    """Open the compatibility tables.

    With ``whole``, tables from another folder than the built-in one are read and checked at once,
    because they are untrusted data.

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
    if whole and directory is not None:
        refuse_broken(tables)
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
