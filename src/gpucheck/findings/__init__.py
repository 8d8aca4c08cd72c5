"""Findings: one module is one finding, and everything that is true of it alone stands there.

Its docstring is the page that ``gpucheck explain`` prints. ``RULE`` is its header. If facts can
show its cause, one pure function marked with ``@RULE.check`` judges them. The function names what
it needs by the *types* of its parameters: sections of facts, derived facts, tables, advice,
witnesses. It returns a ``Hit``, ``Fine`` or ``NotApplicable``, or None if it saw nothing and the
header says who else might have (``seen_in``). ``known()`` raises for a fact that it lacks. The TOML
file of the same name, if there is one, has the messages that point to it.

Nothing is registered: every module in this folder is a finding. Sub-packages are not: ``form`` is
what a finding is made of, ``witnesses`` are what self-tests and pre-flights say.
"""

import functools
import importlib
from collections.abc import Iterator

import msgspec

from gpucheck._about import modules_of
from gpucheck.findings.form import Rule


def each_rule() -> Iterator[Rule]:
    """Import one finding after the other, and return the header of each."""
    for name in modules_of(__path__):
        rule: Rule = importlib.import_module(f"{__name__}.{name}").RULE
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
