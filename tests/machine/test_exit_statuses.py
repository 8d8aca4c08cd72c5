"""The exit status of a program, as users know it: Windows ends programs with its own codes."""

import pytest
from each import each

from gpucheck.facts import Answer
from gpucheck.machine import LiveHost, Ran
from gpucheck.machine.process_end import exit_status
from gpucheck.machine.target import ask
from gpucheck.machine.worker_pool.process import worker_exit


@each(
    ("status", "shown"),
    [
        (0, "0"),
        (1, "1"),
        (255, "255"),
        (-11, "-11"),
        (3221225477, "0xC0000005 (access violation)"),
        (3221225781, "0xC0000135 (a DLL was not found)"),
        (3221225785, "0xC0000139 (a DLL lacks a function that is needed)"),
        (3221225595, "0xC000007B (a DLL is damaged or not for this system)"),
        (3221225725, "0xC00000FD (stack overflow)"),
        (3221226505, "0xC0000409 (fail fast, or a buffer overrun on the stack)"),
        (3221225786, "0xC000013A (ended by Ctrl-C)"),
        (0xC0FFFFFF, "0xC0FFFFFF"),
        (0xE06D7363, str(0xE06D7363)),  # a C++ exception: not a code of Microsoft's list
        (0xFFFFFFFF, str(0xFFFFFFFF)),  # sys.exit(-1)
        (0xC0000005 << 4, str(0xC0000005 << 4)),
    ],
)
def test_a_code_of_windows_has_its_meaning(status: int, shown: str) -> None:
    assert str(exit_status(status)) == shown


@each(
    ("stage", "words"),
    [
        ("", "its process ended with exit status 0xC0000005 (access violation)"),
        ("cuInit", "its process ended with exit status 0xC0000005 (access violation) in: cuInit"),
    ],
)
def test_the_crash_of_a_worker_is_named(stage: str, words: str) -> None:
    ended = worker_exit({"status": 0xC0000005}, stage)
    assert (ended.status, ended.kind, ended.detail) == ("crashed", "exit-status", words)
    assert ended.data["exit_status"] == 0xC0000005


def test_a_status_that_is_no_number_is_shown_as_it_is() -> None:
    """Nobody wrote the worker's side: any code in the target interpreter may speak for it."""
    assert worker_exit({"status": ["7"]}, "").detail.endswith("exit status ['7']")


def test_the_crash_of_the_target_interpreter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Answer(Ran(status=0xC0000135), "python")
    monkeypatch.setattr(LiveHost, "run", lambda *_args, **_options: ran)
    reply = ask(LiveHost(), r"C:\venv\Scripts\python.exe")
    assert reply.status == "exit-status"
    words = r"C:\venv\Scripts\python.exe ended with exit status 0xC0000135 (a DLL was not found)"
    assert reply.detail == words
