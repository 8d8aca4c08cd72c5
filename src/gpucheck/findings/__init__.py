"""Findings: everything that is true of one finding alone stands in one place.

A module has the findings of one subject. Each has a header, a ``Rule``, with its slug and the page
that ``gpucheck explain`` prints. If facts can show its cause, one pure function marked with the
header's ``check`` judges them. The function names what
it needs by the *types* of its parameters: sections of facts, derived facts, tables, advice,
witnesses. It returns a ``Hit``, ``Fine`` or ``NotApplicable``, or None if it saw nothing and the
header says who else might have (``seen_in``). ``known()`` raises for a fact that it lacks. The TOML
file that is named by the slug, if there is one, has the messages that point to it.

Nothing is registered: every ``Rule`` of a module in this folder is a finding. ``form`` is what a
finding is made of, ``witnesses`` are what self-tests and pre-flights say.
"""

import functools
import importlib
from collections.abc import Iterator

import msgspec

from gpucheck._about import modules_of
from gpucheck.findings.form import Rule


def each_rule() -> Iterator[Rule]:
    """Import one module after the other, and return the header of each finding."""
    seen: set[str] = set()  # a module may import the header of another
    for name in modules_of(__path__):
        module = importlib.import_module(f"{__name__}.{name}")
        for rule in vars(module).values():
            if isinstance(rule, Rule) and rule.slug not in seen:
                seen.add(rule.slug)
                yield rule


@functools.cache
def all_rules() -> dict[str, Rule]:
    """Return the header of every finding by its slug, in the order of the slugs."""
    rules = {rule.slug: rule for rule in each_rule()}
    return dict(sorted(rules.items()))


class Aliases(msgspec.Struct, frozen=True):
    """Retired slugs, each with the slug that replaced it. They are still accepted."""

    names: dict[str, str] = {}


RETIRED = Aliases()
