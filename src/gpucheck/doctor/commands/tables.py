"""``gpucheck tables``: the compatibility tables themselves."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.doctor.run import open_tables, refuse_broken
from gpucheck.interface.options import (
    examples,
    language_before,
    output_options,
    output_options_with,
    tables_before,
)
from gpucheck.interface.spelling import CommandGroup, OneOf, meant, there_are, with_hint
from gpucheck.interface.text import colored, page_width, printable, write_out
from gpucheck.interface.with_tables import updated_tables
from gpucheck.language import in_series, say, spoken

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.tables import Table, Tables

# Exit statuses: 1 where something was found, as everywhere.
_PROBLEMS = 1
_DIFFERENT = 1
_form = click.option("--format", "form", type=OneOf(["terminal", "json"]), default="terminal")


@click.group(
    "tables",
    cls=CommandGroup,
    short_help=say("Show, check, compare and update the compatibility tables."),
    epilog=examples(
        "gpucheck tables show",
        "gpucheck tables show torch_builds torch=2.9.1",
        "gpucheck tables check",
    ),
)
@tables_before
@language_before
def tables_group() -> None:
    """Show, check, compare and update the compatibility tables that all answers are based on."""


@tables_group.command(
    short_help=say("Print the rows of a table; without NAME, the list of the tables."),
    epilog=examples(
        "gpucheck tables show                 # which tables there are",
        "gpucheck tables show xid xid=79 -v",
    ),
)
@click.argument("name", required=False)
@click.argument("filters", metavar="[KEY=VALUE]...", nargs=-1)
@_form
@output_options_with(say("The sources of each row."))
def show(name: str | None, filters: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401  # click's options
    """Print the rows of a table; without NAME, the list of the tables.

    KEY=VALUE keeps the rows whose column has the value, or whose list contains it. -v adds the
    sources of each row.
    """
    from gpucheck.output import table_text  # noqa: PLC0415

    tables = _checked(options["tables"])
    if name is None:
        listing = table_text.list_tables(tables)
        text = table_text.listing(
            tables,
            listing,
            brought=options["tables"] is None and str(tables.directory) == updated_tables(),
            color=colored(options),
            width=page_width(options),
        )
        _write(table_text.listing_json(tables, listing), text, options)
        return
    table = _named(tables, name)
    wanted = [_filter(table, condition) for condition in filters]
    rows = table_text.matching(table, wanted)
    if not rows and not options["quiet"]:
        click.echo(_hint(table, wanted), err=True, nl=False)
    text = table_text.rows_text(
        table,
        rows,
        sources=bool(options["verbose"]),
        color=colored(options),
        width=page_width(options),
    )
    _write(table_text.rows_json(table, rows), text, options)


@tables_group.command(
    "check",
    short_help=say("Check the tables: files, form, and a known source for every row."),
    epilog=examples(
        "gpucheck tables check",
        "gpucheck tables check --tables mytables/",
        "gpucheck tables check --against-index    # asks the package index",
    ),
)
@click.option(
    "--against-index",
    is_flag=True,
    help=say(
        "Ask the package index that pip is configured for which releases of torch, torchvision, "
        "torchaudio, torchtext and triton the tables lack. Uses the network. If pip's "
        "configuration names no index, --index-url must name one."
    ),
)
@click.option(
    "--index-url",
    metavar="URL",
    help=say("Ask this index instead; with --against-index alone."),
)
@_form
@output_options
@click.pass_context
def check_set(
    ctx: click.Context,
    /,
    *,
    against_index: bool,
    index_url: str | None,
    **options: Any,  # noqa: ANN401  # click's options
) -> None:
    """Check the tables: files, form, and a known source for every row.

    Exit status: 0 no problems, 1 problems, or releases that the tables lack, 2 no readable set of
    tables, or an index that did not answer.
    """
    from gpucheck.tables.check import problems  # noqa: PLC0415

    if index_url is not None and not against_index:
        raise click.UsageError(say("--index-url goes with --against-index."))
    tables = open_tables(options["tables"], whole=False)
    found = [printable(problem) for problem in problems(tables)]
    well = say("Tables {version} of {date}: no problems.", version=tables.version, date=tables.date)
    lines = [spoken(sentence) for sentence in found or [well]]
    answer: dict[str, Any] = {"version": tables.version, "date": tables.date, "problems": found}
    status = _PROBLEMS if found else 0
    if against_index and not found:
        from gpucheck.doctor.against_index import against_index as compare  # noqa: PLC0415

        answer["index"], more, status = compare(tables, index_url)
        lines += map(spoken, more)
    _write(answer, "\n".join((*lines, "")), options)
    ctx.exit(status)


@tables_group.command(
    "diff",
    short_help=say(
        "Compare the tables with those of the folder OTHER, row by row: what OTHER adds or changes."
    ),
    epilog=examples("gpucheck tables diff mytables/"),
)
@click.argument("other", type=click.Path(exists=True, file_okay=False))
@_form
@output_options
@click.pass_context
def diff_sets(ctx: click.Context, /, other: str, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Compare the tables with those of the folder OTHER, row by row: what OTHER adds or changes.

    Exit status: 0 no row differs, 1 some do, 2 one of them cannot be read.
    """
    from gpucheck.output import table_text  # noqa: PLC0415

    changes = table_text.compare(_checked(options["tables"]), _checked(other))
    text = table_text.changes_text(changes, color=colored(options), width=page_width(options))
    _write(table_text.changes_json(changes), text, options)
    ctx.exit(_DIFFERENT if changes else 0)


