"""Options that ``gpucheck preflight`` and ``gpucheck node`` share, and their place in the help."""

import click

from gpucheck.interface.spelling import Renamed
from gpucheck.language import say

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
