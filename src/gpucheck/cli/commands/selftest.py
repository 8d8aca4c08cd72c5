"""``gpucheck selftest``: the run-time self-tests alone."""

from typing import Any

import click

from gpucheck.api.selftests import devices, judge_selftests, selftests_alone, test_names
from gpucheck.api.time_limits import LEAST_OF_SELF_TESTS
from gpucheck.cli.commands.check import show_report
from gpucheck.cli.options import (
    Seconds,
    examples,
    fail_on_option,
    level_option,
    no_redact_option,
    output_options_with,
    report_format_option,
)
from gpucheck.cli.run import live_table, open_host, open_tables, run_probes
from gpucheck.language import say


@click.command(
    short_help=say("Run the self-tests: does PyTorch compute, and correctly?"),
    epilog=examples(
        "gpucheck selftest",
        "gpucheck selftest --level standard --device cuda:0,cuda:2",
        "gpucheck selftest --tests all-reduce,ddp-step",
        "gpucheck selftest --device cpu --ranks 4",
    ),
)
@click.option(
    "--python",
    metavar="PATH",
    help=say("The Python whose PyTorch is tested: an interpreter or a virtual environment."),
)
@click.option(
    "--tests", metavar="NAMES", help=say("Only these, separated by commas: see gpucheck list.")
)
@level_option
@click.option(
    "--device",
    metavar="DEVICES",
    help=say(
        "cpu, or GPUs such as cuda:0,cuda:2; by default every GPU, or the CPU if there is none."
    ),
)
@click.option(
    "--ranks",
    metavar="N",
    type=click.IntRange(min=1, max=64),
    help=say(
        "On the CPU, the number of processes of the tests that run in several; on GPUs there is "
        "one process for each GPU."
    ),
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0, max=2**63 - 1),
    default=0,
    help=say("The seed of all random numbers."),
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=Seconds(LEAST_OF_SELF_TESTS),
    default=300.0,
    show_default=True,
    help=say("Time limit of the whole run."),
)
@fail_on_option
@report_format_option
@no_redact_option
@output_options_with(say("Every measured value and every check; twice: every fact."))
@click.pass_context
def selftest(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Run the self-tests in the target Python: they check every value, within a time limit.

    torch is imported there and computes on every GPU, in separate processes that are ended if they
    take too long. A crash or a hang is a result, and the other tests continue. "gpucheck list"
    names the tests.

    Exit status: 0 all tests passed, 1 a test failed, 3 no test could be run.
    """
    from gpucheck.selftests.plan import Wish  # noqa: PLC0415

    wish = Wish(
        tests=test_names(options["tests"]),
        level=options["level"],
        devices=devices(options["device"]),
        ranks=options["ranks"],
        timeout=options["timeout"],
        seed=options["seed"],
    )
    tables = open_tables(options["tables"])
    host = open_host(None)
    snapshot = run_probes(host, tables, options).snapshot
    with live_table(options) as show:
        snapshot = selftests_alone(host, snapshot, tables, wish, show=show)
    report = judge_selftests(snapshot, tables)
    show_report(report, options)
    ctx.exit(report.exit_status(options["fail_on"]))


COMMAND = selftest
