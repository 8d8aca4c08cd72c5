"""``gpucheck triage --batch``: many tickets, a line for each, or their numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.interface.text import colored, echo, page_width, words_of, write_out
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.tables import Tables
    from gpucheck.ticket.batch import Batch


def answer_batch(files: tuple[str, ...], options: dict[str, Any], tables: "Tables") -> None:
    """Answer each ticket, in the order in which they were given, or count the answers."""
    from gpucheck.machine.process_end import follow_parent  # noqa: PLC0415
    from gpucheck.ticket.batch import Batch, BatchError  # noqa: PLC0415

    if not files:
        raise click.UsageError(say("--batch needs files or folders."))
    try:
        paths = [Path(file) for file in files]
        batch = Batch(paths, tables.directory, options["jobs"], follow_parent)
    except BatchError as error:
        raise click.UsageError(words_of(error)) from error
    from gpucheck.output.json_text import json_text  # noqa: PLC0415

    lines = [json_text(answer, indent=None) for answer in batch.answers()]
    write_out(_numbers(batch, options) if options["summary"] else "".join(lines), options["output"])
    if not options["quiet"]:
        lines_below = batch.notes() if options["summary"] else batch.summary()
        for line in lines_below:
            echo(line)


def _numbers(batch: "Batch", options: dict[str, Any]) -> str:
    from gpucheck.ticket import batch_summary  # noqa: PLC0415

    if options["form"] == "terminal":
        return batch_summary.text(batch.tally(), color=colored(options), width=page_width(options))
    return batch_summary.FORMATS[options["form"]](batch.tally())
