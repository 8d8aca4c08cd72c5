"""A text as numbered clean lines, and a search for literals in it."""

import bisect
import itertools
import sys
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from gpucheck.language import say
from gpucheck.log_patterns.word_index import ByPiece, LineShapes, by_piece, pieces, runs, shape_of

T = TypeVar("T")


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line without quoting, prefixes and escape sequences; ``number`` is the line number.

    ``speaker`` is the rank or the host that a prefix names ("rank 3"), "" without one.
    """

    number: int
    text: str
    speaker: str = ""
    file: str = ""
    typed: str = ""
    """The text with the punctuation of its language, if that was replaced."""

    @property
    def quoted(self) -> str:
        """What a quote of the line shows."""
        return self.typed or self.text

    @property
    def source(self) -> str:
        """The name of the line in evidence: ``line 12``, with several files ``log.txt line 12``."""
        if not self.number:
            return self.file
        line = say("line {number}", number=self.number)
        return say("{file} {lines}", file=self.file, lines=line) if self.file else line


class Text:
    """Lines of a paste; of a long log only relevant lines, so numbers may have gaps."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)
        texts = [line.text for line in self.lines]
        self.lower = "\n".join(texts).lower()
        if not self.lower.isascii():  # some letters of other scripts change their length
            texts = [text.lower() for text in texts]
            self.lower = "\n".join(texts)
        lengths = map((1).__add__, map(len, texts))  # including the line ends
        self._starts = list(itertools.accumulate(lengths, initial=0))
        self._shapes = LineShapes(self.lower, self._starts)
        self._words = self._shapes.words()
        self._pieces = pieces(self._words)
        self._held: dict[str, bool] = {}
        self._found: dict[tuple[str, int], list[int]] = {}
        self._runs: set[str] | None = None
        self.roles: dict[int, object] = {}
        """The role of each line that was asked for; ``roles`` knows what it is."""
        self.code: dict[int, bool] = {}
        """Whether a line is source code, for each that was asked for."""

    def holds(self, literal: str) -> bool:
        """Whether a lower-case literal occurs in the text."""
        known = self._held.get(literal)
        if known is None:
            word, shape, look = shape_of(literal)
            known = word in self._words and shape in self._shapes.text
            known = known and (not look or literal in self.lower)
            self._held[literal] = known
        return known

    def held(self, literals: tuple[str, ...]) -> list[str]:
        """Return which of the lower-case literals occur in the text, in any order."""
        possible = by_piece(literals).possible(self._pieces)
        return list(filter(self.holds, possible)) if possible else possible

    def possible(self, things: ByPiece[T]) -> list[T]:
        """Return the things whose literal may occur in the text; ``holds`` is exact for each."""
        return things.possible(self._pieces)

    def words(self) -> set[str]:
        """Return the runs of ASCII letters in the text, in lower case."""
        if self._runs is None:
            self._runs = runs(self._words)
        return self._runs

    def find(self, *literals: str, most: int = sys.maxsize) -> list[int]:
        """Return the indexes of the lines that contain one of the lower-case literals, in order.

        Args:
            literals: the texts to search for.
            most: the maximum number of lines per literal.
        """
        held = self.held(literals) if len(literals) > 1 else list(filter(self.holds, literals))
        if len(held) == 1:
            return self._lines_with(held[0], most)
        return sorted({index for literal in held for index in self._lines_with(literal, most)})

    def _lines_with(self, literal: str, most: int) -> list[int]:
        """Return the first lines with a literal; cached, as several messages search for it."""
        found = self._found.get((literal, most))
        if found is not None:
            return found
        _, shape, look = shape_of(literal)
        found = self._search(literal, most) if look else self._shapes.find(shape, most)
        self._found[literal, most] = found
        return found

    def _search(self, literal: str, most: int) -> list[int]:
        found: list[int] = []
        lower, starts, index = self.lower, self._starts, 0
        at = lower.find(literal)
        while at >= 0 and len(found) < most:
            index = bisect.bisect_right(starts, at, index) - 1
            found.append(index)
            at = lower.find(literal, starts[index + 1])
        return found

    def after(self, index: int, most: int) -> list[Line]:
        """Return at most ``most`` lines after an index, up to a gap in the numbers."""
        found = self.lines[index + 1 : index + 1 + most]
        last = self.lines[index]
        for at, line in enumerate(found):
            if line.number - last.number > 1 or line.file != last.file:
                return found[:at]
            last = line
        return found
