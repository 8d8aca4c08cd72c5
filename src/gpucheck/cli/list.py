"""``gpucheck list``: all findings and probes."""

import json
from typing import Any

import click

from gpucheck.cli.options import examples, output_options
from gpucheck.cli.spelling import OneOf
from gpucheck.cli.text import colored, page_width, write_out


@click.command(
    "list",
    short_help="List all findings and probes.",
    epilog=examples("gpucheck list", "gpucheck list --format json -o findings.json"),
)
@click.option("--format", "form", type=OneOf(["terminal", "json"]), default="terminal")
@output_options
def list_all(**options: Any) -> None:  # noqa: ANN401  # click's options
    """List every finding that gpucheck can name, and every probe."""
    from gpucheck.output.pages import listing, listing_json  # noqa: PLC0415

    if options["form"] == "json":
        write_out(json.dumps(listing_json(), indent=2) + "\n", options["output"])
    else:
        write_out(listing(page_width(options), color=colored(options)), options["output"])


COMMAND = list_all
