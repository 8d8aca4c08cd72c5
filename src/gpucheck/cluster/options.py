"""Options that ``gpucheck preflight`` and ``gpucheck node`` share, and their place in the help."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from gpucheck.interface.spelling import Renamed
from gpucheck.language import say

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
