"""A pre-flight as a page: who is to blame and what to do, then plots, then the ranks.

Like its Markdown it is not redacted, because the operators of a cluster need its names.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import rank_charts as durations
from gpucheck.cluster.pages import rank_charts as phases
from gpucheck.cluster.pages import tables
from gpucheck.cluster.pages import tables as preflight_ranks
from gpucheck.cluster.pages import words as words_of
from gpucheck.cluster.pages.words import ShownCause, host, ranks_on_nodes
from gpucheck.engine import Report
from gpucheck.facts.preflight import Bandwidth, Culprit, PairBandwidth, Preflight, RankOutcome
from gpucheck.findings import all_rules
from gpucheck.language import say, say_many
from gpucheck.output.blocks import Box, Evidence, LineBlock, Words
from gpucheck.output.evidence import evidence
from gpucheck.output.html import report
from gpucheck.output.html.charts import heat, plots
from gpucheck.output.html.charts.plots import Across, PlotLine
from gpucheck.output.html.charts.svg import Chart, drawable, figure, number
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
from gpucheck.output.public import public
from gpucheck.output.words import clean, headed, in_line, in_parts, size, term

# The plots of a pre-flight: who waited, how fast each rank is, how fast the links are.

# Chosen: a single value is a sentence, no plot; more plots are not read.
_FEWEST, _MOST_RATES = 2, 6
_SPARSE = 0.25  # chosen: with fewer pairs known most of a matrix would be empty, and bars say more
_IS_SLOW = 5  # exit status: docs/architecture.md, 1.2


def charts(result: Result) -> Iterator[Chart]:
    """Yield each plot that this pre-flight has the figures for."""
    preflight = result.preflight
    ranks = preflight.ranks or []
    waited = phases.phases_chart(ranks) if ranks else None
    if waited is not None:
        yield waited
    timed = durations.durations_chart(ranks, preflight.steps or ())
    if timed is not None:
        yield timed
    yield from _rates(ranks, preflight.culprits or ())
    for of in ("nodes", "ranks"):
        pairs = [
            pair for pair in preflight.pair_bandwidths if pair.of == of and drawable(pair.busbw)
        ]
        found = _pairs(of, _of_one_size(pairs), preflight) if pairs else None
        if found is not None:
            yield found
    measured = _bandwidths(preflight.bandwidths or ())
    if measured is not None:
        yield measured


def _rates(ranks: Sequence[RankOutcome], culprits: Sequence[Culprit]) -> Iterator[Chart]:
    """Yield the distribution of each rate that ranks measured alone."""
    slow = {rank for culprit in culprits if _is_slow(culprit) for rank in culprit.ranks}
    rates: dict[str, list[RankOutcome]] = {}
    for rank in ranks:
        for name, value in rank.rates.items():
            if drawable(value):
                rates.setdefault(name, []).append(rank)
    for at, (name, ranks_with_rate) in enumerate(list(rates.items())[:_MOST_RATES]):
        if (
            len(ranks_with_rate) < _FEWEST
            or len({rank.rates[name] for rank in ranks_with_rate}) == 1
        ):
            continue
        values = {_named(rank): rank.rates[name] for rank in ranks_with_rate}
        slow_ranks = sorted(
            (rank for rank in ranks_with_rate if rank.rank in slow),
            key=lambda rank: rank.rates[name],
        )
        yield plots.spread_chart(
            f"rate-{at}", headed(say("Each rank alone"), clean(name)), clean(name), values,
            [_named(rank) for rank in slow_ranks], say("Ranks"),
        )  # fmt: skip


def _is_slow(culprit: Culprit) -> bool:
    rule = all_rules().get(culprit.slug)
    return rule is not None and rule.preflight_class == _IS_SLOW and not culprit.is_link


def _named(rank: RankOutcome) -> str:
    words: list[str] = [say("rank {rank}", rank=rank.rank)]
    words += [host(rank.host)] if rank.host else []
    words += [f"GPU {rank.gpu}"] if rank.gpu is not None else []
    return in_line(words)


def _pairs(of: str, pairs: Sequence[PairBandwidth], preflight: Preflight) -> Chart | None:
    """Return the bandwidth between ranks or nodes: a matrix, or bars if few pairs are known."""
    called = _names(of, preflight.ranks or ())
    ends = sorted({end for pair in pairs for end in pair.ends})
    names = [called.get(end, str(end)) for end in ends]
    place = {end: at for at, end in enumerate(ends)}
    blamed = _blamed(of, preflight)
    title = say("Bandwidth between nodes") if of == "nodes" else say("Bandwidth between ranks")
    if len(pairs) >= _SPARSE * len(ends) * (len(ends) - 1) / 2 and len(pairs) > 1:
        cells = {_at(pair, place): pair.busbw for pair in pairs}
        named = frozenset(_at(pair, place) for pair in pairs if frozenset(pair.ends) in blamed)
        return heat.chart(f"pairs-of-{of}", title, heat.Matrix(names, cells, named))
    if len(pairs) < _FEWEST:
        return None
    values: dict[str, float] = {}
    slow: list[str] = []
    for pair in pairs:
        here, there = (names[place[end]] for end in pair.ends)
        name = say("{one} and {other}", one=here, other=there)
        values[name] = pair.busbw
        slow += [name] if frozenset(pair.ends) in blamed else []
    return plots.spread_chart(f"pairs-of-{of}", title, "GB/s", values, slow, say("Pairs"))


def _at(pair: PairBandwidth, place: Mapping[int, int]) -> tuple[int, int]:
    first, other = pair.ends
    return place[first], place[other]


def _of_one_size(pairs: Sequence[PairBandwidth]) -> list[PairBandwidth]:
    """Return the pairs with the most frequent size: others cannot be compared with them."""
    ((common, _count),) = Counter(pair.size for pair in pairs).most_common(1)
    return [pair for pair in pairs if pair.size == common]


def _names(of: str, ranks: Sequence[RankOutcome]) -> Mapping[int, str]:
    if of == "ranks":
        return {rank.rank: say("rank {rank}", rank=rank.rank) for rank in ranks}
    return {
        rank.node: host(rank.host) if rank.host else say("node {number}", number=rank.node)
        for rank in ranks
        if rank.node is not None
    }


def _blamed(of: str, preflight: Preflight) -> set[frozenset[int]]:
    """Return the pairs that a culprit names as a link."""
    node_of = {rank.rank: rank.node for rank in preflight.ranks or ()}
    found = set()
    for culprit in preflight.culprits or ():
        if culprit.is_link:
            nodes = {node for rank in culprit.ranks if (node := node_of.get(rank)) is not None}
            found.add(frozenset(culprit.ranks) if of == "ranks" else frozenset(nodes))
    return found


def _bandwidths(measured: Sequence[Bandwidth]) -> Chart | None:
    """Return the bus bandwidths by size, with what they were compared with."""
    groups: dict[tuple[str, int, int], list[Bandwidth]] = {}
    for bandwidth in measured:
        if drawable(bandwidth.busbw) and bandwidth.size > 0 and drawable(bandwidth.size):
            groups.setdefault(
                (clean(bandwidth.collective), bandwidth.ranks, bandwidth.nodes), []
            ).append(bandwidth)
    shown = []
    for (name, ranks, nodes), group in sorted(groups.items(), key=lambda pair: -pair[0][1]):
        points = sorted((float(bandwidth.size), bandwidth.busbw or 0.0) for bandwidth in group)
        shown.append(PlotLine(headed(name, ranks_on_nodes(ranks, nodes)), points))
    limits = [
        PlotLine(
            clean(bandwidth.compared_with),
            [(float(bandwidth.size), bandwidth.busbw / bandwidth.share)],
            is_limit=True,
        )
        for group in groups.values()
        for bandwidth in group
        if bandwidth.busbw and bandwidth.share and bandwidth.compared_with
    ]
    if not limits and sum(len(plotted.points) for plotted in shown) <= 1:
        return None
    across = Across(say("Size of the message"), lambda value: size(int(value)), doubles=True)
    words = [
        headed(plotted.name, f"{number(max(y for _x, y in plotted.points))} GB/s")
        for plotted in shown[:3]
    ]
    caption = say("Bus bandwidth by size of the message: {groups}.", groups=in_parts(words))
    every = [*shown[: plots.MOST_LINES], *limits[: plots.MOST_LINES]]
    return plots.chart("bandwidth", say("Bus bandwidth"), caption, "GB/s", across, every)


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
    drawn = [figure(chart) for chart in charts(result)]
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
