"""A change between two snapshots in words."""

from gpucheck.baselines.diff import Change
from gpucheck.language import say
from gpucheck.output.words import clean, in_parts, shown


def change_words(change: Change) -> str:
    """Return what became of a fact: what it was and what it is."""
    field = change.fact.rpartition(".")[2]
    old, new = shown(change.before, field), shown(change.after, field)
    why = clean(change.reason)
    if change.change == "added":
        return say("new, {new}", new=new)
    if change.change == "removed":
        return say("gone, was {old}", old=old)
    if change.change == "became known":
        if why:
            return say("was unknown ({why}), is {new}", why=why, new=new)
        return say("was unknown, is {new}", new=new)
    if change.change == "became unknown":
        if why:
            return say("was {old}, is unknown ({why})", old=old, why=why)
        return say("was {old}, is unknown", old=old)
    if _words(change.before) and _words(change.after):
        return _lists(change.before, change.after)
    return say("was {old}, is {new}", old=old, new=new)


def _lists(old: list[str], new: list[str]) -> str:
    """Return only the differences between two lists of words."""
    before, after = set(old), set(new)
    gone = [item for item in old if item not in after]
    come = [item for item in new if item not in before]
    parts = [say("gone {items}", items=shown(gone))] if gone else []
    parts += [say("new {items}", items=shown(come))] if come else []
    return in_parts(parts) or say("the order is now {items}", items=shown(new))


def _words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
