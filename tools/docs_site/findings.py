"""The pages of findings, and their index, as Markdown: made from the findings themselves."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from docs_site.markdown import block, code, plain, prose
from docs_site.words import Words, words
from gpucheck.facts.claims import Confidence
from gpucheck.findings import all_rules
from gpucheck.findings.form import Rule
from gpucheck.language import Language, current_language, speaking, spoken
from gpucheck.language.paragraphs import parts
from gpucheck.log_patterns.form import FindingMessages, Message, compiled, headline
from gpucheck.log_patterns.loading import all_messages
from gpucheck.output.pages import finding_page, items_of
from gpucheck.output.words import term

FAMILIES = ("driver", "torch", "libraries", "runtime", "cluster", "gpucheck")
ANOTHER_TORCH = (
    "driver-too-old", "gpu-too-new-for-torch", "gpu-too-old-for-torch", "torch-cpu-only",
    "torch-missing",
)  # fmt: skip
"""Findings that another build of PyTorch mends, on most machines: which one depends on the GPU."""
_RECOMMEND = 'gpucheck recommend --gpu "RTX 5070 Ti" --driver 572.83 --os windows'
_NAME = re.compile(r"^[^:：]{1,12}[:：] ?")  # noqa: RUF001  # Chinese signs
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

    def shown(paragraphs: Iterable[str]) -> Iterator[str]:
        for paragraph in paragraphs:
            yield from _paragraph(paragraph, link)

    fix, meaning, evidence = _sorted(rule, explained.paragraphs)
    yield _described(own["description"].format(title=explained.title))
    yield f"# {plain(title(rule))}\n"
    yield f"{own['called'].format(slug=code(rule.slug))}\n"
    yield f"## {own['fix']}\n"
    yield from shown(fix)
    if rule.slug in ANOTHER_TORCH:
        yield f"{own['recommend']}\n"
        yield block(_RECOMMEND, "sh")
    for offered in messages.fixes if messages else ():
        yield f"{plain(spoken(offered.text))}\n"
        if offered.commands:
            yield block("\n".join(offered.commands), "sh")
    if rule.judge and rule.owner not in ("cluster", "code"):  # those show in a job, or in a text
        yield f"{own['check']}\n"
    yield f"## {own['meaning']}\n"
    yield from shown(meaning)
    yield f"## {own['evidence']}\n"
    yield from shown((*evidence, *explained.facts))
    if messages:
        yield from _messages(messages, language)
    yield from _related(rule, language)


def title(rule: Rule) -> str:
    """Return the title of a finding as that of a page."""
    return _at_start(spoken(rule.title))


def _at_start(text: str) -> str:
    """Return a text with a capital letter; names keep theirs, and Chinese has none."""
    first = text.partition(" ")[0]
    is_word = first.isalpha() and first.islower() and current_language() == "en"
    return text[0].upper() + text[1:] if is_word and first != "gpucheck" else text


def _sorted(rule: Rule, shown: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the paragraphs of a page by what they are about: fix, meaning, evidence.

    How each begins in English tells; the fix loses its name, because it is a part of its own.
    """
    fix: list[str] = []
    meaning: list[str] = []
    evidence: list[str] = []
    for original, paragraph in zip(parts(rule.page), shown, strict=True):
        if original.startswith("Fix:"):
            fix.append(_at_start(_NAME.sub("", paragraph, count=1)))
        elif original.startswith("Fix"):
            fix.append(paragraph)
        else:
            (evidence if original.startswith("When it is reported:") else meaning).append(paragraph)
    return fix, meaning, evidence


def _paragraph(paragraph: str, link: Callable[[str], str | None]) -> Iterator[str]:
    for item in items_of(paragraph):
        if item.startswith("    "):
            yield block(item[4:])
        elif item.startswith("- "):
            yield f"- {prose(item[2:], link)}"
        else:
            yield prose(item, link)
    yield ""


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
                link = f"[{plain(title(all_rules()[slug]))}]({slug}.md)"
                yield f"- {own['aside'].format(of=link, aside=code(slug))}"
            yield ""


def index(language: Language) -> str:
    """Return the index of all findings by family, as Markdown."""
    own = words(language)
    with speaking(language):
        parts = [f"# {own['findings']}\n", f"{own['about']}\n"]
        by_title = sorted(all_rules().values(), key=_place)
        for family in FAMILIES:
            rules = [rule for rule in by_title if rule.family == family]
            parts.append(f"## {plain(own['family'].format(family=spoken(term(family))))}\n")
            parts += [_entry(rule, own) for rule in rules]
            parts.append("")
        # One list, because the sidebar shows no families.
        names = "\n".join(rule.slug for rule in by_title)
        parts.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```\n")
    return "\n".join(parts)


def _place(rule: Rule) -> bytes:
    """Return where a title stands among others: GB18030 has the common characters by sound."""
    return title(rule).casefold().encode("gb18030")


def _entry(rule: Rule, own: Words) -> str:
    link = f"[{plain(title(rule))}]({rule.slug}.md)"
    aside = own["comma"].join((code(rule.slug), plain(spoken(term(rule.severity.value)))))
    return f"- {own['aside'].format(of=link, aside=aside)}"
