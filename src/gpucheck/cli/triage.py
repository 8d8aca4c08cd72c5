"""``gpucheck triage``: name the cause from whatever a user pasted."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.cli.options import fail_on_option, format_option, output_options
from gpucheck.cli.run import open_tables
from gpucheck.cli.text import colored, printable, write_out

if TYPE_CHECKING:  # these cost time, and --help needs none of them
    from gpucheck.report import Report
    from gpucheck.tables import Tables

_STDIN = "-"
_JSON_LIMIT = 32 * 1024 * 1024
_SCHEMA_STANDS_IN = 400
_SCHEMAS = (b'"gpucheck.report/1"', b'"gpucheck.snapshot/1"')


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
    from gpucheck.ticket import saved  # noqa: PLC0415
    from gpucheck.ticket.intake import Intake, IntakeError  # noqa: PLC0415
    from gpucheck.ticket.judge import judge, judge_saved  # noqa: PLC0415

    if files == (_STDIN,) and sys.stdin.isatty():
        click.echo("Paste the text, then end it with Ctrl-D.", err=True)
    try:
        if len(files) == 1:
            snapshot = saved(_head(files[0]) if files[0] != _STDIN else _piped())
            if snapshot is not None:
                return judge_saved(snapshot, tables)
        intake = Intake()
        for file in files:
            name = Path(file).name if len(files) > 1 else ""
            if file == _STDIN:
                intake.add_stream(sys.stdin.buffer, name)
            else:
                intake.add_file(Path(file), name)
    except IntakeError as error:
        raise click.UsageError(printable(str(error))) from error
    for note in intake.notes:
        click.echo(f"Note: {printable(note)}", err=True)
    return judge(intake.text(), tables)


def _head(file: str) -> bytes:
    """Return what may be a saved report: not more than one can be long."""
    try:
        with Path(file).open("rb") as opened:
            return opened.read(_JSON_LIMIT + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise click.UsageError(f"{printable(file)} cannot be read: {why}") from error


def _piped() -> bytes:
    """Return what a pipe holds where it is a saved report; of any other text nothing is taken."""
    peek = getattr(sys.stdin.buffer, "peek", None)
    start = peek(_SCHEMA_STANDS_IN)[:_SCHEMA_STANDS_IN] if peek is not None else b""
    is_saved = start.lstrip().startswith(b"{") and any(one in start for one in _SCHEMAS)
    return sys.stdin.buffer.read(_JSON_LIMIT + 1) if is_saved else b""


def _show(report: "Report", options: dict[str, Any]) -> None:
    if options["reply"]:
        from gpucheck.render.ticket_reply import reply  # noqa: PLC0415

        text = reply(report, options["lang"])
    elif options["form"] == "json":
        from gpucheck.render import json_format  # noqa: PLC0415

        text = json_format.render(report)
    elif options["form"] == "markdown":
        from gpucheck.render import markdown  # noqa: PLC0415

        text = markdown.render(report)
    else:
        from gpucheck.render import ticket_text  # noqa: PLC0415

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
