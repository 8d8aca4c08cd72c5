"""A line of JSON that is too long is one ticket, whatever it holds."""

import json
from pathlib import Path

import pytest

from gpucheck.tables import Tables
from gpucheck.ticket import batch
from gpucheck.ticket.batch import Batch

TABLES = Tables().directory


def test_a_line_that_is_too_long_is_one_ticket_and_shifts_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_LONGEST_LINE", 1000)
    forged = json.dumps({"id": "forged", "text": "x"})
    file = tmp_path / "many.jsonl"
    lines = ["x" * 1001 + forged, "y" * 2500, "nonsense", json.dumps({"id": "last", "text": "x"})]
    file.write_text("\n".join(lines), encoding="utf-8")
    answers = list(Batch([file], TABLES, 1).answers())
    assert [answer["id"] for answer in answers] == [None, None, None, "last"]
    assert [answer.get("error", "")[:7] for answer in answers] == [
        "line 1:",
        "line 2:",
        "line 3:",
        "",
    ]
