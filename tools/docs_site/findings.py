"""The pages of findings, and their index, as Markdown: made from the findings themselves."""

import json
from collections.abc import Iterator

from docs_site.markdown import block, plain, prose
from docs_site.words import words
from gpucheck.facts.claims import Confidence
from gpucheck.findings import all_rules
from gpucheck.findings.form import Rule
from gpucheck.language import Language, speaking, spoken
from gpucheck.log_patterns.form import FindingMessages, Message, compiled, headline
from gpucheck.log_patterns.loading import all_messages
from gpucheck.output.pages import finding_page, items_of
from gpucheck.output.terms import term

FAMILIES = ("driver", "torch", "libraries", "runtime", "cluster", "gpucheck")
_STRONGEST_FIRST = (Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE)


def pages(language: Language) -> Iterator[tuple[str, str]]:
    """Yield the name and the Markdown of the page of each finding."""
    for slug, rule in all_rules().items():
        yield slug, page(rule, all_messages().get(slug), language)


def page(rule: Rule, messages: FindingMessages | None, language: Language) -> str:
    """Return the page of a finding as Markdown."""
    with speaking(language):
        return "\n".join(_lines(rule, messages, language))


def _lines(rule: Rule, messages: FindingMessages | None, language: Language) -> Iterator[str]:
    own, explained = words(language), finding_page(rule)

    def link(word: str) -> str | None:
        return f"{word}.md" if word in all_rules() and word != rule.slug else None

    yield _described(own["description"].format(title=explained.title))
    yield f"# {plain(explained.title)}\n"
    for paragraph in explained.paragraphs:
        for item in items_of(paragraph):
            if item.startswith("    "):
                yield block(item[4:])
            elif item.startswith("- "):
                yield f"- {prose(item[2:], link)}"
            else:
                yield prose(item, link)
        yield ""
    for fact in explained.facts:
        yield f"{prose(fact, link)}\n"
    if rule.judge and rule.owner not in ("cluster", "code"):  # those show in a job, or in a text
        yield f"{own['check']}\n"
    if messages:
        yield from _messages(messages, language)
    yield from _related(rule, language)


def _described(text: str) -> str:
    """Return the head of a page: what a search engine shows of it."""
    return f"---\nmyst:\n  html_meta:\n    description: {json.dumps(text)}\n---\n"


def _messages(found: FindingMessages, language: Language) -> Iterator[str]:
    own = words(language)
    yield f"## {own['messages']}\n"
    yield f"{own['messages-about']}\n"
    shown: set[str] = set()
    for confidence in _STRONGEST_FIRST:
        samples: dict[str, list[str]] = {}
        for message in found.messages:
            if message.strength.confidence is confidence and message.sample not in shown:
                samples.setdefault(_says(message), []).append(message.sample)
                shown.add(message.sample)
        if samples:
            yield f"### {own[confidence.value]}\n"
        for says, lines in samples.items():
            yield f"{plain(says)}\n"
            yield block("\n".join(lines))


def _says(message: Message) -> str:
    """Return what a message says about its own sample, in the current language."""
    match = compiled(message.pattern).search(message.sample)
    values = match.groupdict() if match else {}
    return spoken(headline(message, {name: value for name, value in values.items() if value}))


def _related(rule: Rule, language: Language) -> Iterator[str]:
    own = words(language)
    explained = [slug for slug, other in all_rules().items() if rule.slug in other.suppressed_by]
    lists = (("suppressed-by", rule.suppressed_by), ("suppresses", explained))
    if any(slugs for _, slugs in lists):
        yield f"## {own['related']}\n"
    for name, slugs in lists:
        if slugs:
            yield f"{own[name]}\n"
            for slug in slugs:
                title = spoken(all_rules()[slug].title)
                yield f"- [{plain(slug)}]({slug}.md): {plain(title)}"
            yield ""


def index(language: Language) -> str:
    """Return the index of all findings by family, as Markdown."""
    own = words(language)
    with speaking(language):
        parts = [f"# {own['findings']}\n", f"{own['about']}\n"]
        for family in FAMILIES:
            rules = [rule for rule in all_rules().values() if rule.family == family]
            parts.append(f"## {plain(own['family'].format(family=spoken(term(family))))}\n")
            parts += [_entry(rule) for rule in rules]
            names = "\n".join(f"{rule.slug} <{rule.slug}>" for rule in rules)
            parts.append(f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n")
    return "\n".join(parts)


def _entry(rule: Rule) -> str:
    severity = spoken(term(rule.severity.value))
    return f"- [{plain(rule.slug)}]({rule.slug}.md) ({severity}): {plain(spoken(rule.title))}"
