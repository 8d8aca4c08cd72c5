"""``gpucheck preflight``: the gate of a cluster job."""

from typing import Any

import click
from click.core import ParameterSource

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

_FILES = ("each", "exclude_file", "good_file", "run_log", "status_file", "metrics", "bundle")


@click.command(
    cls=Sectioned,
    sections={FILES: _FILES},
    short_help=say("Before a job: can all its GPUs and nodes work together?"),
    epilog=examples(
        "gpucheck preflight                       # the GPUs of this machine",
        "srun gpucheck preflight --gpus 8 --require min-driver=570",
        "torchrun --standalone --nproc-per-node 8 --no-python gpucheck preflight",
        "gpucheck preflight --device cpu --ranks 4 --drill hang:rank=3",
        "srun gpucheck preflight --out-dir run-1  # report, hosts, status, ranks",
    ),
)
@options_of(
    PreflightRequest,
    "python", "tests", "level", "device", "ranks", "master", "port", "nodes",
)  # fmt: skip
@click.option("--node", is_flag=True, hidden=True)  # what gpucheck node is now
@options_of(PreflightRequest, "gpus", "require", "baseline", "links")
@click.option(
    "--out-dir",
    metavar="DIR",
    help=say("Write all files about this run into this folder, which is made if necessary."),
)
@click.option("--each", metavar="DIR", help=say("Each task writes what it saw into this folder."))
@click.option(
    "--exclude-file",
    metavar="FILE",
    help=say("Write the bad hosts in the form that srun --exclude expects."),
)
@click.option(
    "--good-file",
    metavar="FILE",
    help=say("Write the hosts that passed as srun --nodelist takes them."),
)
@run_log_option
@click.option(
    "--history",
    metavar="FILE",
    help=say("Test nothing; show which nodes the runs recorded in FILE have named."),
)
@click.option(
    "--status-file",
    metavar="FILE",
    help=say("Write the exit status here: a launcher may return another one."),
)
@metrics_option
@bundle_option
@options_of(PreflightRequest, "drill")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=Seconds(LEAST_OF_A_JOB),
    default=300.0,
    show_default=True,
    help=say("Time limit of the whole run, on every task."),
)
@fail_on_option
@format_option_of(FORMATS)
@preflight_output_options
@click.pass_context
def preflight(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Test all GPUs of a job together, and name the rank, GPU, node or link that is broken.

    Alone it tests the GPUs of this machine. Under torchrun (--no-python), srun, mpirun or in an
    indexed Job it is one process of each task or node, and all of them end with the same status.
    It never hangs: every step has a deadline, and --timeout bounds the whole run.

    Exit status: 0 good, 1 a culprit is named, 4 misconfigured, 5 slow only, 3 inconclusive (time
    ran out, or nobody can be named), 2 usage error.
    """
    begun = waker.begun()
    if options["history"] is not None:
        from gpucheck.cluster.history_command import show  # noqa: PLC0415

        show(options)
        return
    from gpucheck.cluster.request import refuse_windows  # noqa: PLC0415

    refuse_windows()
    if options.pop("node"):
        from gpucheck.cluster.node_command import run  # noqa: PLC0415

        if ctx.get_parameter_source("timeout") is ParameterSource.DEFAULT:
            options["timeout"] = None
        ctx.exit(run(options, begun))
    with waker.beside(begun + options["timeout"]):
        from gpucheck.cluster.run_command import run  # noqa: PLC0415  # --help does not need it

        status = run(options, begun)
    ctx.exit(status)


COMMAND = preflight
