"""Many tickets at once: an answer each, in order, and none stops another."""

import gzip
import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from each import each

from gpucheck import triage
from gpucheck.tables import Tables
from gpucheck.ticket import batch as batch_module
from gpucheck.ticket.batch import Answered, Batch, BatchError, Ticket
from gpucheck.ticket.intake import HEAD

TABLES = Tables().directory
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
DUPLICATE = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000"


def answers(*paths: Path, jobs: int | None = 1) -> list[dict[str, Any]]:
    return list(Batch(paths, TABLES, jobs).answers())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b-2.txt").write_text(DUPLICATE)
    (tmp_path / "a-1.txt").write_text(MISMATCH)
    (tmp_path / ".hidden").write_text(MISMATCH)
    (tmp_path / "c-3.log").write_text("nothing")
    return tmp_path


def test_a_folder_is_answered_in_the_order_of_its_names(folder: Path) -> None:
    assert answers(folder) == [
        {"id": "a-1", "verdict": "broken", "root_causes": ["driver-library-mismatch"],
         "confidence": "certain", "owner": "environment"},
        {"id": "b-2", "verdict": "broken", "root_causes": ["nccl-duplicate-gpu"],
         "confidence": "certain", "owner": "cluster"},
        {"id": "c-3", "verdict": "unknown", "root_causes": [], "confidence": None,
         "owner": "unknown"},
    ]  # fmt: skip


def test_files_are_answered_in_the_order_given(folder: Path) -> None:
    found = answers(folder / "b-2.txt", folder / "a-1.txt")
    assert [answer["id"] for answer in found] == ["b-2", "a-1"]


def test_lines_of_json_are_tickets_and_a_bad_one_stops_no_other(tmp_path: Path) -> None:
    file = tmp_path / "tickets.jsonl"
    lines = [
        json.dumps({"id": 7, "text": MISMATCH}),
        "",
        "{",
        "[" * 10_000,
        '{"id": "x"}',
        json.dumps({"id": "last", "text": DUPLICATE, "more": 1}),
    ]
    file.write_text("\n".join(lines))
    found = answers(file)
    assert [answer["id"] for answer in found] == [7, None, None, "x", "last"]
    assert [bool(answer.get("error")) for answer in found] == [False, True, True, True, False]
    assert "line 3" in found[1]["error"]


