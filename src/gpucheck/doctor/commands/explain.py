"""``gpucheck explain``: the page of a finding."""

from typing import Any

import click

from gpucheck.interface.options import examples, output_options_with
from gpucheck.interface.spelling import meant, slug_of, with_hint
from gpucheck.interface.text import page_width, printable, write_out
from gpucheck.interface.with_tables import open_tables
from gpucheck.language import say


def _docs_url(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    """Return the address of the site; "" if none is named.

    Raises:
        click.UsageError: it is no plain address, in one sentence.
    """
    if not value:
        return ""
    from gpucheck.facts.secrets import is_plain  # noqa: PLC0415  # rarely named

    if not is_plain(value):
        raise click.UsageError(
            say(
                "--docs-url expects a plain address that begins with https:// or http://: no "
                "login, no spaces and no query."
            )
        )
    return value.rstrip("/")


@click.command(
    short_help=say("Print the page of a finding."),
    epilog=examples("gpucheck explain driver-too-old", "gpucheck list    # all findings"),
)
@click.argument("slug")
@click.option(
    "--docs-url",
    metavar="URL",
    envvar="GPUCHECK_DOCS_URL",
    callback=_docs_url,
    help=say("Where your copy of the documentation site stands ($GPUCHECK_DOCS_URL)."),
)
@output_options_with(say("The sources of the tables by which it is judged."))
def explain(slug: str, docs_url: str, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Print the page of a finding: what it means, its symptoms, its causes and the fix."""
    from gpucheck.output.pages import explain as page_of  # noqa: PLC0415

    tables = open_tables(options["tables"]) if options["verbose"] else None
    page = page_of(slug_of(slug), page_width(options), docs_url, tables)
    if page is None:
        from gpucheck.findings import all_rules  # noqa: PLC0415

        near = meant(slug, all_rules()) or say("See gpucheck list.")
        refused = say("there is no finding called {slug}.", slug=repr(printable(slug)))
        raise click.UsageError(with_hint(refused, near))
    write_out(page, options["output"])


COMMAND = explain
