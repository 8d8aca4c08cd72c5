"""A ticket: what a user pasted, and the cause that it shows."""

import msgspec

from gpucheck.report import Report
from gpucheck.snapshot import FILE_LIMIT, Snapshot, decode
from gpucheck.tables import Tables, tables_dir
from gpucheck.ticket.intake import Intake, IntakeError
from gpucheck.ticket.judge import judge, judge_saved

_SCHEMAS = (b'"gpucheck.report/1"', b'"gpucheck.snapshot/1"')
_SCHEMA_STANDS_IN = 400
"""Bytes from the beginning: gpucheck writes the schema first."""


def triage(text: str | bytes, tables: Tables | None = None) -> Report:
    """Name the cause of what a text shows; a saved snapshot or report is judged anew.

    Args:
        text: program output, logs, a ticket; gzip is unpacked, bytes need be no valid UTF-8.
        tables: the compatibility tables, else the built-in ones.

    Raises:
        IntakeError: it is no text.
    """
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    known = tables or Tables(tables_dir(None))
    snapshot = saved(data)
    if snapshot is not None:
        return judge_saved(snapshot, known)
    intake = Intake()
    intake.add_bytes(data)
    return judge(intake.text(), known)


def saved(data: bytes) -> Snapshot | None:
    """Return the snapshot in a file that gpucheck wrote, None when it is no such file.

    Raises:
        IntakeError: it says that it is one, and cannot be read.
    """
    head = data[:_SCHEMA_STANDS_IN]
    if not head.lstrip().startswith(b"{") or not any(schema in head for schema in _SCHEMAS):
        return None
    if len(data) > FILE_LIMIT:
        raise IntakeError(f"The report is larger than {FILE_LIMIT >> 20} MiB.")
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IntakeError(
            f"It is no gpucheck snapshot or report that can be read: {error}"
        ) from error
