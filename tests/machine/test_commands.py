"""Commands are bounded in time and output, and leave nothing behind that can be killed."""

import os
import time

import pytest

from gpucheck.facts import Answer
from gpucheck.machine import Ran
from gpucheck.machine.base import OUTPUT_LIMIT
from gpucheck.machine.commands import run

pytestmark = pytest.mark.process


def _run(*argv: str, timeout: float = 10.0, stdin: bytes = b"") -> Answer[Ran]:
    return run(argv, timeout=timeout, stdin=stdin, env=os.environ, started=lambda _pid: None)


def test_returns_both_streams_and_the_status() -> None:
    assert _run("sh", "-c", "echo out; echo err >&2; exit 3").value == Ran(
        status=3, out="out\n", err="err\n"
    )


def test_a_missing_command_is_missing() -> None:
    assert _run("no-such-command-at-all").missing


def test_what_is_no_program_is_a_problem() -> None:
    answer = _run("/etc")
    assert answer.value is None
    assert not answer.missing


def test_a_hung_command_costs_its_own_time_only() -> None:
    start = time.monotonic()
    answer = _run("sh", "-c", "sleep 60", timeout=0.3)
    assert "in time" in answer.problem
    assert time.monotonic() - start < 10


def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_us() -> None:
    start = time.monotonic()
    answer = _run("sh", "-c", "sleep 61 & echo done", timeout=0.5)
    assert answer.value is None
    assert time.monotonic() - start < 10


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
