"""``gpucheck triage``: name the cause from whatever a user pasted."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.cli.options import fail_on_option, format_option, output_options
from gpucheck.cli.run import open_tables
from gpucheck.cli.text import colored, printable, write_out

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.engine import Report
    from gpucheck.tables import Tables
    from gpucheck.ticket.given import Given

_STDIN = "-"


@click.command(short_help="Name the cause from pasted text, logs and reports.")
@click.argument("files", metavar="[FILE... | -]", nargs=-1)
@click.option("--lines", is_flag=True, help="Show every line and fact that decided.")
@click.option(
    "--batch",
    is_flag=True,
    help="Each FILE (folder, JSONL with id and text) holds tickets of its own: a JSON line each.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes of --batch (all processors).")
@click.option("--reply", is_flag=True, help="Write a short answer to the reporter, in Markdown.")
@click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of the reply.",
)
@fail_on_option
@format_option
@output_options
@click.pass_context
def triage(ctx: click.Context, /, files: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401  # click's options
    """Name the cause from whatever a user pasted: program output, logs, a saved report.

    Several files are one ticket. Without a file, or with "-", the text is read from stdin.
    """
    tables = open_tables(options["tables"])
    if options["batch"]:
        _batch(files, options, tables)
        return
    report = _report(files or (_STDIN,), tables)
    _show(report, options)
    ctx.exit(report.exit_status(options["fail_on"]))


def _report(files: tuple[str, ...], tables: "Tables") -> "Report":
    from gpucheck.ticket.given import IntakeError  # noqa: PLC0415
    from gpucheck.ticket.intake import Intake  # noqa: PLC0415
    from gpucheck.ticket.judge import judge, judge_saved  # noqa: PLC0415

    if files == (_STDIN,) and sys.stdin.isatty():
        click.echo("Paste the text, then end it with Ctrl-D.", err=True)
    intake = Intake()
    try:
        for file in files:
            with _given(file, Path(file).name if len(files) > 1 else "") as given:
                snapshot = given.saved() if len(files) == 1 else None
                if snapshot is None:
                    intake.add(given)
    except IntakeError as error:
        raise click.UsageError(printable(str(error))) from error
    for note in intake.notes:
        click.echo(f"Note: {printable(note)}", err=True)
    return judge(intake.text(), tables) if snapshot is None else judge_saved(snapshot, tables)


def _given(file: str, name: str) -> "contextlib.AbstractContextManager[Given]":
    from gpucheck.ticket.given import Given, opened  # noqa: PLC0415

    if file == _STDIN:
        return contextlib.nullcontext(Given(sys.stdin.buffer, name))
    return opened(Path(file), name)


def _show(report: "Report", options: dict[str, Any]) -> None:
    if options["reply"]:
        from gpucheck.output.ticket_reply import reply  # noqa: PLC0415

        text = reply(report, options["lang"])
    elif options["form"] == "json":
        from gpucheck.output import json_format  # noqa: PLC0415

        text = json_format.render(report)
    elif options["form"] == "markdown":
        from gpucheck.output import markdown  # noqa: PLC0415

        text = markdown.render(report)
    else:
        from gpucheck.output import ticket_text  # noqa: PLC0415

        text = ticket_text.render(
            report,
            lines=options["lines"] or bool(options["verbose"]),
            quiet=options["quiet"],
            color=colored(options),
        )
    write_out(text, options["output"])


def _batch(files: tuple[str, ...], options: dict[str, Any], tables: "Tables") -> None:
    """Answer each ticket with a JSON line, in the order in which they were given."""
    import json  # noqa: PLC0415

    from gpucheck.ticket.batch import Batch, BatchError  # noqa: PLC0415

    if not files:
        raise click.UsageError("--batch needs files or folders.")
    try:
        batch = Batch([Path(file) for file in files], tables.directory, options["jobs"])
        text = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in batch.answers())
    except BatchError as error:
        raise click.UsageError(printable(str(error))) from error
    write_out(text, options["output"])
    if not options["quiet"]:
        click.echo(batch.summary(), err=True)


COMMAND = triage
