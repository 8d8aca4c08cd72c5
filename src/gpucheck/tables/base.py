"""What all tables have in common: rows with sources, and one JSON form."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

OperatingSystem = Literal["linux", "windows"]
VersionText = Annotated[str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9}){0,7}$(?!\n)", max_length=64)]
"""A column that is computed with: ``versions.numbers`` takes it."""
Specifier = Annotated[
    str,
    Meta(
        pattern=r"^((^|, ?)(==|!=|<=|>=|~=|<|>) ?"
        r"[0-9]{1,9}(\.[0-9]{1,9}){0,7}(\.\*|[a-z][0-9a-z.]*)?)*$(?!\n)",
        max_length=200,
    ),
]
"""A column that ``packaging`` reads as a specifier: ``>=2.1,<2.5``."""
Branch = Annotated[str, Meta(pattern=r"^[0-9]{1,4}$(?!\n)")]
"""The number of a driver branch."""


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """A public document or artefact from which a fact was read, and the day (YYYY-MM-DD)."""

    title: str
    read: str


class Row(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A fact. A missing column means that the value is unknown, not that the answer is no."""

    source: tuple[str, ...]
    confirmed: bool = True
    note: str = ""


class Table(Struct, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A table: `name` is that of its file, `sources` describes the ids in `Row.source`."""

    name: ClassVar[str]
    table: str
    sources: dict[str, Source]
    rows: tuple[Row, ...]

    def titles(self, row: Row) -> tuple[str, ...]:
        """Return the titles of the sources of a row."""
        return tuple(self.sources[key].title for key in row.source if key in self.sources)


def serialise(table: Table) -> str:
    """Return the one JSON form of a table: one line per source, one line per row."""
    sources = [f"  {_line(key)}: {_line(source)}" for key, source in sorted(table.sources.items())]
    rows = [f"  {_line(row)}" for row in table.rows]
    return "\n".join(
        (
            f'{{"table": {_line(table.table)},',
            ' "sources": {',
            ",\n".join(sources),
            " },",
            ' "rows": [',
            ",\n".join(rows),
            " ]}",
            "",
        ),
    )


def _line(value: object) -> str:
    import json  # noqa: PLC0415  # only needed to write a table; msgspec reads it

    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
