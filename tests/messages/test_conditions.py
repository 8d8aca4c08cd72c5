"""The conditions of messages: causes, never the wording of one text."""

import re

import pytest

from gpucheck.messages import all_messages

_ANSWER = re.compile(r"\n(?:true|false)$")
LITERALS = {
    (f"{slug} {message.name}", literal)
    for slug, finding in all_messages().items()
    for message in finding.messages
    for condition in (*message.beside, *filter(None, [message.unless]))
    for literal in (*condition.any_of, *condition.said)
}


@pytest.mark.parametrize(("message", "literal"), sorted(LITERALS))
def test_a_condition_is_a_few_words_of_one_line(message: str, literal: str) -> None:
    """Only the answer to a command may be on the next line."""
    assert "\n" not in _ANSWER.sub("", literal), message
    assert len(literal.split()) <= 8, message
