"""The files that a pre-flight leaves behind: whole or not at all, and never the wrong host."""

import contextlib
import errno
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import preflight_samples as samples
import pytest
from each import each
from msgspec.structs import replace

from gpucheck.cluster.files import Before, FileError, exclusion, write_each, write_file
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import RankResult, TaskFacts
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.cluster.pages.files import in_folder, write_files, write_folder
from gpucheck.cluster.run_command import Printer
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit
from gpucheck.programs.schema import schema


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# One file.


def test_a_file_has_its_new_content_and_its_usual_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.prom"
    path.write_text("old")
    before = os.umask(0o022)
    try:
        write_file(path, "new\n")
    finally:
        os.umask(before)
    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert left_in(tmp_path) == ["a.prom"]


def test_what_somebody_else_has_written_meanwhile_is_seen(tmp_path: Path) -> None:
    same, new, other = (str(tmp_path / name) for name in ("same", "new", "other"))
    for path in (same, other):
        write_file(path, "node01\n")
    before = Before([same, new, other, None, "-", str(tmp_path / "no" / "folder")])
    for path in (new, other):
        write_file(path, "node01\n")  # the same content: it is another file all the same
    assert [before.has_changed(path) for path in (same, new, other, "-")] == [
        False, True, True, False,
    ]  # fmt: skip


def test_a_full_disk_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"/a cannot be written: No space left on device$"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert left_in(tmp_path) == ["a"]


@each("name", ["-", ""])
def test_the_standard_output_is_no_file(name: str) -> None:
    with pytest.raises(FileError, match="a file is needed, not the standard output"):
        write_file(name, "x")


def test_what_is_no_regular_file_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, Path("/dev/null")):
        with pytest.raises(FileError, match="is not a regular file"):
            write_file(path, "x")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_link_keeps_leading_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@each("path", ["none/here/x", "a\0b"])
def test_a_path_that_leads_nowhere_is_a_sentence(tmp_path: Path, path: str) -> None:
    with pytest.raises(FileError, match="cannot be written: "):
        write_file(f"{tmp_path}/{path}", "x")
    assert left_in(tmp_path) == []


# Each rank.

FACTS = {"task": 2, "host": "gpu-0002", "torch": "2.9.1"}
VERDICT = {
    "message": "verdict",
    "exit": 1,
    "class": "culprit",
    "culprits": [{"slug": "rank-hangs", "ranks": [9]}],
    "groups": [{"uuids": [], "size": 4, "busbw": 1.0}] * 50,
}


def own(*results: dict[str, Any]) -> dict[str, Any]:
    return {"facts": FACTS, "steps": [{"step": "alone", "results": list(results)}]}


def test_each_rank_has_a_file_of_its_own_by_its_number(tmp_path: Path) -> None:
    hung = {"rank": 9, "status": "timed-out", "phase": "connect"}
    good = {"rank": 8, "status": "passed", "phase": "done"}
    mine = own(good, hung)
    mine["steps"].append({"step": "together", "results": [{**hung, "status": "stopped"}]})
    folder = tmp_path / "new" / "folder"
    paths = write_each(folder, mine, VERDICT)
    assert paths == [folder / "rank-8.json", folder / "rank-9.json"]
    found = json.loads(paths[1].read_text())
    jsonschema.Draft202012Validator(schema("preflight-rank")).validate(found)
    assert (found["rank"], found["host"], found["status"]) == (9, "gpu-0002", "timed-out")
    assert found["is_culprit"] is True
    assert [step["step"] for step in found["steps"]] == ["alone", "together"]
    assert (found["verdict"]["exit"], found["facts"]["torch"]) == (1, "2.9.1")
    assert found["verdict"].keys() == {"exit", "class", "culprits"}
    other = json.loads(paths[0].read_text())
    assert (other["status"], other["is_culprit"]) == ("passed", False)


def test_structs_are_as_good_as_what_was_made_of_them(tmp_path: Path) -> None:
    mine = {
        "facts": TaskFacts(task=1, host="n"),
        "steps": [{"step": "alone", "results": [RankResult(rank=4, status="crashed")]}],
    }
    (path,) = write_each(tmp_path, mine, {"culprits": [samples.several().preflight.culprits]})
    assert json.loads(path.read_text())["status"] == "crashed"


