"""A live table of the running self-tests: tests and places, redrawn in place."""

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from gpucheck.interface.text import LiveOut, printable
from gpucheck.language import in_series, say, spoken
from gpucheck.language.columns import cut_to, padded
from gpucheck.selftests.outcome import ProgressGrid, State

_WORDS: dict[State, str] = {
    "waiting": ".",
    "running": "...",
    "passed": say("ok"),
    "failed": say("FAILED"),
    "skipped": say("skipped"),
    "timed-out": say("HANGS"),
    "crashed": say("CRASHED"),
}
_EVERY = 0.2  # seconds; chosen: fast enough to look alive, slow enough to be read
# Columns: the longest name of a self-test has 17 characters, the longest state (CRASHED) 7.
_NAME = 20
_CELL = 9
_LONGEST_STAGE = 60  # chosen: with the place before it, a stage fits a line of 80


class LiveTable:
    """Draws the table on a terminal, five times a second, and removes it at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = LiveOut(out)
        self._lines = 0
        self._drawn = 0.0

    def __call__(self, grid: ProgressGrid) -> None:
        """Draw the table when it is time to."""
        now = time.monotonic()
        if now - self._drawn < _EVERY:
            return
        self._drawn = now
        size = shutil.get_terminal_size()
        lines = [cut_to(line, size.columns - 1) for line in table(grid, size.columns)]
        lines = lines[: max(1, size.lines - 1)]
        self._out.write(self._back() + "".join(f"\x1b[K{line}\n" for line in lines))
        self._lines = len(lines)

    def clear(self) -> None:
        """Remove the table."""
        if self._lines:
            self._out.write(self._back())
            self._lines = 0

    def _back(self) -> str:
        return f"\x1b[{self._lines}F\x1b[J" if self._lines else ""


def table(grid: ProgressGrid, columns: int) -> list[str]:
    """Return the lines of the table: a row a test, a column a place while they fit."""
    places = list(dict.fromkeys(place for cells in grid.cells.values() for place in cells))
    seconds = time.monotonic() - grid.started
    lines = [spoken(say("self-tests ({seconds:.0f} s)", seconds=seconds))]
    if _NAME + _CELL * len(places) < columns:
        lines[0] = _row(lines[0], [place[: _CELL - 1] for place in places])
        for test, cells in grid.cells.items():
            states = [_WORDS[cells[place]] if place in cells else "" for place in places]
            lines.append(_row(test, states))
    else:
        for test, cells in grid.cells.items():
            counts = Counter(cells.values())
            words = [
                say("{count} {outcome}", count=count, outcome=_WORDS[state])
                for state, count in counts.items()
            ]
            lines.append(f"{padded(test, _NAME)}{spoken(in_series(words))}")
    lines += _stages(grid)
    return [line.rstrip() for line in lines]


def _row(name: str, cells: Sequence[str]) -> str:
    return padded(name, _NAME) + "".join(padded(spoken(cell), _CELL) for cell in cells)


def _stages(grid: ProgressGrid) -> list[str]:
    """Return what the places are about to do, the first few of those that run."""
    running = {
        place
        for cells in grid.cells.values()
        for place, state in cells.items()
        if state == "running"
    }
    stages = [
        f"  {place}: {printable(stage, limit=_LONGEST_STAGE)}"
        for place, stage in grid.stages.items()
        if place in running and stage
    ]
    return stages[:3]
