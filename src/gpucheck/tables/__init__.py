"""The compatibility tables: one module per table, with its row type and its questions."""

from gpucheck.tables.base import OperatingSystem, Row, Source, Table, serialise
from gpucheck.tables.errors import TablesError
from gpucheck.tables.location import tables_dir
from gpucheck.tables.store import Tables

__all__ = [
    "OperatingSystem",
    "Row",
    "Source",
    "Table",
    "Tables",
    "TablesError",
    "serialise",
    "tables_dir",
]
