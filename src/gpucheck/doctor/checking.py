"""A check: what is asked for, the snapshot of the machine with its self-tests, the report."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from gpucheck.doctor.selftests import with_selftests
from gpucheck.interface.errors import (
    RefusedError,
    UsageError,
    meant,
    printable,
    with_hint,
    words_of,
)
from gpucheck.interface.listener import SILENT, Listener
from gpucheck.interface.request import Level, Option
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.doctor.collector import Collected
    from gpucheck.facts.request import Request
    from gpucheck.machine import Host
    from gpucheck.machine.candidates import TargetWish
    from gpucheck.tables import Tables
if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.engine import Report
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.machine import Host
    from gpucheck.machine.candidates import TargetWish
    from gpucheck.tables import Tables


# Runs the probes on a machine, in the process that asks for it.

# Chosen: a sentence with a path and the last words of the interpreter fits. What the interpreter
# says is untrusted, so it needs some limit.
LONGEST_REFUSAL = 600


def collect(  # what a collector takes
    host: "Host",
    tables: "Tables",
    target: "TargetWish",
    *,
    request: "Request",
    timeout: float,
    skip: Sequence[str] = (),
    meanwhile: Iterable[object] = (),
    listener: Listener = SILENT,
) -> "Collected":
    """Run the probes, and return what they found.

    Probes run in forked children, so only a process without threads may call this, in which no
    driver was used.

    Args:
        host: the machine.
        tables: the compatibility tables.
        target: which interpreter is the target.
        request: what the user said about the machine.
        timeout: seconds.
        skip: names of probes.
        meanwhile: other work while they run.
        listener: hears how far they are.

    Raises:
        RefusedError: the interpreter that the user named cannot be asked.
    """
    from gpucheck.doctor.beginning import taken_over  # noqa: PLC0415
    from gpucheck.doctor.collector import USUAL_SECONDS, Collector  # noqa: PLC0415
    from gpucheck.machine.target import refusal  # noqa: PLC0415

    as_usual = not skip and timeout == USUAL_SECONDS
    begun = taken_over(host, tables, target, request, as_usual=as_usual)
    try:
        if begun is not None:
            return begun.go_on(listener.waits, meanwhile)
        if why := refusal(host, target):
            raise RefusedError(printable(why, limit=LONGEST_REFUSAL))
        listener.accepted(host, target)
        return Collector(
            host,
            tables,
            wish=target,
            request=request,
            timeout=timeout,
            skip=skip,
            progress=listener.waits,
            meanwhile=meanwhile,
        ).collect()
    finally:
        listener.collected()


def prepare_judgement(tables: "Tables") -> Iterator[None]:
    """Import what judges and prints, and read its tables, in many small steps."""
    from gpucheck.facts.snapshot import all_sections  # noqa: PLC0415
    from gpucheck.findings import each_rule  # noqa: PLC0415
    from gpucheck.tables import Table  # noqa: PLC0415

    needs: set[type[Any]] = set()
    for rule in each_rule():
        needs.update(rule.needs.values())
        yield
    from gpucheck.output import terminal  # noqa: F401, PLC0415

    all_sections()
    yield
    for table in (need for need in needs if issubclass(need, Table)):
        tables.get(table)


Gpus = (
    Annotated[
        int,
        msgspec.Meta(ge=0, le=1024, description="How many GPUs there must be."),
        Option(
            say("How many GPUs this machine must have; 0: it only builds or submits jobs."), "N"
        ),
    ]
    | None
)
Purpose = Annotated[
    Literal["run", "build"],
    msgspec.Meta(description="Whether PyTorch only runs here, or extensions are built as well."),
    Option(say("Whether PyTorch only runs here, or extensions are built as well."), flag="--for"),
]


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants to know; names are of findings or probes."""

    gpus: Gpus = None
    purpose: Purpose = "run"
    selftest: Annotated[
        bool | None,
        Option(
            say(
                "Run the self-tests, even if they only test the CPU; or run only static checks. By "
                "default the self-tests run if there are an NVIDIA device and a CUDA build of "
                "PyTorch."
            )
        ),
    ] = None
    """Whether self-tests are wanted; None where they make sense."""
    level: Level = "quick"
    only: Annotated[tuple[str, ...], Option(say("Only this finding or probe."), "NAME")] = ()
    skip: Annotated[tuple[str, ...], Option(say("Leave out this finding or probe."), "NAME")] = ()
    machine: Annotated[
        str,
        Option(
            say(
                "Judge a machine that gpucheck baseline collect --record wrote, as a folder or a "
                "zip file, in place of this one."
            ),
            "FILE",
        ),
    ] = ""
    wheel_mirror: str = ""
    hash_seconds: float = 0.0
    timeout: float = 120.0
    by_program: bool = False
    """Whether a program asks, which knows no options."""


