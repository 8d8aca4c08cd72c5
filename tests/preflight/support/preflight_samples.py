"""Pre-flights of invented jobs, for the tests of every face and file: shared, not to be altered."""

import functools
from collections.abc import Callable

import report_samples
from rules_support import TABLES

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.session import ending
from gpucheck.engine import FailOn, diagnose, make_report
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Bandwidth, Culprit, Phase, Preflight, RankOutcome

Sample = Callable[[], Result]

MODEL = "NVIDIA H100 80GB HBM3"
HOSTILE = "\x1b[2J\x1b]0;t\x07 n1\n<b>&\"'|`@all`](http://x) ;$(id)\x00\u202e\ud800]]>"
"""A name of a host that would do harm to a terminal, a shell, a page, XML or a table."""


def ranks(nodes: int, per_node: int, **changed: dict[str, object]) -> list[RankOutcome]:
    """Return the ranks of this many nodes, all passed; ``changed`` are fields by ``r`` and rank."""
    found = []
    for rank in range(nodes * per_node):
        node, gpu = divmod(rank, per_node)
        fields: dict[str, object] = {
            "rank": rank,
            "task": node,
            "host": f"gpu-{node:04d}",
            "node": node,
            "device": f"cuda:{gpu}",
            "gpu": gpu,
            "pci": f"0000:{16 * gpu + 27:02x}:00.0",
            "uuid": uuid(rank),
            "model": MODEL,
            "rates": {"fp32 TFLOP/s": 51.0 + gpu / 10, "pinned copy to the GPU GB/s": 52.3},
            **changed.get(f"r{rank}", {}),
        }
        found.append(RankOutcome(**fields))  # type: ignore[arg-type]  # fields of many types
    return found


def uuid(rank: int) -> str:
    """Return the UUID of the rank's GPU."""
    return f"GPU-{rank:08x}-0b8d-4c39-9d2b-7f3f4c1e5a90"


def culprit(
    slug: str,
    of: RankOutcome,
    evidence: str,
    phase: Phase | None = "enter",
    severity: Severity = Severity.ERROR,
    confidence: Confidence = Confidence.CERTAIN,
) -> Culprit:
    """Return the entry of one rank."""
    return Culprit(
        slug=slug, severity=severity, confidence=confidence, rank=of.rank, ranks=(of.rank,),
        host=of.host, hosts=(of.host,) if of.host else (), gpu=of.gpu, pci=of.pci, uuid=of.uuid,
        phase=phase, evidence=evidence,
    )  # fmt: skip


def link(first: RankOutcome, second: RankOutcome, slug: str = "nccl-timeout") -> Culprit:
    """Return the entry of the link between two ranks."""
    hosts = tuple(dict.fromkeys(filter(None, (first.host, second.host))))
    return Culprit(
        slug=slug, rank=first.rank, ranks=(first.rank, second.rank), is_link=True,
        host=first.host, hosts=hosts, gpu=first.gpu, pci=first.pci, uuid=first.uuid, phase="enter",
        evidence="entered an all-reduce and never left it, while both pass with others",
    )  # fmt: skip


def node(ranks: list[RankOutcome], slug: str, evidence: str) -> Culprit:
    """Return the entry of all these ranks, which share a host."""
    return Culprit(
        slug=slug, rank=ranks[0].rank, ranks=tuple(outcome.rank for outcome in ranks),
        host=ranks[0].host,
        hosts=(ranks[0].host or "",), evidence=evidence,
    )  # fmt: skip


def result(
    ranks: list[RankOutcome] | None,
    *culprits: Culprit,
    fail_on: FailOn = "error",
    store_lost: str = "",
    seconds: float = 14.2,
    busbw: float | None = 412.4,
    **facts: object,
) -> Result:
    """Return what a pre-flight with these ranks and culprits shows."""
    known = ranks or []
    fields: dict[str, object] = {
        "launcher": "slurm",
        "world_size": len(known),
        "nodes": len({outcome.host for outcome in known}),
        "backend": "nccl",
        "culprits": None if ranks is None else list(culprits),
        "ranks": ranks,
        "bandwidths": [_bandwidth(known, busbw)] if busbw and not culprits else [],
        "steps": ["alone", "together"],
        "finished": ranks is not None,
        "seconds": seconds,
        "deadline": 300.0,
        **facts,
    }
    section = Preflight(**fields)  # type: ignore[arg-type]  # fields of many types
    snapshot = report_samples.healthy().snapshot.with_section(section)
    report = make_report(diagnose(snapshot, TABLES), snapshot, ())
    return Result(
        report=report,
        preflight=section,
        ending=ending(report.findings, section, fail_on, store_lost=store_lost),
        drill=section.drill,
        launcher=section.launcher or "",
        seconds=seconds,
    )


def _bandwidth(ranks: list[RankOutcome], busbw: float) -> Bandwidth:
    return Bandwidth(
        collective="all-reduce", ranks=len(ranks), nodes=len({outcome.host for outcome in ranks}),
        size=128 << 20, seconds=0.00057, busbw=busbw,
    )  # fmt: skip


@functools.cache
def healthy() -> Result:
    """Eight GPUs of one node."""
    return result(ranks(1, 8))


@functools.cache
def one_rank() -> Result:
    """One GPU, which has no bus bandwidth."""
    return result(ranks(1, 1), busbw=None)


@functools.cache
def pair() -> Result:
    """Two ranks that fail only together, and nobody can say which of them is bad."""
    both = ranks(2, 1, r0={"status": "timed-out"}, r1={"status": "timed-out"})
    return result(both, inconclusive="either of the two hosts, or the link between them, is bad")


