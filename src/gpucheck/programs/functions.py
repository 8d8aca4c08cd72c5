"""The functions of ``gpucheck`` for programs (``docs/programs/api.md``).

They print nothing and never end the process. They may be called in any thread, and in a process
that uses CUDA: a fresh process examines the machine.
"""

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpucheck.cluster.request import refuse_windows
from gpucheck.interface import request as asked
from gpucheck.interface.errors import UsageError, words_of
from gpucheck.interface.request import LEAST_OF_A_JOB, LEAST_OF_SELF_TESTS, LEAST_SECONDS, request
from gpucheck.interface.with_tables import open_tables
from gpucheck.language import say
from gpucheck.machine import LiveHost
from gpucheck.programs.results import CheckReport, Recommended, check_report, recommended

if TYPE_CHECKING:
    from gpucheck.doctor.checking import CheckRequest
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.programs.examiner import Order
    from gpucheck.programs.preflight_outcome import PreflightOutcome
    from gpucheck.tables import Tables

Level = Literal["quick", "standard", "stress"]
# Chosen: above every list of keys that a refusal may have, because a program has no screen to fill.
# Facts of others are quoted in it, so it needs some limit.
_LONGEST_MESSAGE = 10_000
_CALLING, _ARGUMENT = "the calling Python", "the argument python"
"""What named the target; ``machine/candidates.py`` has their translations."""


def check(  # noqa: PLR0913  # each by its name
    *,
    python: str | None = None,
    gpus: int | None = None,
    purpose: Literal["run", "build"] = "run",
    selftest: bool | None = None,
    level: Level = "quick",
    only: str | Iterable[str] = (),
    skip: str | Iterable[str] = (),
    machine: str = "",
    wheel_mirror: str | None = None,
    tables: str | None = None,
    timeout: float = 120.0,
) -> CheckReport:
    """Diagnose this machine and the PyTorch of a Python: the root cause first, and what fixes it.

    Args:
        python: the target, an interpreter or an environment; by default the calling Python.
        gpus: how many GPUs this machine must have.
        purpose: whether PyTorch only runs here, or extensions are built as well.
        selftest: run the self-tests, or only static checks; None runs them where there are an
            NVIDIA device and a CUDA build of PyTorch.
        level: how thorough the self-tests are.
        only: only these findings or probes.
        skip: not these.
        machine: a machine that ``gpucheck baseline collect --record`` wrote, in place of this one.
        wheel_mirror: what replaces https://download.pytorch.org/whl in commands; None for
            $GPUCHECK_WHEEL_MIRROR.
        tables: a folder of compatibility tables; None for $GPUCHECK_TABLES or the built-in ones.
        timeout: seconds for the whole run.

    Raises:
        AskError: there is no answer, and the message says why in one sentence (a ValueError).
    """
    from gpucheck.doctor.checking import CheckRequest, refuse_beside  # noqa: PLC0415

    wish = request(
        CheckRequest,
        gpus=gpus,
        purpose=purpose,
        selftest=selftest,
        level=level,
        only=only,
        skip=skip,
        machine=str(Path(machine).absolute()) if asked.text("machine", machine) else "",
        wheel_mirror=_mirror(wheel_mirror),
        timeout=asked.seconds(timeout, LEAST_SECONDS),
        by_program=True,
    )
    if wish.machine:
        refuse_beside(wish, python=python)
    return checked(wish, _order("check", python, tables, wish=wish))


def checked(wish: "CheckRequest", order: "Order") -> CheckReport:
    """Return the report of a check whose order is complete."""
    from gpucheck.doctor.checking import chosen, judge  # noqa: PLC0415

    known = open_tables(order.tables)
    chosen(wish)  # a wrong name needs no process
    return check_report(judge(_examined(order, wish.timeout), known, wish))


