"""Compatibility tables as aligned text and as JSON-like data, and differences between sets."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

import msgspec
from msgspec import Struct

from gpucheck.language import say, say_many, spoken
from gpucheck.language.columns import padded, page_columns, width_of
from gpucheck.output.layout import Page
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.words import clean, document, headed
from gpucheck.tables import Row, Table, Tables
from gpucheck.tables.check import all_tables

_APART = ("source", "note")
"""Columns of every table that are too long for the aligned columns."""
_WIDEST = 40  # chosen: two or three columns fit a terminal; longer cells are cut
_MOST_NEAR = 5  # chosen: a question with more is none
_MOST_HEIRS = 100
"""Rows of a subject among which the one is sought that a row became."""
DIFF_SCHEMA = "gpucheck.tables-diff/1"

How = Literal["added", "removed", "changed"]
Data = dict[str, Any]


class TableSize(Struct, frozen=True):
    """A table and the number of its rows."""

    name: str
    rows: int


class RowChange(Struct, frozen=True, kw_only=True):
    """A row that only one set has, or that both have with different values."""

    table: str
    change: How
    before: Data | None
    after: Data | None


def list_tables(tables: Tables) -> list[TableSize]:
    """Return every table with its size."""
    return [
        TableSize(name, len(tables.get(kind).rows)) for name, kind in sorted(all_tables().items())
    ]


def listing(
    tables: Tables,
    found: Sequence[TableSize],
    *,
    brought: bool = False,
    color: bool,
    width: int | None = None,
) -> str:
    """Return the list of tables as text. ``brought``: gpucheck tables update has brought them."""
    page = Page(width, color=color)
    page.words(
        say("Compatibility tables {version} of {date}", version=tables.version, date=tables.date),
        style="bold",
    )
    if brought:
        page.words(
            say(
                "Brought by gpucheck tables update, in {folder}. The way back: gpucheck tables "
                "reset",
                folder=tables.directory,
            )
        )
    for size in found:
        page.columns(
            [(size.name, 24, "")], say_many(size.rows, "{count} row", "{count} rows"), indent=2
        )
    return page.text()


def listing_json(tables: Tables, found: Sequence[TableSize]) -> Data:
    """Return the list of tables as JSON-like data."""
    return {
        "version": tables.version,
        "date": tables.date,
        "directory": str(tables.directory),
        "tables": msgspec.to_builtins(list(found)),
    }


def columns(table: Table) -> list[str]:
    """Return the columns that rows of a table fill: single values first, then lists, then notes."""
    fields = dict.fromkeys(
        field for row in table.rows for field in type(row).__struct_encode_fields__
    )
    filled: dict[str, object] = {}
    for row in table.rows:
        filled.update(_data(row))
    tag = [] if "kind" in fields else ["kind"]  # for a table with rows of several kinds
    present = [field for field in (*tag, *fields) if field in filled]
    return sorted(present, key=lambda field: _place(field, filled[field]))


def matching(table: Table, wanted: Sequence[tuple[str, str]]) -> list[Row]:
    """Return the rows that have each of these values in its column, or in its list."""
    return [row for row in table.rows if all(_has(_data(row), *pair) for pair in wanted)]


def near_values(table: Table, key: str, wanted: str) -> list[str]:
    """Return up to five values of a column that are similar to a value that no row has."""
    values = dict.fromkeys(
        _cell(value)
        for row in table.rows
        for value in _several(_data(row).get(key))
        if value is not None
    )
    begins = [v for v in values if v and (wanted.startswith(v) or v.startswith(wanted))]
    inside = [v for v in values if wanted.lower() in v.lower()]
    alike = get_close_matches(wanted, list(values), n=_MOST_NEAR)
    return (sorted(begins, key=len, reverse=True) or inside or alike)[:_MOST_NEAR]


def rows_text(
    table: Table, rows: Sequence[Row], *, sources: bool, color: bool, width: int | None = None
) -> str:
    """Return rows as text, each with its notes and sources.

    Columns are aligned, unless that is too wide for the terminal (``width``, None without one).
    """
    page = Page(width, color=color)
    found = [_data(row) for row in rows]
    shown = [
        name for name in columns(table) if name not in _APART and any(name in d for d in found)
    ]
    cells = [[spoken(_cell(data.get(name))) for name in shown] for data in found]
    widths = [
        min(_WIDEST, max(width_of(name), *(width_of(line[at]) for line in cells)))
        for at, name in enumerate(shown)
    ]
    aligned = width is None or sum(widths) + 2 * len(widths) <= page_columns(width)
    if found and aligned:
        page.verbatim(_aligned(shown, widths), style="bold")
    for row, data, line in zip(rows, found, cells, strict=True):
        if aligned:
            page.verbatim(_aligned(line, widths))
        else:
            named_cells = [f"{name} {cell}" for name, cell in zip(shown, line, strict=True) if cell]
            page.words("; ".join(named_cells), hang=2)
        if note := data.get("note"):
            page.words(clean(note), lead=with_colon(say("note")), indent=4)
        if sources:
            for source in (table.sources[key] for key in row.source if key in table.sources):
                words = document(source.title, source.url, source.read)
                page.words(words, lead=with_colon(say("source")), indent=4)
    all_rows = len(table.rows)
    page.words(say("{found} of {rows} rows", found=len(found), rows=all_rows), style="dim")
    return page.text()


def rows_json(table: Table, rows: Sequence[Row]) -> Data:
    """Return rows as JSON-like data, with the sources they name."""
    used = {key for row in rows for key in row.source}
    return {
        "table": table.table,
        "sources": {
            key: msgspec.to_builtins(source) for key, source in table.sources.items() if key in used
        },
        "rows": [_data(row) for row in rows],
    }


def compare(ours: Tables, theirs: Tables) -> list[RowChange]:
    """Return the rows that the second set adds, removes or changes."""
    return [
        change
        for name, kind in sorted(all_tables().items())
        for change in _compared(name, ours.get(kind), theirs.get(kind))
    ]


def changes_text(changes: Sequence[RowChange], *, color: bool, width: int | None = None) -> str:
    """Return the changes as text, the table above its rows."""
    page = Page(width, color=color)
    if not changes:
        page.words(say("No row differs."))
    table = ""
    for change in changes:
        if change.table != table:
            table = change.table
            page.heading(table)
        if change.change == "changed":
            page.words(_changed(change.before or {}, change.after or {}), lead="~ ", indent=2)
        else:
            sign = "+ " if change.change == "added" else "- "
            page.words(_row_words(change.after or change.before or {}), lead=sign, indent=2)
    return page.text()


def changes_json(changes: Sequence[RowChange]) -> Data:
    """Return the changes as JSON-like data."""
    return {"schema": DIFF_SCHEMA, "changes": msgspec.to_builtins(list(changes))}


def _place(field: str, value: object) -> int:
    if field in (*_APART, "confirmed"):
        return 2
    return int(isinstance(value, list | tuple | dict))


def _compared(name: str, ours: Table, theirs: Table) -> list[RowChange]:
    """Pair rows that only one table has by their subject; the others were added or removed."""
    before = [data for row in ours.rows if (data := _data(row))]
    after = [data for row in theirs.rows if (data := _data(row))]
    ours_said, theirs_said = set(map(_whole, before)), set(map(_whole, after))
    new = {at: data for at, data in enumerate(after) if _whole(data) not in ours_said}
    heirs: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for at, data in new.items():
        heirs.setdefault(_subject(data), []).append(at)
    found = []
    for data in before:
        if _whole(data) in theirs_said:
            continue
        nearest = _nearest(data, heirs.get(_subject(data), []), new)
        heir = None if nearest is None else new.pop(nearest)
        change: How = "removed" if heir is None else "changed"
        found.append(RowChange(table=name, change=change, before=data, after=heir))
    added = [
        RowChange(table=name, change="added", before=None, after=data) for data in new.values()
    ]
    return found + added


def _nearest(data: Data, heirs: list[int], new: Mapping[int, Data]) -> int | None:
    """Take the row that has most values of this one from the first few of its subject."""
    if not heirs:
        return None
    at = max(
        heirs[:_MOST_HEIRS],
        key=lambda heir: sum(data.get(key) == value for key, value in new[heir].items()),
    )
    heirs.remove(at)
    return at


def _whole(data: Data) -> str:
    """Return a row as a text that only an equal row has."""
    return json.dumps(data, sort_keys=True)


def _subject(data: Data) -> tuple[tuple[str, str], ...]:
    """Return what a row is about: its first two columns of plain text."""
    words = [(k, v) for k, v in data.items() if isinstance(v, str | int) and k not in _APART]
    return tuple((key, str(value)) for key, value in words[:2])


def _changed(before: Data, after: Data) -> str:
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    about = " ".join(value for _key, value in _subject(after))
    changes = [f"{key}: {_cell(before.get(key))} -> {_cell(after.get(key))}" for key in keys]
    return headed(clean(about), "; ".join(changes))


def _row_words(data: Data) -> str:
    shown = [f"{key}={_cell(value)}" for key, value in data.items() if key not in _APART]
    return ", ".join(shown)


def _data(row: Row) -> Data:
    data: Data = msgspec.to_builtins(row)
    return data


def _has(data: Data, key: str, value: str) -> bool:
    found = data.get(key, True if key == "confirmed" else None)
    if isinstance(found, list | tuple | dict):
        return value in [str(item) for item in found]
    return found is not None and value in (_cell(found), str(found), str(found).lower())


def _cell(value: object) -> str:
    """Return a value in one line; "" if the table does not have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, list | tuple):
        return clean(" ".join(str(item) for item in value))
    if isinstance(value, dict):
        return clean(", ".join(f"{key}: {_cell(item)}" for key, item in value.items()))
    return clean(str(value))


def _several(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else (value,)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        padded(cell, width) for cell, width in zip(cells, widths, strict=True)
    ).rstrip()
