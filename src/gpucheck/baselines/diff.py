"""The changes between two snapshots, fact by fact, without those that happen by themselves."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import msgspec

from gpucheck.facts import Facts, Section, builtins
from gpucheck.facts.snapshot import Snapshot
from gpucheck.output.redact import redact

SCHEMA = "gpucheck.diff/1"
VOLATILE = frozenset(
    (
        "sources", "problems", "memory_used_bytes", "memory_free_bytes", "processes", "pid",
        "sm_clock_mhz", "throttle", "temperature_c", "power_w", "utilization_percent",
        "pcie_generation", "link_speed", "ecc_corrected", "seconds_ago", "shm_free_bytes",
        "seconds", "began", "import_seconds", "measurements", "under_load", "hash_seconds",
        "wheel_mirror",
    )
)  # fmt: skip
"""Facts that change by themselves."""
_RUN_AT_WILL = ("selftests", "wheel_hashes", "recording")
"""Sections that exist only on request; if only one snapshot has them, it is not a change."""
_KEYS = ("uuid", "pci_address", "address", "path", "executable", "project", "command", "library",
         "device_name", "index")  # fmt: skip
"""Fields that identify an item of a list, the most reliable first."""

How = Literal["changed", "added", "removed", "became known", "became unknown"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One fact that has changed. An item of a list is identified by its name, not its place.

    ``before`` and ``after`` are None if unknown or absent; ``change`` says which. A whole section
    that became known or unknown is ``"known"``. ``reason`` says why it is unknown.
    """

    fact: str
    change: How
    before: Any
    after: Any
    reason: str = ""


def compare(before: Snapshot, after: Snapshot) -> list[Change]:
    """Return the changes; if one snapshot is redacted, the other one is redacted first."""
    if before.redacted != after.redacted:
        before, after = redact(before), redact(after)
    changes: list[Change] = []
    for name, old in before.sections.items():
        new = after.sections[name]
        if name in _RUN_AT_WILL and (_silent(old) or _silent(new)):
            continue
        if _silent(old) != _silent(new):
            changes.append(_section(name, old, new))
        else:
            changes += _groups(name, old, new)
    return changes


def as_json(changes: Sequence[Change]) -> dict[str, Any]:
    """Return the changes as JSON-like data (schema ``gpucheck.diff/1``)."""
    return {"schema": SCHEMA, "changes": builtins(list(changes))}


def _silent(section: Section) -> bool:
    fields = [field for field in section.__struct_fields__ if field not in VOLATILE]
    return all(getattr(section, field) is None for field in fields)


def _section(name: str, old: Section, new: Section) -> Change:
    """Return one change for a whole section that became known or unknown."""
    silent = new if _silent(new) else old
    why = silent.problem("*") or next(iter(silent.problems.values()), "")
    if silent is new:
        return Change(fact=name, change="became unknown", before="known", after=None, reason=why)
    return Change(fact=name, change="became known", before=None, after="known", reason=why)


def _groups(path: str, old: Facts, new: Facts) -> Iterator[Change]:
    for field in old.__struct_fields__:
        if field in VOLATILE:
            continue
        before, after = getattr(old, field), getattr(new, field)
        if before is None and after is not None:
            yield Change(
                fact=f"{path}.{field}",
                change="became known",
                before=None,
                after=_plain(after),
                reason=old.problem(field),
            )
        elif after is None and before is not None:
            yield Change(
                fact=f"{path}.{field}",
                change="became unknown",
                before=_plain(before),
                after=None,
                reason=new.problem(field),
            )
        else:
            yield from _values(f"{path}.{field}", before, after)


def _values(path: str, old: Any, new: Any) -> Iterator[Change]:  # noqa: ANN401  # facts of any type
    if old == new:
        return
    if _things(old) and _things(new):
        yield from _lists(path, cast("list[Facts]", old), cast("list[Facts]", new))
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _entries(f"{path}.{key}", key, old, new)
    else:
        yield Change(fact=path, change="changed", before=_plain(old), after=_plain(new))


def _entries(path: str, key: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    if key not in old:
        yield Change(fact=path, change="added", before=None, after=_plain(new[key]))
    elif key not in new:
        yield Change(fact=path, change="removed", before=_plain(old[key]), after=None)
    elif isinstance(old[key], Facts):
        yield from _groups(path, old[key], new[key])
    else:
        yield from _values(path, old[key], new[key])


def _things(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Facts) for item in value)


def _lists(path: str, old: list[Facts], new: list[Facts]) -> Iterator[Change]:
    """Match the items of two lists by a field that identifies them in both, or by their places."""
    key = next((key for key in _KEYS if _names(old, key) and _names(new, key)), "")
    before, after = _by_name(old, key), _by_name(new, key)
    for name in dict.fromkeys((*before, *after)):
        yield from _entries(f"{path}[{name}]", name, before, after)


def _names(things: list[Facts], key: str) -> bool:
    return all(getattr(thing, key, None) not in (None, "") for thing in things)


def _by_name(things: list[Facts], key: str) -> dict[str, Facts]:
    """Return the items by name; an item with the same name as another is numbered."""
    named: dict[str, Facts] = {}
    numbers: dict[str, int] = {}
    for at, thing in enumerate(things):
        name = str(getattr(thing, key)) if key else str(at)
        number = numbers.get(name, 0) + 1
        while (unique := name if number == 1 else f"{name} #{number}") in named:
            number += 1
        numbers[name] = number
        named[unique] = thing
    return named


def _plain(value: object) -> object:
    """Return JSON-like data without sources and problems."""
    if isinstance(value, Facts):
        return {
            field: _plain(getattr(value, field))
            for field in value.__struct_fields__
            if field not in ("sources", "problems") and getattr(value, field) is not None
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return builtins(value)
