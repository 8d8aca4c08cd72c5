"""The changes between two snapshots, for a person."""

from collections.abc import Sequence

from gpucheck.output.diff import Change
from gpucheck.output.layout import Page
from gpucheck.output.words import clean, plural, shown


def render(changes: Sequence[Change], *, color: bool = False, width: int | None = None) -> str:
    """Return one paragraph per change, with the paths of facts as in the report."""
    page = Page(width, color=color)
    page.words(plural(len(changes), "change") if changes else "Nothing changed.", style="bold")
    for change in changes:
        page.words(_said(change), lead=f"{clean(change.fact)}: ", hang=4)
    return page.text()


def _said(change: Change) -> str:
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
