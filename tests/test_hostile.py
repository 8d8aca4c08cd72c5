"""Hostile input and broken surroundings, through the command line where that is possible."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from each import each

from gpucheck.baselines.diff import _by_name, _diff_overview_lists
from gpucheck.facts import Facts
from gpucheck.facts.snapshot import FILE_LIMIT, SnapshotError, load
from gpucheck.machine import LiveHost
from gpucheck.output.redact.pseudonyms import Pseudonyms
from gpucheck.probes.reading.torch_files import MAX_ENTRIES, find_torch
from gpucheck.tables import tables_dir

SOURCE = Path(__file__).resolve().parent.parent / "src"
pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(os.name != "posix", reason="streams, pipes and bytes of Unix"),
]


def gpucheck(
    *words: str, before: str = "", shell_ends: str = "", env: dict[bytes, bytes] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line as a user's shell does: a command before it, redirections after it."""
    command = f'{before} exec "$@" {shell_ends}'
    return subprocess.run(
        ["/bin/sh", "-c", command, "sh", sys.executable, "-m", "gpucheck", *words],
        env={**os.environb, b"PYTHONPATH": os.fsencode(SOURCE), **(env or {})},
        capture_output=True,
        timeout=60,
        check=False,
    )


@each("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_leave_the_diagnosis_as_it_is(closed: str, tmp_path: Path) -> None:
    file = tmp_path / "report"
    words = ("check", "--no-selftest", "--fail-on", "never", "--format", "json", "-o", str(file))
    ran = gpucheck(*words, shell_ends=closed)
    assert (ran.returncode, ran.stderr) == (0, b"")
    probes = {run["name"]: run for run in json.loads(file.read_bytes())["snapshot"]["probes"]}
    assert probes["interpreter"]["status"] == "ok"
    assert "crashed" not in {run["status"] for run in probes.values()}


@pytest.mark.parametrize("words", [("list",), ("--help",), ("--version",)])
def test_without_stdout_nothing_is_a_fault(words: tuple[str, ...]) -> None:
    ran = gpucheck(*words, shell_ends=">&-")
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_no_fault_of_gpucheck() -> None:
    ran = gpucheck("list", shell_ends=">/dev/full")
    assert ran.returncode == 3
    assert ran.stderr.startswith(b"gpucheck: the output cannot be written: ")
    assert gpucheck("--nope", shell_ends="2>/dev/full").returncode == 2


@each("words", [("diff", "{}", "{}"), ("check", "{}"), ("{}",), ("explain", "{}")])
def test_no_error_passes_escape_sequences_on(words: tuple[str, ...]) -> None:
    evil = "\x1b]0;x\x07\x1b[31m\u202e"
    ran = gpucheck(*(word.format(evil) for word in words))
    assert ran.returncode == 2
    assert b"\x1b" not in ran.stderr
    assert "\u202e".encode() not in ran.stderr


@pytest.mark.parametrize("encoding", [b"ascii", b"utf-8"])
def test_lines_of_json_are_json_and_harmless_on_every_stdout(
    encoding: bytes, tmp_path: Path
) -> None:
    evil = "\x9b2J\u202eabc \u00e9\U0001f600"
    file = tmp_path / "tickets.jsonl"
    file.write_text(json.dumps({"id": evil, "text": "CUDA error: out of memory"}), "utf-8")
    ran = gpucheck("triage", "--batch", str(file), "-q", env={b"PYTHONIOENCODING": encoding})
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.isascii()
    assert json.loads(ran.stdout)["id"] == evil


def test_the_json_of_tables_is_ascii(tmp_path: Path) -> None:
    for table in tables_dir().glob("*.json"):
        text = table.read_text("utf-8")
        if table.stem == "xid":
            before, mark, after = text.partition('"short_name": "')
            text = f"{before}{mark}\u202e{after}"
        (tmp_path / table.name).write_text(text, "utf-8")
    ran = gpucheck("tables", "diff", str(tmp_path), "--format", "json")
    assert (ran.returncode, ran.stderr) == (1, b"")
    assert ran.stdout.isascii()
    assert len(json.loads(ran.stdout)["changes"]) == 1


@pytest.mark.parametrize("words", [("--help",), ("check", "--help"), ("--nope",)])
def test_a_stdout_that_lacks_chinese_gets_escapes(words: tuple[str, ...]) -> None:
    env = {b"PYTHONIOENCODING": b"latin-1"}
    ran = gpucheck("--lang", "zh", *words, env=env)
    assert ran.returncode == (2 if "--nope" in words else 0)
    assert rb"\u" in ran.stdout + ran.stderr
    assert b"UnicodeEncodeError" not in ran.stderr


def test_variables_and_folders_that_are_no_utf8(tmp_path: Path) -> None:
    bad = b"/a\xff\x1b[31m"
    names = (b"HOME", b"USER", b"LD_LIBRARY_PATH", b"CUDA_HOME", b"VIRTUAL_ENV", b"PATH")
    env = dict.fromkeys(names, bad)
    file = tmp_path / "report.json"
    python = tmp_path / "a\udcff"
    python.symlink_to(sys.executable)
    ran = gpucheck("check", "--no-selftest", "--fail-on", "never", "--format", "json", "-o",
                   str(file), "--python", str(python), env=env)  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, b"")
    runs = json.loads(file.read_bytes())["snapshot"]["probes"]
    assert [run for run in runs if run["status"] in ("crashed", "timed-out")] == []


