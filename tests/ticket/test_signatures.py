"""Signatures are data: each is tried against its own samples, its form and the clock."""

import re
import time
from collections.abc import Iterator

import pytest
from pattern_form import faults, parsed
from slugs import SLUGS

from gpucheck.readers.pasted._words import runs
from gpucheck.readers.pasted.base import Line, Text
from gpucheck.rules import all_rules
from gpucheck.signatures import all_signs
from gpucheck.signatures.base import Signature, compiled
from gpucheck.ticket.search import candidates

LONGEST_LINE = 4096
SLOWEST = 0.5
"""Seconds of one search in one hostile line, on a busy machine."""
ALL = [(slug, one) for slug, signs in all_signs().items() for one in signs.signatures]
EACH = pytest.mark.parametrize(
    ("slug", "signature"), ALL, ids=[f"{slug}-{one.name}" for slug, one in ALL]
)


@pytest.mark.parametrize("slug", all_signs())
def test_every_module_speaks_of_a_rule(slug: str) -> None:
    signs = all_signs()[slug]
    assert slug in SLUGS
    assert slug in all_rules()
    assert signs.zh
    assert not signs.zh.isascii()
    assert signs.cures
    assert all(cure.text.isascii() and not cure.zh.isascii() for cure in signs.cures)
    names = [one.name for one in signs.signatures]
    assert len(names) == len(set(names))


@EACH
def test_it_finds_its_sample_and_not_the_other_line(slug: str, signature: Signature) -> None:
    pattern = compiled(signature.pattern)
    found = pattern.search(signature.sample)
    assert found is not None
    assert signature.literal in signature.sample.lower()
    assert signature.literal == signature.literal.lower()
    assert not (signature.literal in signature.other.lower() and pattern.search(signature.other))
    assert (slug, signature) in candidates(Text([Line(1, signature.sample)]))
    assert 0 < signature.weight < 100
    assert signature.says.format(**dict.fromkeys(pattern.groupindex, "x"))
    assert not signature.says.endswith(".")


@EACH
def test_its_conditions_are_lower_case(slug: str, signature: Signature) -> None:
    del slug
    assert all(one == one.lower() for one in (*signature.beside, *signature.unless))
    assert not signature.distinct or signature.distinct in compiled(signature.pattern).groupindex


@EACH
def test_its_pattern_is_linear_in_form(slug: str, signature: Signature) -> None:
    del slug
    assert list(faults(parsed(signature.pattern))) == []


@EACH
def test_only_numbers_get_into_a_command(slug: str, signature: Signature) -> None:
    del slug
    found = compiled(signature.pattern).search(signature.sample)
    assert found is not None
    for command in (one for cure in signature.cures for one in cure.commands):
        named = [name for name in found.groupdict() if f"{{{name}}}" in command]
        assert all(found[name].isdigit() for name in named)


@EACH
def test_it_is_quick_on_hostile_lines(slug: str, signature: Signature) -> None:
    del slug
    pattern = compiled(signature.pattern)
    for line in hostile(signature):
        begun = time.process_time()
        pattern.search(line[:LONGEST_LINE])
        assert time.process_time() - begun < SLOWEST


def hostile(signature: Signature) -> Iterator[str]:
    yield f"{signature.sample} " * 400
    yield signature.sample[: len(signature.sample) // 2] * 400
    yield f"{signature.literal} " * 800
    yield f"{signature.literal}{'a' * 60}" * 100
    yield " " * LONGEST_LINE
    yield "a" * LONGEST_LINE
    yield "1" * LONGEST_LINE


def test_no_signature_serves_two_slugs_by_mistake() -> None:
    """The same pattern with the same weight under two slugs could not be told apart."""
    seen: dict[tuple[object, ...], str] = {}
    for slug, one in ALL:
        key = (re.sub(r"\s+", " ", one.pattern), one.weight, one.beside, one.unless)
        assert seen.setdefault(key, slug) == slug


@EACH
def test_its_anchor_is_a_whole_word_wherever_its_literal_stands(
    slug: str, signature: Signature
) -> None:
    """Letters may follow a literal's end: "driver" stands in "drivers", "oom" in "OOMKilled"."""
    del slug
    assert signature.anchor in ("", *runs(f"x{signature.literal}x"))
