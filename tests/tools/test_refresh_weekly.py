"""What the weekly job writes, and which rows the index contradicts, on made-up pages."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from each import each
from tools.test_refresh_tables import TODAY, TOOLS, Pip, refresh, sources

from gpucheck.doctor.against_index import PageFile

ROWS = {
    "torch_releases": [
        {
            "torch": "2.5.0",
            "requires_python": ">=3.9",
            "pythons": {"linux_x86_64": ["3.9", "3.13t"], "windows": ["3.9"]},
        }
    ],
    "triton": [{"triton": "2.2.0", "python_first": "3.8", "python_last": "3.12"}],
}


def rows(table: str) -> Any:  # noqa: ANN401  # rows of JSON
    return {"rows": ROWS[table]}


def wheel(name: str, tag: str, requires: str | None = ">=3.9.0") -> PageFile:
    return PageFile(f"{name}-{tag}.whl", requires_python=requires)


TORCH = [
    wheel("torch-2.5.0", "cp39-cp39-manylinux1_x86_64"),
    wheel("torch-2.5.0", "cp313-cp313t-manylinux1_x86_64"),
    wheel("torch-2.5.0", "cp39-cp39-win_amd64"),
    PageFile("torch-2.5.0.tar.gz"),
]
OTHER_PYTHON = [PageFile(file.filename, requires_python=">=3.8") for file in TORCH]
TRITON = [
    wheel("triton-2.2.0", f"cp3{n}-cp3{n}-manylinux_2_17_x86_64.manylinux2014_x86_64")
    for n in (8, 12)
]


def found(torch: list[PageFile], triton: list[PageFile]) -> list[str]:
    pages = {"torch": torch, "triton": triton}
    lines: list[str] = refresh.corrections(rows, lambda project: pages[project])
    return lines


def test_rows_that_agree_are_not_named() -> None:
    assert found(TORCH, TRITON) == []


@each(
    ("torch", "triton", "words"),
    [
        (OTHER_PYTHON, TRITON, "requires_python is >=3.9, >=3.8 on the index"),
        (TORCH[:2], TRITON, "pythons of windows: 3.9 only in the table"),
        (
            [*TORCH, wheel("torch-2.5.0", "cp39-none-macosx_11_0_arm64")],
            TRITON,
            "pythons of macos_arm64: 3.9 only on the index",
        ),
        ([], TRITON, "the index has no wheel of it"),
        (
            TORCH,
            [*TRITON, wheel("triton-2.2.0", "cp37-cp37m-manylinux2014_x86_64")],
            "triton 2.2.0: Pythons 3.8 to 3.12, 3.7 to 3.12 on the index",
        ),
    ],
)
def test_a_cell_that_the_index_contradicts_is_named(
    torch: list[PageFile], triton: list[PageFile], words: str
) -> None:
    (line,) = found(torch, triton)
    assert words in line


def test_a_wheel_for_the_stable_abi_has_no_last_python() -> None:
    stable = [wheel("triton-2.2.0", "cp38-abi3-manylinux2014_x86_64")]
    assert found(TORCH, stable) == []


def pip(newest: str) -> Any:  # noqa: ANN401  # a runner
    metadata = Pip()

    def run(command: Any) -> str:  # noqa: ANN401  # words
        if "index" in command:
            return f"Available versions: {newest}" if command[-1] == "torch" else ""
        return metadata(command)

    return run


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(TOOLS.parent / "compat_tables", tmp_path / "compat_tables")
    monkeypatch.setattr(refresh, "ROOT", tmp_path)
    return tmp_path


def pages(project: str) -> list[PageFile]:
    message = f"no page of {project}"
    raise refresh.NoIndexError(message)


def test_a_newer_release_is_written_with_its_sources(tree: Path) -> None:
    body = tree / "body.md"
    assert refresh.weekly(body, TODAY, pip("9.9.0"), pages) == 0
    table = json.loads((tree / "compat_tables" / "torch_releases.json").read_text())
    assert any(row["torch"] == "9.9.0" for row in table["rows"])
    index = json.loads((tree / "compat_tables" / "index.json").read_text())
    assert (index["version"], index["date"]) == ("2030.1.1", TODAY)
    text = body.read_text()
    assert "PyPI metadata of the torch wheels" in text
    assert '+  {"torch": "9.9.0"' in text
    assert "no page of torch" in text
    assert "torch 9.9.0: its date is the day on which it was found" in text


def test_the_version_is_counted_within_a_month(tree: Path) -> None:
    refresh.weekly(tree / "body.md", TODAY, pip("9.9.0"), pages)
    refresh.weekly(tree / "body.md", TODAY, pip("9.9.1"), pages)
    assert json.loads((tree / "compat_tables" / "index.json").read_text())["version"] == "2030.1.2"


def test_where_nothing_is_newer_no_table_changes(tree: Path) -> None:
    before = {file.name: file.read_bytes() for file in (tree / "compat_tables").iterdir()}
    refresh.weekly(tree / "body.md", TODAY, pip("1.7.0"), pages)
    assert before == {file.name: file.read_bytes() for file in (tree / "compat_tables").iterdir()}
    assert (tree / "body.md").read_text().count("Nothing.") == 2


def test_a_release_that_cannot_be_read_is_named(tree: Path) -> None:
    def run(command: Any) -> str:  # noqa: ANN401  # words
        if "index" in command:
            return "Available versions: 9.9.0" if command[-1] == "torch" else ""
        message = "pip: ERROR: No matching distribution found"
        raise sources.RefreshError(message)

    refresh.weekly(tree / "body.md", TODAY, run, pages)
    assert "torch 9.9.0: the package index has no wheel" in (tree / "body.md").read_text()


def test_text_of_the_index_stays_in_its_fence() -> None:
    text = refresh.pull_request("", [], [f"x\n{refresh.FENCE}\n@somebody"])
    assert text.count(refresh.FENCE) == 2
    assert text.index("@somebody") < text.rindex(refresh.FENCE)
    assert len(refresh.pull_request("x" * 10**6, [], [])) < 30_000
