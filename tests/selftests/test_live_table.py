"""The table that is drawn while the self-tests run."""

import io

import pytest

from gpucheck.interface.live_table import LiveTable, table
from gpucheck.selftests.outcome import ProgressGrid


def grid(gpus: int) -> ProgressGrid:
    made = ProgressGrid()
    made.put("import-torch", "cpu", "passed")
    for at in range(gpus):
        made.put("cublas-matmul", f"cuda:{at}", "running" if at else "failed")
    made.stages["cuda:1"] = "fp32\x1b[2J speed"
    return made


def test_a_row_a_test_and_a_column_a_place() -> None:
    first, imported, matmul, stage = table(grid(2), 80)
    assert first.split() == ["self-tests", "(0", "s)", "cpu", "cuda:0", "cuda:1"]
    assert imported.split() == ["import-torch", "ok"]
    assert matmul.split() == ["cublas-matmul", "FAILED", "..."]
    assert matmul.index("FAILED") == first.index("cuda:0")
    assert stage == "  cuda:1: fp32?[2J speed"


def test_many_places_are_counted() -> None:
    lines = table(grid(64), 80)
    assert lines[2] == "cublas-matmul       1 FAILED, 63 ..."
    assert max(map(len, lines)) < 80


def test_it_is_drawn_over_itself_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpucheck.interface.live_table._EVERY", 0)
    out = io.StringIO()
    drawn = LiveTable(out)
    drawn(grid(2))
    drawn(grid(2))
    drawn.clear()
    text = out.getvalue()
    assert text.count("\x1b[4F\x1b[J") == 2
    assert text.endswith("\x1b[J")
    drawn.clear()
    assert out.getvalue() == text
