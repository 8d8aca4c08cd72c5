"""``gpucheck demo``: what gpucheck says of recorded machines, for whoever has no GPU at hand."""

from typing import Any

import click

from gpucheck.interface.options import (
    REPORT_FORMATS,
    examples,
    format_option_of,
    output_options_with,
)
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import colored, page_width, write_out
from gpucheck.language import say
from gpucheck.programs.demo.catalogue import DEMOS, Demo

_NAME_COLUMN = 2 + max(map(len, DEMOS))


@click.command(
    short_help=say("Show what gpucheck says of recorded machines; needs no GPU."),
    epilog=examples(
        "gpucheck demo                    # what can be shown",
        "gpucheck demo rtx5090",
        "gpucheck demo preflight-hang --format html -o hang.html",
    ),
)
@click.argument("name", metavar="[NAME]", required=False, type=OneOf(list(DEMOS)))
@format_option_of(REPORT_FORMATS)
@output_options_with(say("Every check with its reason; twice: every fact."))
def demo(name: str | None, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Show what gpucheck says of a recorded machine; without NAME, list what can be shown.

    The machines are some of those that gpucheck is tested with. They are judged now, as "gpucheck
    check --machine" does it; nothing on this machine is looked at.

    Exit status: 0, whatever is wrong with the machine. The line of the command says with which
    status that one would end.
    """
    if name is None:
        if options["form"] != "terminal":
            raise click.UsageError(say("--format needs the NAME of what is to be shown."))
        write_out(_listing(options), options["output"])
        return
    from gpucheck.programs.demo.showing import shown  # noqa: PLC0415  # --help does not need it

    found = shown(name, options)
    heading = "" if options["quiet"] else _heading(DEMOS[name], found.status, options)
    is_page = options["form"] == "terminal"
    if heading and not is_page:
        click.echo(heading, err=True)
    write_out(f"{heading}\n{found.text}" if heading and is_page else found.text, options["output"])


def _listing(options: dict[str, Any]) -> str:
    from gpucheck.output.layout import Page  # noqa: PLC0415

    page = Page(page_width(options), color=colored(options))
    page.words(say("What gpucheck can show without a GPU: gpucheck demo NAME"))
    page.blank()
    for name, entry in DEMOS.items():
        page.columns([(name, _NAME_COLUMN, "bold")], entry.title, indent=2)
    return page.text()


def _heading(entry: Demo, status: int, options: dict[str, Any]) -> str:
    """Return what is shown, where it comes from, and the command that a user would have typed."""
    from gpucheck.output.layout import Page  # noqa: PLC0415

    page = Page(page_width(options), color=colored(options))
    page.labelled(say("Demo"), entry.title)
    page.labelled("", entry.origin)
    page.blank()
    page.verbatim(
        say("$ {command}    # exit status {status}", command=entry.command, status=status)
    )
    return page.text()


COMMAND = demo
