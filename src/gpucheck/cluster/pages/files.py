"""The files that a pre-flight writes on request; a failure is only reported in a sentence."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

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
from gpucheck.cluster.pages import FORMATS, terminal
from gpucheck.cluster.pages import metrics as preflight_metrics
from gpucheck.cluster.pages.bundle import bundle
from gpucheck.facts.preflight import Culprit
from gpucheck.interface.errors import words_of
from gpucheck.interface.options import rendered
from gpucheck.language import say, say_many
from gpucheck.output.words import clean, headed

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
    file.has(preflight_metrics.render(result))
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
