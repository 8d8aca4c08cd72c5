"""What several commands do: open the host, run the probes, show progress, load a snapshot."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from gpucheck.api.collecting import LONGEST_REFUSAL, collect, prepare_judgement
from gpucheck.api.errors import AskError, UsageError
from gpucheck.api.with_tables import open_tables, refuse_broken
from gpucheck.cli.text import RefusedError, echo, words_of
from gpucheck.language import in_series, say, spoken

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.machine import Host
    from gpucheck.machine.candidates import TargetWish
    from gpucheck.probes.collector import Collected
    from gpucheck.selftests.progress import ProgressGrid
    from gpucheck.tables import Tables

__all__ = [
    "LONGEST_MESSAGE", "Progress", "in_the_words_of_click", "live_table", "load_snapshot",
    "open_host", "open_tables", "prepare_judgement", "refuse_broken", "run_probes",
    "say_whose_programs",
]  # fmt: skip

LONGEST_MESSAGE = 10_000
"""Of one of our messages, which may list every key."""
_SLOW = 3.0
_ASK_THE_DRIVER = ("nvml", "cuda_driver", "nvidia_smi")


def open_host(sysroot: str | None) -> "Host":
    """Return the host for this machine, or for the files below a sysroot."""
    from gpucheck.machine import LiveHost  # noqa: PLC0415

    return LiveHost(sysroot or "")


def run_probes(
    host: "Host",
    tables: "Tables",
    options: dict[str, Any],
    *,
    request: Any = None,  # noqa: ANN401  # a Request, imported late
    skip: Sequence[str] = (),
) -> "Collected":
    """Run the probes with progress on a terminal, and return what they found."""
    from gpucheck.facts.request import Request  # noqa: PLC0415
    from gpucheck.machine.candidates import TargetWish  # noqa: PLC0415

    wish, quiet = TargetWish(python=options["python"]), options["quiet"]
    progress = Progress(sys.stderr) if _can_redraw(quiet=quiet) else None
    try:
        return collect(
            host,
            tables,
            wish,
            request=request or Request(wheel_mirror=options.get("wheel_mirror", "")),
            timeout=options["timeout"],
            skip=skip,
            progress=progress,
            meanwhile=prepare_judgement(tables),
            before=None if quiet else lambda: say_whose_programs(host, wish),
        )
    finally:
        if progress is not None:
            progress.clear()


@contextlib.contextmanager
def live_table(options: dict[str, Any]) -> "Iterator[Callable[[ProgressGrid], None] | None]":
    """Show the state of the self-tests on a terminal; None where nothing is shown."""
    if not _can_redraw(quiet=options["quiet"]):
        yield None
        return
    from gpucheck.cli.live_table import LiveTable  # noqa: PLC0415

    table = LiveTable(sys.stderr)
    try:
        yield table
    finally:
        table.clear()


def _can_redraw(*, quiet: bool) -> bool:
    """Whether stderr can show what is replaced later: a terminal that follows escape sequences."""
    if quiet or not sys.stderr.isatty():
        return False
    from gpucheck.machine.console import takes_escapes  # noqa: PLC0415

    return takes_escapes(sys.stderr)


@contextlib.contextmanager
def in_the_words_of_click() -> "Iterator[None]":
    """Turn what was asked wrongly into a refusal of the command line."""
    try:
        yield
    except AskError as error:
        words = words_of(error, limit=LONGEST_MESSAGE)
        kind = click.UsageError if isinstance(error, UsageError) else RefusedError
        raise kind(words) from error


def say_whose_programs(host: "Host", wish: "TargetWish") -> None:
    """Say on stderr which programs root is about to run although others can change them."""
    from gpucheck.machine.owners import foreign_programs  # noqa: PLC0415

    for found in foreign_programs(host, wish):
        if found.uid is None:
            line = say(
                "gpucheck now runs {program} as root, although every user can change it.",
                program=found.program,
            )
        else:
            line = say(
                "gpucheck now runs {program} as root, although user {user} can change it. Run "
                "gpucheck as {user} if you do not trust what is there.",
                program=found.program,
                user=_user(found.uid),
            )
        echo(line, limit=LONGEST_REFUSAL)


def _user(uid: int) -> str:
    """Return the name of a user, or the number of one without a name."""
    import pwd  # noqa: PLC0415  # Windows has no such module

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


class Progress:
    """One line on a terminal that shows what is still running, once it takes long."""

    def __init__(self, out: TextIO) -> None:
        from gpucheck.cli.live_out import LiveOut  # noqa: PLC0415  # on a terminal only

        self._out = LiveOut(out)
        self._shown = False

    def __call__(self, names: Sequence[str], seconds: float) -> None:
        """Show what is still running, once it takes more than a second."""
        if seconds < 1:
            return
        driver = seconds > _SLOW and any(name in _ASK_THE_DRIVER for name in names)
        told = {"names": in_series(names), "seconds": seconds}
        if driver:
            line = say(
                "waiting for {names} ({seconds:.0f} s; GPUs without persistence mode wake slowly)",
                **told,
            )
        elif "wheel_hashes" in names:
            line = say("waiting for {names} ({seconds:.0f} s; -v reads whole libraries)", **told)
        else:
            line = say("waiting for {names} ({seconds:.0f} s)", **told)
        self._out.write(f"\r\x1b[K{spoken(line)}")
        self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._out.write("\r\x1b[K")


def load_snapshot(file: str) -> "Snapshot":
    """Read a saved snapshot or report; one that cannot be read is a usage error."""
    from pathlib import Path  # noqa: PLC0415  # every check would pay two milliseconds for it

    from gpucheck.facts.snapshot import SnapshotError, load  # noqa: PLC0415

    try:
        return load(Path(file))
    except SnapshotError as error:
        raise click.UsageError(words_of(error)) from error
