"""The page of a finding, and the lists of findings, probes and self-tests."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from gpucheck.engine.ask import tables_behind
from gpucheck.facts import builtins
from gpucheck.findings import RETIRED, all_rules
from gpucheck.findings.form import Rule
from gpucheck.language import Sentence, current_language, in_series, say, spoken
from gpucheck.language.columns import WIDTH, page_columns, wrapped
from gpucheck.language.paragraphs import parts, template_of
from gpucheck.output.layout import Page
from gpucheck.output.words import document, headed, term
from gpucheck.probes import all_probes
from gpucheck.selftests.plan import headers
from gpucheck.tables import Tables

_ITEM = re.compile(r"(?:^|(?<=[：:。；;.]) ?|\s)- ")  # noqa: RUF001  # Chinese signs
"""What begins an item of a list in a translation, which is on one line."""


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


class FindingPage(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a finding in one language; its paragraphs are not wrapped yet."""

    title: str
    paragraphs: list[str]
    facts: list[str]


def explain(
    slug: str, width: int | None = None, docs_url: str = "", tables: Tables | None = None
) -> str | None:
    """Return the page of a finding, or None if there is none with that name.

    Args:
        slug: the name of the finding.
        width: columns; 80 if unknown.
        docs_url: where the documentation site stands; "" if that is not known.
        tables: the tables whose sources are listed; None if they are not.
    """
    rules = all_rules()
    newer = RETIRED.names.get(slug)
    if newer is not None:
        page = _page(rules[newer], page_columns(width), docs_url, tables) if newer in rules else ""
        now = spoken(say("{slug} is called {newer} now.", slug=slug, newer=newer))
        return f"{now}\n\n{page}"
    return _page(rules[slug], page_columns(width), docs_url, tables) if slug in rules else None


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
        ProbeRow(name=probe.name, subject=probe.section.subject, deadline=probe.deadline)
        for probe in all_probes()
    ]


def list_selftests() -> list[SelfTestRow]:
    """Return every self-test, in the order in which they run."""
    return [
        SelfTestRow(
            name=header.name,
            about=Sentence(header.about),
            per=header.per,
            levels=list(header.levels),
        )
        for header in headers().values()
    ]


def listing(width: int | None = None, *, color: bool = False) -> str:
    """Return the lists as text."""
    page = Page(width, color=color)
    page.heading(say("Findings (gpucheck explain NAME)"))
    for row in list_rules():
        page.columns([(row.slug, 30, ""), (term(row.severity), 8, "")], row.title, indent=2)
    page.heading(say("Probes"))
    for probe in list_probes():
        page.columns([(probe.name, 30, "")], probe.subject, indent=2)
    page.heading(say("Self-tests (gpucheck selftest --tests NAMES)"))
    for test in list_selftests():
        first = test.levels[0] if test.levels else say("named")
        page.columns([(test.name, 30, ""), (first, 9, "")], test.about, indent=2)
    return page.text()


def listing_json() -> dict[str, Any]:
    """Return the lists as JSON-like data."""
    return {
        "findings": builtins(list_rules()),
        "probes": builtins(list_probes()),
        "selftests": builtins(list_selftests()),
    }


def finding_page(rule: Rule) -> FindingPage:
    """Return the page of a finding in the current language."""
    facts = [
        say(
            "Severity: {severity}. Area: {family}.",
            severity=term(rule.severity.value), family=term(rule.family),
        ),
        say(
            "As an error it ends a pre-flight with exit status {status}.",
            status=rule.preflight_class,
        ),
    ]  # fmt: skip
    if rule.suppressed_by:
        slugs = in_series(rule.suppressed_by)
        facts.append(say("Not reported together with: {slugs} (they explain it).", slugs=slugs))
    if rule.refuted_by:
        tests = in_series(rule.refuted_by)
        facts.append(
            say("Withdrawn when these self-tests pass on every GPU: {tests}.", tests=tests)
        )
    if names := sorted(table.name for table in tables_behind(rule)):
        facts.append(
            say(
                "It is judged by these tables: {tables} (gpucheck tables show NAME -v).",
                tables=in_series(names),
            )
        )
    return FindingPage(
        title=spoken(headed(rule.slug, rule.title)),
        paragraphs=[_in_words(part) for part in parts(rule.page)],
        facts=[spoken(fact) for fact in facts],
    )


def _page(rule: Rule, width: int, docs_url: str, tables: Tables | None) -> str:
    page = finding_page(rule)
    texts = (page.title, *page.paragraphs, *page.facts)
    shown = [reflow(text, width) for text in texts]
    if docs_url:
        folder = "" if current_language() == "en" else f"/{current_language()}"
        url = f"{docs_url}{folder}/findings/{rule.slug}.html"
        shown.append(spoken(say("This page on the web: {url}", url=url)))
    if tables is not None:
        shown += [reflow(spoken(part), width) for part in _sources(rule, tables)]
    return "\n\n".join(shown) + "\n"


def _sources(rule: Rule, tables: Tables) -> Iterator[str]:
    """Yield a paragraph for each table by which a check judges: from where it has its rows."""
    for kind in sorted(tables_behind(rule), key=lambda kind: kind.name):
        table = tables.get(kind)
        lines = [
            f"- {document(source.title, source.url, source.read)}"
            for source in table.sources.values()
        ]
        yield "\n".join((say("Sources of {table}:", table=kind.name), *lines))


def _in_words(part: str) -> str:
    """Return a paragraph in the current language, each item of a list on its own line."""
    template = template_of(part)
    words = spoken(Sentence(template))
    if words == template:
        return part.replace("``", "`")
    items = part.count("\n- ") + part.startswith("- ")
    cut = _ITEM.split(words)
    if items and len(cut) == items + 1:
        words = "\n- ".join(cut).removeprefix("\n")
    return words.replace("``", "`")


def reflow(paragraph: str, width: int = WIDTH) -> str:
    """Wrap a paragraph for a terminal: list items one by one, indented lines not at all."""
    return "\n".join(
        item if item.startswith("    ") else _fill(item, width) for item in items_of(paragraph)
    )


def items_of(paragraph: str) -> list[str]:
    """Return the parts of a paragraph, each on one line: words, items of a list, commands.

    Items begin with ``- ``, lines that stay as they are with four blanks.
    """
    items: list[str] = []
    for line in paragraph.split("\n"):
        if not items or line.startswith(("- ", "    ")):
            items.append(line)
        else:
            items[-1] = f"{items[-1]} {line.strip()}"
    return items


def _fill(item: str, width: int) -> str:
    hang = 2 if item.startswith("- ") else 0
    return "\n".join(wrapped(" ".join(item.split()), width, 0, hang))
