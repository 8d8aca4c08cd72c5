"""A change between two snapshots in words."""

from gpucheck.output.diff import Change
from gpucheck.output.words import clean, shown


def said_of(change: Change) -> str:
    """Return what became of a fact: what it was and what it is."""
    field = change.fact.rpartition(".")[2]
    old, new = shown(change.before, field), shown(change.after, field)
    why = f" ({clean(change.reason)})" if change.reason else ""
    if change.change == "added":
        return f"new, {new}"
    if change.change == "removed":
        return f"gone, was {old}"
    if change.change == "became known":
        return f"was unknown{why}, is {new}"
    if change.change == "became unknown":
        return f"was {old}, is unknown{why}"
    if _words(change.before) and _words(change.after):
        return _lists(change.before, change.after)
    return f"was {old}, is {new}"


def _lists(old: list[str], new: list[str]) -> str:
    """Return only the differences between two lists of words."""
    before, after = set(old), set(new)
    gone = [one for one in old if one not in after]
    come = [one for one in new if one not in before]
    told = [f"gone {shown(gone)}"] if gone else []
    told += [f"new {shown(come)}"] if come else []
    return "; ".join(told) or f"the order is now {shown(new)}"


def _words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
