"""What may be asked of a pre-flight; the field's names are those of its options."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import click
import msgspec

from gpucheck.interface.errors import RefusedError
from gpucheck.interface.request import Level, Option
from gpucheck.interface.spelling import Renamed
from gpucheck.language import say

# Where a pre-flight can run; nothing of it is imported for this.

_WINDOWS = os.name == "nt"


def refuse_windows() -> None:
    """Refuse a pre-flight where its sockets, signals and processes do not exist.

    Raises:
        RefusedError: this is Windows.
    """
    if _WINDOWS:
        raise RefusedError(say("The pre-flight runs on Linux, not on Windows."))


class PreflightRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants."""

    python: Annotated[
        str | None,
        Option(
            say(
                "The Python whose PyTorch the job will use: an interpreter or a virtual "
                "environment."
            ),
            "PATH",
        ),
    ] = None
    tests: Annotated[
        str | None, Option(say("The self-tests of each GPU alone: see gpucheck list."), "NAMES")
    ] = None
    level: Level = "quick"
    device: Annotated[
        Literal["cuda", "cpu"],
        Option(say("The ranks are GPUs, or processes on the CPU (over gloo).")),
    ] = "cuda"
    ranks: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=256),
            Option(
                say("With --device cpu: how many ranks this process starts; 1 under a launcher."),
                "N",
            ),
        ]
        | None
    ) = None
    master: Annotated[
        str,
        Option(
            say(
                "Where task 0 runs, if the launcher does not say it; MASTER_ADDR and MASTER_PORT "
                "do the same."
            ),
            "HOST[:PORT]",
        ),
    ] = ""
    port: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=65535),
            Option(
                say("Port of task 0's store; by default one of the eight ports after MASTER_PORT."),
                "PORT",
            ),
        ]
        | None
    ) = None
    nodes: (
        Annotated[
            int, msgspec.Meta(ge=1, le=1_000_000), Option(say("How many nodes the job has."), "N")
        ]
        | None
    ) = None
    gpus: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=1024),
            Option(
                say("How many GPUs each node must have: the same as --require gpus-per-node=N."),
                "N",
            ),
        ]
        | None
    ) = None
    require: Annotated[
        tuple[str, ...],
        Option(
            say("A requirement, such as gpus-per-node=8 or min-busbw=400; repeatable."),
            "FILE|KEY=VALUE",
        ),
    ] = ()
    baseline: (
        Annotated[
            Literal["save", "compare"],
            Option(say("Save this node's rates, or compare with saved ones.")),
        ]
        | None
    ) = None
    links: Annotated[
        bool, Option(say("Test every link between nodes: a round for each node but one."))
    ] = False
    drill: Annotated[
        tuple[str, ...],
        Option(
            say(
                "Inject a fault on purpose, to see whether it is found: hang:rank=3, wrong:rank=5, "
                "crash:rank=1, slow:rank=2,factor=5, stop:rank=4, absent:rank=6, link:0-3. Never "
                "exits with 0."
            ),
            "FAULT",
        ),
    ] = ()
    timeout: float = 300.0
    fail_on: Literal["error", "warning", "never"] = "error"


# Options that ``gpucheck preflight`` and ``gpucheck node`` share, and their place in the help.

# The help of a command with many options: some of them stand under a heading of their own.

_WIDEST = 30  # as in click: a longer one has a line of its own


class Sectioned(click.Command):
    """A command whose help lists some options under other headings than "Options".

    Args:
        args: of click.
        sections: for each heading the names of its parameters.
        more: of click.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401  # click's
        sections: Mapping[str, Sequence[str]],
        **more: Any,  # noqa: ANN401  # click's
    ) -> None:
        super().__init__(*args, **more)
        self._sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then those of each section."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        elsewhere = {name for names in self._sections.values() for name in names}
        usual = [name for name in records if name not in elsewhere]
        column = min(_WIDEST, max(len(row[0]) for row in records.values() if row is not None))
        for heading, names in {say("Options"): usual, **self._sections}.items():
            rows = [row for name in names if (row := records[name]) is not None]
            with formatter.section(heading):
                formatter.write_dl([(option.ljust(column), words) for option, words in rows])


FILES = say("Single files")
"""The heading of the options for one file each; ``--out-dir`` has all of them."""
run_log_option = click.option(
    "--run-log",
    cls=Renamed,
    earlier="--record",  # which is a recorded machine everywhere else
    metavar="FILE",
    help=say("Add a line of JSON about this run, for preflight --history."),
)
metrics_option = click.option(
    "--metrics",
    metavar="FILE",
    help=say("Write figures for Prometheus' textfile collector."),
)
bundle_option = click.option(
    "--bundle",
    metavar="FILE",
    help=say("Write an archive for a ticket, without your names."),
)