def test_a_task_without_a_rank_leaves_what_it_knows(tmp_path: Path) -> None:
    (path,) = write_each(tmp_path, {"facts": FACTS, "steps": []}, {})
    assert path.name == "task-2.json"
    found = json.loads(path.read_text())
    jsonschema.Draft202012Validator(schema("preflight-rank")).validate(found)
    assert (found["rank"], found["status"], found["verdict"]) == (None, "not-run", {})


def test_no_word_of_another_names_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "each"
    evil = [{"rank": "../../x", "status": "passed"}, {"rank": None}, "no result", {"rank": 3}]
    mine = {"facts": {"task": "../up", "host": samples.HOSTILE}, "steps": [
        {"step": "alone", "results": evil}, "no step",
    ]}  # fmt: skip
    write_each(folder, mine, {"culprits": ["no culprit", {"ranks": [3]}]})
    write_each(folder, {"facts": {"task": "../up"}}, {})
    assert left_in(folder) == ["rank-3.json", "task.json"]
    assert left_in(tmp_path) == ["each"]


def test_no_link_in_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "rank-3.json").symlink_to(tmp_path / "mine")
    write_each(folder, own({"rank": 3, "status": "passed"}), {})
    assert (tmp_path / "mine").read_text() == "kept"
    assert not (folder / "rank-3.json").is_symlink()


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot be made: Not a directory|File exists"):
        write_each(tmp_path / "file" / "x", own(), {})
    with pytest.raises(FileError, match="a folder is needed"):
        write_each("-", own(), {})


# Hosts to leave out.


def hosts(result: Result) -> tuple[str, ...]:
    return exclusion(result.preflight).hosts


def of(culprit: Culprit, **changed: object) -> tuple[str, ...]:
    """Return who is left out of a job of four nodes because of this culprit."""
    return hosts(samples.result(samples.ranks(4, 2), msgspec.structs.replace(culprit, **changed)))


@each(
    "slug", ["rank-missing", "rank-hangs", "rank-crashed", "wrong-result", "nccl-p2p-broken",
             "gpu-fallen-off-bus", "gpu-hardware-fault", "fabric-manager-down"]
)  # fmt: skip
def test_the_host_of_what_is_broken_is_left_out(slug: str) -> None:
    one = samples.culprit(slug, samples.ranks(4, 2)[3], "seen")
    assert of(one) == ("gpu-0001",)
    assert of(one, confidence=Confidence.LIKELY) == ("gpu-0001",)


@each(
    "slug", ["gpu-slow", "link-slow", "ranks-heterogeneous", "memlock-too-low", "shm-too-small",
             "nccl-version-mismatch", "driver-too-old", "torch-missing", "torch-import-broken",
             "requirement-not-met", "rendezvous-failed", "nccl-timeout", "brand-new"]
)  # fmt: skip
def test_nobody_is_left_out_because_of_anything_else(slug: str) -> None:
    assert of(samples.culprit(slug, samples.ranks(4, 2)[3], "seen")) == ()


def test_nobody_is_left_out_on_suspicion() -> None:
    ranks = samples.ranks(4, 2)
    one = samples.culprit("rank-hangs", ranks[3], "seen")
    assert of(one, confidence=Confidence.POSSIBLE) == ()
    assert of(one, severity=Severity.WARNING) == ()
    assert of(samples.link(ranks[0], ranks[6], "nccl-transport-broken")) == ()
    assert of(one, host=None, hosts=()) == ()


def test_nobody_is_left_out_because_of_a_drill() -> None:
    result = samples.drill()
    assert hosts(result) == ()
    assert "drill" in exclusion(result.preflight).note
    assert exclusion(result.preflight).text() == ""


def test_when_every_host_of_several_failed_none_is_left_out() -> None:
    ranks = samples.ranks(3, 1)
    culprits = [samples.culprit("rank-crashed", one, "the same everywhere") for one in ranks]
    assert hosts(samples.result(ranks, *culprits[:2])) == ("gpu-0000", "gpu-0001")
    assert hosts(samples.result(ranks, *culprits)) == ()
    assert "all 3 hosts failed" in exclusion(samples.result(ranks, *culprits).preflight).note
    alone = samples.ranks(1, 8)
    assert hosts(samples.result(alone, samples.culprit("rank-hangs", alone[3], "x"))) == (
        "gpu-0000",
    )


