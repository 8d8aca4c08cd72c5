"""Begins a plain check of this machine before its command line is read.

Reading the command line takes click, whose import takes as long as the probes of the machine. What
is begun here counts only if the command line then asks for just that; else it is stopped.
"""

from gpucheck.doctor.collector import Collector
from gpucheck.facts.request import Request
from gpucheck.interface.with_tables import open_tables
from gpucheck.machine import Host, LiveHost, ahead
from gpucheck.machine.candidates import TargetWish, choose
from gpucheck.machine.owners import foreign_programs
from gpucheck.tables import Tables

_begun: Collector | None = None


def begin() -> None:
    """Start the probes of a plain check whose target was asked ahead (:mod:`.ahead`).

    Signals that end gpucheck are still held back, because nobody cleans up yet. Nothing is begun
    where root has to be told first whose programs it runs.
    """
    global _begun  # noqa: PLW0603  # one process begins once, before all else
    if ahead.asked is None:
        return
    host, wish = LiveHost(), TargetWish(python=ahead.asked.named)
    try:
        chosen = choose(host, wish)
        if chosen[0].executable != ahead.asked.executable or any(foreign_programs(host, wish)):
            return
        _begun = Collector(host, open_tables(None), wish=wish, request=Request())
        _begun.begin()
    except Exception:  # noqa: BLE001  # the check itself will come to it, and say what is wrong
        stop()


def taken_over(
    host: Host, tables: Tables, wish: TargetWish, request: Request, *, as_usual: bool
) -> Collector | None:
    """Return what was begun if it is just what is asked for now; else None, and it is stopped.

    Args:
        host: the machine.
        tables: the compatibility tables.
        wish: which interpreter is the target.
        request: what the user said about the machine.
        as_usual: whether all probes are run, with the usual time limit.
    """
    global _begun
    if _begun is None:
        return None
    if as_usual and host.origin == "live" and _begun.is_for(tables, wish, request):
        begun, _begun = _begun, None
        return begun
    stop()
    return None


def stop() -> None:
    """End what was begun and not taken over, and the target that was asked."""
    global _begun  # noqa: PLW0603  # once
    if _begun is not None:
        _begun.stop()
        _begun = None
    if ahead.asked is not None:
        ahead.asked.end()
        ahead.asked = None