def test_an_interpreter_of_an_odd_name_that_is_not_there_is_refused_harmlessly() -> None:
    ran = gpucheck("--python", "/a\udcff\x1b[31m", env={})
    assert ran.returncode == 2
    assert ran.stderr == b"Error: --python: /a??[31m does not exist\n"


def _interpreter(tmp_path: Path, answer: str) -> str:
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nmark = sys.argv[-1]\nprint(mark + {answer} + mark)\n"
    )
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("answer", ["'{\"x\":' + '[' * 300000", "'{\"x\":' + '9' * 900000 + '}'"])
def test_an_interpreter_that_answers_nonsense_crashes_no_probe(tmp_path: Path, answer: str) -> None:
    ran = gpucheck("check", "--no-selftest", "--format", "json", "--skip", "kernel_log", "--python",
                   _interpreter(tmp_path, answer))  # fmt: skip
    probes = json.loads(ran.stdout)["snapshot"]["probes"]
    assert "crashed" not in {run["status"] for run in probes}
    assert ran.returncode == 3


def test_a_torch_that_was_not_looked_for_is_not_missing() -> None:
    many = [f"/nowhere/{number}" for number in range(MAX_ENTRIES + 1)]
    assert find_torch(LiveHost(), many)[1] == [
        "sys.path has 257 entries, of which gpucheck has searched 256"
    ]
    assert find_torch(LiveHost(), many[1:]) == ([], [])
    (problem,) = find_torch(LiveHost(), ["/nowhere/\ufffd"])[1]
    assert "not UTF-8" in problem


def test_a_search_neither_waits_for_a_pipe_nor_maps_a_giant(tmp_path: Path) -> None:
    pipe, giant = tmp_path / "libcuda.so", tmp_path / "libtorch.so"
    os.mkfifo(pipe)
    start = time.monotonic()
    assert LiveHost().find_in_file(str(pipe), b"x").problem
    with contextlib.suppress(OSError):  # not every file system lets a file claim so much
        giant.touch()
        os.truncate(giant, 1 << 42)
        assert LiveHost().find_in_file(str(giant), b"x").problem
    assert time.monotonic() - start < 20


def test_a_snapshot_without_end_is_not_read_to_its_end() -> None:
    with pytest.raises(SnapshotError, match=f"larger than {FILE_LIMIT >> 20} MiB"):
        load(Path("/dev/zero"))


def test_a_snapshot_may_come_through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["/bin/sh", "-c", 'echo "{}" > "$1"', "sh", str(pipe)])
    with pytest.raises(SnapshotError, match="is not a gpucheck snapshot"):
        load(pipe)
    assert writer.wait(10) == 0


def test_limits_of_the_surroundings_are_no_fault_of_gpucheck() -> None:
    ran = gpucheck("check", "--no-selftest", before="ulimit -n 6;")
    assert ran.returncode == 3
    assert ran.stderr.startswith(b"gpucheck: a limit on processes, files or memory ")


class _Named(Facts, frozen=True, kw_only=True):
    project: str = "a"


def test_long_lists_of_a_hostile_snapshot_take_no_quadratic_time() -> None:
    start = time.process_time()
    assert len(_by_name([_Named()] * 60_000, "project")) == 60_000
    old, new = [f"x{n}" for n in range(60_000)], [f"y{n}" for n in range(60_000)]
    assert "59988 more" in _diff_overview_lists(old, new)
    pseudonyms = Pseudonyms()
    for number in range(60_000):
        pseudonyms.path(f"C:\\u{number}\\x")
    assert pseudonyms.path("C:\\U7\\x") == pseudonyms.path("C:\\u7\\x")
    assert time.process_time() - start < 20
