"""Probes: one module is one section of facts and the ``collect`` function that fills it.

The types of ``collect``'s parameters declare what a probe needs: a :class:`Host`, tables, or other
sections. A probe that needs a section runs after the one that fills it. Nothing is registered:
every module in this folder is a probe, and what they share is in ``reading``.

``index.json`` repeats what the modules say of themselves (``tools/probe_index.py`` makes it), so
that a check starts each of them in its child without importing any itself. A module that is not in
it is imported.
"""

import functools
import importlib
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gpucheck._about import modules_of
from gpucheck.facts import Section

INDEX = "index.json"


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the collector must know of a probe before it runs; sections are named."""

    section: str
    deadline: float
    """Seconds."""
    lane: str = ""
    sections: tuple[str, ...] = ()


class Probe(msgspec.Struct, frozen=True):
    """A module of this package, as the collector sees it."""

    name: str
    section: type[Section]
    sections: frozenset[type[Section]]
    """The sections that it needs."""
    deadline: float
    """Seconds."""
    lane: str = ""
    """Probes of one lane share a child process and run one after the other; "" is its own lane."""
    module: str = ""

    @property
    def collect(self) -> Callable[..., Section]:
        """The function that fills the section; its module is imported now."""
        return _entry(self.module)[0]

    @property
    def needs(self) -> dict[str, Any]:
        """Parameter name of ``collect`` to its type; the module is imported now."""
        return _entry(self.module)[1]


@functools.cache
def _entry(module: str) -> tuple[Callable[..., Section], dict[str, Any]]:
    collect = importlib.import_module(module).collect
    return collect, {
        name: kind for name, kind in inspect.get_annotations(collect).items() if name != "return"
    }


def header_of(module: str) -> Header:
    """Return what a probe says of itself; its module is imported."""
    collect, needs = _entry(module)
    about = importlib.import_module(module)
    return Header(
        collect.__annotations__["return"].name,
        about.DEADLINE,
        getattr(about, "LANE", ""),
        tuple(sorted(kind.name for kind in needs.values() if issubclass(kind, Section))),
    )


@functools.cache
def all_probes() -> tuple[Probe, ...]:
    """Return every probe, by the name of its module."""
    from gpucheck.facts.snapshot import all_sections  # noqa: PLC0415  # it is above the probes' own

    with open(os.path.join(__path__[0], INDEX), "rb") as file:  # noqa: PTH118, PTH123
        known = msgspec.json.decode(file.read(), type=dict[str, Header])
    sections = all_sections()
    probes = []
    for name in modules_of(__path__):
        module = f"{__name__}.{name}"
        header = known.get(name) or header_of(module)
        needs = frozenset(sections[need] for need in header.sections)
        section = sections[header.section]
        probes.append(Probe(section.name, section, needs, header.deadline, header.lane, module))
    return tuple(probes)


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
