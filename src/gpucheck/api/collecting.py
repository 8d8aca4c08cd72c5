"""Runs the probes on a machine, in the process that asks for it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gpucheck.api.errors import RefusedError
from gpucheck.api.words import printable

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.facts.request import Request
    from gpucheck.machine import Host
    from gpucheck.machine.candidates import TargetWish
    from gpucheck.probes.collector import Collected, Progress
    from gpucheck.tables import Tables

LONGEST_REFUSAL = 600


def collect(  # noqa: PLR0913  # what a collector takes
    host: "Host",
    tables: "Tables",
    wish: "TargetWish",
    *,
    request: "Request",
    timeout: float,
    skip: Sequence[str] = (),
    progress: "Progress | None" = None,
    meanwhile: Iterable[object] = (),
    before: Callable[[], None] | None = None,
) -> "Collected":
    """Run the probes, and return what they found.

    Probes run in forked children, so only a process without threads may call this, in which no
    driver was used.

    Args:
        host: the machine.
        tables: the compatibility tables.
        wish: which interpreter is the target.
        request: what the user said about the machine.
        timeout: seconds.
        skip: names of probes.
        progress: is called with the names of the probes that still run.
        meanwhile: other work while they run.
        before: is called once the interpreter was accepted, before it is run.

    Raises:
        RefusedError: the interpreter that the user named cannot be asked.
    """
    from gpucheck.machine.target import refusal  # noqa: PLC0415
    from gpucheck.probes.collector import Collector  # noqa: PLC0415

    if why := refusal(host, wish):
        raise RefusedError(printable(why, limit=LONGEST_REFUSAL))
    if before is not None:
        before()
    return Collector(
        host,
        tables,
        wish=wish,
        request=request,
        timeout=timeout,
        skip=skip,
        progress=progress,
        meanwhile=meanwhile,
    ).collect()


def prepare_judgement(tables: "Tables") -> Iterator[None]:
    """Import what judges and prints, and read its tables, in many small steps."""
    from gpucheck.facts.sections import all_sections  # noqa: PLC0415
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
