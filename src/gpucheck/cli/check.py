"""``gpucheck check``: the default command."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gpucheck.cli.options import (
    REPORT_FORMATS,
    examples,
    fail_on_option,
    level_option,
    machine_options,
    output_options_with,
    rendered,
    report_format_option,
)
from gpucheck.cli.run import open_host, open_tables, run_probes
from gpucheck.cli.selftests import with_selftests
from gpucheck.cli.spelling import OneOf, meant, with_hint
from gpucheck.cli.text import colored, page_width, printable, write_out
from gpucheck.language import say, spoken

if TYPE_CHECKING:  # imported late: --help does not need it
    from gpucheck.engine import Report


_HASH_SECONDS = 10.0


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
@machine_options
@click.option(
    "--gpus",
    metavar="N",
    type=click.IntRange(min=0),
    help=say("How many GPUs this machine must have; 0: it only builds or submits jobs."),
)
@click.option(
    "--for",
    "purpose",
    type=OneOf(["run", "build"]),
    default="run",
    show_default=True,
    help=say("Whether PyTorch only runs here, or extensions are built as well."),
)
@click.option(
    "--selftest/--no-selftest",
    default=None,
    help=say(
        "Run the self-tests, even if they only test the CPU; or run only static checks. By default "
        "the self-tests run if there are an NVIDIA device and a CUDA build of PyTorch."
    ),
)
@level_option
@click.option("--only", metavar="NAME", multiple=True, help=say("Only this finding or probe."))
@click.option("--skip", metavar="NAME", multiple=True, help=say("Leave out this finding or probe."))
@fail_on_option
@report_format_option
@output_options_with(
    say(
        "Every check with its reason; twice: every fact. It also compares CUDA libraries with the "
        "hashes of their wheels, for 10 seconds at most."
    )
)
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Diagnose this machine: the root cause first, its evidence, the command that fixes it."""
    start = time.monotonic()
    from gpucheck.facts.request import Request  # noqa: PLC0415

    tables = open_tables(options["tables"])
    request = Request(
        gpus=options["gpus"],
        purpose=options["purpose"],
        wheel_mirror=options["wheel_mirror"],
        hash_seconds=_for_hashes(options),
    )
    only, skip, probes_skipped = _chosen(options["only"], options["skip"])
    host = open_host(options["sysroot"])
    collected = run_probes(host, tables, options, request=request, skip=probes_skipped)
    from gpucheck.engine import judge_machine  # noqa: PLC0415  # while the probes were running

    snapshot = with_selftests(
        host,
        collected.snapshot,
        tables,
        options,
        asked=bool(options["selftest"]),
        refused=_refused(options),
        begun=start,
    )
    report = judge_machine(snapshot, tables, only=only, skip=skip)
    show_report(report, options)
    ctx.exit(report.exit_status(options["fail_on"]))


def _for_hashes(options: dict[str, Any]) -> float:
    """Return how long libraries are compared with the hashes of their wheels; 0 without -v."""
    return min(_HASH_SECONDS, options["timeout"] / 2) if options["verbose"] else 0.0


def _refused(options: dict[str, Any]) -> str:
    """Return why no self-tests should run; a single finding or probe does not need them."""
    if options["selftest"] is False:
        return say("--no-selftest was given")
    only = options["selftest"] is None and options["only"]
    return say("--only was given without --selftest") if only else ""


def _chosen(only: Sequence[str], skip: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Split names into slugs asked, slugs skipped and probes skipped.

    Raises:
        click.UsageError: a name is neither a slug nor a probe.
    """
    if not only and not skip:
        return [], [], []
    from gpucheck.findings import all_rules  # noqa: PLC0415
    from gpucheck.probes import all_probes  # noqa: PLC0415
    from gpucheck.tables.nearest import same_name  # noqa: PLC0415

    slugs, probes = set(all_rules()), {probe.name for probe in all_probes()}
    known = sorted(slugs | probes)
    only, skip = ([same_name(name, known) or name for name in names] for names in (only, skip))
    for name in (*only, *skip):
        if name not in known:
            near = meant(name, known) or say("See gpucheck list.")
            refused = say("{name} is neither a finding nor a probe.", name=repr(printable(name)))
            raise click.UsageError(with_hint(refused, near))
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
    """Print the report in the requested format; data that leaves this machine is redacted.

    Args:
        report: the report.
        options: of the command line.
        after: a line that follows a report for people, before its trailer.
    """
    if options["form"] == "terminal":
        from gpucheck.output import terminal  # noqa: PLC0415

        text = terminal.render(
            report,
            verbose=options["verbose"],
            quiet=options["quiet"],
            color=colored(options),
            width=page_width(options),
        )
    else:
        text = rendered(REPORT_FORMATS, options["form"], report)
    if after and options["form"] in ("terminal", "markdown"):
        report_text, _, last = text.rstrip("\n").rpartition("\n")
        text = f"{report_text.rstrip()}\n\n{spoken(after)}\n\n{last}\n"
    write_out(text, options["output"])


COMMAND = check
