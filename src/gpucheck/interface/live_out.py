"""What is drawn on a terminal while gpucheck works; a terminal that is gone ends nothing."""

import contextlib
import os
from typing import TextIO


class LiveOut:
    """A terminal for lines that come and go. After the first failure nothing is drawn any more."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_gone = False

    def write(self, text: str) -> None:
        """Write the text at once, if anybody can still see it."""
        if self._is_gone:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except BlockingIOError:
            self._is_gone = True
        except (OSError, ValueError):
            self._is_gone = True
            to_nowhere(self._out)


def to_nowhere(stream: TextIO) -> None:
    """Have the rest of a stream go nowhere: what it still holds would fail at the exit, too."""
    with contextlib.suppress(OSError, ValueError):
        from gpucheck.machine.children import nothing  # noqa: PLC0415  # rarely needed

        null = nothing()
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)