def selftest(
    *,
    python: str | None = None,
    tests: str | Iterable[str] = (),
    level: Level = "quick",
    devices: str | Iterable[str] | None = None,
    ranks: int | None = None,
    seed: int = 0,
    tables: str | None = None,
    timeout: float = 300.0,
) -> CheckReport:
    """Run the self-tests alone: does PyTorch compute, and correctly?

    Args:
        python: the target, an interpreter or an environment; by default the calling Python.
        tests: only these.
        level: how thorough they are.
        devices: ``"cpu"``, or GPUs such as ``("cuda:0", "cuda:2")``; by default every GPU, or the
            CPU if there is none.
        ranks: on the CPU, the number of processes of the tests that run in several.
        seed: of all random numbers.
        tables: a folder of compatibility tables; None for $GPUCHECK_TABLES or the built-in ones.
        timeout: seconds for the whole run.

    Raises:
        AskError: there is no answer, and the message says why in one sentence (a ValueError).
    """
    from gpucheck.doctor.selftests import SelftestRequest, judge_selftests  # noqa: PLC0415

    named = None if devices is None else ",".join(asked.words("devices", devices))
    wish = request(
        SelftestRequest,
        tests=",".join(asked.words("tests", tests)),
        level=level,
        devices=named,
        ranks=ranks,
        seed=seed,
        timeout=asked.seconds(timeout, LEAST_OF_SELF_TESTS),
    ).wish()
    known = _tables(tables)
    snapshot = _examined(_order("self-tests", python, tables, tests=wish), wish.timeout)
    return check_report(judge_selftests(snapshot, known))


def preflight(  # noqa: PLR0913  # each by its name
    *,
    python: str | None = None,
    tests: str | Iterable[str] = (),
    level: Level = "quick",
    device: Literal["cuda", "cpu"] = "cuda",
    ranks: int | None = None,
    master: str = "",
    port: int | None = None,
    nodes: int | None = None,
    gpus: int | None = None,
    require: str | Iterable[str] = (),
    baseline: Literal["save", "compare"] | None = None,
    links: bool = False,
    drill: str | Iterable[str] = (),
    fail_on: Literal["error", "warning", "never"] = "error",
    tables: str | None = None,
    timeout: float = 300.0,
) -> "PreflightOutcome":
    """Test all GPUs of this job together, as one of the tasks that a launcher has started.

    Every task of the job must call it, and each gets the same verdict. A broken GPU, node or
    fabric is an outcome, not an exception. The arguments are the options of ``gpucheck preflight``.

    Raises:
        AskError: what is asked, or what the launcher says, makes no sense, or this is Windows (a
            ValueError).
    """
    begun = time.monotonic()
    refuse_windows()
    from gpucheck.cluster.request import PreflightRequest  # noqa: PLC0415
    from gpucheck.programs.preflight_outcome import outcome_of  # noqa: PLC0415

    wanted = request(
        PreflightRequest,
        python=asked.text("python", python) or sys.executable,
        tests=",".join(asked.words("tests", tests)) or None,
        level=level,
        device=device,
        ranks=ranks,
        master=master,
        port=port,
        nodes=nodes,
        gpus=gpus,
        require=require,
        baseline=baseline,
        links=links,
        drill=drill,
        fail_on=asked.one_of("fail_on", fail_on, ("error", "warning", "never")),
        timeout=asked.seconds(timeout, LEAST_OF_A_JOB),
    )
    return outcome_of(wanted, _tables(tables), begun)


def recommend(  # noqa: PLR0913  # each by its name
    *,
    torch: str = "",
    gpu: str | Iterable[str] = (),
    driver: str | None = None,
    driver_cuda: str | None = None,
    python_version: str | None = None,
    os: Literal["linux", "windows", "wsl2"] | None = None,
    arch: Literal["x86_64", "aarch64"] | None = None,
    glibc: str | None = None,
    jetpack: str | None = None,
    companions: str | Iterable[str] = (),
    tool: Literal["pip", "uv", "conda"] = "pip",
    python: str | None = None,
    wheel_mirror: str | None = None,
    tables: str | None = None,
    timeout: float = 120.0,
) -> Recommended:
    """Return the exact command that installs a PyTorch that works here, or on another machine.

    The arguments are the options of ``gpucheck recommend``; ``companions`` is its ``--with``.

    Raises:
        AskError: there is no answer, and the message says why in one sentence (a ValueError).
    """
    from gpucheck.describe.recommend_options import RecommendRequest  # noqa: PLC0415
    from gpucheck.describe.recommending import Recommending  # noqa: PLC0415

    limit, known = asked.seconds(timeout, LEAST_SECONDS), _tables(tables)
    wish = request(
        RecommendRequest,
        torch=torch,
        gpu=gpu,
        driver=driver,
        driver_cuda=driver_cuda,
        python_version=python_version,
        os=os,
        arch=arch,
        glibc=glibc,
        jetpack=jetpack,
        companions=",".join(asked.words("companions", companions)),
        tool=tool,
        wheel_mirror=_mirror(wheel_mirror),
    )

    def collect() -> "Snapshot":
        return _examined(_facts_of(python, tables, wish.wheel_mirror, limit), limit)

    return recommended(Recommending(wish, known, collect).shown())