def test_the_list_is_one_line_with_each_host_once() -> None:
    ranks = samples.ranks(8, 2)
    culprits = [samples.culprit("rank-crashed", ranks[at], "killed") for at in (4, 5, 9, 2)]
    found = exclusion(samples.result(ranks, *culprits).preflight)
    assert found.text() == "gpu-0002,gpu-0004,gpu-0001\n"


@each("name", ["a,b", "a[1-9]", "../etc/passwd", "a b", "-x", "$(id)", "a\nb", samples.HOSTILE])
def test_a_name_that_slurm_would_read_otherwise_is_left_out(name: str) -> None:
    ranks = samples.ranks(4, 1, r1={"host": name})
    culprits = [samples.culprit("rank-crashed", ranks[at], "killed") for at in (1, 2)]
    found = exclusion(samples.result(ranks, *culprits).preflight)
    assert found.hosts == ("gpu-0002",)
    assert found.note.startswith("1 of the names")


# All of them.


def test_every_file_is_written_and_said(tmp_path: Path) -> None:
    bad, prom, packed = (f"{tmp_path}/{name}" for name in ("bad", "x.prom", "x.zip"))
    said = write_files(samples.hang(), {"exclude_file": bad, "metrics": prom, "bundle": packed})
    assert left_in(tmp_path) == ["bad", "x.prom", "x.zip"]
    assert (tmp_path / "bad").read_text() == "gpu-0004\n"
    assert said[0] == f"{tmp_path}/bad leaves out 1 host"
    assert said[1] == f"{tmp_path}/x.prom has the metrics"
    assert said[2].startswith("x.zip has README.txt, report.txt, report.json, ranks.jsonl")
    assert write_files(samples.hang(), {}) == []


@each(
    ("result", "status"),
    [(samples.healthy(), 0), (samples.hang(), 1), (samples.inconclusive(), 3),
     (samples.misconfigured(), 4), (samples.slow(), 5), (samples.drill_unnoticed(), 3)],
)  # fmt: skip
def test_the_status_has_a_file_of_its_own(tmp_path: Path, result: Result, status: int) -> None:
    path = tmp_path / "status"
    path.write_text("7\n")
    assert write_files(result, {"status_file": str(path)}) == [f"{path} has the exit status"]
    assert path.read_text() == f"{status}\n"


def test_whoever_finds_the_status_finds_the_other_files(tmp_path: Path) -> None:
    names = ("a", "b", "c.zip", "status")
    a, b, packed, status = (f"{tmp_path}/{name}" for name in names)
    said = write_files(
        samples.hang(), {"status_file": status, "exclude_file": a, "metrics": b, "bundle": packed}
    )
    assert said[-1] == f"{status} has the exit status"
    times = [(tmp_path / name).stat().st_mtime_ns for name in names]
    assert max(times) == times[-1]


# All of them in one folder.


IN_FOLDER = [
    "bad-hosts", "good-hosts", "metrics.prom", "report.html", "report.json", "report.txt",
    "runs.jsonl", "status",
]  # fmt: skip


def test_a_folder_has_all_files_and_the_status_is_the_last_one(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    result = samples.hang()
    assert write_folder(str(folder), result, ()) == f"{folder} has the files about this run"
    assert left_in(folder) == IN_FOLDER
    assert (folder / "status").read_text() == "1\n"
    assert (folder / "bad-hosts").read_text() == "gpu-0004\n"
    assert json.loads((folder / "report.json").read_text())["exit"] == 1
    assert (folder / "report.txt").read_text() == preflight_text.render(result)
    others = [(folder / name).stat().st_mtime_ns for name in IN_FOLDER]
    assert max(others) == others[IN_FOLDER.index("status")]
    write_folder(str(folder), samples.healthy(), ())
    assert (folder / "bad-hosts").read_bytes() == b""
    assert len((folder / "runs.jsonl").read_text().splitlines()) == 2
    replaced = {Path(path).name for path in in_folder(str(folder))}
    assert replaced == {*IN_FOLDER} - {"runs.jsonl"}


def test_the_guide_has_a_row_for_each_file_of_the_folder() -> None:
    pages = (Path(__file__).parents[2] / "docs" / "preflight").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    table = text.partition("**`--out-dir DIR`**")[2].partition("\n\n**")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert named == {*IN_FOLDER, "ranks/rank-3.json"}


def test_a_folder_that_cannot_be_used_costs_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"^\S+/file cannot be made: File exists$"):
        write_folder(f"{tmp_path}/file", samples.hang(), ())
    for name in ("status", "report.html"):
        (tmp_path / "run" / name).mkdir(parents=True)
    wrong = r"^\S+/run/report.html is not a regular file \(2 files are missing\)$"
    with pytest.raises(FileError, match=wrong):
        write_folder(f"{tmp_path}/run", samples.hang(), ())
    assert (tmp_path / "run" / "bad-hosts").is_file()


