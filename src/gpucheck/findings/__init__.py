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
import pkgutil

import msgspec

from gpucheck.findings.form import Rule


@functools.cache
def all_rules() -> dict[str, Rule]:
    """Return the header of every finding by its slug, in the order of the slugs."""
    rules = {}
    for module_info in pkgutil.iter_modules(__path__):
        if not module_info.ispkg:
            rule: Rule = importlib.import_module(f"{__name__}.{module_info.name}").RULE
            rules[rule.slug] = rule
    return dict(sorted(rules.items()))


class Aliases(msgspec.Struct, frozen=True):
    """Slugs that have retired: they keep answering with the slug that took their place."""

    names: dict[str, str] = {}


RETIRED = Aliases()
