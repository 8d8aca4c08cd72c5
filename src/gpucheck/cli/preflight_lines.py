"""The lines that one task of a pre-flight prints while it runs; none of them can block it."""

import contextlib
import os
import select
import sys

from gpucheck.cli.text import printable
from gpucheck.language import say, spoken


class ProgressLine:
    """One line on a terminal that shows what is going on."""

    def __init__(self) -> None:
        self._shown = ""

    def show(self, what: str, seconds: float) -> None:
        """Show it, once it takes more than a second."""
        line = spoken(say("{what} ({seconds:.0f} s)", what=what, seconds=seconds))
        if seconds >= 1 and line != self._shown and _can_write(sys.stderr.fileno()):
            self._shown = line
            sys.stderr.write(f"\r\x1b[K{printable(line, limit=120)}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._shown and _can_write(sys.stderr.fileno()):
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _can_write(handle: int) -> bool:
    """Whether a terminal accepts output now: a stopped one (Ctrl-S) would block us."""
    return bool(select.select([], [handle], [], 0)[1])


def print_line(sentence: str, *, err: bool) -> None:
    """Print a sentence; if nobody can read it, the exit status does not change."""
    stream = sys.stderr if err else sys.stdout
    try:
        stream.write(printable(spoken(sentence), limit=600) + "\n")
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
