"""The second sources: compat_tables/checks.jsonl, one comparison a line."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
from each import each

from gpucheck.tables import Table, Tables
from gpucheck.tables.check import all_tables

# Tables of which no tenth could be compared with a second source, and why (see docs/tables.md).
UNCHECKED: dict[str, str] = {}
LEAST_SHARE = 10  # one row in ten


def _checks(tables: Tables) -> list[dict[str, Any]]:
    text = (tables.directory / "checks.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _rows(tables: Tables) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table as they stand in its file."""
    return {
        name: msgspec.json.decode(msgspec.json.encode(tables.get(cls).rows))
        for name, cls in all_tables().items()
    }


def _matching(rows: list[dict[str, Any]], key: dict[str, object]) -> list[dict[str, Any]]:
    return [row for row in rows if all(row.get(name) == value for name, value in key.items())]


def test_each_line_has_its_form(tables: Tables) -> None:
    for check in _checks(tables):
        assert set(check) - {"note"} == {"table", "row", "source", "date", "agreed"}
        assert check["table"] in all_tables()
        assert re.fullmatch(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]", check["date"])
        assert isinstance(check["agreed"], bool)
        assert check["source"]


def test_a_disagreement_says_what_differs(tables: Tables) -> None:
    disagreed = [check for check in _checks(tables) if not check["agreed"]]
    assert disagreed
    assert all(check.get("note") for check in disagreed)


def test_each_line_names_exactly_one_row(tables: Tables) -> None:
    rows = _rows(tables)
    for check in _checks(tables):
        assert len(_matching(rows[check["table"]], check["row"])) == 1, check


def test_no_line_is_there_twice(tables: Tables) -> None:
    lines = (tables.directory / "checks.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines))


def test_the_second_source_is_not_the_rows_own(tables: Tables) -> None:
    rows = _rows(tables)
    for check in _checks(tables):
        (row,) = _matching(rows[check["table"]], check["row"])
        sources = tables.get(all_tables()[check["table"]]).sources
        own = [sources[key].title for key in row["source"]]
        assert not [title for title in own if title in check["source"]], check
        assert not [title for title in own if check["source"] in title], check


@each("cls", all_tables().values(), ids=lambda cls: cls.name)
def test_a_tenth_of_each_table_has_a_second_source(tables: Tables, cls: type[Table]) -> None:
    rows = {json.dumps(c["row"], sort_keys=True) for c in _checks(tables) if c["table"] == cls.name}
    enough = len(rows) * LEAST_SHARE >= len(tables.get(cls).rows)
    assert enough is (cls.name not in UNCHECKED)


def test_tables_without_a_second_source_are_explained() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    assert all(name in text for name in UNCHECKED)
