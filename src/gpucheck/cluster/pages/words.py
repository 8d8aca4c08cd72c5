"""The sentences that all formats of a pre-flight share: who is to blame, what the result is."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import ExitStatus, pack
from gpucheck.cluster.session import ORDER
from gpucheck.engine import Verdict
from gpucheck.engine.report import trailer
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Bandwidth, Culprit, RankOutcome
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding
from gpucheck.language import in_series, say, say_many, spoken
from gpucheck.output.blocks import Box, Items, SectionBlock, Words, more_about
from gpucheck.output.report_blocks import fixes
from gpucheck.output.summary import headline
from gpucheck.output.ticket_text import with_slug
from gpucheck.output.words import (
    VERDICTS,
    and_more,
    bracketed,
    clean,
    headed,
    in_line,
    in_parts,
    size,
    term,
)

WORST_FIRST = ("crashed", "failed", "timed-out", "lost", "absent", "stopped", "passed")
BAD = WORST_FIRST[:5]
"""The ends of a rank that is to blame, or may be; one that was stopped has waited for others. The
order is that of a table: who needs a look is on top."""
_CLASSES: dict[ExitStatus, str] = {
    0: say("nothing that counts was found"),
    1: say("a machine is broken, or a rank is missing, hangs or crashed"),
    3: say("no culprit can be named with certainty"),
    4: say("something is set up wrongly; no hardware is blamed"),
    5: say("results are right, but something is too slow"),
}
INCONCLUSIVE: ExitStatus = 3
"""The exit status (docs/preflight/reference.md)."""
_PAIR = 2
"""Ranks."""
_MOST_HOSTS = _MOST_MODELS = 3
"""Names in a sentence. Chosen: more would not be read."""
_LONGEST_HOST, _LONGEST_SPANS, _LONGEST_EVIDENCE = 80, 60, 600
"""Characters. Chosen: a host and its ranks fit into a line, evidence into a paragraph."""
_SHORT_SECONDS = 10
"""Below this, seconds have a decimal."""


class ShownCause(msgspec.Struct, frozen=True):
    """A slug with everything about it; ``finding`` is None if no rule has the slug."""

    slug: str
    severity: str
    culprits: tuple[Culprit, ...]
    finding: Finding | None


def causes(result: Result) -> list[ShownCause]:
    """Return what was found, each slug once; what decided the exit status comes first."""
    by_slug: dict[str, list[Culprit]] = {}
    for culprit in result.preflight.culprits or ():
        by_slug.setdefault(culprit.slug, []).append(culprit)
    standing = {entry.slug: entry for entry in result.report.standing}
    suppressed = {entry.slug for entry in result.report.findings} - set(standing)
    found = []
    for slug in dict.fromkeys((*by_slug, *standing)):
        finding = standing.get(slug)
        if slug in suppressed or (finding is not None and finding.severity.value == "info"):
            continue
        blamed = tuple(by_slug.get(slug, ()))
        severity = finding.severity if finding else min(blamed, key=_gravity).severity
        found.append(ShownCause(slug, severity.value, blamed, finding))
    return sorted(found, key=lambda cause: (cause.severity != "error", _class_place(cause.slug)))


def _gravity(culprit: Culprit) -> bool:
    return culprit.severity.value != "error"


def _class_place(slug: str) -> int:
    rule = all_rules().get(slug)
    return ORDER.index(rule.preflight_class) if rule is not None else 0


def verdict_word(result: Result) -> Verdict:
    """Return the verdict of the report, including open questions and culprits without a rule."""
    severities = {cause.severity for cause in causes(result)}
    if "error" in severities:
        return "broken"
    if result.ending.status == INCONCLUSIVE:
        return "unknown"
    return "warning" if severities else result.report.verdict


def label(result: Result) -> str:
    """Return the first word of the verdict; that of a drill says nothing about a machine."""
    return say("DRILL") if drill_words(result) else VERDICTS[verdict_word(result)]


def trailer_of(result: Result) -> str:
    """Return the last line of a pre-flight; findings of a drill say nothing about a machine."""
    first = spoken(label(result))
    if drill_words(result):
        return trailer("unknown", (), first)
    return trailer(verdict_word(result), [cause.slug for cause in causes(result)], first)


def verdict(result: Result, *, is_short: bool = False) -> str:
    """Return one sentence with the overall result; ``is_short`` as for :func:`who`."""
    found = causes(result)
    if result.ending.status == INCONCLUSIVE and (result.ending.why or not found):
        why = clean(result.ending.why, _LONGEST_EVIDENCE)
        return say("Inconclusive: {why}", why=why)
    if not found or (result.ending.status == 0 and verdict_word(result) != "broken"):
        return _with_warnings(healthy(result), found)
    first, *others = cause_lines(found, is_short=is_short)
    if not others:
        return first[1]
    return say_many(
        len(others),
        "{first} - and {count} more finding",
        "{first} - and {count:,} more findings",
        first=first[1],
    )


def cause_lines(found: list[ShownCause], *, is_short: bool = False) -> list[tuple[str, str]]:
    """Return severity and sentence of each culprit, and of each cause without one, in order."""
    return [
        (cause.severity, with_slug(words, cause.slug))
        for cause in found
        for words in (
            [sentence(culprit, is_short=is_short) for culprit in cause.culprits]
            or ([headline(cause.finding)] if cause.finding is not None else [])
        )
    ]


def notices(result: Result) -> list[str]:
    """Return useful facts that are not faults."""
    return [clean(notice, _LONGEST_EVIDENCE) for notice in result.preflight.notices]


def _with_warnings(words: str, found: list[ShownCause]) -> str:
    if not found:
        return words
    names = in_series([cause.slug for cause in found])
    return say("{verdict} - with {slugs}", verdict=words, slugs=names)


def healthy(result: Result) -> str:
    """Return the one line that is shown if all is well: who, the measured values, the time."""
    fastest = headline_bandwidth(result.preflight.bandwidths or ())
    if fastest is None:
        reached: str = say("each passed its tests")
    else:
        reached = bandwidth_words(fastest)
    return in_parts([headed(population(result), reached), seconds(result.seconds)])


def population(result: Result) -> str:
    """Return how many ranks on how many nodes, and on which devices."""
    ranks = result.preflight.ranks or []
    world = result.preflight.world_size or len(ranks)
    nodes = result.preflight.nodes or len({rank.host or rank.node for rank in ranks})
    gpus = {rank.uuid or rank.rank: rank.model for rank in ranks if rank.device != "cpu"}
    models = Counter(model for model in gpus.values() if model)
    what = [
        say("{count:,} x {name}", count=count, name=clean(name.removeprefix("NVIDIA ")))
        for name, count in models.most_common(_MOST_MODELS)
    ]
    if not models and any(rank.device == "cpu" for rank in ranks):
        what = [say("on the CPU")]
    return in_line([ranks_on_nodes(world, nodes), *what])


def ranks_on_nodes(ranks: int, nodes: int) -> str:
    """Return ``8 ranks on 2 nodes``."""
    return say(
        "{ranks} on {nodes}",
        ranks=say_many(ranks, "{count} rank", "{count:,} ranks"),
        nodes=say_many(nodes, "{count} node", "{count:,} nodes"),
    )


def headline_bandwidth(bandwidths: Sequence[Bandwidth]) -> Bandwidth | None:
    """Return the all-reduce of the most ranks at its largest size; None if there is none."""
    all_reduces = [
        bandwidth
        for bandwidth in bandwidths
        if bandwidth.collective == "all-reduce" and bandwidth.busbw is not None
    ]
    return max(all_reduces, key=lambda bandwidth: (bandwidth.ranks, bandwidth.size), default=None)


def bandwidth_words(bandwidth: Bandwidth) -> str:
    """Return a bandwidth with what it was compared with."""
    if bandwidth.busbw is None:
        return say(
            "{collective} of {size}: a single rank has no bus bandwidth",
            collective=clean(bandwidth.collective),
            size=size(bandwidth.size),
        )
    words = say(
        "{collective} of {size} {busbw:.3g} GB/s bus bandwidth",
        collective=clean(bandwidth.collective),
        size=size(bandwidth.size),
        busbw=bandwidth.busbw,
    )
    if bandwidth.share is None or not bandwidth.compared_with:
        return words
    compared = clean(bandwidth.compared_with)
    return bracketed(
        words, say("{share:.0%} of {compared}", share=bandwidth.share, compared=compared)
    )


def measured(bandwidth: Bandwidth) -> str:
    """Return a bandwidth with the ranks that it was measured between."""
    return headed(ranks_on_nodes(bandwidth.ranks, bandwidth.nodes), bandwidth_words(bandwidth))


def sentence(culprit: Culprit, *, is_short: bool = False) -> str:
    """Return who is to blame, in which phase, and what was observed."""
    words = who(culprit, is_short=is_short)
    if culprit.phase not in (None, "done"):
        words = in_line([words, phase_words(culprit.phase)])
    words = headed(words, clean(culprit.evidence or "", _LONGEST_EVIDENCE))
    if culprit.confidence is Confidence.CERTAIN:
        return words
    return bracketed(words, term(culprit.confidence.value))


def phase_words(phase: str | None) -> str:
    """Return ``phase warm-up``."""
    return say("phase {phase}", phase=phase)


def who(culprit: Culprit, *, is_short: bool = False) -> str:
    """Return the rank, GPU, node or link with everything that shows where it is.

    ``is_short``: without the PCI address and the UUID, which are for whoever pulls out the card.
    """
    ranks = culprit.ranks or ((culprit.rank,) if culprit.rank is not None else ())
    hosts = [host(name) for name in culprit.hosts or (culprit.host,) if name]
    if culprit.is_link:
        return _link(ranks, hosts)
    if len(ranks) == 1:
        inner = [] if is_short else numbers(culprit)
        return _rank_at(ranks[0], culprit.gpu, inner, hosts)
    whose = say("ranks {ranks}", ranks=spans(ranks)) if ranks else ""
    if not hosts:
        return whose or say("the job")
    many = say("hosts {hosts}", hosts=few(hosts))
    return bracketed(say("host {host}", host=hosts[0]) if len(hosts) == 1 else many, whose)


def numbers(culprit: Culprit) -> list[str]:
    """Return by which numbers its GPU can be told from all others."""
    found: list[str] = [say("PCI {address}", address=clean(culprit.pci))] if culprit.pci else []
    return [*found, clean(culprit.uuid)] if culprit.uuid else found


def _rank_at(rank: int, gpu: int | None, inner: list[str], hosts: list[str]) -> str:
    """Return a rank, and the host and the GPU that it is on."""
    place: list[str] = [say("host {host}", host=hosts[0])] if hosts else []
    if gpu is not None:
        place.append(bracketed(f"GPU {gpu}", in_line(inner)))
    elif inner:
        place.append(bracketed("GPU", in_line(inner)))
    if not place:
        return say("rank {rank}", rank=rank)
    return say("rank {rank} = {place}", rank=rank, place=in_line(place))


def _link(ranks: Sequence[int], hosts: list[str]) -> str:
    if len(ranks) == _PAIR and len(hosts) == _PAIR:
        return say(
            "the link between rank {rank_a} (host {host_a}) and rank {rank_b} (host {host_b})",
            rank_a=ranks[0], host_a=hosts[0], rank_b=ranks[1], host_b=hosts[1],
        )  # fmt: skip
    if len(ranks) == _PAIR and hosts:
        return say(
            "the link between rank {rank_a} and rank {rank_b} on host {host}",
            rank_a=ranks[0], rank_b=ranks[1], host=hosts[0],
        )  # fmt: skip
    if len(ranks) == _PAIR:
        return say(
            "the link between rank {rank_a} and rank {rank_b}", rank_a=ranks[0], rank_b=ranks[1]
        )
    if len(hosts) == _PAIR:
        return say(
            "the link between host {host_a} and host {host_b}", host_a=hosts[0], host_b=hosts[1]
        )
    if hosts:
        return say("the link between {hosts}", hosts=few(hosts))
    return say("the link between ranks {ranks}", ranks=spans(ranks))


def host(name: str) -> str:
    """Return a host name, made harmless and limited in length."""
    return clean(name, _LONGEST_HOST)


def few(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    return and_more(in_series(names[:_MOST_HOSTS]), max(0, len(names) - _MOST_HOSTS))


def spans(ranks: Sequence[int]) -> str:
    """Return ranks as ranges, ``0-7, 16``, shortened if there are many."""
    packed = pack(sorted(ranks)).split(",")
    shown = packed
    while len(", ".join(shown)) > _LONGEST_SPANS:
        shown = shown[:-1]
    names = in_series(shown)
    return names if len(shown) == len(packed) else say("{those} ...", those=names)


def exit_words(result: Result) -> str:
    """Return the exit status, its class, and its meaning."""
    status = result.ending.status
    meaning = _CLASSES[status]
    if not status and causes(result):
        meaning = bracketed(meaning, say("see --fail-on"))
    return say(
        "Exit status {status}, {word}: {meaning}.",
        status=status, word=result.ending.word, meaning=meaning,
    )  # fmt: skip


def drill_words(result: Result) -> str:
    """Return the note about a drill; "" if it was not a drill."""
    drill = result.drill or result.preflight.drill
    if not drill:
        return ""
    return say(
        "THIS IS A DRILL: {faults}. This fault was injected on purpose; do not take a machine out "
        "of service because of it.",
        faults=clean(drill),
    )


def next_steps(result: Result) -> list[str]:
    """Return the next steps if nobody could be named."""
    preflight = result.preflight
    if result.ending.status != INCONCLUSIVE:
        return []
    if preflight.culprits is None:
        return [
            say(
                "Read the output of the process of rank 0, and see whether its node is up and its "
                "port is open to the others; then run it again."
            )
        ]
    if drill_words(result) and not preflight.culprits and not preflight.inconclusive:
        return [say("See whether the drill names a rank that exists, and run it again.")]
    steps: list[str] = []
    if preflight.finished is False:
        longer = f" --timeout {2 * preflight.deadline:.0f}" if preflight.deadline else ""
        steps.append(say("Give it more time: {command}", command=f"gpucheck preflight{longer}"))
    steps.append(say("Run it again: a fault that does not recur was chance."))
    if (preflight.nodes or 1) > _PAIR and preflight.finished:
        steps.append(say("Test every link between the nodes: gpucheck preflight --links"))
    if (preflight.nodes or 1) > _PAIR:
        steps.append(
            say(
                "Run it on one half of the nodes, then on the other. If one half fails, search "
                "there. If both pass, the fault is a link between the halves, or it needs that "
                "many nodes."
            )
        )
    if preflight.backend == "nccl":
        steps.append(say("Let NCCL log what it does: NCCL_DEBUG=INFO gpucheck preflight"))
    return steps


def box(cause: ShownCause, result: Result) -> Box:
    """Return a cause with its fixes, which a drill has none of."""
    if cause.finding is None:
        return Box(heading=cause.slug, severity=cause.severity)
    more = more_about(cause.slug)
    if drill_words(result):
        drill = Words(say("Fixes are left out because this is a drill."))
        return Box(heading=cause.slug, severity=cause.severity, more=(drill, more))
    shown = fixes(cause.finding.fixes)
    return Box(heading=cause.slug, severity=cause.severity, fixes=shown, more=(more,))


def next_section(result: Result) -> tuple[SectionBlock, ...]:
    """Return the next steps if nobody could be named."""
    steps = tuple(next_steps(result))
    return (SectionBlock(say("Next"), (Items(steps),), "next"),) if steps else ()


def still_open(result: Result) -> list[str]:
    """Return what could not be determined although there is a result."""
    if result.ending.status == INCONCLUSIVE:
        return []
    both = (result.preflight.inconclusive, result.preflight.stopped_because)
    return [say("Still open: {open_end}", open_end=clean(reason, 600)) for reason in both if reason]


def by_status(ranks: Sequence[RankOutcome]) -> list[tuple[str, list[RankOutcome]]]:
    """Return the ranks by their results, the worst first."""
    found: dict[str, list[RankOutcome]] = {}
    for rank in ranks:
        found.setdefault(rank.status, []).append(rank)
    return [(status, found[status]) for status in WORST_FIRST if status in found]


def host_words(ranks: Sequence[RankOutcome]) -> str:
    """Return the results of these ranks of a host, and the messages of the worst one."""
    counts = in_series(
        [
            bracketed(counted_status(len(outcomes), status), _ranks(outcomes))
            for status, outcomes in by_status(ranks)
        ]
    )
    worst = by_status(ranks)[0][1][0]
    detail = clean(worst.detail, 200)
    if worst.status != "absent":
        words = in_parts([counts, _in_phase(worst)]) if len(ranks) > 1 else None
        words = words or say("{what}, in phase {phase}", what=counts, phase=worst.phase)
        return headed(words, detail)
    if len(ranks) > 1 and detail:
        counts = in_parts([counts, say("rank {rank}", rank=worst.rank)])
    return headed(counts, detail)


def _in_phase(outcome: RankOutcome) -> str:
    return say("rank {rank} in phase {phase}", rank=outcome.rank, phase=outcome.phase)


def counted_status(count: int, status: str) -> str:
    """Return how many ranks ended in this way."""
    return say("{count:,} {outcome}", count=count, outcome=term(status))


def _ranks(outcomes: Sequence[RankOutcome]) -> str:
    if len(outcomes) > 1:
        return say("ranks {ranks}", ranks=spans([outcome.rank for outcome in outcomes]))
    rank = say("rank {rank}", rank=outcomes[0].rank)
    return rank if outcomes[0].gpu is None else in_line([rank, f"GPU {outcomes[0].gpu}"])


def rate_lines(ranks: Sequence[RankOutcome]) -> Iterator[str]:
    """Return for each rate the values of the ranks: the slowest, the median, the fastest."""
    rates: dict[str, list[tuple[float, int]]] = {}
    for rank in ranks:
        for name, value in rank.rates.items():
            rates.setdefault(name, []).append((value, rank.rank))
    for name, values in rates.items():
        slowest, fastest = min(values), max(values)
        median = statistics.median(value for value, _rank in values)
        yield say(
            "{rate}: {least:.4g} (rank {slowest}) to {most:.4g} (rank {fastest}), median "
            "{median:.4g}",
            rate=clean(name),
            least=slowest[0],
            slowest=slowest[1],
            most=fastest[0],
            fastest=fastest[1],
            median=median,
        )


def seconds(value: float) -> str:
    """Return a time in a form for people."""
    return f"{value:.1f} s" if value < _SHORT_SECONDS else f"{value:.0f} s"
