"""What several commands do: open the host, run the probes, show progress, load a snapshot."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from gpucheck.doctor.checking import (
    LONGEST_REFUSAL,
    CheckRequest,
    collect,
    examine,
    judge,
    prepare_judgement,
    recorded,
    refuse_beside,
)
from gpucheck.interface.listener import Listener
from gpucheck.interface.text import echo, words_of
from gpucheck.interface.with_tables import open_tables, refuse_broken
from gpucheck.language import in_series, say, spoken

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.doctor.collector import Collected
    from gpucheck.engine import Report
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.interface.live_table import LiveTable
    from gpucheck.machine import Host
    from gpucheck.machine.candidates import TargetWish
    from gpucheck.selftests.outcome import ProgressGrid
    from gpucheck.tables import Tables

__all__ = [
    "OnStderr", "Progress", "diagnosed", "listening",
    "load_snapshot", "open_host", "open_tables", "prepare_judgement", "refuse_broken", "run_probes",
    "say_whose_programs",
]  # fmt: skip

# Chosen: NVML and libcuda took 0.2 s each on an H100 (docs/evidence.md), and waking GPUs without
# persistence mode takes several.
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

    with listening(options) as listener:
        return collect(
            host,
            tables,
            TargetWish(python=options["python"]),
            request=request or Request(wheel_mirror=options.get("wheel_mirror", "")),
            timeout=options["timeout"],
            skip=skip,
            meanwhile=prepare_judgement(tables),
            listener=listener,
        )


def diagnosed(options: dict[str, Any], wish: CheckRequest, tables: "Tables") -> "Report":
    """Examine this machine now, or the recorded one, and judge it for what is asked."""
    from gpucheck.machine.candidates import TargetWish  # noqa: PLC0415

    if wish.machine:
        refuse_beside(wish, python=options["python"], sysroot=options["sysroot"])
    host = recorded(wish) if wish.machine else open_host(options["sysroot"])
    with listening(options) as listener:
        snapshot = examine(
            host,
            tables,
            wish,
            TargetWish(python=options["python"]),
            meanwhile=prepare_judgement(tables),
            listener=listener,
        )
    return judge(snapshot, tables, wish)


@contextlib.contextmanager
def listening(options: dict[str, Any]) -> "Iterator[OnStderr]":
    """Show on stderr how far a run is, as the options allow, and remove that at the end."""
    listener = OnStderr(quiet=options["quiet"])
    try:
        yield listener
    finally:
        listener.clear()


class OnStderr(Listener):
    """Shows how far a run is: the probes that take long, then a table of the self-tests.

    Both are shown on a terminal only. Warnings are shown everywhere, unless it is to be quiet.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._redraws = _can_redraw(quiet=quiet)
        self._progress: Progress | None = None
        self._table: LiveTable | None = None

    def accepted(self, host: "Host", target: "TargetWish") -> None:
        """Say whose programs root is about to run."""
        if not self._quiet:
            say_whose_programs(host, target)

    def waits(self, names: Sequence[str], seconds: float) -> None:
        """Show what is still running."""
        if self._redraws:
            self._progress = self._progress or Progress(sys.stderr)
            self._progress(names, seconds)

    def collected(self) -> None:
        """Remove the line of the probes."""
        if self._progress is not None:
            self._progress.clear()

    def tests(self, grid: "ProgressGrid") -> None:
        """Draw the table of the self-tests."""
        if self._redraws:
            from gpucheck.interface.live_table import LiveTable  # noqa: PLC0415

            self._table = self._table or LiveTable(sys.stderr)
            self._table(grid)

    def clear(self) -> None:
        """Remove what is shown."""
        self.collected()
        if self._table is not None:
            self._table.clear()


def _can_redraw(*, quiet: bool) -> bool:
    """Whether stderr can show what is replaced later: a terminal that follows escape sequences."""
    if quiet or not sys.stderr.isatty():
        return False
    from gpucheck.machine.windows import takes_escapes  # noqa: PLC0415

    return takes_escapes(sys.stderr)


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
        from gpucheck.interface.text import LiveOut  # noqa: PLC0415  # on a terminal only

        self._out = LiveOut(out)
        self._shown = False

    def __call__(self, names: Sequence[str], seconds: float) -> None:
        """Show what is still running, once it takes more than a second."""
        if seconds < 1:
            return
        driver = seconds > _SLOW and any(name in _ASK_THE_DRIVER for name in names)
        params = {"names": in_series(names), "seconds": seconds}
        if driver:
            line = say(
                "waiting for {names} ({seconds:.0f} s; GPUs without persistence mode wake slowly)",
                **params,
            )
        elif "wheel_hashes" in names:
            line = say("waiting for {names} ({seconds:.0f} s; -v reads whole libraries)", **params)
        else:
            line = say("waiting for {names} ({seconds:.0f} s)", **params)
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
