"""The files that a pre-flight writes on request; a failure is only reported in a sentence."""

from collections.abc import Callable, Sequence

from gpucheck.cluster.files import FileError, add_line, exclusion, good_hosts, write_file
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import StepResult
from gpucheck.cluster.pages import metrics as preflight_metrics
from gpucheck.cluster.pages import record as preflight_record
from gpucheck.cluster.pages.bundle import bundle
from gpucheck.language import say, say_many
from gpucheck.output.words import clean, headed


def write_files(
    result: Result,
    *,
    exclude_file: str | None = None,
    good_file: str | None = None,
    record: str | None = None,
    status_file: str | None = None,
    metrics: str | None = None,
    bundle_file: str | None = None,
    history: Sequence[StepResult] = (),
) -> list[str]:
    """Write the requested files; return what to report about it, one line each.

    A file that cannot be written does not change the verdict or the exit status.

    Args:
        result: the pre-flight.
        exclude_file: for the hosts that srun --exclude should leave out.
        good_file: for the hosts that passed, as srun --nodelist takes them.
        record: a file to which a line about this run is added.
        status_file: for the exit status, a number; it is written last, so that a script that
            finds it finds the other files as well.
        metrics: for Prometheus.
        bundle_file: the archive for a ticket.
        history: the steps, which are included in the bundle.
    """
    writers: tuple[tuple[str, str | None, Callable[[str], str]], ...] = (
        ("--exclude-file", exclude_file, lambda path: _exclude(path, result)),
        ("--metrics", metrics, lambda path: _metrics(path, result)),
        ("--bundle", bundle_file, lambda path: _bundle(path, result, history)),
        ("--good-file", good_file, lambda path: _good(path, result)),
        ("--record", record, lambda path: _record(path, result)),
        ("--status-file", status_file, lambda path: _status(path, result)),
    )
    sentences = []
    for option, path, write in writers:
        if path is None:
            continue
        try:
            sentences.append(write(path))
        except FileError as error:
            sentences.append(headed(option, clean(error.args[0] if error.args else "")))
    return sentences


def _exclude(path: str, result: Result) -> str:
    found = exclusion(result.preflight)
    write_file(path, found.text())
    count = len(found.hosts)
    if count:
        sentence = say_many(
            count, "{file} leaves out {count} host", "{file} leaves out {count} hosts",
            file=clean(path),
        )  # fmt: skip
    else:
        sentence = say("{file} leaves out no host", file=clean(path))
    return headed(sentence, clean(found.note))


def _good(path: str, result: Result) -> str:
    hosts = good_hosts(result.preflight)
    write_file(path, ",".join(hosts) + "\n" if hosts else "")
    return say_many(
        len(hosts), "{file} has {count} good host", "{file} has {count} good hosts",
        file=clean(path),
    )  # fmt: skip


def _record(path: str, result: Result) -> str:
    add_line(path, preflight_record.line(result))
    return say("{file} has a line about this run", file=clean(path))


def _status(path: str, result: Result) -> str:
    write_file(path, f"{result.ending.status}\n")
    return say("{file} has the exit status", file=clean(path))


def _metrics(path: str, result: Result) -> str:
    write_file(path, preflight_metrics.render(result))
    return say("{file} has the metrics", file=clean(path))


def _bundle(path: str, result: Result, history: Sequence[StepResult]) -> str:
    packed, sentence = bundle(path, result, history)
    write_file(path, packed)
    return clean(sentence)
