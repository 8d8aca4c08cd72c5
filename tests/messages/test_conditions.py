"""What must or must not stand beside a message: causes, never the wording of one text."""

import re

import pytest
from each import each

from gpucheck.log_patterns.form import FindingMessages
from gpucheck.log_patterns.loading import all_messages

pytestmark = pytest.mark.every_finding

MOST_WORDS = 8
_ANSWER = re.compile(r"\n(?:true|false)$")


def literals(finding: FindingMessages) -> set[tuple[str, str]]:
    """Return the name of each message with the literals of its conditions."""
    return {
        (message.name, literal)
        for message in finding.messages
        for condition in (*message.beside, *filter(None, [message.unless]))
        for literal in (*condition.any_of, *condition.outside_code)
    }


@each("slug", all_messages())
def test_a_condition_is_a_few_words_of_one_line(slug: str) -> None:
    """Only the answer to a command may stand in the next line."""
    for name, literal in literals(all_messages()[slug]):
        assert "\n" not in _ANSWER.sub("", literal), name
        assert len(literal.split()) <= MOST_WORDS, name
