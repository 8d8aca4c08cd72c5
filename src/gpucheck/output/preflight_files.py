"""The files that a pre-flight writes on request; a failure is only reported in a sentence."""

from collections.abc import Callable, Sequence

from gpucheck.output import preflight_metrics
from gpucheck.output.preflight_bundle import bundle
from gpucheck.output.words import clean
from gpucheck.preflight.exclude import exclusion
from gpucheck.preflight.files import FileError, write_file
from gpucheck.preflight.judgement import Result
from gpucheck.preflight.model import StepResult


def write_files(
    result: Result,
    *,
    exclude_file: str | None = None,
    metrics: str | None = None,
    bundle_file: str | None = None,
    history: Sequence[StepResult] = (),
) -> list[str]:
    """Write the requested files; return what to report about it, one line each.

    A file that cannot be written does not change the verdict or the exit status.

    Args:
        result: the pre-flight.
        exclude_file: for the hosts that srun --exclude should leave out.
        metrics: for Prometheus.
        bundle_file: the archive for a ticket.
        history: the steps, which are included in the bundle.
    """
    writers: tuple[tuple[str, str | None, Callable[[str], str]], ...] = (
        ("--exclude-file", exclude_file, lambda path: _exclude(path, result)),
        ("--metrics", metrics, lambda path: _metrics(path, result)),
        ("--bundle", bundle_file, lambda path: _bundle(path, result, history)),
    )
    said = []
    for option, path, write in writers:
        if path is None:
            continue
        try:
            said.append(write(path))
        except FileError as error:
            said.append(f"{option}: {clean(str(error))}")
    return said


def _exclude(path: str, result: Result) -> str:
    found = exclusion(result.preflight)
    write_file(path, found.text())
    count = len(found.hosts)
    hosts = "no host" if not count else "1 host" if count == 1 else f"{count} hosts"
    note = f": {clean(found.note)}" if found.note else ""
    return f"{clean(path)} leaves out {hosts}{note}"


def _metrics(path: str, result: Result) -> str:
    write_file(path, preflight_metrics.render(result))
    return f"{clean(path)} has the metrics"


def _bundle(path: str, result: Result, history: Sequence[StepResult]) -> str:
    packed, said = bundle(path, result, history)
    write_file(path, packed)
    return clean(said)
