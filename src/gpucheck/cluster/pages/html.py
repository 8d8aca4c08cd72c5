"""A pre-flight as a page: who is to blame and what to do, then plots, then the ranks.

Like its Markdown it is not redacted, because the operators of a cluster need its names.
"""

from collections.abc import Iterator, Sequence

import msgspec

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import charts as of_preflight
from gpucheck.cluster.pages import tables
from gpucheck.cluster.pages import tables as preflight_ranks
from gpucheck.cluster.pages import words as words_of
from gpucheck.cluster.pages.words import ShownCause
from gpucheck.engine import Report
from gpucheck.language import say, say_many
from gpucheck.output.blocks import Box, Evidence, LineBlock, Words
from gpucheck.output.evidence import evidence
from gpucheck.output.html import report
from gpucheck.output.html.charts.svg import figure
from gpucheck.output.html.elements import (
    BLANK,
    Element,
    Node,
    el,
    ending,
    facts,
    folded,
    framed,
    items,
    section,
    state,
    table,
    when,
    words,
    written,
)
from gpucheck.output.html.page import First, page, title
from gpucheck.output.redact import public
from gpucheck.output.words import headed, in_line, term

_FINDINGS, _IN_FULL, _EACH, _ROWS, _LONG = 50, 8, 3, 100, 2000
"""Findings in a line each, with their fixes, sentences of each; rows of a table; characters.
Chosen: a page of a job of any size opens at once."""


def render(result: Result) -> str:
    """Return the page."""
    drill = words_of.drill_words(result)
    found = words_of.causes(result)
    main: list[Node] = [
        *written(_cause(cause, result) for cause in found[:_IN_FULL]),
        _all_findings(found),
        *written(words_of.next_section(result)),
        _plots(result),
        _gpus(result),
        _ranks(result),
        _figures(result),
    ]
    names = say("Names of hosts and UUIDs are real.")
    end: list[Node] = [
        el("p", words(words_of.exit_words(result))),
        *ending(result.report.snapshot, names, words_of.trailer_of(result)),
    ]
    loud = el("p", el("strong", words(drill)), class_="notice") if drill else None
    notices = [headed(say("notice"), notice) for notice in words_of.notices(result)[:_FINDINGS]]
    top = written(map(Words, (*notices, *words_of.still_open(result))))
    return page(first_line(result), main, [*end, loud], [facts(_facts(result)), loud, *top])


def first_line(result: Result) -> First:
    """Return the first line of the page."""
    word = words_of.verdict_word(result)
    return First(word, words_of.label(result), words_of.verdict(result, is_short=True))


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield which hosts these were, when, for how long, and how many ranks are in order."""
    ranks = result.preflight.ranks or ()
    hosts = list(dict.fromkeys(words_of.host(rank.host) for rank in ranks if rank.host))
    passed = sum(rank.status == "passed" for rank in ranks)
    yield say("Hosts"), words_of.few(hosts)
    yield (
        say("Time"),
        in_line([when(result.report.snapshot.taken), words_of.seconds(result.seconds)]),
    )
    if ranks:
        counted = say_many(
            len(ranks), "{passed} of {count} rank", "{passed:,} of {count:,} ranks", passed=passed
        )
        yield say("Passed"), counted


def _cause(cause: ShownCause, result: Result) -> Box:
    first = first_line(result).sentence  # it already says this one
    sentences = [
        sentence
        for _severity, sentence in words_of.cause_lines([cause], is_short=True)
        if sentence not in first
    ]
    if len(sentences) > _EACH:
        sentences = [*sentences[:_EACH], say("and {count:,} more", count=len(sentences) - _EACH)]
    return msgspec.structs.replace(
        words_of.box(cause, result),
        intro=tuple(map(Words, sentences)),
        evidence=_evidence(cause),
    )


def _evidence(cause: ShownCause) -> tuple[Evidence, ...]:
    """Return the facts, and the PCI addresses and UUIDs that the sentences leave out."""
    facts_of = evidence(cause.finding) if cause.finding else ()
    lines = [line for block in facts_of for line in block.lines]
    lines += [
        LineBlock(say("rank {rank}", rank=culprit.rank), in_line(words_of.numbers(culprit)), "")
        for culprit in cause.culprits[:_ROWS]
        if words_of.numbers(culprit) and not culprit.is_link
    ]
    return (Evidence(tuple(lines)),) if lines else ()


def _all_findings(found: Sequence[ShownCause]) -> Element | None:
    """Return every finding in a line, where more were found than the boxes say."""
    sentences = words_of.cause_lines(list(found), is_short=True)
    shown_above = sum(min(_EACH, len(cause.culprits) or 1) for cause in found[:_IN_FULL])
    if len(sentences) <= shown_above:
        return None
    rows = [
        el(
            "li",
            el("span", term(severity), class_=f"state {severity}"),
            BLANK,
            words(sentence, _LONG),
        )
        for severity, sentence in sentences[:_FINDINGS]
    ]
    if len(sentences) > _FINDINGS:
        rows.append(el("li", say("and {count:,} more", count=len(sentences) - _FINDINGS)))
    return section("all", say("All findings"), el("ul", *rows))


def _plots(result: Result) -> Element | None:
    drawn = [figure(chart) for chart in of_preflight.charts(result)]
    if not drawn:
        return None
    return section("figures", say("Figures"), el("div", *drawn, class_="charts"))


def _gpus(result: Result) -> Element | None:
    found = tables.counted_gpus(result)
    if not found:
        return None
    return section(
        "gpus", say("GPUs"), el("p", words(found)), items(tables.gpu_lines(result), _LONG)
    )


def _ranks(result: Result) -> Element | None:
    counted = preflight_ranks.counted_ranks(result)
    if not counted:
        return None
    rows: list[Sequence[Node]] = [
        (*row[:3], state(row.status) if row.status else "", *row[4:])
        for row in preflight_ranks.rank_rows(result)
    ]
    return section(
        "ranks", say("Ranks"),
        el("p", words(counted)),
        table(preflight_ranks.rank_heads(), rows) if rows else None,
    )  # fmt: skip


def _figures(result: Result) -> Element | None:
    preflight = result.preflight
    measured = list(map(words_of.measured, (preflight.bandwidths or ())[:_ROWS]))
    lists = [
        folded(heading, items(sentences, _LONG))
        for heading, sentences in (
            (say("Bandwidth"), measured),
            (say("Each rank alone"), list(words_of.rate_lines(preflight.ranks or ()))[:_ROWS]),
            (say("What ranks did when their time was over"), preflight.looks[:_ROWS]),
            (say("Steps"), preflight.step_notes[:_ROWS]),
            (say("Required"), list(result.requirements)[:_ROWS]),
        )
        if sentences
    ]
    return section("evidence", say("Everything that was measured"), *lists) if lists else None


# Pages below the cell of a notebook, each in a frame of its own.


def of_report(shown: Report, note: str = "") -> str:
    """Return the page of a report, redacted, with a note about the whole of it."""
    shown = public(shown)
    return framed(report.render(shown, note), title(report.first_line(shown)))


def notebook_of_preflight(result: Result) -> str:
    """Return the page of a pre-flight."""
    return framed(render(result), title(first_line(result)))
