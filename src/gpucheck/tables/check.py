"""Problems in a folder of tables whose files can all be read."""

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
        *(f"{INDEX} does not list {name}.json." for name in sorted(present - listed)),
        *(f"{INDEX} lists {name}.json, which is not there." for name in sorted(listed - present)),
        *(
            f"{name}.json is no table this gpucheck knows."
            for name in sorted(listed - set(all_tables()))
        ),
        *(
            f"{INDEX} does not list {name}, which is needed."
            for name in sorted(set(all_tables()) - listed)
        ),
    ]


def _table(tables: Tables, name: str) -> list[str]:
    try:
        table = tables.get(all_tables()[name])
    except TablesError as error:
        return [str(error)]
    found = []
    for number, row in enumerate(table.rows, start=1):
        unknown = [key for key in row.source if key not in table.sources]
        if unknown or not row.source:
            found.append(f"{name}.json, row {number} has no source or an unknown one: {unknown}.")
    used = {key for row in table.rows for key in row.source}
    found += [
        f"{name}.json: no row uses the source {key}." for key in table.sources if key not in used
    ]
    text = (tables.directory / f"{name}.json").read_text(encoding="utf-8")
    if text != serialise(table):
        found.append(f"{name}.json is not written in the form that serialise() gives it.")
    return found