@each("name", ["status", "runs.jsonl"])
def test_no_link_in_a_folder_is_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "run" / name).symlink_to(tmp_path / "precious")
    with contextlib.suppress(FileError):
        write_folder(f"{tmp_path}/run", samples.hang(), ())
    assert (tmp_path / "precious").read_text() == "kept"


def test_a_folder_that_the_others_have_written_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"out_dir": str(tmp_path), "form": "terminal", "output": None, "quiet": False,
               "verbose": 0, "no_color": True}  # fmt: skip
    for result, whose in (
        (replace(samples.hang(), hears_few=True), "5\n"),
        (replace(samples.hang(), hears_few=False), "1\n"),
    ):
        printer = Printer(options, 0.0)
        (tmp_path / "status").write_text("5\n")  # by those who have met without this task
        printer.result(result, ())
        assert (tmp_path / "status").read_text() == whose
    said = capsys.readouterr().err
    assert said.count(f"{tmp_path} stays as it is") == 1
    assert said.count("has the files about this run") == 1


def test_a_task_says_once_that_the_folder_is_not_usable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    options = {"out_dir": f"{tmp_path}/file/run", "quiet": False}
    printer = Printer(options, 0.0)
    printer.write_files(samples.healthy(), ())
    printer.verdict({"steps": []}, {}, None)
    assert capsys.readouterr().err == (
        f"gpucheck preflight: --out-dir: {tmp_path}/file/run cannot be made: Not a directory\n"
    )


def test_without_a_bad_host_the_file_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_text("gpu-0007\n")
    assert write_files(samples.healthy(), {"exclude_file": str(path)}) == [
        f"{path} leaves out no host"
    ]
    assert path.read_bytes() == b""
    said = write_files(samples.drill(), {"exclude_file": str(path)})
    assert said == [f"{path} leaves out no host: this was a drill, so no host is excluded"]


def test_what_cannot_be_written_is_said_and_the_rest_is_written(tmp_path: Path) -> None:
    result = samples.hang()
    before = result.ending
    said = write_files(
        result, {"exclude_file": "-", "metrics": f"{tmp_path}/no/x", "bundle": f"{tmp_path}/x.zip"}
    )
    assert said[0] == "--exclude-file: a file is needed, not the standard output"
    assert said[1].startswith("--metrics: ")
    assert said[1].endswith("cannot be written: No such file or directory")
    assert left_in(tmp_path) == ["x.zip"]
    assert result.ending == before
    assert preflight_text.render(result).startswith("BROKEN")


def test_a_path_is_said_without_what_acts_on_a_terminal(tmp_path: Path) -> None:
    (said,) = write_files(samples.healthy(), {"metrics": f"{tmp_path}/\x1b[2Jx"})
    assert said.isprintable()


def test_no_fix_names_a_file_that_stays_empty() -> None:
    """Hosts that are only slow are not in --exclude-file, so they are named."""
    ranks = samples.ranks(4, 1)
    slow = samples.culprit("link-slow", ranks[2], "x")
    shown = msgspec.structs.replace(
        samples.result(ranks, slow, launcher="torchrun"), launcher="torchrun"
    )
    text = preflight_text.render(shown)
    assert f"Start the job without {ranks[2].host}." in " ".join(text.split())
    assert "--exclude-file" not in text
    assert exclusion(shown.preflight).hosts == ()
