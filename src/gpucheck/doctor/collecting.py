"""Runs the probes on a machine, in the process that asks for it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gpucheck.interface.errors import RefusedError
from gpucheck.interface.listener import SILENT, Listener
from gpucheck.interface.words import printable

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.facts.request import Request
    from gpucheck.machine import Host
    from gpucheck.machine.candidates import TargetWish
    from gpucheck.probes.collector import Collected
    from gpucheck.tables import Tables

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
    from gpucheck.machine.target import refusal  # noqa: PLC0415
    from gpucheck.probes.collector import Collector  # noqa: PLC0415

    if why := refusal(host, target):
        raise RefusedError(printable(why, limit=LONGEST_REFUSAL))
    listener.accepted(host, target)
    try:
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
    from gpucheck.facts.base import all_sections  # noqa: PLC0415
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
