"""``gpucheck check``: the default command."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gpucheck.cli.options import format_option, machine_options, output_options
from gpucheck.cli.run import judge, open_host, open_tables, run_probes
from gpucheck.cli.text import colored, printable, write_out

if TYPE_CHECKING:  # it costs time, and --help needs it not
    from gpucheck.report import Report

_NOTE_NO_SELFTEST = "this version has no run-time self-test yet: use --no-selftest"


@click.command(short_help="Diagnose this machine (the default).")
@machine_options
@click.option(
    "--gpus",
    metavar="N",
    type=click.IntRange(min=0),
    help="How many GPUs must be here; 0: this host only builds or submits.",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["run", "build"]),
    default="run",
    show_default=True,
    help="Whether PyTorch is to run here, or extensions are to be built as well.",
)
@click.option(
    "--no-selftest/--selftest", default=True, help="Static checks only; nothing runs on a GPU."
)
@click.option("--only", metavar="NAME", multiple=True, help="Only this finding or probe.")
@click.option("--skip", metavar="NAME", multiple=True, help="Not this finding or probe.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
@format_option
@output_options
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Diagnose this machine: the root cause first, its evidence, the command that fixes it."""
    if not options["no_selftest"]:
        raise click.UsageError(_NOTE_NO_SELFTEST)
    from gpucheck.probes.request import Request  # noqa: PLC0415

    tables = open_tables(options["tables"])
    request = Request(gpus=options["gpus"], purpose=options["purpose"])
    only, skip, probes_skipped = _chosen(options["only"], options["skip"])
    host = open_host(options["sysroot"])
    collected = run_probes(host, tables, options, request=request, skip=probes_skipped)
    report = judge(collected.snapshot, tables, only=only, skip=skip)
    show_report(report, options)
    ctx.exit(report.exit_status(options["fail_on"]))


def _chosen(only: Sequence[str], skip: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Split names into slugs asked, slugs skipped and probes skipped.

    Raises:
        click.UsageError: a name is neither a slug nor a probe.
    """
    if not only and not skip:
        return [], [], []
    from gpucheck.probes import all_probes  # noqa: PLC0415
    from gpucheck.rules import all_rules  # noqa: PLC0415

    slugs, probes = set(all_rules()), {probe.name for probe in all_probes()}
    for name in (*only, *skip):
        if name not in slugs | probes:
            raise click.UsageError(
                f"{printable(name)!r} is neither a finding nor a probe: see gpucheck list"
            )
    wanted = {name for name in only if name in probes}
    probes_skipped = {name for name in skip if name in probes}
    if wanted:
        probes_skipped |= probes - wanted
    return (
        [name for name in only if name in slugs],
        [name for name in skip if name in slugs],
        sorted(probes_skipped),
    )


def show_report(report: "Report", options: dict[str, Any], *, after: str = "") -> None:
    """Print the report in the format asked for; what leaves this machine as data is redacted.

    ``after`` is a line that stands after a report for people.
    """
    if options["form"] == "terminal":
        from gpucheck.render import terminal  # noqa: PLC0415

        text = terminal.render(
            report,
            verbose=options["verbose"],
            quiet=options["quiet"],
            color=colored(options),
        )
    elif options["form"] == "json":
        from gpucheck.render import json_format  # noqa: PLC0415

        text = json_format.render(report)
    else:
        from gpucheck.render import markdown  # noqa: PLC0415

        text = markdown.render(report)
    if after and options["form"] != "json":
        text += f"\n{after}\n"
    write_out(text, options["output"])


COMMAND = check
