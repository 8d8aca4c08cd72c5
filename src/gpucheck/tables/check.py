"""All tables by name, and the problems in a folder of tables whose files can all be read."""

import contextlib
import functools
import importlib
from collections.abc import Iterator

import gpucheck.tables
from gpucheck._about import modules_of
from gpucheck.language import say
from gpucheck.tables.base import INDEX, Table, Tables, TablesError, serialise

# All tables by name, found in the modules of this package: none is listed by hand.


@functools.cache
def all_tables() -> dict[str, type[Table]]:
    """Return every kind of table by the name of its file in ``compat_tables``, sorted by name."""
    found = {}
    for name in modules_of(gpucheck.tables.__path__):
        module = importlib.import_module(f"{gpucheck.tables.__name__}.{name}")
        for kind in vars(module).values():
            if _is_table(kind) and kind.__module__ == module.__name__:
                found[kind.name] = kind
    return dict(sorted(found.items()))


def _is_table(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Table) and hasattr(kind, "name")


def problems(tables: Tables) -> tuple[str, ...]:
    """Return one sentence for each problem: files, sources and form. Empty if there is none.

    Raises:
        TablesError: index.json itself cannot be read.
    """
    return (
        *untrustworthy(tables),
        *(problem for table in _readable(tables) for problem in _form(tables, table)),
    )


def untrustworthy(tables: Tables) -> tuple[str, ...]:
    """Return the problems because of which rows cannot be read or trusted.

    An unused source and another layout are none of these.

    Raises:
        TablesError: index.json itself cannot be read.
    """
    found = _listing(tables)
    for name in _known(tables):
        try:
            found += _sources(tables.get(all_tables()[name]))
        except TablesError as error:
            found.append(error.args[0])
    return tuple(found)


def _known(tables: Tables) -> list[str]:
    return [name for name in tables.index().tables if name in all_tables()]


def _readable(tables: Tables) -> Iterator[Table]:
    for name in _known(tables):
        with contextlib.suppress(TablesError):
            yield tables.get(all_tables()[name])


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


def _sources(table: Table) -> list[str]:
    """Return which rows have no source, or one that the table does not describe."""
    found: list[str] = []
    for number, row in enumerate(table.rows, start=1):
        unknown = [key for key in row.source if key not in table.sources]
        if unknown or not row.source:
            found.append(
                say(
                    "{name}.json, row {number} has no source or an unknown one: {unknown}.",
                    name=table.name,
                    number=number,
                    unknown=unknown,
                )
            )
    return found


def _form(tables: Tables, table: Table) -> list[str]:
    """Return the sources that no row uses, and whether the file has another layout than ours."""
    used = {key for row in table.rows for key in row.source}
    found: list[str] = [
        say("{name}.json: no row uses the source {key}.", name=table.name, key=key)
        for key in table.sources
        if key not in used
    ]
    text = (tables.directory / f"{table.name}.json").read_text(encoding="utf-8")
    if text != serialise(table):
        found.append(
            say(
                "{name}.json is not written in the form that serialise() gives it.", name=table.name
            )
        )
    return found
