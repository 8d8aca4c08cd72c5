"""Messages are data: each is tried against its own samples, its form and the clock."""

import re
import time
from collections.abc import Iterator

import pytest
from each import each
from pattern_form import faults, parsed
from slugs import SLUGS

from gpucheck.findings import all_rules
from gpucheck.log_patterns.form import FindingMessages, Message, compiled
from gpucheck.log_patterns.loading import AUTHORED, all_messages
from gpucheck.log_patterns.matcher import candidates
from gpucheck.log_patterns.text import Line, Text, runs

pytestmark = pytest.mark.every_finding

LONGEST_LINE = 4096
SLOWEST = 0.5
"""Seconds of one search in one hostile line, on a busy machine."""
ALL = [(slug, message) for slug, finding in all_messages().items() for message in finding.messages]
EACH_FINDING = each("slug", all_messages())


@EACH_FINDING
def test_every_file_speaks_of_a_rule(slug: str) -> None:
    finding = all_messages()[slug]
    assert slug in SLUGS
    assert slug in all_rules()
    assert finding.fixes
    assert all(fix.text.isascii() for fix in finding.fixes)
    names = [message.name for message in finding.messages]
    assert len(names) == len(set(names))


@EACH_FINDING
def test_what_has_a_name_is_used(slug: str) -> None:
    text = (AUTHORED / f"{slug.replace('-', '_')}.toml").read_text()
    for name in all_messages()[slug].conditions:
        assert text.count(f'"{name}"') >= 1
        assert text.count(f"[condition.{name}]") == 1


@EACH_FINDING
def test_patterns_and_samples_stand_in_one_line(slug: str) -> None:
    """Somebody who looks for a message in the folder finds it."""
    lines = (AUTHORED / f"{slug.replace('-', '_')}.toml").read_text().splitlines()
    for key in ("literal", "says", "sample", "other"):
        assert sum(line.startswith(f"{key} = ") for line in lines) == len(_of(slug).messages)
    given = [
        message for message in _of(slug).messages if message.pattern != re.escape(message.literal)
    ]
    assert sum(line.startswith("pattern = ") for line in lines) >= len(given)


@EACH_FINDING
def test_each_section_starts_with_the_strongest(slug: str) -> None:
    """Of messages that are equally strong the first gives the headline."""
    text = (AUTHORED / f"{slug.replace('-', '_')}.toml").read_text()
    for section in text.split("\n# --- "):
        names = re.findall(r'^\[\[message\]\]\n(?:#.*\n)*name = "(.+)"$', section, re.MULTILINE)
        ranks = [
            next(message.rank for message in _of(slug).messages if message.name == name)
            for name in names
        ]
        assert ranks == sorted(ranks, reverse=True)


def _of(slug: str) -> FindingMessages:
    return all_messages()[slug]


def _mistakes(slug: str, message: Message) -> Iterator[str]:
    pattern = compiled(message.pattern)
    if not pattern.search(message.sample):
        yield "its pattern does not match its sample"
    if message.literal not in message.sample.lower():
        yield "its literal is not in its sample"
    if message.literal != message.literal.lower():
        yield "its literal is not in lower case"
    if message.literal in message.other.lower() and pattern.search(message.other):
        yield "it matches its other line"
    if (slug, message) not in candidates(Text([Line(1, message.sample)])):
        yield "its sample does not lead to it"
    if not message.says.format(**dict.fromkeys(pattern.groupindex, "x")):
        yield "it says nothing"
    if message.says.endswith("."):
        yield "what it says ends with a full stop"
    if message.anchor not in ("", *runs(f"x{message.literal}x")):
        # Letters may follow a literal's end: "driver" is in "drivers", "oom" in "OOMKilled".
        yield "its anchor is not a whole word wherever its literal stands"


@EACH_FINDING
def test_each_finds_its_sample_and_not_the_other_line(slug: str) -> None:
    found = {message.name: list(_mistakes(slug, message)) for message in _of(slug).messages}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def _can_be_met(message: Message) -> bool:
    for condition in (*message.beside, *filter(None, [message.unless])):
        literals = (*condition.any_of, *condition.outside_code)
        if not (literals or condition.words or condition.facts):
            return False
        if not all(literals) or any(literal != literal.lower() for literal in literals):
            return False
        if any(runs(word) != {word} for word in condition.words):
            return False
    groups = compiled(message.pattern).groupindex
    return (not message.distinct or message.distinct in groups) and (
        not message.fixes_of or bool(message.fixes)
    )


@EACH_FINDING
def test_conditions_can_be_met(slug: str) -> None:
    assert [message.name for message in _of(slug).messages if not _can_be_met(message)] == []


@EACH_FINDING
def test_patterns_are_linear_in_form(slug: str) -> None:
    found = {message.name: list(faults(parsed(message.pattern))) for message in _of(slug).messages}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def _puts_words_into_a_command(message: Message) -> bool:
    found = compiled(message.pattern).search(message.sample)
    groups = found.groupdict() if found is not None else {}
    commands = [command for fix in message.fixes for command in fix.commands]
    named = [name for name in groups if any(f"{{{name}}}" in command for command in commands)]
    return not all((groups[name] or "").isdigit() for name in named)


@EACH_FINDING
def test_only_numbers_get_into_a_command(slug: str) -> None:
    assert [
        message.name for message in _of(slug).messages if _puts_words_into_a_command(message)
    ] == []


@pytest.mark.hostile
@each(("slug", "message"), ALL, ids=[f"{slug}-{message.name}" for slug, message in ALL])
def test_it_is_quick_on_hostile_lines(slug: str, message: Message) -> None:
    del slug
    pattern = compiled(message.pattern)
    for line in hostile(message):
        begun = time.process_time()
        pattern.search(line[:LONGEST_LINE])
        assert time.process_time() - begun < SLOWEST


def hostile(message: Message) -> Iterator[str]:
    yield f"{message.sample} " * 400
    yield message.sample[: len(message.sample) // 2] * 400
    yield f"{message.literal} " * 800
    yield f"{message.literal}{'a' * 60}" * 100
    yield " " * LONGEST_LINE
    yield "a" * LONGEST_LINE
    yield "1" * LONGEST_LINE


def test_no_message_serves_two_findings_by_mistake() -> None:
    """The same pattern with the same rank under two slugs could not be told apart."""
    seen: dict[tuple[object, ...], str] = {}
    for slug, message in ALL:
        key = (re.sub(r"\s+", " ", message.pattern), message.rank, message.beside, message.unless)
        assert seen.setdefault(key, slug) == slug
