"""The lines that one task of a pre-flight prints while it runs; none of them can block it."""

import select
import sys
from typing import TextIO

from gpucheck.interface.live_out import LiveOut, to_nowhere
from gpucheck.interface.text import printable
from gpucheck.language import say, spoken


class ProgressLine:
    """One line on a terminal that shows what is going on."""

    def __init__(self) -> None:
        self._out = LiveOut(sys.stderr)
        self._shown = ""

    def show(self, what: str, seconds: float) -> None:
        """Show it, once it takes more than a second."""
        line = spoken(say("{what} ({seconds:.0f} s)", what=what, seconds=seconds))
        if seconds >= 1 and line != self._shown and _can_write(sys.stderr):
            self._shown = line
            self._out.write(f"\r\x1b[K{printable(line, limit=120)}")

    def clear(self) -> None:
        """Remove the line."""
        if self._shown and _can_write(sys.stderr):
            self._out.write("\r\x1b[K")


def _can_write(terminal: TextIO) -> bool:
    """Whether a terminal accepts output now: a stopped one (Ctrl-S) would block us."""
    try:
        return bool(select.select([], [terminal], [], 0)[1])
    except (OSError, ValueError):
        return False


def print_line(sentence: str, *, err: bool) -> None:
    """Print a sentence; if nobody can read it, the exit status does not change."""
    stream = sys.stderr if err else sys.stdout
    try:
        stream.write(printable(spoken(sentence), limit=600) + "\n")
        stream.flush()
    except (OSError, ValueError):
        to_nowhere(stream)
