"""Probes: one module is one section of facts and the ``collect`` function that fills it.

The types of ``collect``'s parameters declare what a probe needs: a :class:`Host`, tables, or other
sections. A probe that needs a section runs after the one that fills it. Nothing is registered:
every module in this folder is a probe, and what they share is in ``reading``.
"""

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gpucheck._about import modules_of
from gpucheck.facts import Section


class Probe(msgspec.Struct, frozen=True):
    """A module of this package, as the collector sees it."""

    name: str
    section: type[Section]
    collect: Callable[..., Section]
    needs: dict[str, Any]
    """Parameter name to its type."""
    deadline: float
    """Seconds."""
    lane: str = ""
    """Probes of one lane share a child process and run one after the other; "" is its own lane."""

    @property
    def sections(self) -> set[type[Section]]:
        """The sections that the probe needs."""
        return {need for need in self.needs.values() if issubclass(need, Section)}


@functools.cache
def all_probes() -> tuple[Probe, ...]:
    """Return every probe, by the name of its module."""
    probes = (probe_of(name) for name in modules_of(__path__))
    return tuple(probe for probe in probes if probe is not None)


@functools.cache
def probe_of(name: str) -> Probe | None:
    """Return the probe in the module of this name; None if there is no such module."""
    if name not in modules_of(__path__):
        return None
    module = importlib.import_module(f"{__name__}.{name}")
    needs = dict(inspect.get_annotations(module.collect))
    section = needs.pop("return")
    lane = getattr(module, "LANE", "")
    return Probe(section.name, section, module.collect, needs, module.DEADLINE, lane)


def lanes(
    probes: Iterable[Probe], lane_of: Callable[[Probe], str] | None = None
) -> dict[str, list[Probe]]:
    """Group probes by lane, with each probe after those whose sections it needs.

    A fork takes longer than most probes, so probes that read the same kind of source share one.
    """
    found: dict[str, list[Probe]] = {}
    for probe in _needed_first(list(probes)):
        lane = lane_of(probe) if lane_of is not None else probe.lane or probe.name
        found.setdefault(lane, []).append(probe)
    return found


def _needed_first(probes: list[Probe]) -> list[Probe]:
    """Put every probe after those whose sections it needs; otherwise keep the order."""
    ordered: list[Probe] = []
    left = probes
    while left:
        coming = {probe.section for probe in left}
        ready = [probe for probe in left if not probe.sections & coming]
        ordered += ready or left  # if the needs form a cycle, any order will do
        left = [probe for probe in left if ready and probe not in ready]
    return ordered
