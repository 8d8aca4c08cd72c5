"""A sentence of a worker: believed with its template only if that gives the very text."""

import json
from typing import Any

from each import each

from gpucheck.language import Sentence, as_said
from gpucheck.selftests.outcome import sentence_in
from gpucheck.worker.channel import plain
from gpucheck.worker.words import say, with_said


def sent(detail: str) -> dict[str, Any]:
    """Return a message as it arrives."""
    message: dict[str, Any] = json.loads(json.dumps(plain(with_said({"detail": detail}, "detail"))))
    return message


def test_a_sentence_arrives_with_its_template() -> None:
    inner = say("rank {rank}", rank=3)
    found = sentence_in(sent(say("{what} ({seconds:.0f} s)", what=inner, seconds=2)), "detail")
    assert found == "rank 3 (2 s)"
    assert as_said(found) == {
        "key": "{what} ({seconds:.0f} s)",
        "params": {"what": {"key": "rank {rank}", "params": {"rank": 3}}, "seconds": 2},
    }


def test_a_template_that_is_not_ours_stays_text() -> None:
    found = sentence_in(sent(say("{rank} took ages", rank=3)), "detail")
    assert found == "3 took ages"
    assert not isinstance(found, Sentence)


def test_other_text_and_messages_of_older_workers_stay_text() -> None:
    assert sent("RuntimeError: {x}") == {"detail": "RuntimeError: {x}"}
    found = sentence_in({"detail": "torch is broken"}, "detail")
    assert found == "torch is broken"
    assert not isinstance(found, Sentence)
    assert sentence_in({}, "detail") == ""


@each(
    "template",
    [
        {"key": "{x.__class__}", "params": {"x": "a"}},
        {"key": "{x[0]}", "params": {"x": "a"}},
        {"key": "{x!r}", "params": {"x": "a"}},
        {"key": "{x:999999999d}", "params": {"x": 1}},
        {"key": "{x:{x}}", "params": {"x": 1}},
        {"key": "{y}", "params": {"x": "a"}},
        {"key": "{x:.0f}", "params": {"x": "no number"}},
        {"key": "{x", "params": {"x": "a"}},
        {"key": "{0}", "params": {"0": "a"}},
        {"key": "another sentence", "params": {}},
        {"key": "a {x}", "params": {"x": ["list"]}},
        {"key": 5, "params": {}},
        {"key": "a", "params": []},
        {"key": "a", "params": {"x": {"key": "b", "params": {"y": {"key": "{z}"}}}}},
        "a",
        None,
    ],
)
def test_a_forged_template_is_not_filled_in(template: object) -> None:
    found = sentence_in({"detail": "the text", "said": template}, "detail")
    assert found == "the text"
    assert not isinstance(found, Sentence)
