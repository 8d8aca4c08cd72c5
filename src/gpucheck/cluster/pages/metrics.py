"""A pre-flight as metrics in Prometheus' text format, for node_exporter's textfile collector.

Their number does not grow with the ranks: only culprits have series of their own. They have no time
stamps, because the collector rejects them; the time is a metric.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from gpucheck._about import VERSION
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import tables, words
from gpucheck.engine import GpuVerdict
from gpucheck.facts.preflight import Culprit
from gpucheck.findings.form import GpuWord
from gpucheck.output.words import clean

_PREFIX = "gpucheck_preflight"
_CULPRITS, _BANDWIDTHS = 100, 20
"""Series of one run. Chosen: each value of a label costs Prometheus memory for good."""
_UNKNOWN = "unknown"
_WORDS = (*get_args(GpuWord), _UNKNOWN)
_PER_GB = 1e9
"""Prometheus' metrics are in base units: bytes, not GB."""
_LONGEST = 200
"""Characters of a label. Chosen: a few host names; see above."""

Sample = tuple[Mapping[str, str], float]


def render(result: Result, now: float | None = None) -> str:
    """Return the metrics; ``now`` is the time in seconds since 1970, by default now."""
    drill = words.drill_words(result)
    loud = [f"# {drill}"] if drill else []
    lines = list(loud)
    for name, text, samples in _families(result, time.time() if now is None else now):
        if samples:
            lines += [f"# HELP {_PREFIX}_{name} {text}", f"# TYPE {_PREFIX}_{name} gauge"]
            lines += _unique(f"{_PREFIX}_{name}", samples)
    return "\n".join((*lines, *loud)) + "\n"


def _families(result: Result, now: float) -> Iterator[tuple[str, str, Sequence[Sample]]]:
    preflight = result.preflight
    ranks = preflight.ranks or ()
    status = dict.fromkeys(words.WORST_FIRST, 0)
    for rank in ranks:
        status[rank.status] += 1
    about = {
        "version": VERSION,
        "launcher": clean(result.launcher or preflight.launcher or "", _LONGEST),
        "backend": preflight.backend or "",
    }
    yield "info", "What ran the last pre-flight; always 1.", [(about, 1)]
    is_drill = bool(words.drill_words(result))
    yield "drill", "Whether it was a drill, whose faults are made on purpose.", [({}, is_drill)]
    yield (
        "exit_status",
        "Exit status: 0 healthy, 1 culprit, 3 inconclusive, 4 misconfiguration, 5 slow.",
        [({"class": result.ending.word}, result.ending.status)],
    )
    yield "healthy", "Whether the exit status was 0.", [({}, result.ending.status == 0)]
    yield (
        "ranks", "Ranks by how they ended.",
        [({"status": name}, count) for name, count in status.items()],
    )  # fmt: skip
    yield "nodes", "Nodes that took part.", _known(preflight.nodes)
    yield "duration_seconds", "How long it took.", [({}, result.seconds)]
    yield "completion_timestamp_seconds", "When it ended, since 1970.", [({}, now)]
    culprits = preflight.culprits or ()
    yield "culprits", "How many causes were found.", _known(len(culprits))
    yield (
        "culprit", f"Who is to blame, at most {_CULPRITS}; always 1.",
        [(_labels(culprit, is_drill=is_drill), 1) for culprit in culprits[:_CULPRITS]],
    )  # fmt: skip
    found = tables.verdicts_of_gpus(result)
    in_words = Counter(_word(gpu) for gpu in found)
    yield (
        "gpus", "GPUs by what to do with them.",
        [({"verdict": word}, in_words[word]) for word in _WORDS] if found else [],
    )  # fmt: skip
    yield (
        "gpu", f"What to do with a GPU that is not kept, at most {_CULPRITS}; always 1.",
        [(_gpu_labels(gpu), 1) for gpu in tables.not_kept(result)[:_CULPRITS]],
    )  # fmt: skip
    yield (
        "bus_bandwidth_bytes_per_second", "Bus bandwidth as nccl-tests defines it.",
        _bandwidths(result),
    )  # fmt: skip


def _known(value: float | None) -> list[Sample]:
    return [] if value is None else [({}, value)]


def _labels(culprit: Culprit, *, is_drill: bool) -> dict[str, str]:
    ranks = culprit.ranks or ((culprit.rank,) if culprit.rank is not None else ())
    return {
        "slug": clean(culprit.slug, _LONGEST),
        "severity": culprit.severity.value,
        "confidence": culprit.confidence.value,
        "host": words.few([words.host(host) for host in culprit.hosts or (culprit.host,) if host]),
        "ranks": words.spans(ranks),
        "gpu": "" if culprit.gpu is None or len(ranks) > 1 else str(culprit.gpu),
        "uuid": "" if len(ranks) > 1 else clean(culprit.uuid or "", _LONGEST),
        "drill": "true" if is_drill else "false",
    }


def _word(gpu: GpuVerdict) -> str:
    return gpu.verdict or _UNKNOWN


def _gpu_labels(gpu: GpuVerdict) -> dict[str, str]:
    return {
        "verdict": _word(gpu),
        "host": words.host(gpu.host or ""),
        "gpu": "" if gpu.index is None else str(gpu.index),
        "pci": clean(gpu.pci_address or "", _LONGEST),
        "slug": clean(next(iter(gpu.findings), ""), _LONGEST),
    }


def _bandwidths(result: Result) -> Sequence[Sample]:
    """Return the bandwidths of the most ranks: those of all pairs would grow with the job."""
    bandwidths = [
        bandwidth for bandwidth in result.preflight.bandwidths or () if bandwidth.busbw is not None
    ]
    most = max((bandwidth.ranks for bandwidth in bandwidths), default=0)
    return [
        (
            {
                "collective": clean(bandwidth.collective, _LONGEST),
                "ranks": str(bandwidth.ranks),
                "nodes": str(bandwidth.nodes),
                "size_bytes": str(bandwidth.size),
            },
            (bandwidth.busbw or 0.0) * _PER_GB,
        )
        for bandwidth in bandwidths
        if bandwidth.ranks == most
    ][:_BANDWIDTHS]


def _unique(name: str, samples: Sequence[Sample]) -> list[str]:
    """Return the lines of a metric; two with the same labels would make the whole file invalid."""
    found: dict[str, str] = {}
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        series = f"{name}{{{inner}}}" if inner else name
        found.setdefault(series, f"{series} {+value!r}")
    return list(found.values())


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
