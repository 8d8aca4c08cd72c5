"""The schemas of tables and recommendations hold for what is really written."""

import copy
import json
from typing import Any

import jsonschema
from click.testing import CliRunner
from each import each

from gpucheck.cli import gpucheck
from gpucheck.programs.schema import schema
from gpucheck.tables import tables_dir
from gpucheck.tables.check import all_tables

TABLE = jsonschema.Draft202012Validator(schema("table"))


def written(*words: str) -> Any:  # noqa: ANN401  # JSON
    return json.loads(CliRunner().invoke(gpucheck, [*words, "--format", "json"]).stdout)


@each("name", [kind.name for kind in all_tables().values()])
def test_every_table_is_valid_and_a_broken_row_is_not(name: str) -> None:
    table = json.loads((tables_dir() / f"{name}.json").read_text())
    TABLE.validate(table)
    broken = copy.deepcopy(table)
    broken["rows"][0]["source"] = 7
    assert not TABLE.is_valid(broken)


@each(
    "words",
    [
        ("--gpu", "6.1", "--driver", "580.65.06", "--python-version", "3.12", "--os", "linux"),
        ("--gpu", "6.1", "--gpu", "12.0", "--driver", "580.65.06", "--os", "windows"),
        ("--gpu", "none", "--python-version", "3.12", "--os", "linux"),
        ("--gpu", "9.0", "--os", "linux"),
    ],
)
def test_recommendations_are_valid(words: tuple[str, ...]) -> None:
    jsonschema.validate(written("recommend", *words), schema("recommendation"))


def test_a_diff_of_tables_is_valid() -> None:
    jsonschema.validate(written("tables", "diff", str(tables_dir())), schema("tables-diff"))
