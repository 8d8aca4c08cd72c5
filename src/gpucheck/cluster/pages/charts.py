"""The plots of a pre-flight: who waited, how fast each rank is, how fast the links are."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import rank_charts as durations
from gpucheck.cluster.pages import rank_charts as phases
from gpucheck.cluster.pages.words import host, ranks_on_nodes
from gpucheck.facts.preflight import Bandwidth, Culprit, PairBandwidth, Preflight, RankOutcome
from gpucheck.findings import all_rules
from gpucheck.language import say
from gpucheck.output.html.charts import heat, plots
from gpucheck.output.html.charts.plots import Across, PlotLine
from gpucheck.output.html.charts.svg import Chart, drawable, number
from gpucheck.output.words import clean, headed, in_line, in_parts, size

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
