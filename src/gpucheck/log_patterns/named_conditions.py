"""Named conditions: numbers in a message that decide between two causes."""

from collections.abc import Callable, Mapping

from gpucheck.log_patterns.form import NamedCondition
from gpucheck.tables.packages import is_kept_compatible
from gpucheck.tables.versions import at_least, parse

_UNITS = {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_HELD = 0.3
"""A share of the GPU's memory. If more is neither free nor torch's, another process has it."""
_CONTEXT = 1.0 * 2**30
"""Bytes that a CUDA context and its libraries may use besides the memory that torch counts."""
_LITTLE_FREE = 0.1  # chosen: with 0.8, one of 752 labelled tickets gets another answer
_OWN = 0.5
"""The share of a process's memory above which the tensors that torch counts are in it."""


def holds(name: NamedCondition, values: Mapping[str, str]) -> bool:
    """Whether a condition holds for the named groups of a match."""
    return _CONDITIONS[name](values)


def _held_by_others(values: Mapping[str, str]) -> bool:
    """Whether an out-of-memory message shows memory that is neither free nor of this process."""
    if _asks_for_more_than_all(values):
        return False
    total, own = _bytes(values, "total"), _bytes(values, "reserved")
    free = _bytes(values, "free")
    if total is None or own is None or free is None or free > _LITTLE_FREE * total:
        return False
    others = total - own - free
    return others > _HELD * total and others > _CONTEXT


def _held_by_a_process(values: Mapping[str, str]) -> bool:
    """Whether another process holds more than a gibibyte.

    In a container a process does not know its own number: what its own tensors explain is its own.
    """
    if _asks_for_more_than_all(values):
        return False
    number, _, unit = values.get("held", "").partition(" ")
    held, own = _size(number, unit), _bytes(values, "reserved") or 0.0
    return held > _CONTEXT and own < _OWN * held


def _fits_into_what_is_free(values: Mapping[str, str]) -> bool:
    """Whether less is requested than is free: it lies in several pieces."""
    asked, free = _bytes(values, "asked"), _bytes(values, "free")
    return asked is not None and free is not None and asked <= free


def _fewer_workers(values: Mapping[str, str]) -> bool:
    """Whether fewer workers came than the world has."""
    return int(values["count"]) < int(values["world"])


def _not_a_newer_wheel(values: Mapping[str, str]) -> bool:
    """Whether a wheel is not what torch pins, nor a newer one that its makers keep compatible."""
    have, pinned = parse(values.get("have")), parse(values.get("pinned"))
    if have is None or pinned is None or not is_kept_compatible(values.get("wheel") or ""):
        return True
    return have[0] != pinned[0] or not at_least(have, pinned)


def _asks_for_more_than_all(values: Mapping[str, str]) -> bool:
    """Whether more is requested at once than the GPU has: then other processes do not matter."""
    asked, total = _bytes(values, "asked"), _bytes(values, "total")
    return asked is not None and total is not None and asked > total


def _bytes(values: Mapping[str, str], name: str) -> float | None:
    if name not in values:
        return None
    return _size(values[name], values.get(f"{name}_unit", "bytes"))


def _size(number: str, unit: str) -> float:
    try:
        return float(number) * _UNITS.get(unit, 0.0)
    except ValueError:
        return 0.0


_CONDITIONS: dict[NamedCondition, Callable[[Mapping[str, str]], bool]] = {
    "memory-held-by-others": _held_by_others,
    "memory-held-by-a-process": _held_by_a_process,
    "fits-into-what-is-free": _fits_into_what_is_free,
    "fewer-workers-than-expected": _fewer_workers,
    "not-a-newer-wheel": _not_a_newer_wheel,
}
