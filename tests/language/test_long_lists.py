"""Lists of any length: the same words as item by item, and not a sentence within another for each.

A user's variable may name a thousand GPUs, and a hundred files may be asked for that are not there.
"""

from collections.abc import Callable, Sequence

from each import each
from rule_facts import A100, CUDA_TORCH, HOST, LINUX, nvml
from rules_support import TABLES, snapshot

from gpucheck.cluster.figures import drift
from gpucheck.cluster.model import Rank, Roster, TaskFacts
from gpucheck.engine import Report, judge_machine
from gpucheck.facts.snapshot import decode
from gpucheck.facts.system import Environment
from gpucheck.language import (
    Sentence,
    any_of,
    as_said,
    in_clauses,
    in_series,
    in_turn,
    listed,
    say,
    speaking,
    spoken,
)
from gpucheck.language.read_back import said_again
from gpucheck.output import json_text, junit, markdown, terminal
from gpucheck.output.html import report as html_report
from gpucheck.output.words import clean, in_line, in_parts

_DEEPEST = 16
_MANY = [f"item {number}" for number in range(5000)]
_LISTS: dict[Callable[[Sequence[str]], str], tuple[str, str, str]] = {
    in_series: (", ", ", ", "、"),
    listed: (", ", " and ", "、"),
    any_of: (", ", " or ", "、"),
    in_turn: (" ", " ", ""),
    in_line: (", ", ", ", "，"),  # a Chinese comma
    in_parts: ("; ", "; ", "；"),  # a Chinese semicolon
    in_clauses: ("; ", "; ", "；"),  # a Chinese semicolon
}


def _depth(text: object) -> int:
    if not isinstance(text, Sentence):
        return 0
    return 1 + max((_depth(part) for part in text.params.values()), default=0)


@each("way", _LISTS)
def test_a_long_list_is_flat_and_reads_as_item_by_item(way: Callable[[Sequence[str]], str]) -> None:
    between, last, _chinese = _LISTS[way]
    words = way(_MANY)
    assert words == between.join(_MANY[:-1]) + last + _MANY[-1]
    assert _depth(words) <= _DEEPEST
    assert clean(words) == words
    assert said_again(str(words), as_said(words)) == words


@each("way", _LISTS)
def test_a_list_in_chinese_reads_as_item_by_item(way: Callable[[Sequence[str]], str]) -> None:
    items = [say("unknown"), "A", say("yes"), "B.", "7", say("no"), "C"]
    with speaking("zh"):
        one_by_one = items[0]
        for item in items[1:-1]:
            one_by_one = (in_series if way in (listed, any_of) else way)([one_by_one, item])
        assert spoken(way([one_by_one, items[-1]])) == spoken(way(items))
        assert _LISTS[way][2] in spoken(way(items))
        assert spoken(way(_MANY)).count("item") == len(_MANY)


@each("number", range(5))
def test_short_lists(number: int) -> None:
    items = ["A", "B", "C", "D"][:number]
    assert in_series(items) == ", ".join(items)
    assert in_parts(["", *items, ""]) == "; ".join(items)


def _report() -> Report:
    """A machine whose CUDA_VISIBLE_DEVICES names more GPUs than any machine has."""
    numbers = "0," + ",".join(map(str, range(2, 1300)))
    return judge_machine(
        snapshot(
            LINUX,
            HOST,
            nvml(A100, A100),
            CUDA_TORCH,
            Environment(variables={"CUDA_VISIBLE_DEVICES": numbers}),
        ),
        TABLES,
    )


@each("language", ["en", "zh"])
def test_every_face_shows_a_list_of_a_thousand(language: str) -> None:
    with speaking("zh" if language == "zh" else "en"):
        report = _report()
        for face in (terminal, json_text, markdown, junit, html_report):
            assert "visible-devices-hides-gpus" in face.render(report)
        assert judge_machine(decode(json_text.render(report).encode()), TABLES).verdict


def test_two_hundred_differences_are_counted_and_a_few_told() -> None:
    odd = {f"UCX_Z{number}": "1" for number in range(200)}
    facts = {
        at: TaskFacts(task=at, host=f"n{at}", variables=odd if at == 2 else {}) for at in range(3)
    }
    roster = Roster(
        ranks=tuple(Rank(rank=at, task=at, node=at, host=f"n{at}", local=0) for at in range(3))
    )
    (found,) = drift.culprits(roster, facts)
    assert found.evidence.endswith("(and 184 more)")
    assert found.evidence.count("UCX_Z") == 16
    assert _depth(found.evidence) <= _DEEPEST
