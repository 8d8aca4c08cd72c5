"""``gpucheck check``: the default command."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpucheck.doctor import checking
from gpucheck.doctor.run import diagnosed, open_tables
from gpucheck.interface.errors import UsageError
from gpucheck.interface.options import (
    REPORT_FORMATS,
    examples,
    fail_on_option,
    machine_options,
    no_redact_option,
    options_of,
    output_options_with,
    rendered,
    report_format_option,
)
from gpucheck.interface.text import page_options, write_out
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need it
    from gpucheck.engine import Report


F = TypeVar("F", bound=Callable[..., Any])
# Seconds, and never more than half of the time limit. Chosen: the wheels of a CUDA build have
# gigabytes, and the rest of a check takes about one second.
_HASH_SECONDS = 10.0


_OPTIONS = (
    machine_options,
    options_of(checking.CheckRequest, "gpus", "purpose", "selftest", "level", "only", "skip"),
    # As preflight and node spell --gpus; hidden, because they judge the other requirements.
    click.option("--require", metavar="FILE|KEY=VALUE", multiple=True, hidden=True),
    fail_on_option,
)


def judged(command: F) -> F:
    """Add the options of every command that diagnoses this machine as ``check`` does."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(
    short_help=say("Diagnose this machine (the default)."),
    epilog=examples(
        "gpucheck",
        "gpucheck --python ~/venv --no-selftest",
        "gpucheck --gpus 8 --fail-on warning    # this machine must have 8 GPUs",
        "gpucheck --for build                   # for compiling extensions",
        "gpucheck --format markdown -o report.md",
        "gpucheck --format html -o report.html",
        "gpucheck --machine machine.zip         # a recorded machine",
    ),
)
@judged
@options_of(checking.CheckRequest, "machine")
@click.option(
    "--fix",
    is_flag=True,
    expose_value=False,
    help=say("Do what can be done about it: the same as gpucheck fix."),
)
@report_format_option
@no_redact_option
@output_options_with(
    say(
        "Every check with its reason; twice: every fact. It also compares CUDA libraries with the "
        "hashes of their wheels, for 10 seconds at most."
    )
)
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Diagnose this machine: the root cause first, its evidence, the command that fixes it."""
    report = diagnose(options)
    show_report(report, options)
    ctx.exit(report.exit_status(options["fail_on"]))


def diagnose(options: dict[str, Any]) -> "Report":
    """Examine the machine, and judge it for what the options ask."""
    return diagnosed(options, _request(options), open_tables(options["tables"]))


def _request(options: dict[str, Any]) -> checking.CheckRequest:
    names = checking.CheckRequest.__struct_fields__
    given = {name: options[name] for name in names if name in options}
    if options["require"]:
        given["gpus"] = _gpus_required(options)
    return checking.CheckRequest(**given, hash_seconds=_for_hashes(options))


def _gpus_required(options: dict[str, Any]) -> int | None:
    """Return the number of GPUs that ``--gpus`` and ``--require`` demand.

    Raises:
        UsageError: they contradict each other, or something else is required.
    """
    from gpucheck.interface.requirements import key_of, required  # noqa: PLC0415  # rarely asked for

    wanted = required(options["require"], options["gpus"])
    for field in wanted.__struct_fields__:
        if field != "gpus_per_node" and getattr(wanted, field) is not None:
            raise UsageError(
                say(
                    "--require {key}: gpucheck node and gpucheck preflight judge it, check does "
                    "not",
                    key=key_of(field),
                )
            )
    return wanted.gpus_per_node


def _for_hashes(options: dict[str, Any]) -> float:
    """Return how long libraries are compared with the hashes of their wheels; 0 without -v."""
    return min(_HASH_SECONDS, options["timeout"] / 2) if options["verbose"] else 0.0


def show_report(report: "Report", options: dict[str, Any], *, after: str = "") -> None:
    """Print the report in the requested format.

    Args:
        report: the report.
        options: of the command line.
        after: a line that follows a report for people, before its trailer.
    """
    text = report_text(report, options)
    if after and options["form"] in ("terminal", "markdown"):
        from gpucheck.output.words import before_the_trailer  # noqa: PLC0415

        text = before_the_trailer(text, after)
    write_out(text, options["output"])


def report_text(report: "Report", options: dict[str, Any]) -> str:
    """Return the report in the requested format; all but that of the terminal is redacted."""
    if options["form"] == "terminal":
        from gpucheck.output import terminal  # noqa: PLC0415

        return terminal.render(report, **page_options(options))
    more = {"redacted": False} if options.get("no_redact") else {}
    return rendered(REPORT_FORMATS, options["form"], report, **more)


COMMAND = check
