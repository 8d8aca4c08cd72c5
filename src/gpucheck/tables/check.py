"""Problems in a folder of tables whose files can all be read."""

from gpucheck.language import say
from gpucheck.tables.base import serialise
from gpucheck.tables.catalogue import all_tables
from gpucheck.tables.errors import TablesError
from gpucheck.tables.location import INDEX
from gpucheck.tables.store import Tables


def problems(tables: Tables) -> tuple[str, ...]:
    """Return one sentence for each problem: files, sources and form. Empty if there is none.

    Raises:
        TablesError: index.json itself cannot be read.
    """
    found = list(_listing(tables))
    for name in tables.index().tables:
        if name in all_tables():
            found += _table(tables, name)
    return tuple(found)


def _listing(tables: Tables) -> list[str]:
    listed = set(tables.index().tables)
    present = {path.stem for path in tables.directory.glob("*.json") if path.name != INDEX}
    return [
        *(
            say("{index} does not list {name}.json.", index=INDEX, name=name)
            for name in sorted(present - listed)
        ),
        *(
            say("{index} lists {name}.json, which is not there.", index=INDEX, name=name)
            for name in sorted(listed - present)
        ),
        *(
            say("{name}.json is not a table that this gpucheck knows.", name=name)
            for name in sorted(listed - set(all_tables()))
        ),
        *(
            say("{index} does not list {name}, which is needed.", index=INDEX, name=name)
            for name in sorted(set(all_tables()) - listed)
        ),
    ]


def _table(tables: Tables, name: str) -> list[str]:
    try:
        table = tables.get(all_tables()[name])
    except TablesError as error:
        return [error.args[0]]
    found: list[str] = []
    for number, row in enumerate(table.rows, start=1):
        unknown = [key for key in row.source if key not in table.sources]
        if unknown or not row.source:
            found.append(
                say(
                    "{name}.json, row {number} has no source or an unknown one: {unknown}.",
                    name=name,
                    number=number,
                    unknown=unknown,
                )
            )
    used = {key for row in table.rows for key in row.source}
    found += [
        say("{name}.json: no row uses the source {key}.", name=name, key=key)
        for key in table.sources
        if key not in used
    ]
    text = (tables.directory / f"{name}.json").read_text(encoding="utf-8")
    if text != serialise(table):
        found.append(
            say("{name}.json is not written in the form that serialise() gives it.", name=name)
        )
    return found
