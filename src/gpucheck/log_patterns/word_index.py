"""An index of a text, which excludes most literals without searching for them."""

import bisect
import functools
import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar

_SHAPE = bytes.maketrans(b"0123456789", b"0" * 10)
"""Replaces every ASCII digit by 0."""
_LETTERS = bytes(code if chr(code) in "abcdefghijklmnopqrstuvwxyz" else 32 for code in range(256))
"""Replaces every byte that is not an ASCII letter by a blank."""
_FREQUENT = b"0etaoinsrhldcumf/._-gpwybvk"
"""Characters of technical texts, the most frequent first."""
_RARITY = bytes(_FREQUENT.find(code) % 64 for code in range(256))
_PIECE = 4
"""Bytes of a piece; four are converted to a number at once."""
_MOST_IN_PIECES = 32 * 1024
"""Bytes of different words; in more of them most pieces would occur."""

T = TypeVar("T")


class LineShapes:
    """The different lines of a lower-case text, with each digit as 0, and their positions.

    Without their digits the lines of a log are a few that repeat, and only these are searched.
    """

    def __init__(self, lower: str, starts: list[int]) -> None:
        shaped = _shaped(lower)
        lines = shaped.split("\n")
        if len(lines) != len(starts) - 1:  # a line contains line ends
            lines = [shaped[first : last - 1] for first, last in itertools.pairwise(starts)]
        at: dict[str, list[int]] = {}
        for index, line in enumerate(lines):
            if line in at:
                at[line].append(index)
            else:
                at[line] = [index]
        self.text = "\n".join(at)
        """The lines, one of each."""
        self._at = list(at.values())
        self._starts = list(itertools.accumulate(map((1).__add__, map(len, at)), initial=0))

    def words(self) -> str:
        """Return the different words of the lines."""
        return " ".join(set(self.text.split()))

    def find(self, shape: str, most: int) -> list[int]:
        """Return the indexes of the first lines that contain a shape, in order."""
        starts, found, index = self._starts, [], 0
        at = self.text.find(shape)
        while at >= 0:
            index = bisect.bisect_right(starts, at, index) - 1
            found.append(self._at[index])
            at = self.text.find(shape, starts[index + 1])
        if len(found) == 1:
            return found[0][:most]
        return sorted(itertools.chain.from_iterable(found))[:most]


@functools.lru_cache(maxsize=8192)  # 352 labelled tickets need 1,376
def shape_of(literal: str) -> tuple[str, str, bool]:
    """Return the longest word and line of a literal, with each digit as 0.

    The third value is whether the literal itself has to be searched too: it has digits or several
    lines.
    """
    shaped = _shaped(literal)
    word = max(shaped.split(), key=len, default="")
    return word, max(shaped.split("\n"), key=len), "0" in shaped or "\n" in shaped


def runs(lower: str) -> set[str]:
    """Return the runs of ASCII letters in a lower-case text."""
    return set(lower.encode("utf-8", "replace").translate(_LETTERS).decode("ascii").split())


def pieces(words: str) -> set[int] | None:
    """Return every sequence of four bytes in these words; None if there are too many words."""
    data = words.encode("utf-8", "replace")
    if len(data) > _MOST_IN_PIECES:
        return None
    found: set[int] = set()
    for first in range(min(_PIECE, len(data))):
        last = len(data) - (len(data) - first) % _PIECE
        found.update(memoryview(data)[first:last].cast("I"))
    return found


class ByPiece(Generic[T]):
    """Things by a piece of the literal that a text must contain for them to be relevant.

    One look-up returns the few of them that may be relevant to a text.
    """

    def __init__(self, things: Iterable[tuple[str, T]]) -> None:
        every = [(_pieces_of(literal), thing) for literal, thing in things]
        frequent = Counter(piece for own, _ in every for piece in own)
        self._by_piece: dict[int, list[T]] = {}
        self._short = [thing for own, thing in every if not own]
        for own, thing in every:
            if own:
                rarest = min(own, key=lambda piece: (frequent[piece], own[piece]))
                self._by_piece.setdefault(rarest, []).append(thing)
        self._pieces = frozenset(self._by_piece)

    def possible(self, pieces: set[int] | None) -> list[T]:
        """Return the things whose literal may occur in a text with these pieces, in any order."""
        if pieces is None:
            known = self._pieces
        elif self._pieces.isdisjoint(pieces):
            return self._short
        else:
            known = self._pieces & pieces
        return [thing for piece in known for thing in self._by_piece[piece]] + self._short


@functools.lru_cache(maxsize=4096)  # groups of literals; 352 labelled tickets need 297
def by_piece(literals: tuple[str, ...]) -> ByPiece[str]:
    """Return literals by their pieces."""
    return ByPiece((literal, literal) for literal in literals)


def has_piece(literal: str) -> bool:
    """Whether a literal has a word that is long enough for a piece."""
    return bool(_pieces_of(literal))


def _pieces_of(literal: str) -> dict[int, int]:
    """Return the pieces of a literal's words, and how frequent the characters of each are."""
    words = _shaped(literal).encode("utf-8", "replace").split()
    every = [word[at : at + _PIECE] for word in words for at in range(len(word) - _PIECE + 1)]
    return {
        memoryview(piece).cast("I")[0]: -sum(_RARITY[code] for code in piece) for piece in every
    }


def _shaped(lower: str) -> str:
    """Return a text of the same length with each digit as 0."""
    return lower.encode("utf-8", "replace").translate(_SHAPE).decode()
