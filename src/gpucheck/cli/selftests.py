"""Runs the self-tests for a command and puts their results into the snapshot."""

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from gpucheck.cli.spelling import meant, there_are, with_hint
from gpucheck.cli.text import printable
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: most runs do not need them
    from gpucheck.cli.live_table import LiveTable
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.machine import Host
    from gpucheck.selftests.plan import Wish
    from gpucheck.selftests.progress import ProgressGrid
    from gpucheck.selftests.watching import Watch
    from gpucheck.tables import Tables


def with_selftests(
    host: "Host",
    snapshot: "Snapshot",
    tables: "Tables",
    options: dict[str, Any],
    *,
    asked: bool,
    refused: str,
    begun: float,
) -> "Snapshot":
    """Return the snapshot with the self-tests of a check, or with why they were not run.

    Args:
        host: the machine.
        snapshot: the snapshot so far.
        tables: the compatibility tables.
        options: of the command line.
        asked: whether the user explicitly asked for self-tests.
        refused: why the user does not want them; "" if they are wanted or not mentioned.
        begun: the ``time.monotonic()`` at which the command began, from which its limit counts.
    """
    if refused:
        return without_selftests(snapshot, refused)
    from gpucheck.selftests import eligibility  # noqa: PLC0415

    why = eligibility.why_no_test(snapshot)
    if not asked:
        why = why or eligibility.why_not_by_itself(snapshot)
    if why:
        return without_selftests(snapshot, why)
    from gpucheck.selftests.plan import Wish  # noqa: PLC0415

    left = options["timeout"] - (time.monotonic() - begun)
    wish = Wish(level=options["level"], timeout=max(left, 1.0))
    return run_selftests(host, snapshot, tables, wish, quiet=options["quiet"])


def without_selftests(snapshot: "Snapshot", why: str) -> "Snapshot":
    """Return the snapshot with the reason why no self-test was run."""
    from gpucheck.facts.selftests import SelfTests  # noqa: PLC0415

    return snapshot.with_section(SelfTests(problems={"*": why}))


def run_selftests(
    host: "Host", snapshot: "Snapshot", tables: "Tables", wish: "Wish", *, quiet: bool
) -> "Snapshot":
    """Run the self-tests with a live table on a terminal; return the snapshot with them.

    Raises:
        click.UsageError: the host is not a live machine.
    """
    import msgspec  # noqa: PLC0415

    from gpucheck.cli.live_table import LiveTable  # noqa: PLC0415
    from gpucheck.facts.interpreter import Interpreter  # noqa: PLC0415
    from gpucheck.machine import LiveHost  # noqa: PLC0415
    from gpucheck.selftests import eligibility  # noqa: PLC0415
    from gpucheck.selftests.catalogue import headers  # noqa: PLC0415
    from gpucheck.selftests.launcher import Launcher  # noqa: PLC0415
    from gpucheck.selftests.loaded import compared  # noqa: PLC0415
    from gpucheck.selftests.peaks import with_shares  # noqa: PLC0415
    from gpucheck.selftests.watching import Watch  # noqa: PLC0415
    from gpucheck.tables.gpu_rates import GpuRates  # noqa: PLC0415

    if not isinstance(host, LiveHost):
        raise click.UsageError(say("self-tests run on this machine only"))
    table = LiveTable(sys.stderr) if sys.stderr.isatty() and not quiet else None
    expected = eligibility.expects_gpu(snapshot)
    watch = Watch(host, wish.timeout) if expected and wish.level != "quick" else None
    launcher = Launcher(
        host.supervise,
        snapshot.get(Interpreter).executable or "",
        msgspec.structs.replace(wish, expect_gpu=expected),
        headers(),
        unfit=eligibility.unfit(snapshot),
        progress=lambda grid: _show(grid, table, watch),
        cores=os.cpu_count() or 1,
    )
    try:
        tests = with_shares(compared(launcher.run(), snapshot), tables.get(GpuRates))
        if watch is not None:
            tests = msgspec.structs.replace(tests, under_load=watch.stop())
        return snapshot.with_section(tests)
    finally:
        if watch is not None:
            watch.stop()
        if table is not None:
            table.clear()


def _show(grid: "ProgressGrid", table: "LiveTable | None", watch: "Watch | None") -> None:
    if watch is not None:
        watch.look()
    if table is not None:
        table(grid)


def test_names(text: str | None) -> tuple[str, ...]:
    """Return the names of the self-tests in ``a,b``.

    Raises:
        click.UsageError: one of them is not a self-test.
    """
    if not text:
        return ()
    from gpucheck.selftests.catalogue import headers  # noqa: PLC0415

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in headers():
            near = meant(name, headers()) or there_are(headers())
            refused = say("There is no self-test {name}.", name=repr(printable(name)))
            raise click.UsageError(with_hint(refused, near))
    return names