@tables_group.command(
    short_help=say("Print the folder of the tables in use."),
    epilog=examples("ls $(gpucheck tables path)"),
)
@output_options
def path(**options: Any) -> None:  # noqa: ANN401  # click's options
    """Print the folder of the tables in use."""
    write_out(
        f"{Path(open_tables(options['tables'], whole=False).directory).resolve()}\n",
        options["output"],
    )


@tables_group.command(
    short_help=say("Use newer tables, from a file or an address that you name."),
    epilog=examples(
        "gpucheck tables update gpucheck-tables.zip",
        "gpucheck tables update https://example.org/gpucheck-tables.zip --sha256 HASH",
        "gpucheck tables reset    # back to the tables of this gpucheck",
    ),
)
@click.argument("source", metavar="FILE|URL")
@click.option(
    "--sha256",
    metavar="HASH",
    help=say("The SHA-256 that the file has to have. An address needs one."),
)
@_form
@output_options
def update(source: str, sha256: str | None, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Use newer tables, from a file or an address that you name.

    FILE is a zip file with tables, as a release of gpucheck has one. It is checked as gpucheck
    tables check does, and kept in your data folder ($XDG_DATA_HOME, else ~/.local/share). Uses the
    network only for a URL. gpucheck never updates its tables by itself. A newer gpucheck uses its
    own tables again.

    Exit status: 0 they are in use, 2 they were refused, and nothing has changed.
    """
    from gpucheck.doctor.update_tables import update as bring  # noqa: PLC0415

    updated = bring(source, sha256, open_tables(None, whole=False))
    sentences = [
        say(
            "Tables {version} of {date} are in use now, in {folder}. Before: {before}.",
            version=printable(updated.version),
            date=printable(updated.date),
            folder=updated.folder,
            before=updated.before,
        ),
        say("SHA-256: {sha256}", sha256=updated.sha256),
        say("The way back: gpucheck tables reset"),
    ]
    answer = {field: getattr(updated, field) for field in updated.__struct_fields__}
    _write(answer, "".join(f"{spoken(sentence)}\n" for sentence in sentences), options)


@tables_group.command(
    short_help=say("Go back to the tables of this gpucheck."),
    epilog=examples("gpucheck tables reset"),
)
@output_options
def reset(**options: Any) -> None:  # noqa: ANN401  # click's options
    """Go back to the tables of this gpucheck: remove those of gpucheck tables update."""
    from gpucheck.doctor.update_tables import reset as go_back  # noqa: PLC0415

    had = go_back()
    own = open_tables(None, whole=False)
    words = (
        say("The tables of this gpucheck, {version}, are in use again.", version=own.version)
        if had
        else say("The tables of this gpucheck, {version}, are in use.", version=own.version)
    )
    write_out(f"{spoken(words)}\n", options["output"])


def _write(data: object, text: str, options: dict[str, Any]) -> None:
    if options["form"] == "json":
        from gpucheck.output.json_text import json_text  # noqa: PLC0415

        text = json_text(data)
    write_out(text, options["output"])


def _checked(directory: str | None) -> "Tables":
    """Open tables in which every row can be read and has a known source.

    Raises:
        click.UsageError: one does not; the sentence names it.
    """
    tables = open_tables(directory, whole=False)
    refuse_broken(tables)
    return tables


def _named(tables: "Tables", name: str) -> "Table":
    from gpucheck.tables.check import all_tables  # noqa: PLC0415

    if name not in all_tables():
        near = meant(name, all_tables()) or there_are(sorted(all_tables()))
        refused = say("There is no table {name}.", name=repr(printable(name)))
        raise click.UsageError(with_hint(refused, near))
    return tables.get(all_tables()[name])


def _filter(table: "Table", condition: str) -> tuple[str, str]:
    from gpucheck.output.table_text import columns  # noqa: PLC0415

    key, equals, value = condition.partition("=")
    known = columns(table)
    if not equals or key not in known:
        refused = say(
            "{given} is not KEY=VALUE with a column of this table: {columns}.",
            given=repr(printable(condition)),
            columns=in_series(known),
        )
        raise click.UsageError(with_hint(refused, meant(key, known)))
    return key, value


def _hint(table: "Table", wanted: list[tuple[str, str]]) -> str:
    """Return, for each value that no row has, which values are close to it."""
    from gpucheck.output.table_text import matching, near_values  # noqa: PLC0415

    lines = []
    for key, value in wanted:
        if not matching(table, [(key, value)]):
            near = in_series(
                [printable(near_value) for near_value in near_values(table, key, value)]
            )
            filter_ = f"{key}={printable(value)}"
            if near:
                hint = say(
                    "No row has {filter}. Similar values: {values}.", filter=filter_, values=near
                )
            else:
                hint = say("No row has {filter}.", filter=filter_)
            lines.append(f"{spoken(hint)}\n")
    return "".join(lines)


COMMAND = tables_group
