"""Finding and reading tables, good and bad."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from each import each

from gpucheck.tables import Tables, TablesError, tables_dir
from gpucheck.tables.base import LARGEST_FILE
from gpucheck.tables.gpus import Chips

INDEX = '{"schema": "gpucheck.tables/1", "version": "1", "date": "2026-01-01", "tables": ["chips"]}'
SOURCES = '"sources": {"a": {"title": "A", "read": "2026-01-01"}}'
GOOD = '{"chip": "GA102", "compute_capability": "8.6", "architecture": "Ampere", "source": ["a"]}'


def _tables(folder: Path, *rows: str, table: str = "chips") -> Tables:
    (folder / "index.json").write_text(INDEX)
    text = f'{{"table": "{table}", {SOURCES}, "rows": [{", ".join(rows)}]}}'
    (folder / "chips.json").write_text(text)
    return Tables(folder)


def test_a_good_table_is_read_once(tmp_path: Path) -> None:
    tables = _tables(tmp_path, GOOD)
    first = tables.get(Chips)
    (tmp_path / "chips.json").unlink()
    assert tables.get(Chips) is first
    assert first.capability("ga102") == "8.6"
    assert first.titles(first.rows[0]) == ("A",)


def test_the_tables_of_this_checkout_are_found() -> None:
    assert (tables_dir() / "index.json").is_file()
    assert tables_dir().name == "compat_tables"


def test_an_explicit_folder_wins_and_has_to_exist(tmp_path: Path) -> None:
    assert tables_dir(str(tmp_path)) == tmp_path
    with pytest.raises(TablesError, match="nowhere does not exist"):
        tables_dir(str(tmp_path / "nowhere"))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match=r"index\.json cannot be read: No such file"):
        _ = Tables(tmp_path).version
    tables = _tables(tmp_path)
    (tmp_path / "chips.json").unlink()
    with pytest.raises(TablesError, match=r"chips\.json cannot be read: No such file"):
        tables.get(Chips)


@each("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"table": "\xff"}'])
def test_corrupt_json_is_said_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    tables = _tables(tmp_path)
    (tmp_path / "chips.json").write_bytes(content)
    with pytest.raises(TablesError, match=r"chips\.json does not have the form of a table: .*\.$"):
        tables.get(Chips)


@each(
    "row",
    [
        "{}",
        GOOD.replace('"8.6"', "8.6"),
        GOOD.replace('"chip"', '"chop"'),
        GOOD.replace("}", ', "more": 1}'),
        GOOD.replace('["a"]', '"a"'),
        "[]",
    ],
)
def test_a_row_of_the_wrong_shape_is_named_by_number(tmp_path: Path, row: str) -> None:
    with pytest.raises(TablesError, match=r"chips\.json, row 3 "):
        _tables(tmp_path, GOOD, GOOD, row, GOOD).get(Chips)


def test_an_oversize_file_is_refused(tmp_path: Path) -> None:
    tables = _tables(tmp_path, GOOD)
    with (tmp_path / "chips.json").open("ab") as file:
        file.truncate(LARGEST_FILE)
    with pytest.raises(TablesError, match="does not have the form"):
        tables.get(Chips)
    with (tmp_path / "chips.json").open("ab") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(TablesError, match=r"chips\.json is larger than 1 MiB\.$"):
        tables.get(Chips)


def test_a_folder_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    tables = _tables(tmp_path, GOOD)
    (tmp_path / "chips.json").unlink()
    os.mkfifo(tmp_path / "chips.json")
    with pytest.raises(TablesError, match="not a regular file"):
        tables.get(Chips)


def test_another_table_or_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="contains the table 'fish', not 'chips'"):
        _tables(tmp_path, GOOD, table="fish").get(Chips)
    (tmp_path / "index.json").write_text(INDEX.replace("tables/1", "tables/2"))
    with pytest.raises(TablesError, match=r"has the schema 'gpucheck\.tables/2'"):
        _ = Tables(tmp_path).version


@pytest.mark.process
def test_importing_the_tables_does_not_import_packaging() -> None:
    code = (
        "import sys, gpucheck.tables, gpucheck.tables.check, gpucheck.advice.offers;"
        "sys.exit('packaging' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
