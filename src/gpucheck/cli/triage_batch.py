"""``gpucheck triage --batch``: many tickets, a line for each, or their numbers."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.cli.text import colored, page_width, printable, write_out

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.tables import Tables
    from gpucheck.ticket.batch import Batch


def answer_batch(files: tuple[str, ...], options: dict[str, Any], tables: "Tables") -> None:
    """Answer each ticket, in the order in which they were given, or count the answers."""
    from gpucheck.ticket.batch import Batch, BatchError  # noqa: PLC0415

    if not files:
        raise click.UsageError("--batch needs files or folders.")
    try:
        batch = Batch([Path(file) for file in files], tables.directory, options["jobs"])
    except BatchError as error:
        raise click.UsageError(printable(str(error))) from error
    lines = [json.dumps(answer, ensure_ascii=False) + "\n" for answer in batch.answers()]
    write_out(_numbers(batch, options) if options["summary"] else "".join(lines), options["output"])
    if not options["quiet"]:
        said = batch.notes() if options["summary"] else batch.summary().splitlines()
        for line in said:
            click.echo(printable(line), err=True)


def _numbers(batch: "Batch", options: dict[str, Any]) -> str:
    from gpucheck.output import batch_summary  # noqa: PLC0415

    if options["form"] == "terminal":
        return batch_summary.text(batch.tally(), color=colored(options), width=page_width(options))
    return batch_summary.FORMATS[options["form"]](batch.tally())
