"""The sentences that all formats of a pre-flight share: who is to blame, what the result is."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from gpucheck.engine import Verdict
from gpucheck.engine.trailer import trailer
from gpucheck.facts.preflight import Bandwidth, Culprit, RankOutcome
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding
from gpucheck.output.summary import headline
from gpucheck.output.words import clean, size
from gpucheck.preflight.judgement import Result
from gpucheck.preflight.model import ExitStatus
from gpucheck.preflight.outcome import ORDER
from gpucheck.preflight.spans import pack

WORST_FIRST = ("crashed", "failed", "timed-out", "lost", "absent", "stopped", "passed")
BAD = WORST_FIRST[:5]
_CLASSES: dict[ExitStatus, str] = {
    0: "nothing that counts was found",
    1: "a machine is broken, or a rank is missing, hangs or crashed",
    3: "nobody can be named for sure",
    4: "something is set up wrongly; no hardware is blamed",
    5: "results are right, but something is too slow",
}
INCONCLUSIVE: ExitStatus = 3
_PAIR = 2
_MOST_HOSTS = _MOST_MODELS = 3
_LONGEST_HOST, _LONGEST_SPANS, _LONGEST_EVIDENCE = 80, 60, 600
_SHORT_SECONDS = 10


class Cause(msgspec.Struct, frozen=True):
    """A slug with everything about it; ``finding`` is None if no rule has the slug."""

    slug: str
    severity: str
    culprits: tuple[Culprit, ...]
    finding: Finding | None


def causes(result: Result) -> list[Cause]:
    """Return what was found, each slug once; what decided the exit status comes first."""
    by_slug: dict[str, list[Culprit]] = {}
    for one in result.preflight.culprits or ():
        by_slug.setdefault(one.slug, []).append(one)
    standing = {one.slug: one for one in result.report.standing}
    suppressed = {one.slug for one in result.report.findings} - set(standing)
    found = []
    for slug in dict.fromkeys((*by_slug, *standing)):
        finding = standing.get(slug)
        if slug in suppressed or (finding is not None and finding.severity.value == "info"):
            continue
        these = tuple(by_slug.get(slug, ()))
        severity = finding.severity if finding else min(these, key=_gravity).severity
        found.append(Cause(slug, severity.value, these, finding))
    return sorted(found, key=lambda one: (one.severity != "error", _class_place(one.slug)))


def _gravity(culprit: Culprit) -> bool:
    return culprit.severity.value != "error"


def _class_place(slug: str) -> int:
    rule = all_rules().get(slug)
    return ORDER.index(rule.preflight_class) if rule is not None else 0


def verdict_word(result: Result) -> Verdict:
    """Return the verdict of the report, including open questions and culprits without a rule."""
    severities = {one.severity for one in causes(result)}
    if "error" in severities:
        return "broken"
    if result.ending.status == INCONCLUSIVE:
        return "unknown"
    return "warning" if severities else result.report.verdict


def trailer_of(result: Result) -> str:
    """Return the last line of a pre-flight; findings of a drill say nothing about a machine."""
    word = verdict_word(result)
    if drill_words(result):
        return trailer("unknown", (), word.upper())
    return trailer(word, [cause.slug for cause in causes(result)], word.upper())


def verdict(result: Result) -> str:
    """Return one sentence with the overall result."""
    found = causes(result)
    if result.ending.status == INCONCLUSIVE and (result.ending.why or not found):
        return f"Inconclusive: {clean(result.ending.why, _LONGEST_EVIDENCE)}"
    if not found or (result.ending.status == 0 and verdict_word(result) != "broken"):
        return f"{healthy(result)}{_warnings(found)}"
    more = len(said(found)) - 1
    others = f" - and {_number(more)} more {'finding' if more == 1 else 'findings'}" if more else ""
    return f"{said(found)[0][1]}{others}"


def said(found: list[Cause]) -> list[tuple[str, str]]:
    """Return severity and sentence of each culprit, and of each cause without one, in order."""
    return [
        (cause.severity, f"{words} [{cause.slug}]")
        for cause in found
        for words in (
            [sentence(one) for one in cause.culprits]
            or ([headline(cause.finding)] if cause.finding is not None else [])
        )
    ]


def notices(result: Result) -> list[str]:
    """Return useful facts that are not faults."""
    return [clean(one, _LONGEST_EVIDENCE) for one in result.preflight.notices]


def _warnings(found: list[Cause]) -> str:
    names = ", ".join(one.slug for one in found)
    return f" - with {names}" if names else ""


def healthy(result: Result) -> str:
    """Return the one line that is shown if all is well: who, the measured values, the time."""
    fastest = headline_bandwidth(result.preflight.bandwidths or ())
    reached = bandwidth_words(fastest) if fastest is not None else "each passed its tests"
    return f"{population(result)}: {reached}; {seconds(result.seconds)}"


def population(result: Result) -> str:
    """Return how many ranks on how many nodes, and on which devices."""
    ranks = result.preflight.ranks or []
    world = result.preflight.world_size or len(ranks)
    nodes = result.preflight.nodes or len({one.host or one.node for one in ranks})
    models = Counter(one.model for one in ranks if one.model and one.device != "cpu")
    what = ", ".join(
        f"{_number(count)} x {clean(name.removeprefix('NVIDIA '))}"
        for name, count in models.most_common(_MOST_MODELS)
    )
    if not models and any(one.device == "cpu" for one in ranks):
        what = "on the CPU"
    return f"{number(world, 'rank')} on {number(nodes, 'node')}{', ' if what else ''}{what}"


def headline_bandwidth(bandwidths: Sequence[Bandwidth]) -> Bandwidth | None:
    """Return the all-reduce of the most ranks at its largest size; None if there is none."""
    told = [one for one in bandwidths if one.collective == "all-reduce" and one.busbw is not None]
    return max(told, key=lambda one: (one.ranks, one.size), default=None)


def bandwidth_words(one: Bandwidth) -> str:
    """Return a bandwidth with what it was compared with."""
    if one.busbw is None:
        return f"{clean(one.collective)} of {size(one.size)}: no bus bandwidth of one rank"
    words = f"{clean(one.collective)} of {size(one.size)} {one.busbw:.3g} GB/s bus bandwidth"
    if one.share is not None and one.compared_with:
        words += f" ({one.share:.0%} of {clean(one.compared_with)})"
    return words


def sentence(culprit: Culprit) -> str:
    """Return who is to blame, in which phase, and what was observed."""
    phase = f", phase {culprit.phase}" if culprit.phase not in (None, "done") else ""
    seen = f": {clean(culprit.evidence, _LONGEST_EVIDENCE)}" if culprit.evidence else ""
    sure = "" if culprit.confidence.value == "certain" else f" ({culprit.confidence.value})"
    return f"{who(culprit)}{phase}{seen}{sure}"


def who(culprit: Culprit) -> str:
    """Return the rank, GPU, node or link with everything that shows where it is."""
    ranks = culprit.ranks or ((culprit.rank,) if culprit.rank is not None else ())
    hosts = [host(one) for one in culprit.hosts or (culprit.host,) if one]
    if culprit.is_link:
        return f"the link between {_ends(ranks, hosts)}"
    if len(ranks) == 1:
        return f"rank {ranks[0]}{_place(culprit, hosts)}"
    where = f"{'host' if len(hosts) == 1 else 'hosts'} {few(hosts)}" if hosts else ""
    whose = f"ranks {spans(ranks)}" if ranks else ""
    return f"{where} ({whose})" if where and whose else where or whose or "the job"


def _place(culprit: Culprit, hosts: list[str]) -> str:
    gpu = f"GPU {culprit.gpu}" if culprit.gpu is not None else ""
    pci = f"PCI {clean(culprit.pci)}" if culprit.pci else ""
    inner = ", ".join(part for part in (pci, clean(culprit.uuid or "")) if part)
    parts = [f"host {hosts[0]}" if hosts else "", f"{gpu or 'GPU'} ({inner})" if inner else gpu]
    words = ", ".join(part for part in parts if part)
    return f" = {words}" if words else ""


def _ends(ranks: Sequence[int], hosts: list[str]) -> str:
    if len(ranks) == _PAIR and len(hosts) == _PAIR:
        return f"rank {ranks[0]} (host {hosts[0]}) and rank {ranks[1]} (host {hosts[1]})"
    if len(ranks) == _PAIR:
        on = f" on host {hosts[0]}" if hosts else ""
        return f"rank {ranks[0]} and rank {ranks[1]}{on}"
    if len(hosts) == _PAIR:
        return f"host {hosts[0]} and host {hosts[1]}"
    return few(hosts) or f"ranks {spans(ranks)}"


def host(name: str) -> str:
    """Return a host name, made harmless and limited in length."""
    return clean(name, _LONGEST_HOST)


def few(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - _MOST_HOSTS
    return ", ".join(names[:_MOST_HOSTS]) + (f" and {_number(more)} more" if more > 0 else "")


def spans(ranks: Sequence[int]) -> str:
    """Return ranks as ranges, ``0-7, 16``, shortened if there are many."""
    packed = pack(sorted(ranks)).split(",")
    shown = packed
    while len(", ".join(shown)) > _LONGEST_SPANS:
        shown = shown[:-1]
    return ", ".join(shown) + (" ..." if len(shown) < len(packed) else "")


def exit_words(result: Result) -> str:
    """Return the exit status, its class, and its meaning."""
    status = result.ending.status
    counts = "" if status or not causes(result) else " (see --fail-on)"
    return f"Exit status {status}, {result.ending.word}: {_CLASSES[status]}{counts}."


def drill_words(result: Result) -> str:
    """Return the note about a drill; "" if it was not a drill."""
    drill = result.drill or result.preflight.drill
    if not drill:
        return ""
    return (
        f"THIS IS A DRILL: {clean(drill)}. This fault was made on purpose; take no machine out "
        "of work because of it."
    )


def next_steps(result: Result) -> list[str]:
    """Return the next steps if nobody could be named."""
    preflight = result.preflight
    if result.ending.status != INCONCLUSIVE:
        return []
    if preflight.culprits is None:
        rank_0 = "Read the output of the process of rank 0, and see whether its node is up"
        return [f"{rank_0} and its port is open to the others; then run it again."]
    if drill_words(result) and not preflight.culprits and not preflight.inconclusive:
        return ["See whether the drill names a rank that exists, and run it again."]
    steps = []
    if preflight.finished is False:
        longer = f" --timeout {2 * preflight.deadline:.0f}" if preflight.deadline else ""
        steps.append(f"Give it more time: gpucheck preflight{longer}")
    steps.append("Run it again: what does not come back was chance.")
    if (preflight.nodes or 1) > _PAIR and preflight.finished:
        steps.append("Test every link between the nodes: gpucheck preflight --links")
    if (preflight.nodes or 1) > _PAIR:
        steps.append(
            "Run it on one half of the nodes, then on the other: a half that fails is smaller to "
            "search; two halves that pass mean a link between them, or their number."
        )
    if preflight.backend == "nccl":
        steps.append("Let NCCL say what it does: NCCL_DEBUG=INFO gpucheck preflight")
    return steps


def by_status(ranks: Sequence[RankOutcome]) -> list[tuple[str, list[RankOutcome]]]:
    """Return the ranks by their results, the worst first."""
    found: dict[str, list[RankOutcome]] = {}
    for one in ranks:
        found.setdefault(one.status, []).append(one)
    return [(status, found[status]) for status in WORST_FIRST if status in found]


def host_words(ranks: Sequence[RankOutcome]) -> str:
    """Return the results of these ranks of a host, and the messages of the worst one."""
    counts = ", ".join(
        f"{len(these)} {status} ({_ranks(these)})" for status, these in by_status(ranks)
    )
    worst = by_status(ranks)[0][1][0]
    whose = f"; rank {worst.rank}" if len(ranks) > 1 else ""
    phase = f"{whose or ','} in phase {worst.phase}" if worst.status != "absent" else whose
    detail = f": {clean(worst.detail, 200)}" if worst.detail else ""
    return f"{counts}{phase if phase != whose or detail else ''}{detail}"


def _ranks(these: Sequence[RankOutcome]) -> str:
    if len(these) > 1:
        return f"ranks {spans([one.rank for one in these])}"
    gpu = f", GPU {these[0].gpu}" if these[0].gpu is not None else ""
    return f"rank {these[0].rank}{gpu}"


def rate_lines(ranks: Sequence[RankOutcome]) -> Iterator[str]:
    """Return for each rate the values of the ranks: the slowest, the median, the fastest."""
    rates: dict[str, list[tuple[float, int]]] = {}
    for one in ranks:
        for name, value in one.rates.items():
            rates.setdefault(name, []).append((value, one.rank))
    for name, values in rates.items():
        slowest, fastest = min(values), max(values)
        median = statistics.median(value for value, _rank in values)
        yield (
            f"{clean(name)}: {slowest[0]:.4g} (rank {slowest[1]}) to {fastest[0]:.4g} "
            f"(rank {fastest[1]}), median {median:.4g}"
        )


def seconds(value: float) -> str:
    """Return a time in a form for people."""
    return f"{value:.1f} s" if value < _SHORT_SECONDS else f"{value:.0f} s"


def number(count: int, noun: str) -> str:
    """Return a count with its noun, ``10,000 ranks``."""
    return f"{_number(count)} {noun if count == 1 else f'{noun}s'}"


def _number(count: int) -> str:
    return f"{count:,}"
