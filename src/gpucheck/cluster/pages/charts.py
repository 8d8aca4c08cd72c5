"""The plots of a pre-flight: who waited, how fast each rank is, how fast the links are."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import durations_chart as durations
from gpucheck.cluster.pages import phases_chart as phases
from gpucheck.cluster.pages.words import host, ranks_on_nodes
from gpucheck.facts.preflight import Bandwidth, Culprit, PairBandwidth, Preflight, RankOutcome
from gpucheck.findings import all_rules
from gpucheck.language import say
from gpucheck.output.html.charts import heat, lines, spread
from gpucheck.output.html.charts.lines import Across, Line
from gpucheck.output.html.charts.svg import Chart, drawable, number
from gpucheck.output.words import clean, headed, in_line, in_parts, size

_FEWEST, _MOST_RATES = 4, 6
"""Ranks or pairs from which on a plot says more than a table, and plots of a page. Chosen."""
_SPARSE = 0.25
_IS_SLOW = 5


def charts(result: Result) -> Iterator[Chart]:
    """Yield each plot that this pre-flight has the figures for."""
    preflight = result.preflight
    ranks = preflight.ranks or []
    waited = phases.chart(ranks) if ranks else None
    if waited is not None:
        yield waited
    timed = durations.chart(ranks, preflight.steps or ())
    if timed is not None:
        yield timed
    yield from _rates(ranks, preflight.culprits or ())
    for of in ("nodes", "ranks"):
        pairs = [one for one in preflight.pair_bandwidths if one.of == of and drawable(one.busbw)]
        found = _pairs(of, _of_one_size(pairs), preflight) if pairs else None
        if found is not None:
            yield found
    measured = _bandwidths(preflight.bandwidths or ())
    if measured is not None:
        yield measured


def _rates(ranks: Sequence[RankOutcome], culprits: Sequence[Culprit]) -> Iterator[Chart]:
    """Yield the distribution of each rate that ranks measured alone."""
    slow = {rank for one in culprits if _is_slow(one) for rank in one.ranks}
    rates: dict[str, list[RankOutcome]] = {}
    for one in ranks:
        for name, value in one.rates.items():
            if drawable(value):
                rates.setdefault(name, []).append(one)
    for at, (name, those) in enumerate(list(rates.items())[:_MOST_RATES]):
        if len(those) < _FEWEST or len({one.rates[name] for one in those}) == 1:
            continue
        values = {_named(one): one.rates[name] for one in those}
        those_slow = sorted(
            (one for one in those if one.rank in slow), key=lambda one: one.rates[name]
        )
        yield spread.chart(
            f"rate-{at}", headed(say("Each rank alone"), clean(name)), clean(name), values,
            [_named(one) for one in those_slow], say("Ranks"),
        )  # fmt: skip


def _is_slow(culprit: Culprit) -> bool:
    rule = all_rules().get(culprit.slug)
    return rule is not None and rule.preflight_class == _IS_SLOW and not culprit.is_link


def _named(one: RankOutcome) -> str:
    words: list[str] = [say("rank {rank}", rank=one.rank)]
    words += [host(one.host)] if one.host else []
    words += [f"GPU {one.gpu}"] if one.gpu is not None else []
    return in_line(words)


def _pairs(of: str, pairs: Sequence[PairBandwidth], preflight: Preflight) -> Chart | None:
    """Return the bandwidth between ranks or nodes: a matrix, or bars if few pairs are known."""
    called = _names(of, preflight.ranks or ())
    ends = sorted({end for one in pairs for end in one.ends})
    names = [called.get(end, str(end)) for end in ends]
    place = {end: at for at, end in enumerate(ends)}
    blamed = _blamed(of, preflight)
    title = say("Bandwidth between nodes") if of == "nodes" else say("Bandwidth between ranks")
    if len(pairs) >= _SPARSE * len(ends) * (len(ends) - 1) / 2 and len(pairs) > 1:
        cells = {_at(one, place): one.busbw for one in pairs}
        named = frozenset(_at(one, place) for one in pairs if frozenset(one.ends) in blamed)
        return heat.chart(f"pairs-of-{of}", title, heat.Matrix(names, cells, named))
    if len(pairs) < _FEWEST:
        return None
    values: dict[str, float] = {}
    slow: list[str] = []
    for one in pairs:
        here, there = (names[place[end]] for end in one.ends)
        name = say("{one} and {other}", one=here, other=there)
        values[name] = one.busbw
        slow += [name] if frozenset(one.ends) in blamed else []
    return spread.chart(f"pairs-of-{of}", title, "GB/s", values, slow, say("Pairs"))


def _at(one: PairBandwidth, place: Mapping[int, int]) -> tuple[int, int]:
    first, other = one.ends
    return place[first], place[other]


def _of_one_size(pairs: Sequence[PairBandwidth]) -> list[PairBandwidth]:
    """Return the pairs with the most frequent size: others cannot be compared with them."""
    ((common, _count),) = Counter(one.size for one in pairs).most_common(1)
    return [one for one in pairs if one.size == common]


def _names(of: str, ranks: Sequence[RankOutcome]) -> Mapping[int, str]:
    if of == "ranks":
        return {one.rank: say("rank {rank}", rank=one.rank) for one in ranks}
    return {
        one.node: host(one.host) if one.host else say("node {number}", number=one.node)
        for one in ranks
        if one.node is not None
    }


def _blamed(of: str, preflight: Preflight) -> set[frozenset[int]]:
    """Return the pairs that a culprit names as a link."""
    node_of = {one.rank: one.node for one in preflight.ranks or ()}
    found = set()
    for one in preflight.culprits or ():
        if one.is_link:
            nodes = {node for rank in one.ranks if (node := node_of.get(rank)) is not None}
            found.add(frozenset(one.ranks) if of == "ranks" else frozenset(nodes))
    return found


def _bandwidths(measured: Sequence[Bandwidth]) -> Chart | None:
    """Return the bus bandwidths by size, with what they were compared with."""
    groups: dict[tuple[str, int, int], list[Bandwidth]] = {}
    for one in measured:
        if drawable(one.busbw) and one.size > 0 and drawable(one.size):
            groups.setdefault((clean(one.collective), one.ranks, one.nodes), []).append(one)
    shown = []
    for (name, ranks, nodes), those in sorted(groups.items(), key=lambda pair: -pair[0][1]):
        points = sorted((float(one.size), one.busbw or 0.0) for one in those)
        shown.append(Line(headed(name, ranks_on_nodes(ranks, nodes)), points))
    limits = [
        Line(clean(one.compared_with), [(float(one.size), one.busbw / one.share)], is_limit=True)
        for those in groups.values()
        for one in those
        if one.busbw and one.share and one.compared_with
    ]
    if not limits and sum(len(one.points) for one in shown) <= 1:
        return None
    across = Across(say("Size of the message"), lambda value: size(int(value)), doubles=True)
    words = [
        headed(one.name, f"{number(max(y for _x, y in one.points))} GB/s") for one in shown[:3]
    ]
    said = say("Bus bandwidth by size of the message: {groups}.", groups=in_parts(words))
    every = [*shown[: lines.MOST_LINES], *limits[: lines.MOST_LINES]]
    return lines.chart("bandwidth", say("Bus bandwidth"), said, "GB/s", across, every)
