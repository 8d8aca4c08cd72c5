"""Runs the self-tests, and puts their results into the snapshot."""

import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec

from gpucheck.interface.errors import UsageError, meant, printable, there_are, with_hint
from gpucheck.interface.request import Level, Option
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: most runs do not need them
    from gpucheck.engine import Report
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.machine import Host
    from gpucheck.selftests.observed import Watch
    from gpucheck.selftests.outcome import ProgressGrid
    from gpucheck.selftests.plan import Wish
    from gpucheck.tables import Tables

_DEVICE = re.compile(r"cpu|cuda(?::[0-9]{1,3})?")
_ALONE = {"cpu", "cuda"}
"""Devices that no others are named beside."""

Show = Callable[["ProgressGrid"], None]
"""Shows how far the self-tests are."""


def with_selftests(
    host: "Host",
    snapshot: "Snapshot",
    tables: "Tables",
    *,
    level: Level,
    asked: bool,
    refused: str,
    end: float,
    show: Show | None = None,
) -> "Snapshot":
    """Return the snapshot with the self-tests of a check, or with why they were not run.

    Args:
        host: the machine.
        snapshot: the snapshot so far.
        tables: the compatibility tables.
        level: how thorough they are.
        asked: whether the user explicitly asked for self-tests.
        refused: why the user does not want them; "" if they are wanted or not mentioned.
        end: when the run must be over, a time of ``time.monotonic()``.
        show: shows how far they are.
    """
    if refused:
        return without_selftests(snapshot, refused)
    from gpucheck.selftests import plan  # noqa: PLC0415

    why = plan.why_no_test(snapshot)
    if not asked:
        why = why or plan.why_not_by_itself(snapshot)
    if why:
        return without_selftests(snapshot, why)
    from gpucheck.selftests.plan import Wish  # noqa: PLC0415

    wish = Wish(level=level, timeout=max(end - time.monotonic(), 1.0))
    return run_selftests(host, snapshot, tables, wish, show=show)


def without_selftests(snapshot: "Snapshot", why: str) -> "Snapshot":
    """Return the snapshot with the reason why no self-test was run."""
    from gpucheck.facts.selftests import SelfTests  # noqa: PLC0415

    return snapshot.with_section(SelfTests(problems={"*": why}))


def selftests_alone(
    host: "Host", snapshot: "Snapshot", tables: "Tables", wish: "Wish", *, show: Show | None = None
) -> "Snapshot":
    """Return the snapshot with the self-tests that were asked for, or with why none can run."""
    from gpucheck.selftests import plan  # noqa: PLC0415

    if why := plan.why_no_test(snapshot):
        return without_selftests(snapshot, why)
    return run_selftests(host, snapshot, tables, wish, show=show)


def run_selftests(
    host: "Host", snapshot: "Snapshot", tables: "Tables", wish: "Wish", *, show: Show | None = None
) -> "Snapshot":
    """Run the self-tests; return the snapshot with them.

    Raises:
        UsageError: the host is not a live machine.
    """
    import msgspec  # noqa: PLC0415

    from gpucheck.facts.torch import Interpreter  # noqa: PLC0415
    from gpucheck.machine import LiveHost  # noqa: PLC0415
    from gpucheck.selftests import plan  # noqa: PLC0415
    from gpucheck.selftests.launcher import Launcher  # noqa: PLC0415
    from gpucheck.selftests.observed import Watch, compared, with_shares  # noqa: PLC0415
    from gpucheck.selftests.plan import headers  # noqa: PLC0415
    from gpucheck.tables.gpus import GpuRates  # noqa: PLC0415

    if not isinstance(host, LiveHost):
        raise UsageError(say("self-tests run on this machine only"))
    expected = plan.expects_gpu(snapshot)
    watch = Watch(host, wish.timeout) if expected and wish.level != "quick" else None
    launcher = Launcher(
        host.supervise,
        snapshot.get(Interpreter).executable or "",
        msgspec.structs.replace(wish, expect_gpu=expected),
        headers(),
        unfit=plan.unfit(snapshot),
        progress=lambda grid: _show(grid, show, watch),
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


def _show(grid: "ProgressGrid", show: Show | None, watch: "Watch | None") -> None:
    if watch is not None:
        watch.look()
    if show is not None:
        show(grid)


def judge_selftests(snapshot: "Snapshot", tables: "Tables") -> "Report":
    """Judge the results of the tests; if one failed, every rule is asked for the cause."""
    from gpucheck.engine import diagnose, make_report, untested  # noqa: PLC0415
    from gpucheck.facts.selftests import SelfTests  # noqa: PLC0415
    from gpucheck.findings import all_rules  # noqa: PLC0415

    of_tests = [slug for slug, rule in all_rules().items() if SelfTests in rule.needs.values()]
    wrong = snapshot.get(SelfTests).wrong()
    diagnosis = diagnose(snapshot, tables, only=() if wrong else of_tests)
    return make_report(diagnosis, snapshot, untested(snapshot), about="self-tests")


def test_names(text: str | None) -> tuple[str, ...]:
    """Return the names of the self-tests in ``a,b``.

    Raises:
        UsageError: one of them is not a self-test.
    """
    if not text:
        return ()
    from gpucheck.selftests.plan import headers  # noqa: PLC0415

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in headers():
            near = meant(name, headers()) or there_are(headers())
            refused = say("There is no self-test {name}.", name=repr(printable(name)))
            raise UsageError(with_hint(refused, near))
    return names


def devices(text: str | None) -> tuple[str, ...] | None:
    """Return the devices in ``cuda:0,cuda:2``; None if none were named.

    Raises:
        UsageError: the text is not a list of devices.
    """
    if text is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(map(_DEVICE.fullmatch, names)) or (_ALONE & {*names} and len(names) > 1):
        raise UsageError(
            say(
                "--device {text}: say cuda, cpu, or GPUs such as cuda:0,cuda:2",
                text=repr(printable(text)),
            )
        )
    return names


class SelftestRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which self-tests are to run, where, and how thoroughly; names are separated by commas."""

    tests: Annotated[
        str | None, Option(say("Only these, separated by commas: see gpucheck list."), "NAMES")
    ] = None
    level: Level = "quick"
    devices: Annotated[
        str | None,
        Option(
            say(
                "cuda for every GPU, cpu, or GPUs such as cuda:0,cuda:2; by default every GPU, or "
                "the CPU if there is none."
            ),
            "DEVICES",
            flag="--device",
        ),
    ] = None
    ranks: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=64),
            Option(
                say(
                    "On the CPU, the number of processes of the tests that run in several; on GPUs "
                    "there is one process for each GPU."
                ),
                "N",
            ),
        ]
        | None
    ) = None
    seed: Annotated[
        int,
        msgspec.Meta(ge=0, le=2**63 - 1),
        Option(say("The seed of all random numbers."), "N"),
    ] = 0
    timeout: float = 300.0

    def wish(self) -> "Wish":
        """Return it as the self-tests take it.

        Raises:
            UsageError: a test or a device has another name.
        """
        from gpucheck.selftests.plan import Wish  # noqa: PLC0415

        return Wish(
            tests=test_names(self.tests),
            level=self.level,
            devices=devices(self.devices),
            ranks=self.ranks,
            seed=self.seed,
            timeout=self.timeout,
        )
