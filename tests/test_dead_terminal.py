"""A terminal that is gone while gpucheck draws on it, such as that of a closed SSH session."""

import os
import pty
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

import pytest

from gpucheck.cluster.run_command import ProgressLine, print_line
from gpucheck.doctor.run import Progress
from gpucheck.interface.live_table import LiveTable
from gpucheck.selftests.outcome import ProgressGrid


@pytest.fixture
def terminal() -> Iterator[tuple[TextIO, int]]:
    """A terminal, and the descriptor of its window."""
    window, line = pty.openpty()
    os.set_blocking(window, False)
    with open(line, "w", encoding="utf-8") as out:  # noqa: PTH123  # a descriptor
        yield out, window


def drawn_by(kind: str, out: TextIO) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return what draws a line, and what removes it."""
    if kind == "pre-flight":
        line, seconds = ProgressLine(), iter(range(1, 100))
        return lambda: line.show("waiting", next(seconds)), line.clear
    if kind == "self-tests":
        table = LiveTable(out)
        return lambda: table(ProgressGrid()), table.clear
    progress = Progress(out)
    return lambda: progress(["nvml"], 2.0), progress.clear


@pytest.mark.parametrize("kind", ["pre-flight", "self-tests", "check"])
@pytest.mark.parametrize("when", ["before", "after", "removed"])
def test_a_terminal_that_is_gone_ends_nothing(
    terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch, kind: str, when: str
) -> None:
    monkeypatch.setattr("gpucheck.interface.live_table._EVERY", 0)
    out, window = terminal
    monkeypatch.setattr(sys, "stderr", out)
    show, clear = drawn_by(kind, out)
    if when != "before":
        show()
        assert os.read(window, 1000)
    os.close(window)
    if when != "removed":
        show()
        show()
    clear()
    out.flush()  # as at the exit


def test_a_sentence_for_a_terminal_that_is_gone_ends_nothing(
    terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, window = terminal
    monkeypatch.setattr(sys, "stderr", out)
    os.close(window)
    print_line("nobody reads this", err=True)
    out.flush()


def test_a_stream_that_is_closed_ends_nothing(
    terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, window = terminal
    monkeypatch.setattr(sys, "stderr", out)
    line = ProgressLine()
    out.close()
    line.show("waiting", 2.0)
    line.clear()
    os.close(window)
