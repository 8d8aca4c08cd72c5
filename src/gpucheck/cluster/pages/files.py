"""The files that a pre-flight writes on request, metrics for Prometheus among them."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec

from gpucheck._about import VERSION
from gpucheck.cluster.files import (
    SCHEMA,
    Blamed,
    FileError,
    Record,
    add_line,
    exclusion,
    good_hosts,
    made,
    write_file,
)
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import StepResult
from gpucheck.cluster.pages import FORMATS, tables, terminal, words
from gpucheck.cluster.pages.bundle import bundle
from gpucheck.engine import GpuVerdict
from gpucheck.facts.preflight import Culprit
from gpucheck.findings.form import GpuWord
from gpucheck.interface.errors import words_of
from gpucheck.interface.options import rendered
from gpucheck.language import say, say_many
from gpucheck.output.words import clean, headed

# A pre-flight as metrics in Prometheus' text format, for node_exporter's textfile collector.
#
# Their number does not grow with the ranks: only culprits have series of their own. They have no
# time stamps, because the collector rejects them; the time is a metric.

_PREFIX = "gpucheck_preflight"
_CULPRITS, _BANDWIDTHS = 100, 20
"""Series of one run. Chosen: each value of a label costs Prometheus memory for good."""
_UNKNOWN = "unknown"
_WORDS = (*get_args(GpuWord), _UNKNOWN)
_PER_GB = 1e9
"""Prometheus' metrics are in base units: bytes, not GB."""
_METRICS_LONGEST = 200
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
        "launcher": clean(result.launcher or preflight.launcher or "", _METRICS_LONGEST),
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
        "slug": clean(culprit.slug, _METRICS_LONGEST),
        "severity": culprit.severity.value,
        "confidence": culprit.confidence.value,
        "host": words.few([words.host(host) for host in culprit.hosts or (culprit.host,) if host]),
        "ranks": words.spans(ranks),
        "gpu": "" if culprit.gpu is None or len(ranks) > 1 else str(culprit.gpu),
        "uuid": "" if len(ranks) > 1 else clean(culprit.uuid or "", _METRICS_LONGEST),
        "drill": "true" if is_drill else "false",
    }


def _word(gpu: GpuVerdict) -> str:
    return gpu.verdict or _UNKNOWN


