"""How things are listed in a sentence: each language has its own commas and conjunctions."""

from collections.abc import Callable, Sequence

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
    return folded(
        sentences, lambda first, next_: say("{sentences} {next}", sentences=first, next=next_)
    )


def in_series(items: Sequence[str]) -> str:
    """Return ``A, B, C``; "" without items."""
    return folded(items, lambda first, next_: say("{those}, {next}", those=first, next=next_))


def in_clauses(parts: Sequence[str]) -> str:
    """Return parts of a sentence with semicolons between them; "" without any."""
    return folded(parts, lambda first, more: say("{said}; {more}", said=first, more=more))


def folded(items: Sequence[str], joined: Callable[[str, str], str]) -> str:
    """Return items joined two by two; "" without items.

    Each half is joined first. So a list of a thousand items is ten sentences deep, not a thousand,
    and every item is copied ten times.
    """
    if len(items) <= 1:
        return items[0] if items else ""
    middle = len(items) // 2
    return joined(folded(items[:middle], joined), folded(items[middle:], joined))