@functools.cache
def hang(nodes: int = 8, per_node: int = 8) -> Result:
    """One rank never came to the collective that all others wait in."""
    bad = min(37, nodes * per_node - 1)
    waiting: dict[str, object] = {"status": "stopped", "phase": "enter"}
    changed = {f"r{at}": waiting for at in range(nodes * per_node) if at != bad}
    stuck: dict[str, object] = {
        "status": "timed-out", "phase": "connect", "detail": "no answer for 60 s",
    }  # fmt: skip
    members = ranks(nodes, per_node, **{**changed, f"r{bad}": stuck})
    words = (
        f"never entered the first all-reduce, in which {len(members) - 1} other ranks waited; its "
        "last phase was connect"
    )
    return result(members, culprit("rank-hangs", members[bad], words, "connect"), seconds=71.3)


@functools.cache
def several() -> Result:
    """Faults of many kinds at once, also below an error."""
    crashed: dict[str, object] = {
        "status": "crashed", "phase": "alone", "detail": "killed by SIGSEGV",
    }  # fmt: skip
    absent: dict[str, object] = {"status": "absent", "phase": "start"}
    members = ranks(8, 8, r3=crashed, **{f"r{at}": absent for at in range(16, 24)})
    return result(
        members,
        node(members[16:24], "rank-missing", "never registered: it was not started"),
        culprit("rank-crashed", members[3], "failed alone (signal): killed by SIGSEGV", "alone"),
        link(members[8], members[32]),
        culprit("wrong-result", members[61], "its contribution to the sum was wrong (missing)"),
        culprit(
            "gpu-slow", members[50], "fp32 23.1 TFLOP/s, 45 % of the median of 60 others", "alone",
            severity=Severity.WARNING, confidence=Confidence.LIKELY,
        ),
        node(members[40:48], "ranks-heterogeneous", "torch 2.8.0 here, 2.9.1 on 7 other hosts"),
    )  # fmt: skip


@functools.cache
def misconfigured() -> Result:
    """A node with another NCCL."""
    members = ranks(4, 8)
    words = "NCCL 2.26.2 here, 2.27.5 on 3 other hosts"
    return result(members, node(members[8:16], "nccl-version-mismatch", words))


@functools.cache
def slow() -> Result:
    """A GPU that is slow, and no more."""
    members = ranks(2, 8)
    words = "fp32 23.1 TFLOP/s, 45 % of the median of 15 others (51.3)"
    return result(members, culprit("gpu-slow", members[5], words, "alone"))


@functools.cache
def warned() -> Result:
    """All well but for a warning."""
    members = ranks(2, 8)
    words = "fp32 37.9 TFLOP/s, 74 % of the median of 15 others (51.3)"
    slow_gpu = culprit("gpu-slow", members[5], words, "alone", severity=Severity.WARNING)
    return result(members, slow_gpu, bandwidths=[_bandwidth(members, 401.0)])


@functools.cache
def inconclusive() -> Result:
    """The time was over before anybody could be named."""
    stuck: dict[str, object] = {"status": "timed-out", "phase": "enter"}
    members = ranks(16, 8, **{f"r{at}": stuck for at in range(128)})
    why = "8 s were left, too few for the step pairs"
    return result(members, finished=False, stopped_because=why, seconds=291.0)


@functools.cache
def store_lost() -> Result:
    """Rank 0 is gone, and with it all that was known."""
    return result(None, store_lost="the store at gpu-0000 port 29501 cannot be reached any more")


@functools.cache
def drill() -> Result:
    """A drill that was noticed."""
    members = ranks(1, 4, r3={"status": "timed-out", "phase": "connect"})
    words = "never entered the first all-reduce, in which 3 other ranks waited"
    hanging = culprit("rank-hangs", members[3], words, "connect")
    return result(members, hanging, drill="hang:rank=3")


@functools.cache
def drill_unnoticed() -> Result:
    """A drill of which nobody noticed anything."""
    return result(ranks(1, 4), drill="slow:rank=3,factor=5")


@functools.cache
def on_the_cpu() -> Result:
    """Ranks without a GPU, over gloo."""
    plain: dict[str, object] = {
        "device": "cpu", "gpu": None, "pci": None, "uuid": None, "model": None, "host": "ci",
    }  # fmt: skip
    members = ranks(1, 4, **{f"r{at}": plain for at in range(4)})
    return result(members, backend="gloo", launcher="local", busbw=1.234)


@functools.cache
def hostile() -> Result:
    """Names and words that try to do harm."""
    evil: dict[str, object] = {
        "host": HOSTILE, "status": "crashed", "detail": HOSTILE, "model": HOSTILE,
        "uuid": HOSTILE, "pci": HOSTILE,
    }  # fmt: skip
    members = ranks(2, 2, r1=evil, r2={"host": "y" * 300, "status": "failed"})
    return result(
        members,
        culprit("rank-crashed", members[1], HOSTILE),
        culprit("rank-hangs", members[2], HOSTILE),
        link(members[1], members[2], "nccl-timeout"),
        launcher="slurm",
    )


ALL: dict[str, Callable[[], Result]] = {
    sample.__name__: sample
    for sample in (
        healthy, one_rank, pair, hang, several, misconfigured, slow, warned, inconclusive,
        store_lost, drill, drill_unnoticed, on_the_cpu, hostile,
    )
}  # fmt: skip