class Chosen(msgspec.Struct, frozen=True):
    """The findings that are asked for or left out, and the probes that are left out."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    probes_skipped: tuple[str, ...] = ()


def chosen(wish: CheckRequest) -> Chosen:
    """Sort the names of a wish into findings and probes.

    Raises:
        UsageError: a name is neither.
    """
    if not wish.only and not wish.skip:
        return Chosen()
    from gpucheck.findings import all_rules  # noqa: PLC0415
    from gpucheck.probes import all_probes  # noqa: PLC0415
    from gpucheck.tables.meant_products import same_name  # noqa: PLC0415

    slugs, probes = set(all_rules()), {probe.name for probe in all_probes()}
    known = sorted(slugs | probes)
    only, skip = (
        [same_name(name, known) or name for name in names] for names in (wish.only, wish.skip)
    )
    for name in (*only, *skip):
        if name not in known:
            near = meant(name, known) or say("See gpucheck list.")
            refused = say("{name} is neither a finding nor a probe.", name=repr(printable(name)))
            raise UsageError(with_hint(refused, near))
    wanted = {name for name in only if name in probes}
    probes_skipped = {name for name in skip if name in probes}
    if wanted:
        probes_skipped |= probes - wanted
    return Chosen(
        tuple(name for name in only if name in slugs),
        tuple(name for name in skip if name in slugs),
        tuple(sorted(probes_skipped)),
    )


def recorded(wish: CheckRequest) -> "Host":
    """Return the recorded machine that a wish names.

    Raises:
        RefusedError: there is no such machine, or it cannot be read.
    """
    from pathlib import Path  # noqa: PLC0415  # a check of this machine would pay for it

    from gpucheck.machine import RecordedHost  # noqa: PLC0415

    try:
        return RecordedHost(Path(wish.machine))
    except ValueError as error:
        raise RefusedError(words_of(error, limit=LONGEST_REFUSAL)) from error


def refuse_beside(wish: CheckRequest, **beside: str | None) -> None:
    """Refuse what is about this machine where a recorded one is to be judged.

    Args:
        wish: what the user wants to know; it may not want self-tests.
        beside: options that may not be given, by their names.

    Raises:
        UsageError: one of them is given.
    """
    prefix = "" if wish.by_program else "--"
    for name, value in {**beside, "selftest": wish.selftest}.items():
        if value:
            raise UsageError(
                say(
                    "{machine} judges what was recorded elsewhere, so it does not go with "
                    "{option}.",
                    machine=f"{prefix}machine",
                    option=f"{prefix}{name}",
                )
            )


def examine(
    host: "Host",
    tables: "Tables",
    wish: CheckRequest,
    target: "TargetWish",
    *,
    meanwhile: Iterable[object] = (),
    listener: Listener = SILENT,
) -> "Snapshot":
    """Return what the probes and the self-tests found on the machine.

    Args:
        host: the machine.
        tables: the compatibility tables.
        wish: what the user wants to know.
        target: which interpreter is examined.
        meanwhile: other work while the probes run.
        listener: hears how far it is.

    Raises:
        UsageError: a name is neither a finding nor a probe.
        RefusedError: the interpreter cannot be asked.
    """
    begun = time.monotonic()
    from gpucheck.facts.request import Request  # noqa: PLC0415

    request = Request(
        gpus=wish.gpus,
        purpose=wish.purpose,
        wheel_mirror=wish.wheel_mirror,
        hash_seconds=wish.hash_seconds,
    )
    snapshot = collect(
        host,
        tables,
        target,
        request=request,
        timeout=wish.timeout,
        skip=chosen(wish).probes_skipped,
        meanwhile=meanwhile,
        listener=listener,
    ).snapshot
    if snapshot.origin == "recorded":
        return snapshot  # it has the self-tests that were recorded with the machine
    return with_selftests(
        host,
        snapshot,
        tables,
        level=wish.level,
        asked=bool(wish.selftest),
        refused=_refused(wish),
        end=begun + wish.timeout,
        show=listener.tests,
    )


def judge(snapshot: "Snapshot", tables: "Tables", wish: CheckRequest) -> "Report":
    """Judge the snapshot of a machine for what the user wants to know."""
    from gpucheck.engine import judge_machine  # noqa: PLC0415  # while the probes were running

    names = chosen(wish)
    return judge_machine(snapshot, tables, only=names.only, skip=names.skip)


def _refused(wish: CheckRequest) -> str:
    """Return why no self-tests should run; a single finding or probe does not need them."""
    only = wish.selftest is None and wish.only
    if wish.selftest is False:
        why = say("--no-selftest was given")
        return say("they were not asked for") if wish.by_program else why
    if only and wish.by_program:
        return say("only some findings were asked for")
    return say("--only was given without --selftest") if only else ""
