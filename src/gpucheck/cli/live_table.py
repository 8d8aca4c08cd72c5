"""A live table of the running self-tests: tests and places, redrawn in place."""

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from gpucheck.cli.text import printable
from gpucheck.selftest.watch import Board, State

_WORDS: dict[State, str] = {
    "waiting": ".",
    "running": "...",
    "passed": "ok",
    "failed": "FAILED",
    "skipped": "skipped",
    "timed-out": "HANGS",
    "crashed": "CRASHED",
}
_EVERY = 0.2
_NAME = 20
_CELL = 9
_LONGEST_STAGE = 60


class LiveTable:
    """Draws the table on a terminal, five times a second, and removes it at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines = 0
        self._drawn = 0.0

    def __call__(self, board: Board) -> None:
        """Draw the table if it is time to."""
        now = time.monotonic()
        if now - self._drawn < _EVERY:
            return
        self._drawn = now
        size = shutil.get_terminal_size()
        lines = [line[: size.columns - 1] for line in table(board, size.columns)]
        lines = lines[: max(1, size.lines - 1)]
        self._out.write(self._back() + "".join(f"\x1b[K{line}\n" for line in lines))
        self._out.flush()
        self._lines = len(lines)

    def clear(self) -> None:
        """Remove the table."""
        if self._lines:
            self._out.write(self._back())
            self._out.flush()
            self._lines = 0

    def _back(self) -> str:
        return f"\x1b[{self._lines}F\x1b[J" if self._lines else ""


def table(board: Board, columns: int) -> list[str]:
    """Return the lines of the table: a row per test, a column per place if they fit."""
    places = list(dict.fromkeys(place for cells in board.cells.values() for place in cells))
    seconds = time.monotonic() - board.started
    lines = [f"self-tests ({seconds:.0f} s)"]
    if _NAME + _CELL * len(places) < columns:
        lines[0] = _row(lines[0], [place[: _CELL - 1] for place in places])
        for test, cells in board.cells.items():
            states = [_WORDS[cells[place]] if place in cells else "" for place in places]
            lines.append(_row(test, states))
    else:
        for test, cells in board.cells.items():
            counts = Counter(cells.values())
            words = ", ".join(f"{count} {_WORDS[state]}" for state, count in counts.items())
            lines.append(f"{test:<{_NAME}}{words}")
    lines += _stages(board)
    return [line.rstrip() for line in lines]


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{_NAME}}" + "".join(f"{cell:<{_CELL}}" for cell in cells)


def _stages(board: Board) -> list[str]:
    """Return the announced step of the running places, the first few of them."""
    running = {
        place for cells in board.cells.values() for place, one in cells.items() if one == "running"
    }
    said = [
        f"  {place}: {printable(stage, limit=_LONGEST_STAGE)}"
        for place, stage in board.stages.items()
        if place in running and stage
    ]
    return said[:3]
