"""Probes: one module is one section of facts and the ``collect`` function that fills it.

The types of ``collect``'s parameters declare what a probe needs: a :class:`Host`, tables, or other
sections. A probe that needs a section runs after the one that fills it. Nothing is registered by
hand.
"""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

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
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    # A name with "_" is a helper of a probe; it is imported when it is used.
    probes = (probe_of(name) for name in names if not name.startswith("_"))
    return tuple(probe for probe in probes if probe is not None)


@functools.cache
def probe_of(name: str) -> Probe | None:
    """Return the probe of a module of this package; None if the module is not a probe."""
    module = importlib.import_module(f"{__name__}.{name}")
    collect = getattr(module, "collect", None)
    if collect is None:
        return None
    needs = dict(inspect.get_annotations(collect))
    section = needs.pop("return")
    lane = getattr(module, "LANE", "")
    return Probe(section.name, section, collect, needs, module.DEADLINE, lane)


def lanes(
    probes: Iterable[Probe], lane_of: Callable[[Probe], str] | None = None
) -> dict[str, list[Probe]]:
    """Group probes by lane, with each probe after those whose sections it needs.

    A fork costs more than most probes, so probes that read the same kind of thing share one.
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
        ordered += ready or left  # in a circle of needs, any order is as good as another
        left = [probe for probe in left if ready and probe not in ready]
    return ordered


@functools.cache
def all_sections() -> dict[str, type[Section]]:
    """Return every section by its name: those of the probes, the request, the runs."""
    from gpucheck.probes.pasted import Pasted  # noqa: PLC0415  # these are not probes
    from gpucheck.probes.preflight import Preflight  # noqa: PLC0415
    from gpucheck.probes.request import Request  # noqa: PLC0415
    from gpucheck.probes.selftests import SelfTests  # noqa: PLC0415

    sections = [probe.section for probe in all_probes()] + [Request, Pasted, SelfTests, Preflight]
    return {section.name: section for section in sections}
