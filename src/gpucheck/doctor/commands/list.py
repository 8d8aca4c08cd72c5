"""``gpucheck list``: all findings and probes."""

from typing import Any

import click

from gpucheck.interface.options import examples, output_options
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import colored, page_width, write_out
from gpucheck.language import say


@click.command(
    "list",
    short_help=say("List all findings and probes."),
    epilog=examples("gpucheck list", "gpucheck list --format json -o findings.json"),
)
@click.option("--format", "form", type=OneOf(["terminal", "json"]), default="terminal")
@output_options
def list_all(**options: Any) -> None:  # noqa: ANN401  # click's options
    """List every finding that gpucheck can name, and every probe."""
    from gpucheck.output.pages import listing, listing_json  # noqa: PLC0415

    if options["form"] == "json":
        from gpucheck.output.json_text import json_text  # noqa: PLC0415

        write_out(json_text(listing_json()), options["output"])
    else:
        write_out(listing(page_width(options), color=colored(options)), options["output"])


COMMAND = list_all
