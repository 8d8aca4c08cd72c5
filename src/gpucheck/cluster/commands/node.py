"""``gpucheck node``: is this node fit for jobs?"""

from typing import Any

import click

from gpucheck.cluster.pages import FORMATS
from gpucheck.cluster.request import (
    FILES,
    PreflightRequest,
    Sectioned,
    bundle_option,
    metrics_option,
    run_log_option,
)
from gpucheck.interface.options import (
    Seconds,
    examples,
    fail_on_option,
    format_option_of,
    options_of,
    preflight_output_options,
)
from gpucheck.interface.request import LEAST_OF_A_JOB
from gpucheck.language import say
from gpucheck.machine import waker


@click.command(
    cls=Sectioned,
    sections={FILES: ("run_log", "metrics", "bundle")},
    short_help=say("Is this node fit for jobs? For a Prolog or a health check."),
    epilog=examples(
        "gpucheck node --gpus 8",
        "gpucheck node --gpus 8 --tests none      # starts nothing on the GPUs",
        "gpucheck node --gpus 8 --level standard  # all of them together",
        "gpucheck node --gpus 8 --format json -o report.json",
    ),
)
@options_of(
    PreflightRequest,
    "python", "tests", "level", "device", "ranks", "gpus", "require", "baseline", "drill",
)  # fmt: skip
@run_log_option
@metrics_option
@bundle_option
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=Seconds(LEAST_OF_A_JOB),
    help=say("Time limit of the whole run; by default 10, and 90 above the quick level."),
)
@fail_on_option
@format_option_of(FORMATS)
@preflight_output_options
@click.pass_context
def node(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Check whether this node is fit for jobs, whatever launcher or job it is in.

    It prints one line, a reason to drain the node. The quick level takes 10 seconds at most;
    --tests none starts nothing on the GPUs. --level standard tests the GPUs of the node together,
    as a pre-flight does, and only then the single files are written. -o has the whole report.

    Exit status: 0 fit, or unknown; 1 the node itself is at fault; 2 usage error.
    """
    begun = waker.begun()
    from gpucheck.cluster.request import refuse_windows  # noqa: PLC0415

    refuse_windows()
    from gpucheck.cluster.node_command import run  # noqa: PLC0415  # --help does not need it

    ctx.exit(run(options, begun))


COMMAND = node
