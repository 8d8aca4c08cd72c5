"""Finds the signatures that stand in a text: by a rare word first, then literal, then pattern."""

import functools
from collections.abc import Sequence

import msgspec

from gpucheck.readers.pasted.base import Line, Text
from gpucheck.signatures import all_signs
from gpucheck.signatures.base import Signature, compiled, words

_MOST_LINES, _MOST_CHARACTERS = 200, 64 * 1024
_MOST_OF_WEAK = 40
_WEAK = 75
"""Of one signature's lines that hold its literal, so much is looked at; of a weak one less."""
_MOST_MATCHES = 4


class Match(msgspec.Struct, frozen=True):
    """A line in which a signature was found, with the named groups of its pattern."""

    slug: str
    signature: Signature
    line: Line
    values: dict[str, str]


@functools.cache
def _by_anchor() -> tuple[dict[bytes, list[tuple[str, Signature]]], list[tuple[str, Signature]]]:
    """Return the signatures by their rarest word, and those without one (other scripts)."""
    anchored: dict[bytes, list[tuple[str, Signature]]] = {}
    loose: list[tuple[str, Signature]] = []
    for slug, signs in all_signs().items():
        for signature in signs.signatures:
            anchor = signature.anchor.encode()
            (anchored.setdefault(anchor, []) if anchor else loose).append((slug, signature))
    return anchored, loose


def candidates(lower: str) -> list[tuple[str, Signature]]:
    """Return the signatures whose literal stands in a lower-case text."""
    anchored, loose = _by_anchor()
    found = [one for word in anchored.keys() & words(lower) for one in anchored[word]]
    return [one for one in (*found, *loose) if one[1].literal in lower]


def search(text: Text, facts: Sequence[str] = ()) -> list[Match]:
    """Return what matches, at most a few lines of each signature.

    ``facts`` are words such as ``fact:wsl`` that signatures may want beside them.
    """
    found = []
    around = _Around("\n".join((text.lower, *facts)))
    for slug, signature in candidates(text.lower):
        if around.fits(signature):
            found.extend(_matches(slug, signature, text))
    return sorted(found, key=lambda match: (match.slug, match.signature.name, match.line.number))


class _Around:
    """What stands anywhere in a text; signatures often want the same words beside them."""

    def __init__(self, lower: str) -> None:
        self._lower = lower
        self._known: dict[str, bool] = {}

    def fits(self, signature: Signature) -> bool:
        """Whether what must stand beside a signature does, and what must not does not."""
        if any(self._has(one) for one in signature.unless):
            return False
        return all(self._has(one) for one in signature.beside)

    def _has(self, words: str) -> bool:
        """Whether one of these stands there, parted by ``|``."""
        if words not in self._known:
            self._known[words] = any(part in self._lower for part in words.split("|"))
        return self._known[words]


def _matches(slug: str, signature: Signature, text: Text) -> list[Match]:
    pattern = compiled(signature.pattern)
    found: list[Match] = []
    left = _MOST_CHARACTERS
    most = _MOST_LINES if signature.weight >= _WEAK or signature.distinct else _MOST_OF_WEAK
    for index in text.find(signature.literal, most=most):
        enough = len(found) == _MOST_MATCHES and not signature.distinct
        if left <= 0 or enough:
            break
        line = text.lines[index]
        left -= len(line.text)
        match = pattern.search(line.text)
        if match is None:
            continue
        values = {name: value for name, value in match.groupdict().items() if value}
        if signature.check is None or signature.check(values):
            found.append(Match(slug, signature, line, values))
    if signature.distinct and len({match.values[signature.distinct] for match in found}) == 1:
        return []
    return found
