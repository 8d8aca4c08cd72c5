"""The numbers of a batch: terminal, CSV, JSON and a page."""

import csv
import io
import json

import jsonschema
import pytest
from html_support import is_sound

from gpucheck.programs.schema import schema
from gpucheck.ticket import batch_summary
from gpucheck.ticket.batch_summary import Counting, Tally


def line(owner: str, verdict: str, *causes: str) -> dict[str, object]:
    return {
        "id": 1, "verdict": verdict, "root_causes": list(causes), "confidence": None, "owner": owner
    }  # fmt: skip


@pytest.fixture
def tally() -> Tally:
    counting = Counting()
    for _ in range(3):
        counting.add(line("environment", "broken", "driver-too-old", "nccl-timeout"))
    counting.add(line("hardware", "broken", "<script>alert(1)</script>"))
    counting.add(line("unknown", "unknown"))
    counting.add(line("none", "healthy"))
    counting.add({**line("unknown", "unknown"), "error": "The input is empty."})
    return counting.tally()


def test_every_ticket_that_was_read_counts_once_everywhere(tally: Tally) -> None:
    assert (tally.tickets, tally.not_read) == (7, 1)
    for counts in (tally.verdicts, tally.owners):
        assert sum(counts.values()) == 6
    assert sum(cause_count.tickets for cause_count in tally.causes) == 6
    assert list(tally.verdicts) == ["broken", "healthy", "unknown"]
    assert (tally.causes[0].cause, tally.causes[0].tickets) == ("driver-too-old", 3)


def test_the_tables_for_a_terminal(tally: Tally) -> None:
    lines = batch_summary.text(tally).splitlines()
    assert lines[0] == "7 tickets, 1 could not be read"
    words = [" ".join(row.split()) for row in lines]
    assert "broken 4 67 %" in words
    assert any(word.startswith("driver-too-old 3 50 % the driver is too old") for word in words)
    assert "(nothing broken) 1 17 %" in words
    assert "(no cause found) 1 17 %" in words
    assert any(word.startswith("environment 3 50 %") for word in words)


def test_a_cause_with_several_owners_is_named_with_each() -> None:
    counting = Counting()
    for owner in ("library", "user-code"):
        counting.add(line(owner, "broken", "application-bug"))
    words = batch_summary.text(counting.tally())
    assert "application-bug (library)" in words
    assert "application-bug (user-code)" in words


def test_csv(tally: Tally) -> None:
    rows = list(csv.DictReader(io.StringIO(batch_summary.as_csv(tally))))
    assert {"counted": "all", "name": "", "owner": "", "tickets": "7"} in rows
    assert {
        "counted": "cause", "name": "driver-too-old", "owner": "environment", "tickets": "3"
    } in rows  # fmt: skip
    assert {row["counted"] for row in rows} == {"all", "not-read", "verdict", "owner", "cause"}


def test_json_has_its_schema(tally: Tally) -> None:
    data = json.loads(batch_summary.as_json(tally))
    jsonschema.Draft202012Validator(schema("triage-summary")).validate(data)
    assert data["verdicts"] == {"broken": 4, "healthy": 1, "unknown": 1}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema("triage-summary")).validate({**data, "causes": 1})


def test_the_page_is_escaped_and_loads_nothing(tally: Tally) -> None:
    page = batch_summary.as_html(tally)
    is_sound(page)
    assert "&lt;script&gt;" in page
    assert "prefers-color-scheme: dark" in page
    assert "7 tickets, 1 could not be read" in page


def test_a_batch_of_nothing_that_could_be_read() -> None:
    counting = Counting()
    counting.add({**line("unknown", "unknown"), "error": "x"})
    nothing = counting.tally()
    assert batch_summary.text(nothing).startswith("1 ticket, 1 could not be read\n")
    assert "1 ticket, 1 could not be read" in batch_summary.as_html(nothing)
