"""Damaged tables: a sentence with the file and the row, and little memory."""

import json
import random
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from each import each

from gpucheck.cli import gpucheck
from gpucheck.facts.snapshot import MOST_COMMAS, MOST_OBJECTS, decode
from gpucheck.tables import Tables, TablesError
from gpucheck.tables.check import all_tables, problems

SOURCE = Tables().directory
ODD = ["", "x", "²", "9" * 20, "a.b", "12.x", ">=x", "12.4\n", "-1", "1e3"]
COMPUTED = [
    ("driver_branches", "branch"), ("cuda_drivers", "cuda"), ("cuda_drivers", "linux"),
    ("cudnn_support", "cudnn"), ("nccl", "torch"), ("torch_releases", "torch"),
    ("torch_releases", "glibc"), ("torch_builds", "torch"), ("torch_builds", "cuda"),
    ("torch_pins", "specifier"), ("toolkit_targets", "nvcc"), ("triton", "python_first"),
    ("torch_old_defaults", "torch"), ("torch_companions", "torch"), ("forward_compat", "cuda"),
]  # fmt: skip
MEMORY = 150 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(SOURCE, tmp_path / "tables")
    return tmp_path / "tables"


@pytest.mark.parametrize(("name", "column"), COMPUTED)
def test_a_column_that_is_computed_with_has_its_form(name: str, column: str, folder: Path) -> None:
    file = folder / f"{name}.json"
    data = json.loads(file.read_text())
    at = next(at for at, row in enumerate(data["rows"]) if row.get(column))
    for word in ODD:
        if (name, column, word) == ("torch_pins", "specifier", ""):
            continue  # any version
        data["rows"][at][column] = word
        file.write_text(json.dumps(data))
        with pytest.raises(
            TablesError, match=rf"{name}\.json, row {at + 1} does not have the form"
        ):
            Tables(folder).get(all_tables()[name])


@pytest.mark.parametrize("name", sorted(all_tables()))
def test_a_table_without_rows(name: str, folder: Path) -> None:
    file = folder / f"{name}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "rows": []}))
    with pytest.raises(TablesError, match=rf"{name}\.json has no rows\."):
        Tables(folder).get(all_tables()[name])


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401  # JSON
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(item, (*path, key))


COMMANDS = [
    ["compat", "torch=2.1.0+cu118", "gpu=RTX 5090", "driver=470.10", "cudnn=8.9", "python=3.11"],
    ["recommend", "--gpu", "GTX 1080", "--driver", "535.10"],
    ["recommend", "--gpu", "RTX 5090", "--torch", "2.9", "--with", "torchvision"],
]


@pytest.mark.hostile
@pytest.mark.parametrize("name", sorted(all_tables()))
def test_no_command_fails_for_a_damaged_table(name: str, folder: Path) -> None:
    chance = random.Random(name)  # noqa: S311  # the same damage every time
    file = folder / f"{name}.json"
    sound = file.read_text()
    for _ in range(3):
        data = json.loads(sound)
        *above, last = chance.choice(list(_places(data["rows"])))
        owner = data["rows"]
        for key in above:
            owner = owner[key]
        owner[last] = chance.choice([*ODD, None, [], {}, 0, -1])
        file.write_text(json.dumps(data))
        for command in COMMANDS:
            ran = CliRunner().invoke(gpucheck, ["--tables", str(folder), *command])
            assert isinstance(ran.exception, SystemExit | TablesError | None), (above, last)
            assert "not a version number" not in ran.output


def _filled(unit: str, size: int) -> str:
    return ",".join(unit.replace("N", f"{at:x}") for at in range(size // (len(unit) + 5)))


ROW = '{"source":[],"torch":"1","cuda":""}'
SOURCE_ROW = '"N":{"title":"","read":""}'
LONG_ROW = ROW.replace("[]", "[FILL]")
RELEASE = (
    '{"source":[],"torch":"1","date":"","requires_python":"","default_builds":{},"pythons":{FILL}}'
)
SHAPES = {
    "rows": ("torch_old_defaults", '"sources":{},"rows":[FILL]', ROW),
    "sources": ("torch_old_defaults", f'"sources":{{FILL}},"rows":[{ROW}]', SOURCE_ROW),
    "of-a-row": ("torch_old_defaults", f'"sources":{{}},"rows":[{LONG_ROW}]', '"N"'),
    "pythons": ("torch_releases", f'"sources":{{}},"rows":[{RELEASE}]', '"N":[]'),
}  # fmt: skip


@pytest.mark.hostile
@pytest.mark.parametrize("shape", SHAPES)
def test_no_table_takes_much_memory(shape: str, folder: Path) -> None:
    name, frame, unit = SHAPES[shape]
    body = frame.replace("FILL", _filled(unit, 1_000_000))
    (folder / f"{name}.json").write_text(f'{{"table":"{name}",{body}}}')
    tracemalloc.start()
    try:
        assert problems(Tables(folder))
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


@pytest.mark.hostile
@each("unit", ["{}", '"N"', "[]", "0"])
def test_no_saved_report_takes_much_memory(unit: str) -> None:
    most = MOST_OBJECTS if unit == "{}" else MOST_COMMAS
    facts = ",".join(unit for _ in range(most + 1))
    text = f'{{"schema":"gpucheck.snapshot/1","facts":{{"nvml":{{"gpus":[{facts}]}}}}}}'
    tracemalloc.start()
    try:
        with pytest.raises(msgspec.DecodeError, match="far more entries"):
            decode(text.encode())
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
