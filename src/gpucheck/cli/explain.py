"""``gpucheck explain``: the page of a finding."""

from typing import Any

import click

from gpucheck.cli.options import examples, output_options
from gpucheck.cli.spelling import meant, slug_of, with_hint
from gpucheck.cli.text import page_width, printable, write_out
from gpucheck.language import say


@click.command(
    short_help=say("Print the page of a finding."),
    epilog=examples("gpucheck explain driver-too-old", "gpucheck list    # all findings"),
)
@click.argument("slug")
@output_options
def explain(slug: str, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Print the page of a finding: what it means, its symptoms, its causes and the fix."""
    from gpucheck.output.pages import explain as page_of  # noqa: PLC0415

    page = page_of(slug_of(slug), page_width(options))
    if page is None:
        from gpucheck.findings import all_rules  # noqa: PLC0415

        near = meant(slug, all_rules()) or say("See gpucheck list.")
        refused = say("there is no finding called {slug}.", slug=repr(printable(slug)))
        raise click.UsageError(with_hint(refused, near))
    write_out(page, options["output"])


COMMAND = explain
