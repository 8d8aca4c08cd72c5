"""Commands are bounded in time and output, and leave nothing behind that can be killed."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from left_behind import wait_until
from windows_support import as_on_windows

from gpucheck.facts import Answer
from gpucheck.machine import Ran, commands
from gpucheck.machine.base import OUTPUT_LIMIT
from gpucheck.machine.commands import run
from gpucheck.machine.supervised import is_running

pytestmark = pytest.mark.process

APART = """
import os, subprocess
child = subprocess.Popen(["sleep", "60"], preexec_fn=lambda: os.setpgid(0, 0))
{say}
child.wait()
"""
"""A program that waits for a child in a process group of its own, as ninja does."""


def _run(*argv: str, timeout: float = 10.0, stdin: bytes = b"", mark: str = "") -> Answer[Ran]:
    return run(
        argv, timeout=timeout, stdin=stdin, env=os.environ, started=lambda _pid: None, mark=mark
    )


def test_returns_both_streams_and_the_status() -> None:
    assert _run("sh", "-c", "echo out; echo err >&2; exit 3").value == Ran(
        status=3, out="out\n", err="err\n"
    )


def test_a_missing_command_is_missing() -> None:
    assert _run("no-such-command-at-all").missing


def test_a_script_whose_interpreter_is_missing_is_not_missing(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    answer = _run(str(script))
    assert not answer.missing
    assert answer.problem.startswith("did not start: ")
    assert _run(str(tmp_path / "nothing")).missing


def test_what_is_no_program_is_a_problem() -> None:
    answer = _run("/etc")
    assert answer.value is None
    assert not answer.missing


def test_a_hung_command_costs_its_own_time_only() -> None:
    start = time.monotonic()
    answer = _run("sh", "-c", "sleep 60", timeout=0.3)
    assert "in time" in answer.problem
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("keeper", ["sleep 61", "setsid sleep 61"])
def test_a_child_that_keeps_the_pipe_open_takes_no_answer_away(keeper: str) -> None:
    start = time.monotonic()
    answer = _run("sh", "-c", f"{keeper} & echo done; exit 3", timeout=20)
    assert answer.value == Ran(status=3, out="done\n", err="")
    assert time.monotonic() - start < 5


def test_the_second_mark_ends_the_answer_and_the_rest_is_killed() -> None:
    start = time.monotonic()
    text = APART.format(say="print('=MARK=', child.pid, '=MARK=', flush=True)")
    answer = _run(sys.executable, "-c", text, timeout=20, mark="=MARK=")
    assert answer.value is not None
    assert answer.value.status == -signal.SIGKILL
    assert time.monotonic() - start < 5
    child = int(answer.value.out.split()[1])
    assert wait_until(lambda: not is_running(child), 5)


def test_what_a_late_command_has_started_in_other_groups_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    text = APART.format(say=f"open({str(note)!r}, 'w').write(str(child.pid))")
    assert _run(sys.executable, "-c", text, timeout=2).value is None
    child = int(note.read_text())
    assert wait_until(lambda: not is_running(child), 5)


def test_threads_read_where_pipes_cannot_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = as_on_windows(monkeypatch, commands)
    start = time.monotonic()
    for text, status in (
        ("sleep 5 & echo done; exit 3", 3),
        ("echo =MARK=done=MARK=; sleep 5", -signal.SIGKILL),
    ):
        answer = windows.run(
            ["sh", "-c", text], timeout=20.0, stdin=b"", env=os.environ, started=None, mark="=MARK="
        )
        assert answer.value is not None
        assert answer.value.out.replace("=MARK=", "") == "done\n"
        assert answer.value.status == status
    assert time.monotonic() - start < 4
    late = windows.run(["sleep", "5"], timeout=0.3, stdin=b"", env=os.environ, started=None)
    assert "in time" in late.problem


def test_what_a_busy_machine_reads_late_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_GRACE", 0.0)
    answer = _run("sh", "-c", "sleep 5 & head -c 60000 /dev/zero | tr '\\0' x; echo end")
    assert answer.value is not None
    assert answer.value.out == 60000 * "x" + "end\n"


def test_output_without_end_is_cut() -> None:
    answer = _run("sh", "-c", "head -c 3000000 /dev/zero")
    assert answer.value is not None
    assert len(answer.value.out) == OUTPUT_LIMIT


def test_messages_are_in_english_without_colour() -> None:
    answer = _run("sh", "-c", "echo $LC_ALL-$LANGUAGE-$NO_COLOR")
    assert answer.value is not None
    assert answer.value.out == "C--1\n"


def test_stdin_is_given() -> None:
    answer = _run("cat", stdin=b"text")
    assert answer.value is not None
    assert answer.value.out == "text"


def test_no_shell_reads_the_arguments() -> None:
    answer = _run("echo", "$(id)", ";", "ls")
    assert answer.value is not None
    assert answer.value.out == "$(id) ; ls\n"
