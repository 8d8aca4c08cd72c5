"""All tables by name, found in the modules of this package: none is listed by hand."""

import functools
import importlib

import gpucheck.tables
from gpucheck._about import modules_of
from gpucheck.tables.base import Table


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
