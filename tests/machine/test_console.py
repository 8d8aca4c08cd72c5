"""The console of Windows, in the place of whose functions a fake stands."""

import io
import sys
from typing import Any

import pytest
from each import each

from gpucheck import cli
from gpucheck.doctor.run import listening
from gpucheck.interface.live_table import LiveTable
from gpucheck.interface.text import colored
from gpucheck.machine import windows
from gpucheck.programs import examiner
from gpucheck.selftests.outcome import ProgressGrid

_USUAL = 0x0003
"""Processed output, and lines that are wrapped at their end."""
_WITH_ESCAPES = 0x0007
_NO_DIALOGS = 0x8007
"""All of them, and what somebody else has set."""
_ERROR, _OUT = -12, -11
OPTIONS = {"output": None, "no_color": False, "quiet": False}


class Kernel32:
    """A console that can be asked for escape sequences, or one of an older Windows."""

    def __init__(self, mode: int | None = _USUAL, *, can_escape: bool = True) -> None:
        self.modes = dict.fromkeys((_OUT, _ERROR), mode)
        self._can_escape = can_escape
        self.error_mode = 0x0004  # one that somebody else has set

    def GetErrorMode(self) -> int:  # noqa: N802
        return self.error_mode

    def SetErrorMode(self, mode: int) -> int:  # noqa: N802
        before, self.error_mode = self.error_mode, mode
        return before

    def GetStdHandle(self, number: int) -> int:  # noqa: N802  # Windows' name
        return number

    def GetConsoleMode(self, handle: Any, mode: Any) -> int:  # noqa: ANN401, N802
        found = self.modes[_signed(handle)]
        if found is not None:
            mode._obj.value = found  # noqa: SLF001  # what byref() refers to
        return int(found is not None)

    def SetConsoleMode(self, handle: Any, mode: int) -> int:  # noqa: ANN401, N802
        if self._can_escape:
            self.modes[_signed(handle)] = mode
        return int(self._can_escape)


def _signed(handle: Any) -> int:  # noqa: ANN401  # a void *
    value: int = handle.value
    return value - (1 << 64)


class Terminal(io.StringIO):
    """A terminal that is a standard stream of this process."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number


def be_windows(monkeypatch: pytest.MonkeyPatch, kernel32: Kernel32) -> None:
    monkeypatch.setattr(windows, "_WINDOWS", True)
    monkeypatch.setattr(windows, "_kernel32", lambda: kernel32)
    monkeypatch.setattr(sys, "stdout", Terminal(1))
    monkeypatch.setattr(sys, "stderr", Terminal(2))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "")


@each(
    ("kernel32", "takes", "modes"),
    [
        (Kernel32(), True, [_WITH_ESCAPES, _WITH_ESCAPES]),
        (Kernel32(0x0002), True, [_WITH_ESCAPES, _WITH_ESCAPES]),
        (Kernel32(_WITH_ESCAPES, can_escape=False), True, [_WITH_ESCAPES, _WITH_ESCAPES]),
        (Kernel32(can_escape=False), False, [_USUAL, _USUAL]),
        (Kernel32(None), False, [None, None]),
    ],
    ids=["asked", "unprocessed", "on already", "an old console", "no console"],
)
def test_only_a_console_that_follows_escapes_gets_them(
    monkeypatch: pytest.MonkeyPatch, kernel32: Kernel32, modes: list[int | None], *, takes: bool
) -> None:
    be_windows(monkeypatch, kernel32)
    assert colored(OPTIONS) == takes
    drawn: list[ProgressGrid] = []
    monkeypatch.setattr(LiveTable, "__call__", lambda _table, grid: drawn.append(grid))
    with listening(OPTIONS) as listener:
        listener.tests(ProgressGrid())
    assert bool(drawn) == takes
    assert list(kernel32.modes.values()) == modes


@each("stream", [io.StringIO(), Terminal(7)])
def test_a_stream_that_is_no_standard_stream_gets_none(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO
) -> None:
    be_windows(monkeypatch, Kernel32())
    assert not windows.takes_escapes(stream)


def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_kernel32", None)
    assert windows.takes_escapes(Terminal(1))
    windows.no_error_dialogs()


def test_the_command_line_begins_without_dialogs(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel32 = Kernel32()
    be_windows(monkeypatch, kernel32)
    monkeypatch.setattr(cli, "_WINDOWS", True)
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert kernel32.error_mode == _NO_DIALOGS


def test_the_examiner_begins_without_dialogs(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*_handler: object) -> None:
        raise SystemExit

    kernel32 = Kernel32()
    be_windows(monkeypatch, kernel32)
    monkeypatch.setattr("signal.signal", ends)
    with pytest.raises(SystemExit):
        examiner.main()
    assert kernel32.error_mode == _NO_DIALOGS


def test_a_terminal_of_mpirun_may_lead_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    be_windows(monkeypatch, Kernel32())
    assert colored(OPTIONS)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    assert not colored(OPTIONS)
