"""``gpucheck baseline lock``, earlier ``gpucheck env lock``: the packages of what works."""

from typing import Any

import click

from gpucheck.doctor.run import load_snapshot, open_host, open_tables, run_probes
from gpucheck.interface.options import (
    examples,
    language_before,
    machine_options,
    output_options,
    tables_before,
)
from gpucheck.interface.spelling import CommandGroup, OneOf
from gpucheck.interface.text import UsageRefusedError, words_of, write_out
from gpucheck.language import say


@click.group(
    "env",
    cls=CommandGroup,
    short_help=say("Write down the packages of an environment that works."),
    epilog=examples(
        "gpucheck baseline lock -o torch-lock.txt",
        "gpucheck recommend --like torch-lock.txt      # on another machine",
    ),
)
@tables_before
@language_before
def env() -> None:
    """Write down the packages of an environment that works, to install them elsewhere."""


@env.command(
    short_help=say("The packages that matter to PyTorch, as a file for pip, uv or conda."),
    epilog=examples(
        "gpucheck baseline lock -o torch-lock.txt",
        "gpucheck baseline lock --tool conda -o torch-lock.txt",
        "gpucheck baseline lock --from report.json          # of a saved state",
    ),
)
@click.option(
    "--from",
    "saved",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help=say("A saved snapshot or report, instead of this machine."),
)
@click.option("--tool", type=OneOf(["pip", "uv", "conda"]), default="pip", show_default=True)
@machine_options
@output_options
def lock(**options: Any) -> None:  # noqa: ANN401  # click's options
    """Print the packages that matter to PyTorch with their exact versions.

    pip and uv take the file as requirements (-r) or constraints (-c), conda by --file.
    """
    from gpucheck.output import lock as locking  # noqa: PLC0415

    if options["saved"]:
        snapshot = load_snapshot(options["saved"])
    else:
        tables = open_tables(options["tables"])
        snapshot = run_probes(open_host(options["sysroot"]), tables, options).snapshot
    try:
        text = locking.text(snapshot, options["tool"])
    except locking.LockError as error:
        raise UsageRefusedError(words_of(error)) from error
    write_out(text, options["output"])


COMMAND = env
