"""How things are listed in a sentence: each language has its own commas and conjunctions."""

from collections.abc import Sequence

from gpucheck.language.sentence import say


def listed(items: Sequence[str]) -> str:
    """Return ``A``, ``A and B``, ``A, B and C``; "" without items."""
    if len(items) <= 1:
        return items[0] if items else ""
    return say("{those} and {last}", those=in_series(items[:-1]), last=items[-1])


def any_of(items: Sequence[str]) -> str:
    """Return ``A``, ``A or B``, ``A, B or C``; "" without items."""
    if len(items) <= 1:
        return items[0] if items else ""
    return say("{those} or {last}", those=in_series(items[:-1]), last=items[-1])


def and_more(words: str, count: int) -> str:
    """Return words, and in brackets how many more there are; only the words if there are none."""
    return say("{words} (and {count} more)", words=words, count=count) if count > 0 else words


def in_turn(sentences: Sequence[str]) -> str:
    """Return sentences one after another; "" without any."""
    if not sentences:
        return ""
    words: str = sentences[0]
    for sentence in sentences[1:]:
        words = say("{sentences} {next}", sentences=words, next=sentence)
    return words


def in_series(items: Sequence[str]) -> str:
    """Return ``A, B, C``; "" without items."""
    if not items:
        return ""
    words: str = items[0]
    for item in items[1:]:
        words = say("{those}, {next}", those=words, next=item)
    return words