def compat(
    facts: Mapping[str, Any] | None = None,
    /,
    *,
    tables: str | None = None,
    **more: Any,  # noqa: ANN401  # any JSON value
) -> CheckReport:
    """Judge a machine that you describe, by the same rules as a live one.

    Args:
        facts: the keys of ``gpucheck compat`` with their values; None: looked for and not there.
        tables: a folder of compatibility tables; None for $GPUCHECK_TABLES or the built-in ones.
        more: further keys, such as ``driver="535.104.05", torch="2.9.1"``.

    Raises:
        AskError: a key or value makes no sense, in one sentence (a ValueError).
    """
    from gpucheck.describe.judge import judge_described  # noqa: PLC0415
    from gpucheck.describe.keys import GivenError, read_object  # noqa: PLC0415

    if facts is not None and not isinstance(facts, Mapping):
        raise UsageError(say("the facts must be a dictionary of keys and their values."))
    given = {**(facts or {}), **more}
    if not given:
        raise UsageError(say("say what to judge, such as driver and torch."))
    try:
        found = judge_described(read_object(given), _tables(tables))
    except GivenError as error:
        raise UsageError(words_of(error, limit=_LONGEST_MESSAGE)) from error
    return check_report(found.report, found.not_judged)


def triage(text: str | bytes) -> CheckReport:
    """Name the cause of what a pasted text shows: program output, logs, a whole ticket.

    Gzip is unpacked, and bytes need not be valid UTF-8. A snapshot or report that gpucheck saved is
    judged again. Nothing in the text is executed.

    Args:
        text: the text, or its bytes.

    Raises:
        gpucheck.ticket.given.IntakeError: it is not a text (a ValueError).
    """
    from gpucheck.ticket.given import IntakeError  # noqa: PLC0415
    from gpucheck.ticket.judge import triage as name_the_cause  # noqa: PLC0415

    if not isinstance(text, str | bytes | bytearray):
        raise IntakeError(say("the input must be a text or bytes."))
    return check_report(name_the_cause(text))


def _examined(order: "Order", seconds: float) -> "Snapshot":
    from gpucheck.programs.examination import examined  # noqa: PLC0415

    return examined(order, seconds)


def _facts_of(python: str | None, tables: str | None, mirror: str, limit: float) -> "Order":
    from gpucheck.doctor.checking import CheckRequest  # noqa: PLC0415

    return _order("facts", python, tables, wish=CheckRequest(wheel_mirror=mirror, timeout=limit))


def _order(
    what: Literal["facts", "check", "self-tests"],
    python: str | None,
    tables: str | None,
    **more: Any,  # noqa: ANN401  # wish or tests
) -> "Order":
    """Return what the fresh process is told; the caller's Python is the target by default."""
    from gpucheck.programs.examiner import Order  # noqa: PLC0415

    named = asked.text("python", python)
    return Order(
        what=what,
        python=named or sys.executable,
        named_by=_ARGUMENT if named else _CALLING,
        tables=_tables_named(tables),
        **more,
    )


def _mirror(named: str | None) -> str:
    value = asked.text("wheel_mirror", named)
    if value is None:
        value = LiveHost().env().get("GPUCHECK_WHEEL_MIRROR", "")
    return asked.wheel_mirror(value) if value else ""


def _tables(named: str | None) -> "Tables":
    return open_tables(_tables_named(named))


def _tables_named(named: str | None) -> str | None:
    """Return the folder of the tables, in full: the fresh process may start elsewhere."""
    value = asked.text("tables", named) or LiveHost().env().get("GPUCHECK_TABLES")
    return str(Path(value).absolute()) if value else None
