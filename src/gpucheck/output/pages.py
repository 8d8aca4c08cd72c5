"""The page of a finding, and the lists of findings, probes and self-tests."""

import inspect
import sys
import textwrap
from typing import Any

import msgspec

from gpucheck.findings import RETIRED, all_rules
from gpucheck.findings.form import Rule
from gpucheck.output.layout import WIDTH, Page, between
from gpucheck.output.words import clean
from gpucheck.probes import all_probes
from gpucheck.selftest.catalogue import headers


class RuleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that gpucheck can name; ``preflight_class``: the exit status of a pre-flight."""

    slug: str
    severity: str
    family: str
    title: str
    preflight_class: int


class ProbeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A probe: what it determines, and how many seconds it may take."""

    name: str
    subject: str
    deadline: float


class SelfTestRow(msgspec.Struct, frozen=True, kw_only=True):
    """A self-test: what it tests, what it is repeated for, and its levels."""

    name: str
    about: str
    per: str
    levels: list[str]


def explain(slug: str, width: int | None = None) -> str | None:
    """Return the page of a finding, or None if there is none with that name."""
    rules = all_rules()
    newer = RETIRED.names.get(slug)
    if newer is not None:
        page = _page(rules[newer], between(width)) if newer in rules else ""
        return f"{slug} is called {newer} now.\n\n{page}"
    return _page(rules[slug], between(width)) if slug in rules else None


def list_rules() -> list[RuleRow]:
    """Return every finding, by its slug."""
    return [
        RuleRow(
            slug=slug, severity=rule.severity.value, family=rule.family, title=rule.title,
            preflight_class=rule.preflight_class,
        )
        for slug, rule in all_rules().items()
    ]  # fmt: skip


def list_probes() -> list[ProbeRow]:
    """Return every probe, by name."""
    return [
        ProbeRow(name=probe.name, subject=_subject(probe.section), deadline=probe.deadline)
        for probe in all_probes()
    ]


def list_selftests() -> list[SelfTestRow]:
    """Return every self-test, in the order in which they run."""
    return [
        SelfTestRow(name=one.name, about=one.about, per=one.per, levels=list(one.levels))
        for one in headers().values()
    ]


def listing(width: int | None = None, *, color: bool = False) -> str:
    """Return the lists as text."""
    page = Page(width, color=color)
    page.heading("Findings (gpucheck explain NAME)")
    for row in list_rules():
        page.columns([(row.slug, 30, ""), (row.severity, 8, "")], row.title, indent=2)
    page.heading("Probes")
    for probe in list_probes():
        page.columns([(probe.name, 30, "")], probe.subject, indent=2)
    page.heading("Self-tests (gpucheck selftest --tests NAMES)")
    for test in list_selftests():
        first = test.levels[0] if test.levels else "named"
        page.columns([(test.name, 30, ""), (first, 9, "")], test.about, indent=2)
    return page.text()


def listing_json() -> dict[str, Any]:
    """Return the lists as JSON-like data."""
    return {
        "findings": msgspec.to_builtins(list_rules()),
        "probes": msgspec.to_builtins(list_probes()),
        "selftests": msgspec.to_builtins(list_selftests()),
    }


def _page(rule: Rule, width: int) -> str:
    facts = [f"Severity: {rule.severity.value}. Area: {rule.family}."]
    facts.append(f"As an error it ends a pre-flight with exit status {rule.preflight_class}.")
    if rule.suppressed_by:
        facts.append(f"Silent beside: {', '.join(rule.suppressed_by)} (they explain it).")
    if rule.refuted_by:
        names = ", ".join(rule.refuted_by)
        facts.append(f"Withdrawn when these self-tests pass on every GPU: {names}.")
    paragraphs = [reflow(part, width) for part in rule.page.replace("``", "`").split("\n\n")]
    return (
        "\n\n".join(
            (
                reflow(f"{rule.slug}: {rule.title}", width),
                *paragraphs,
                *(reflow(fact, width) for fact in facts),
            )
        )
        + "\n"
    )


def reflow(paragraph: str, width: int = WIDTH) -> str:
    """Wrap a paragraph for a terminal: list items one by one, indented lines not at all."""
    items: list[str] = []
    for line in paragraph.split("\n"):
        if not items or line.startswith(("- ", "    ")):
            items.append(line)
        else:
            items[-1] = f"{items[-1]} {line.strip()}"
    return "\n".join(item if item.startswith("    ") else _fill(item, width) for item in items)


def _fill(item: str, width: int) -> str:
    return textwrap.fill(
        item,
        width=width,
        subsequent_indent="  " if item.startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _subject(section: type[Any]) -> str:
    """Return the first paragraph of the module that defines the probe."""
    words = inspect.getdoc(sys.modules[section.__module__]) or ""
    return clean(words.partition("\n\n")[0])
