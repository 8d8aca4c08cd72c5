"""The compatibility tables, by subject: the type of the rows of each, and its questions."""

from gpucheck.tables.base import (
    OperatingSystem,
    Row,
    Source,
    Table,
    Tables,
    TablesError,
    serialise,
    tables_dir,
)

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
