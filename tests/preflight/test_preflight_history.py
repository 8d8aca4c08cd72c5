"""Records of runs, what they say of a node, and the list of good hosts."""

import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import meeting_support
import msgspec
import preflight_samples as samples
import pytest
from click.testing import CliRunner
from each import each

from gpucheck.cli import gpucheck
from gpucheck.cluster.files import FileError, add_line, good_hosts, of_lines
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages.files import run_record, write_files
from gpucheck.cluster.store import wire
from gpucheck.cluster.store.task_messages import Attendees, Seat, Survivor
from gpucheck.facts.claims import Confidence, Severity

WELL = samples.result(samples.ranks(8, 8))
NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def history(*results: Result) -> dict[str, tuple[int, int, int]]:
    found = of_lines(run_record(one, NOON).encode() for one in results)
    return {past.host: (past.blamed, past.runs, past.passed_since) for past in found.hosts}


def test_a_record_is_one_line_with_the_names_of_opentelemetry() -> None:
    text = run_record(samples.hang(), NOON)
    assert "\n" not in text
    record = json.loads(text)
    assert record["schema"] == "gpucheck.preflight-record/1"
    assert record["timestamp"] == "2026-11-21T12:00:00+00:00"
    assert record["service.name"] == "gpucheck"
    assert record["process.exit.code"] == 1
    assert record["error.type"] == "culprit"
    assert len(record["host.name"]) == 8
    (culprit,) = record["culprits"]
    assert culprit["slug"] == "rank-hangs"
    assert culprit["host.name"] == ["gpu-0004"]
    assert culprit["hw.id"].startswith("GPU-")
    assert culprit["hw.type"] == "gpu"
    assert "error.type" not in json.loads(run_record(samples.healthy(), NOON))


def test_the_history_says_who_was_named_how_often_and_what_came_after() -> None:
    assert history(samples.hang(), WELL, samples.hang()) == {"gpu-0004": (2, 3, 0)}
    runs = (samples.hang(), WELL, WELL)
    assert history(*runs) == {"gpu-0004": (1, 3, 2)}


def test_drills_and_what_is_merely_possible_accuse_nobody() -> None:
    ranks = samples.ranks(2, 1)
    maybe = samples.culprit("rank-hangs", ranks[0], "x", confidence=Confidence.POSSIBLE)
    slow = samples.culprit("gpu-slow", ranks[0], "x", severity=Severity.WARNING)
    assert history(samples.drill(), samples.result(ranks, maybe), samples.result(ranks, slow)) == {}


def test_of_a_split_run_the_side_that_hears_few_says_nothing() -> None:
    """The others have a line of their own, which names the host of task 0."""
    cut_off = msgspec.structs.replace(WELL, hears_few=True)
    assert json.loads(run_record(cut_off, NOON))["cut_off"] is True
    assert "cut_off" not in json.loads(run_record(WELL, NOON))
    assert history(samples.hang(), cut_off) == {"gpu-0004": (1, 1, 0)}


def test_a_deputy_knows_the_hosts_before_there_are_ranks() -> None:
    roll = Attendees(tasks=3, hosts=3, beside=1, seats={1: Seat(1, ""), 2: Seat(2, "")})
    said = {
        str(task): wire.line(Survivor(host=f"n{task}", seen="refused", closed=True, seconds=1))
        for task in (1, 2)
    }
    store = meeting_support.judged(3, "n0", roll, said)
    assert store is not None
    assert store.result is not None
    assert json.loads(run_record(store.result, NOON))["host.name"] == ["n0", "n1", "n2"]


@each(
    "other",
    [b"{", b"[]", b"null", b'{"schema": "x/1"}', b"\xff\xfe", b"[" * 100_000,
     run_record(samples.hang(), NOON).replace("record/1", "record/9").encode()],
)  # fmt: skip
def test_lines_that_are_no_records_are_counted_and_left_out(other: bytes) -> None:
    found = of_lines([other, b"", run_record(samples.hang(), NOON).encode()])
    assert (found.runs, found.unread) == (1, 1)
    assert [past.host for past in found.hosts] == ["gpu-0004"]


def test_runs_add_to_one_file_and_the_command_reads_it(tmp_path: Path) -> None:
    file = str(tmp_path / "fleet.jsonl")
    for result in (samples.hang(), WELL, samples.hang()):
        assert write_files(result, {"run_log": file}) == [f"{file} has a line about this run"]
    with Path(file).open("a") as opened:
        opened.write("half a li")
    done = CliRunner().invoke(gpucheck, ["preflight", "--history", file])
    assert done.exit_code == 0
    first, *rest = done.output.splitlines()
    assert first.startswith("gpu-0004: took part in 3, was named in 2, last at 20")
    assert "(rank-hangs); passed since then: 0" in first
    assert rest[0] == "3 runs are recorded."
    assert rest[1].startswith("1 line is not a record")
    done = CliRunner().invoke(gpucheck, ["preflight", "--history", file, "--format", "json"])
    assert json.loads(done.output)["hosts"][0]["slugs"] == ["rank-hangs"]


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(gpucheck, ["preflight", "--history", str(tmp_path / "no")])
    assert done.exit_code == 2
    assert "cannot be read" in done.output


def test_names_from_a_file_of_strangers_do_not_act_on_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text(run_record(samples.hang(), NOON).replace("gpu-0004", "\\u001b[2Jx") + "\n")
    done = CliRunner().invoke(gpucheck, ["preflight", "--history", str(file)])
    assert "took part in 1, was named in 1" in done.output
    assert "\x1b" not in done.output


@each("path", ["-", "", "/no/such/folder/x"])
def test_a_record_that_cannot_be_written_is_said(path: str) -> None:
    with pytest.raises(FileError):
        add_line(path, "x")


def test_a_pipe_is_no_file_for_records(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError):
        add_line(tmp_path / "pipe", "x")


@pytest.mark.process
def test_a_record_on_a_full_disk_is_said_and_spoils_no_other_one(tmp_path: Path) -> None:
    code = """if True:
        import resource, sys
        from gpucheck.cluster.files import FileError, add_line
        add_line(sys.argv[1], "first")
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        try:
            add_line(sys.argv[1], "second")
        except FileError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        add_line(sys.argv[1], "third")
        add_line(sys.argv[1], "fourth")
    """
    file = tmp_path / "fleet.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{file} took only a part of the record: is its disk full?\n"
    assert file.read_text().splitlines() == ["first", "seco", "third", "fourth"]


# The hosts that proved to be good.


def test_good_hosts_passed_and_nobody_accuses_them(tmp_path: Path) -> None:
    good = good_hosts(samples.hang().preflight)
    assert "gpu-0004" not in good
    assert good_hosts(samples.drill().preflight) == ()
    path = tmp_path / "good"
    assert write_files(WELL, {"good_file": str(path)})[0].endswith("good hosts")
    names = path.read_text().strip().split(",")
    assert names == list(good_hosts(WELL.preflight))
    assert len(names) == len(set(names)) > 1


def test_a_host_that_may_be_to_blame_or_has_not_passed_is_not_good() -> None:
    ranks = samples.ranks(3, 1, r1={"status": "stopped"})
    maybe = samples.culprit("rank-hangs", ranks[0], "x", confidence=Confidence.POSSIBLE)
    assert good_hosts(samples.result(ranks, maybe).preflight) == (ranks[2].host,)