def _gpu_labels(gpu: GpuVerdict) -> dict[str, str]:
    return {
        "verdict": _word(gpu),
        "host": words.host(gpu.host or ""),
        "gpu": "" if gpu.index is None else str(gpu.index),
        "pci": clean(gpu.pci_address or "", _METRICS_LONGEST),
        "slug": clean(next(iter(gpu.findings), ""), _METRICS_LONGEST),
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
                "collective": clean(bandwidth.collective, _METRICS_LONGEST),
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


# The files that a pre-flight writes on request; a failure is only reported in a sentence.

# The line about a run that ``--run-log`` adds to a file; its names are those of the cluster.

_LONGEST = 255
"""Characters: more than a name in the DNS may have (253)."""
_MOST = 1000
"""Chosen: culprits of a line that ``files.LONGEST_LINE`` still takes."""


def run_record(result: Result, now: datetime | None = None) -> str:
    """Return the record of a run as one line of JSON; ``now`` is when it ended."""
    preflight = result.preflight
    known = (*result.hosts, *(rank.host for rank in preflight.ranks or ()))
    hosts = dict.fromkeys(clean(name, _LONGEST) for name in known if name)
    record = Record(
        schema=SCHEMA,
        timestamp=(now or datetime.now(tz=timezone.utc)).isoformat(timespec="seconds"),
        program="gpucheck",
        version=VERSION,
        status=result.ending.status,
        error=result.ending.word if result.ending.status else "",
        drill=bool(result.drill or preflight.drill),
        cut_off=result.hears_few,
        launcher=clean(result.launcher, _LONGEST),
        seconds=result.seconds,
        ranks=preflight.world_size or len(preflight.ranks or ()),
        hosts=list(hosts),
        culprits=[_blamed(culprit) for culprit in (preflight.culprits or ())[:_MOST]],
    )
    return msgspec.json.encode(record).decode()


def _blamed(culprit: Culprit) -> Blamed:
    hosts = [clean(host, _LONGEST) for host in culprit.hosts or (culprit.host,) if host]
    uuid = clean(culprit.uuid or "", _LONGEST)
    return Blamed(
        slug=clean(culprit.slug, _LONGEST), severity=culprit.severity.value,
        confidence=culprit.confidence.value, hosts=hosts, gpu=uuid, kind="gpu" if uuid else "",
    )  # fmt: skip


class _File(NamedTuple):
    """A file to write."""

    path: str
    follow: bool = True
    """Whether a symbolic link is followed: not in a folder that others may write to."""

    def has(self, content: str | bytes) -> None:
        write_file(self.path, content, follow=self.follow)


def in_folder(folder: str) -> list[str]:
    """Return the files of ``--out-dir`` that one task writes and replaces."""
    names = [name for name, _write in _IN_FOLDER if name != _RUN_LOG]
    return [str(Path(folder) / name) for name in names]


def write_files(
    result: Result, options: Mapping[str, Any], history: Sequence[StepResult] = ()
) -> list[str]:
    """Write the requested files; return what to report about it, one line each.

    A file that cannot be written does not change the verdict or the exit status. The exit status is
    written last, so that a script that finds it finds the other files as well.

    Args:
        result: the pre-flight.
        options: those of single files; None for what is not asked for.
        history: the steps, which are included in the bundle.
    """
    sentences = []
    for name, write in _SINGLE:
        path = options.get(name)
        if path is None:
            continue
        try:
            sentences.append(write(_File(path), result, history))
        except FileError as error:
            option = f"--{name.replace('_', '-')}"
            sentences.append(headed(option, clean(error.args[0] if error.args else "")))
    return sentences


def write_folder(folder: str, result: Result, history: Sequence[StepResult]) -> str:
    """Write the files of ``--out-dir`` that one task writes; return what to report about it.

    Raises:
        FileError: the folder cannot be made, or files cannot be written; the others are there.
    """
    made(folder)
    missing = []
    for name, write in _IN_FOLDER:
        try:
            write(_File(str(Path(folder) / name), follow=False), result, history)
        except FileError as error:
            missing.append(words_of(error))
    if len(missing) > 1:
        raise FileError(
            say("{why} ({count} files are missing)", why=missing[0], count=len(missing))
        )
    if missing:
        raise FileError(missing[0])
    return say("{folder} has the files about this run", folder=clean(folder))


def _exclude(file: _File, result: Result, _history: Sequence[StepResult]) -> str:
    found = exclusion(result.preflight)
    file.has(found.text())
    count = len(found.hosts)
    if count:
        sentence = say_many(
            count, "{file} leaves out {count} host", "{file} leaves out {count} hosts",
            file=clean(file.path),
        )  # fmt: skip
    else:
        sentence = say("{file} leaves out no host", file=clean(file.path))
    return headed(sentence, clean(found.note))


def _good(file: _File, result: Result, _history: Sequence[StepResult]) -> str:
    hosts = good_hosts(result.preflight)
    file.has(",".join(hosts) + "\n" if hosts else "")
    return say_many(
        len(hosts), "{file} has {count} good host", "{file} has {count} good hosts",
        file=clean(file.path),
    )  # fmt: skip


def _log(file: _File, result: Result, _history: Sequence[StepResult]) -> str:
    add_line(file.path, run_record(result), follow=file.follow)
    return say("{file} has a line about this run", file=clean(file.path))


def _status(file: _File, result: Result, _history: Sequence[StepResult]) -> str:
    file.has(f"{result.ending.status}\n")
    return say("{file} has the exit status", file=clean(file.path))


def _metrics(file: _File, result: Result, _history: Sequence[StepResult]) -> str:
    file.has(render(result))
    return say("{file} has the metrics", file=clean(file.path))


def _bundle(file: _File, result: Result, history: Sequence[StepResult]) -> str:
    packed, sentence = bundle(file.path, result, history)
    file.has(packed)
    return clean(sentence)


def _report(form: str) -> "_Write":
    def write(file: _File, result: Result, _history: Sequence[StepResult]) -> str:
        is_text = form == "terminal"
        file.has(terminal.render(result) if is_text else rendered(FORMATS, form, result))
        return ""

    return write


_Write = Callable[[_File, Result, Sequence[StepResult]], str]
_SINGLE: tuple[tuple[str, _Write], ...] = (
    ("exclude_file", _exclude),
    ("metrics", _metrics),
    ("bundle", _bundle),
    ("good_file", _good),
    ("run_log", _log),
    ("status_file", _status),
)
"""The options of single files. The archive is made for a ticket, so ``--out-dir`` has none."""
_RUN_LOG = "runs.jsonl"
_IN_FOLDER: tuple[tuple[str, _Write], ...] = (
    ("report.txt", _report("terminal")),
    ("report.json", _report("json")),
    ("report.html", _report("html")),
    ("bad-hosts", _exclude),
    ("good-hosts", _good),
    ("metrics.prom", _metrics),
    (_RUN_LOG, _log),
    ("status", _status),
)
