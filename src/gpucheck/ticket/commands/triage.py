"""``gpucheck triage``: name the cause from whatever a user pasted."""

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.doctor.commands.check import show_report
from gpucheck.doctor.run import open_tables
from gpucheck.interface.options import LANGUAGE, examples, fail_on_option, output_options_with
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import colored, echo, page_width, printable, words_of, write_out
from gpucheck.language import in_series, in_turn, say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.engine import Report
    from gpucheck.language import Language
    from gpucheck.tables import Tables
    from gpucheck.ticket.batch import Batch
    from gpucheck.ticket.given import Given

_STDIN = "-"
_WINDOWS = os.name == "nt"
_UNREADABLE = 2  # exit status: docs/architecture.md, 1.2
_FORMATS = ("terminal", "json", "markdown", "html")
_SUMMARY_FORMATS = ("terminal", "csv", "json", "html")


@click.command(
    short_help=say("Name the cause from pasted text, logs and reports."),
    epilog=examples(
        "python train.py 2>&1 | gpucheck triage",
        "gpucheck triage error.log nvidia-smi.txt      # one ticket",
        "gpucheck triage --reply --lang zh issue.md",
        "gpucheck triage error.log --format html -o cause.html",
        "gpucheck triage --batch tickets/ --summary",
    ),
)
@click.argument("files", metavar="[FILE... | -]", nargs=-1)
@click.option(
    "--lines", is_flag=True, help=say("Show every line and fact that the answer is based on.")
)
@click.option(
    "--batch",
    is_flag=True,
    help=say(
        "Treat each FILE (folder, JSONL with id and text) as separate tickets, and print one JSON "
        "line for each ticket."
    ),
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    help=say("How many processes --batch uses; by default one for each processor."),
)
@click.option(
    "--summary",
    is_flag=True,
    help=say(
        "With --batch: print the number of tickets by verdict, cause and owner, instead of their "
        "lines."
    ),
)
@click.option(
    "--reply",
    is_flag=True,
    help=say("Answer the reporter in Markdown, in the language of the ticket or in --lang."),
)
@fail_on_option
@click.option(
    "--format",
    "form",
    type=OneOf(list(dict.fromkeys((*_FORMATS, *_SUMMARY_FORMATS)))),
    default="terminal",
    show_default=True,
    help=say("csv is for --summary, markdown for a single ticket."),
)
@output_options_with(say("The same as --lines."))
@click.pass_context
def triage(ctx: click.Context, /, files: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401  # click's options
    """Name the cause from whatever a user pasted: program output, logs, a saved report.

    Several files are one ticket. Without a file, or with "-", the text is read from stdin.
    """
    _refuse_what_does_not_fit(options)
    tables = open_tables(options["tables"])
    if options["batch"]:
        _answer_batch(files, options, tables)
        return
    given = _Ticket(files or (_STDIN,))
    report = given.judged(tables)
    _show(report, given, {**options, "lang": ctx.meta.get(LANGUAGE)})
    ctx.exit(_UNREADABLE if given.not_read else report.exit_status(options["fail_on"]))


def _answer_batch(files: tuple[str, ...], options: dict[str, Any], tables: "Tables") -> None:
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


def _refuse_what_does_not_fit(options: dict[str, Any]) -> None:
    if options["summary"] and not options["batch"]:
        raise click.UsageError(say("--summary needs --batch, whose tickets it counts."))
    if options["batch"] and not options["summary"] and options["form"] == "html":
        raise click.UsageError(say("--format html of --batch needs --summary."))
    fitting = _SUMMARY_FORMATS if options["summary"] else _FORMATS
    if options["form"] not in fitting:
        form, formats = options["form"], in_series(fitting)
        if options["summary"]:
            raise click.UsageError(
                say(
                    "--format {form} does not fit --summary, which has {formats}.",
                    form=form, formats=formats,
                )
            )  # fmt: skip
        raise click.UsageError(
            say(
                "--format {form} does not fit a single ticket, which has {formats}.",
                form=form,
                formats=formats,
            )
        )


class _Ticket:
    """The files of one ticket; those that cannot be read do not stop the others."""

    def __init__(self, files: tuple[str, ...]) -> None:
        from gpucheck.ticket.intake import Intake  # noqa: PLC0415

        self._files = files
        self._intake = Intake()
        self.not_read: list[str] = []
        """Why files could not be read, one sentence each."""

    def judged(self, tables: "Tables") -> "Report":
        """Read the files and judge them; whatever was not read is said on stderr.

        Raises:
            click.UsageError: none could be read, or there is no text in them.
        """
        from gpucheck.ticket.given import IntakeError  # noqa: PLC0415
        from gpucheck.ticket.judge import judge_given, judge_taken  # noqa: PLC0415

        if self._files == (_STDIN,) and sys.stdin.isatty():
            echo(how_to_end())
        try:
            if len(self._files) == 1:
                with _given(self._files[0], "") as given:
                    report = judge_given(given, self._intake, tables)
            else:
                self._take_in()
                report = judge_taken(self._intake, tables)
        except IntakeError as error:
            only = self._files[0] if len(self._files) == 1 else _STDIN
            raise click.UsageError(
                printable(error.about("" if only == _STDIN else only))
            ) from error
        for sentence in (*self.not_read, *self._intake.notes):
            echo(say("Note: {note}", note=printable(sentence)))
        return report

    def _take_in(self) -> None:
        from gpucheck.ticket.given import IntakeError  # noqa: PLC0415

        for file in self._files:
            try:
                with _given(file, Path(file).name) as given:
                    self._intake.add(given)
            except IntakeError as error:
                self.not_read.append(words_of(error))
        if len(self.not_read) == len(self._files):
            raise IntakeError(in_turn(self.not_read))

    def language(self, wanted: str | None) -> "Language":
        """Return the language of the reply: the wanted one, else that of the ticket."""
        from gpucheck.ticket.prose import language_of  # noqa: PLC0415

        if wanted in (None, "auto"):
            return language_of(self._intake.lines)
        return "zh" if wanted == "zh" else "en"


def how_to_end() -> str:
    """Return how a text is ended that is typed into a terminal of this system."""
    if _WINDOWS:
        return say("Paste the text, then end it with Ctrl-Z and Enter.")
    return say("Paste the text, then end it with Ctrl-D.")


def _given(file: str, name: str) -> "contextlib.AbstractContextManager[Given]":
    from gpucheck.ticket.given import Given, opened  # noqa: PLC0415

    if file == _STDIN:
        return contextlib.nullcontext(Given(sys.stdin.buffer, name))
    return opened(Path(file), name)


def _show(report: "Report", given: _Ticket, options: dict[str, Any]) -> None:
    if options["reply"]:
        from gpucheck.ticket.ticket_reply import reply  # noqa: PLC0415

        write_out(reply(report, given.language(options["lang"])), options["output"])
    elif options["form"] == "terminal" and report.snapshot.origin == "pasted":
        from gpucheck.output import ticket_text  # noqa: PLC0415

        text = ticket_text.render(
            report,
            lines=options["lines"] or bool(options["verbose"]),
            quiet=options["quiet"],
            color=colored(options),
            width=page_width(options),
        )
        write_out(text, options["output"])
    else:  # a saved snapshot of a machine is shown as gpucheck check shows it
        show_report(report, {**options, "verbose": options["verbose"] or int(options["lines"])})


COMMAND = triage
