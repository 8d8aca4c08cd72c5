"""``gpucheck check``: the default command."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpucheck.api import checking
from gpucheck.cli.options import (
    REPORT_FORMATS,
    examples,
    fail_on_option,
    level_option,
    machine_options,
    no_redact_option,
    output_options_with,
    rendered,
    report_format_option,
)
from gpucheck.cli.run import live_table, open_host, open_tables, run_probes
from gpucheck.cli.spelling import OneOf
from gpucheck.cli.text import page_options, write_out
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need it
    from gpucheck.engine import Report
    from gpucheck.facts.request import Request
    from gpucheck.facts.snapshot import Snapshot


F = TypeVar("F", bound=Callable[..., Any])
_HASH_SECONDS = 10.0


_OPTIONS = (
    machine_options,
    click.option(
        "--gpus",
        metavar="N",
        type=click.IntRange(min=0, max=1024),
        help=say("How many GPUs this machine must have; 0: it only builds or submits jobs."),
    ),
    click.option(
        "--for",
        "purpose",
        type=OneOf(["run", "build"]),
        default="run",
        show_default=True,
        help=say("Whether PyTorch only runs here, or extensions are built as well."),
    ),
    click.option(
        "--selftest/--no-selftest",
        default=None,
        help=say(
            "Run the self-tests, even if they only test the CPU; or run only static checks. By "
            "default the self-tests run if there are an NVIDIA device and a CUDA build of PyTorch."
        ),
    ),
    level_option,
    click.option("--only", metavar="NAME", multiple=True, help=say("Only this finding or probe.")),
    click.option(
        "--skip", metavar="NAME", multiple=True, help=say("Leave out this finding or probe.")
    ),
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
    ),
)
@judged
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
    """Examine this machine now, and judge it for what the options ask."""
    begun = time.monotonic()
    tables = open_tables(options["tables"])
    wish = _wish(options)
    host = open_host(options["sysroot"])

    def collect(request: "Request", skip: Sequence[str]) -> "Snapshot":
        return run_probes(host, tables, options, request=request, skip=skip).snapshot

    with live_table(options) as show:
        snapshot = checking.examine(host, tables, wish, collect, begun=begun, show=show)
    return checking.judge(snapshot, tables, wish)


def _wish(options: dict[str, Any]) -> checking.CheckWish:
    return checking.CheckWish(
        gpus=options["gpus"],
        purpose=options["purpose"],
        wheel_mirror=options["wheel_mirror"],
        hash_seconds=_for_hashes(options),
        selftest=options["selftest"],
        level=options["level"],
        only=tuple(options["only"]),
        skip=tuple(options["skip"]),
        timeout=options["timeout"],
    )


def _for_hashes(options: dict[str, Any]) -> float:
    """Return how long libraries are compared with the hashes of their wheels; 0 without -v."""
    return min(_HASH_SECONDS, options["timeout"] / 2) if options["verbose"] else 0.0


def show_report(report: "Report", options: dict[str, Any], *, after: str = "") -> None:
    """Print the report in the requested format; all but that of the terminal is redacted.

    Args:
        report: the report.
        options: of the command line.
        after: a line that follows a report for people, before its trailer.
    """
    if options["form"] == "terminal":
        from gpucheck.output import terminal  # noqa: PLC0415

        text = terminal.render(report, **page_options(options))
    else:
        more = {"redacted": False} if options.get("no_redact") else {}
        text = rendered(REPORT_FORMATS, options["form"], report, **more)
    if after and options["form"] in ("terminal", "markdown"):
        from gpucheck.output.not_judged import before_the_trailer  # noqa: PLC0415

        text = before_the_trailer(text, after)
    write_out(text, options["output"])


COMMAND = check
