"""What a pre-flight prints in Chinese."""

import functools
import html
import json
from collections.abc import Callable

import html_samples
import preflight_samples as samples
import pytest
from each import each
from html_support import Markup
from language import pseudo
from language.english_left import english_left
from language.said import foreign_in

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import bundle as preflight_json
from gpucheck.cluster.pages import html as html_preflight
from gpucheck.cluster.pages import junit as preflight_junit
from gpucheck.cluster.pages import markdown as preflight_markdown
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.language import speaking
from gpucheck.language.columns import width_of

_SAMPLES = (
    samples.healthy, samples.one_rank, samples.pair, samples.hang, samples.several,
    samples.misconfigured, samples.slow, samples.warned, samples.inconclusive, samples.store_lost,
    samples.drill, samples.drill_unnoticed, samples.on_the_cpu, html_samples.large,
    html_samples.links,
)  # fmt: skip
_FORMS: dict[str, Callable[[Result], str]] = {
    "terminal": lambda result: preflight_text.render(result, verbose=1),
    "markdown": preflight_markdown.render,
    "junit": preflight_junit.render,
    "html": lambda result: Markup(html_preflight.render(result)).text(),
}


@each("form", _FORMS, shards=4)
@each("sample", _SAMPLES)
def test_it_is_said_in_whole_sentences(
    sample: samples.Sample, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, foreign = made(sample)
    pseudo.use(monkeypatch)
    with speaking("zh"):
        text = html.unescape(_FORMS[form](result))
    for line in text.splitlines() if form in ("junit", "html") else [text]:
        assert english_left(line, foreign) == []


@functools.cache
def made(sample: samples.Sample) -> tuple[Result, str]:
    """Return a result and what others wrote in it: made once for all forms."""
    result = sample()
    return result, foreign_in(json.loads(preflight_json.render(result)))


@each("sample", _SAMPLES)
def test_its_json_is_the_same_in_every_language(sample: samples.Sample) -> None:
    english = preflight_json.render(sample())
    with speaking("zh"):
        assert preflight_json.render(sample()) == english


def test_the_table_of_ranks_is_aligned() -> None:
    with speaking("zh"):
        text = preflight_text.render(samples.healthy(), verbose=1)
    rows = [line for line in text.splitlines() if line.startswith("  rank ")]
    assert rows
    assert len({width_of(row[: row.index("gpu-")]) for row in rows if "gpu-" in row}) == 1
    assert text.startswith("正常     ")
