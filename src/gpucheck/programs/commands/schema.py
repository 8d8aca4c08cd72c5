"""``gpucheck schema``: the JSON Schemas."""

import json
from typing import Any

import click

from gpucheck.interface.options import examples, output_options
from gpucheck.interface.spelling import meant, there_are, with_hint
from gpucheck.interface.text import printable, write_out
from gpucheck.language import say


@click.command(
    "schema",
    short_help=say("Print a JSON Schema."),
    epilog=examples("gpucheck schema           # the names", "gpucheck schema report"),
)
@click.argument("name", required=False)
@output_options
def show_schema(name: str | None, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Print a JSON Schema; without NAME, the names."""
    from gpucheck.programs.schema import names, schema  # noqa: PLC0415

    if name is None:
        write_out("\n".join(names()) + "\n", options["output"])
    elif name in names():
        write_out(json.dumps(schema(name), indent=2) + "\n", options["output"])
    else:
        near = meant(name, names()) or there_are(names())
        refused = say("there is no schema called {name}.", name=repr(printable(name)))
        raise click.UsageError(with_hint(refused, near))


COMMAND = show_schema
