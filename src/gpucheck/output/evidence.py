"""The evidence of a finding in words: what is too long is shortened, but never where it matters.

What matters is where values of the same kind differ (the NVLinks of a good and a bad GPU), and what
the headline names.
"""

from collections.abc import Iterable, Sequence

from gpucheck.findings.form import Finding
from gpucheck.language import Sentence, in_series
from gpucheck.output.blocks import Evidence, Line
from gpucheck.output.words import (
    LONGEST,
    MOST_ITEMS,
    and_more,
    clean,
    in_runs,
    in_words,
    item,
    shown,
)

_BEFORE = 60
"""Characters shown before what matters in a long text."""
_SHORTEST_NAME = 4
_AROUND = "\"'`.,:;()[]{}"


def evidence(finding: Finding) -> tuple[Evidence, ...]:
    """Return the evidence of a finding, a line for each fact."""
    named = _names(finding.headline)
    lines = []
    for quoted in finding.evidence:
        field = quoted.fact.rpartition(".")[2]
        others = [
            other.value
            for other in finding.evidence
            if other is not quoted and other.fact.rpartition(".")[2] == field
        ]
        lines.append(
            Line(quoted.fact, _short(quoted.value, field, others, named), clean(quoted.source))
        )
    return (Evidence(tuple(lines)),) if lines else ()


def _short(value: object, field: str, others: Sequence[object], named: Sequence[str]) -> str:
    if isinstance(value, str) and len(value) > LONGEST and not isinstance(value, Sentence):
        texts = [other for other in others if isinstance(other, str)]
        return _window(value, texts, named)
    if isinstance(value, list) and len(in_runs(value)) > MOST_ITEMS:
        lists = [other for other in others if isinstance(other, list)]
        return _some_items(value, lists, named)
    return shown(value, field)


def _names(headline: str) -> list[str]:
    """Return the words of a headline that are names: of files, packages, GPUs."""
    words = (word.strip(_AROUND) for word in headline.split())
    return [word for word in words if len(word) >= _SHORTEST_NAME and not word.isalpha()]


def _window(text: str, others: Iterable[str], named: Iterable[str]) -> str:
    """Return a part of a long text that includes where it differs, or what the headline names."""
    kept = text[: LONGEST - _BEFORE]
    places = [_first_difference(text, other) for other in others if other != text]
    places += [text.index(name) for name in named if name in text and name not in kept]
    beyond = [place for place in places if place >= len(kept)]
    if not beyond:
        return clean(text)
    start = min(beyond) - _BEFORE
    return f"...{clean(text[start:], LONGEST - len('...'))}"


def _first_difference(text: str, other: str) -> int:
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(text), len(other)))


def _some_items(values: list[object], others: list[list[object]], named: Sequence[str]) -> str:
    """Return as many items of a long list as are shown: first those that matter, in their order."""
    runs = in_runs(values)
    matters = [
        any(name in words for name in named)
        or any(other[at : at + 1] != values[at : at + 1] for other in others)
        for at, words in enumerate(map(item, values))
    ]
    starts = [sum(count for _words, count in runs[:at]) for at in range(len(runs))]
    order = sorted(
        range(len(runs)), key=lambda at: not any(matters[starts[at] : starts[at] + runs[at][1]])
    )
    chosen = sorted(order[:MOST_ITEMS])
    words = []
    for before, at in zip([-1, *chosen], chosen, strict=False):
        words += ["..."] if at != before + 1 else []
        words.append(in_words(runs[at]))
    left = len(values) - sum(runs[at][1] for at in chosen)
    return and_more(in_series(words), left)
