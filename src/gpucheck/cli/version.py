"""``gpucheck --version``: one line, or data for programs."""

import sys
from typing import TYPE_CHECKING, Any

import click

from gpucheck._about import VERSION
from gpucheck.interface.options import tables_asked_for
from gpucheck.interface.spelling import OneOf
from gpucheck.language import say

if TYPE_CHECKING:
    from collections.abc import Callable

_FORM = "gpucheck.version-format"


def _remember(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    ctx.meta[_FORM] = value


def _show(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if not value or ctx.resilient_parsing:
        return
    if ctx.meta.get(_FORM) == "json":
        from gpucheck.interface.text import in_the_words_of_click  # noqa: PLC0415
        from gpucheck.output.json_text import json_text  # noqa: PLC0415

        with in_the_words_of_click():
            click.echo(json_text(_as_data(tables_asked_for(ctx))), nl=False)
    else:
        click.echo(f"gpucheck {VERSION}")
    ctx.exit()


def version_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Add ``--version``, and the format in which it answers."""
    # What is eager is read first, wherever it stands.
    form = click.option(
        "--format",
        type=OneOf(["terminal", "json"]),
        is_eager=True,
        expose_value=False,
        callback=_remember,
        help=say("With --version: as text, or as data for programs."),
    )
    version = click.option(
        "--version",
        is_flag=True,
        expose_value=False,
        callback=_show,
        help=say("Show the version and exit."),
    )
    return form(version(command))


def _as_data(tables: str | None) -> dict[str, Any]:
    """Return the versions of gpucheck, its tables, its Python, and of what it writes."""
    from gpucheck.interface.with_tables import open_tables  # noqa: PLC0415
    from gpucheck.programs.schema import versions_of_schemas  # noqa: PLC0415

    index = open_tables(tables, whole=False).index()
    return {
        "schema": "gpucheck.version/1",
        "gpucheck": VERSION,
        "tables": {"version": index.version, "date": index.date},
        "python": ".".join(map(str, sys.version_info[:3])),
        "schemas": versions_of_schemas(),
    }
