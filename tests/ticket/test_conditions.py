"""What must or must not stand beside a message: causes, never the wording of one text."""

import re

import pytest

from gpucheck.signatures import all_signs

_ANSWER = re.compile(r"\n(?:true|false)$")
CONDITIONS = [
    (slug, signature.name, one)
    for slug, signs in all_signs().items()
    for signature in signs.signatures
    for condition in (*signature.beside, *signature.unless)
    for one in condition.split("|")
]


@pytest.mark.parametrize(("slug", "name", "condition"), CONDITIONS)
def test_a_condition_spans_lines_only_for_an_answer(slug: str, name: str, condition: str) -> None:
    assert "\n" not in _ANSWER.sub("", condition), f"{slug}: {name}"


@pytest.mark.parametrize(("slug", "name", "condition"), CONDITIONS)
def test_a_condition_is_a_few_words(slug: str, name: str, condition: str) -> None:
    assert len(condition.split()) <= 8, f"{slug}: {name}"
