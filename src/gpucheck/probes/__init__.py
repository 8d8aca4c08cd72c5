"""Probes: one module = one section of facts and the ``collect`` that fills it.

A probe asks for what it needs by the types of ``collect``'s parameters: a :class:`Host`, tables,
or other sections, after which it then runs. Nothing is registered by hand.
"""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
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


@functools.cache
def all_probes() -> tuple[Probe, ...]:
    """Return every probe, by name."""
    found = []
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        collect = getattr(module, "collect", None)
        if collect is None:
            continue
        needs = dict(inspect.get_annotations(collect))
        section = needs.pop("return")
        found.append(Probe(section.name, section, collect, needs, module.DEADLINE))
    return tuple(found)


@functools.cache
def all_sections() -> dict[str, type[Section]]:
    """Return every section by its name: those of the probes and the request."""
    from gpucheck.probes.request import Request  # noqa: PLC0415  # it is no probe

    sections = [probe.section for probe in all_probes()] + [Request]
    return {section.name: section for section in sections}
