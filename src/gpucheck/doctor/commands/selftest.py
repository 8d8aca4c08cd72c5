"""``gpucheck selftest``: the run-time self-tests alone."""

from typing import Any

import click

from gpucheck.doctor.commands.check import show_report
from gpucheck.doctor.run import listening, open_host, open_tables, run_probes
from gpucheck.doctor.selftests import SelftestRequest, judge_selftests, selftests_alone
from gpucheck.interface.options import (
    Seconds,
    examples,
    fail_on_option,
    no_redact_option,
    options_of,
    output_options_with,
    report_format_option,
)
from gpucheck.interface.request import LEAST_OF_SELF_TESTS
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
@options_of(SelftestRequest)
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
    names = SelftestRequest.__struct_fields__
    wish = SelftestRequest(**{name: options[name] for name in names}).wish()
    tables = open_tables(options["tables"])
    host = open_host(None)
    snapshot = run_probes(host, tables, options).snapshot
    with listening(options) as listener:
        snapshot = selftests_alone(host, snapshot, tables, wish, show=listener.tests)
    report = judge_selftests(snapshot, tables)
    show_report(report, options)
    ctx.exit(report.exit_status(options["fail_on"]))


COMMAND = selftest
