"""Every section of facts, found in the modules of this package."""

import functools
import importlib

import gpucheck.facts
from gpucheck._about import modules_of
from gpucheck.facts.base import Section


@functools.cache
def all_sections() -> dict[str, type[Section]]:
    """Return every section by its name, in the order of the modules that define them."""
    sections = {}
    for name in modules_of(gpucheck.facts.__path__):
        module = importlib.import_module(f"{gpucheck.facts.__name__}.{name}")
        for kind in vars(module).values():
            if _is_section(kind) and kind.__module__ == module.__name__:
                sections[kind.name] = kind
    return sections


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section) and bool(kind.name)