@pytest.mark.process
def test_several_processes_give_the_same_answers_in_the_same_order(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    texts = [MISMATCH, DUPLICATE, "nothing"] * 60
    rows = (json.dumps({"id": at, "text": text}) for at, text in enumerate(texts))
    file.write_text("\n".join(rows))
    assert answers(file, jobs=2) == answers(file, jobs=1)


@pytest.mark.process
def test_a_ticket_that_kills_its_process_gets_a_line_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does when memory runs out; a pool of Python waited for ever."""
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("a process that is started anew has its own judge")
    judge = batch_module.answer

    def deadly(ticket: Ticket) -> Answered:
        if ticket.name in (70, None):
            os.kill(os.getpid(), signal.SIGKILL)
        return judge(ticket)

    monkeypatch.setattr(batch_module, "answer", deadly)
    file = tmp_path / "many.jsonl"
    rows = [json.dumps({"id": at, "text": MISMATCH}) for at in range(150)]
    rows[100] = json.dumps({"text": MISMATCH})
    file.write_text("\n".join(rows))
    batch = Batch([file], TABLES, 2)
    found = list(batch.answers())
    assert [answer["id"] for answer in found] == [*range(100), None, *range(101, 150)]
    why = "has no answer: the process that looked at it was killed twice, perhaps because "
    why += "memory ran out."
    lost = {at: answer["error"] for at, answer in enumerate(found) if "error" in answer}
    assert lost == {70: f"70 {why}", 100: f"a ticket without a name {why}"}
    assert {answer["verdict"] for at, answer in enumerate(found) if at not in lost} == {"broken"}
    assert batch.summary()[1:] == [f"Note: 70 {why}", f"Note: a ticket without a name {why}"]


def test_what_is_no_text_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    (answer,) = answers(tmp_path)
    assert answer["verdict"] == "unknown"
    assert answer["error"] == "x is not text."
    with pytest.raises(BatchError, match="does not exist"):
        answers(tmp_path / "absent")


def test_a_path_that_is_not_there_stops_no_other(folder: Path) -> None:
    absent = folder / "absent.txt"
    found = Batch([folder / "a-1.txt", absent, folder / "b-2.txt"], TABLES, 1)
    first, unread, last = found.answers()
    assert [first["root_causes"], last["root_causes"]] == [
        ["driver-library-mismatch"],
        ["nccl-duplicate-gpu"],
    ]
    assert unread == {
        "id": "absent", "verdict": "unknown", "root_causes": [], "confidence": None,
        "error": f"{absent} does not exist.",
    }  # fmt: skip
    assert found.summary() == [
        "3 tickets: 2 broken, 1 unknown",
        f"Note: {absent} does not exist.",
    ]


def test_a_folder_that_cannot_be_listed_stops_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> Any:  # noqa: ANN401  # it never returns
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    closed, other = answers(folder, folder / "a-1.txt")
    assert closed["error"] == f"{folder} cannot be read: Permission denied."
    assert other["verdict"] == "broken"


@each("content", [b"", b" \n\t\r\n", b"\xef\xbb\xbf\n"])
def test_an_empty_ticket_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.txt").write_bytes(content)
    (tmp_path / "y.jsonl").write_text(json.dumps({"id": 3, "text": content.decode()}))
    first, two = answers(tmp_path)
    assert first["error"].startswith("x is empty: ")
    assert two["error"].startswith("3 is empty: ")


@each("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_lines_of_json_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "tickets.jsonl"
    text = f"运行训练脚本时报错，请问如何解决？\n{MISMATCH}"  # noqa: RUF001  # Chinese has its own punctuation
    rows = [json.dumps({"id": at, "text": text}, ensure_ascii=False) for at in range(3)]
    file.write_bytes("\n".join(rows).encode(encoding))
    assert [answer["root_causes"] for answer in answers(file)] == [["driver-library-mismatch"]] * 3


def test_a_saved_report_in_a_line_of_json_is_judged_anew(tmp_path: Path) -> None:
    file = tmp_path / "tickets.jsonl"
    report = json.dumps(triage(MISMATCH).as_json())
    file.write_text(json.dumps({"id": 1, "text": report}))
    (answer,) = answers(file)
    assert answer["root_causes"] == ["driver-library-mismatch"]


def test_the_numbers_of_a_batch(folder: Path) -> None:
    (folder / "d.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    batch = Batch([folder], TABLES, 1)
    list(batch.answers())
    tally = batch.tally()
    assert (tally.tickets, tally.not_read) == (4, 1)
    assert tally.verdicts == {"broken": 2, "unknown": 1}
    assert tally.owners == {"cluster": 1, "environment": 1, "unknown": 1}


def test_the_summary_counts(folder: Path) -> None:
    batch = Batch([folder], TABLES, 1)
    list(batch.answers())
    assert batch.summary() == ["3 tickets: 2 broken, 1 unknown"]


@pytest.mark.hostile
def test_the_summary_says_what_was_not_read(tmp_path: Path) -> None:
    packed = gzip.compress(MISMATCH.encode() + b"\n" * (HEAD + 2 * 1024 * 1024))
    (tmp_path / "bomb.log").write_bytes(packed)
    batch = Batch([tmp_path], TABLES, 1)
    (answer,) = batch.answers()
    assert list(answer) == ["id", "verdict", "root_causes", "confidence", "owner"]
    assert batch.summary() == [
        "1 ticket: 1 broken",
        "Note: bomb: only its first 64 MiB were read.",
    ]


@each(("windows", "most"), [(True, 60), (False, 90)])
def test_windows_waits_for_so_many_processes_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int, *, windows: bool
) -> None:
    asked: list[int] = []

    def in_processes(_work: object, _items: object, jobs: int, _prepare: object) -> Any:  # noqa: ANN401  # nothing
        asked.append(jobs)
        return iter(())

    monkeypatch.setattr(batch_module, "_WINDOWS", windows)
    monkeypatch.setattr(batch_module, "in_processes", in_processes)
    file = tmp_path / "tickets.jsonl"
    file.write_text('{"id": 1, "text": "a"}\n' * 64 * 90)
    for jobs in (200, 40):
        assert answers(file, jobs=jobs) == []
    assert asked == [most, 40]
