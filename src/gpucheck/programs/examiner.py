"""The process that examines the machine for a program of others.

It reads an order from stdin and writes a reply to stdout. It ends early if it gets SIGTERM, or if
whoever asked is gone.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec

from gpucheck.doctor.checking import CheckRequest, collect, examine, recorded
from gpucheck.doctor.selftests import selftests_alone
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.streams import ENDING
from gpucheck.interface.errors import AskError, UsageError
from gpucheck.interface.listener import Listener
from gpucheck.interface.with_tables import open_tables
from gpucheck.language import as_said
from gpucheck.machine import LiveHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.machine.windows import no_error_dialogs
from gpucheck.output.json_text import json_text
from gpucheck.selftests.plan import Wish

if TYPE_CHECKING:
    from gpucheck.selftests.outcome import ProgressGrid

ORDER_LIMIT = 1 << 20  # bytes; chosen: names and options only, so no real order comes near it
_PATIENCE = 30.0
"""Seconds within which an order must come: whoever asks may have been interrupted before."""
_SELECTS = os.name != "nt"
"""Whether pipes can be waited for. Where not, its own time limits end it."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be examined, and how."""

    what: Literal["facts", "check", "self-tests"]
    python: str | None
    """The target; None for the one that ``gpucheck check`` would choose."""
    named_by: str = "--python"
    tables: str | None = None
    wish: CheckRequest = CheckRequest()
    tests: Wish = Wish()
    """The self-tests, if they alone are asked for."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot as JSON, or why there is none: ``refused`` is a sentence with its parameters."""

    snapshot: bytes = b""
    refused: Any = None
    usage: bool = False
    """Whether it is refused because what was asked makes no sense."""
    fault: str = ""


def main() -> NoReturn:
    """Examine the machine, and end the process."""
    no_error_dialogs()
    signal.signal(signal.SIGTERM, _leave)
    if _SELECTS and not _has_come(_PATIENCE):
        os._exit(1)
    mark = sys.stdin.buffer.readline(100).strip()
    order = sys.stdin.buffer.readline(ORDER_LIMIT)
    data = msgspec.msgpack.encode(_reply(order))
    sys.stdout.flush()
    # Whatever a start-up file of this Python has printed is outside the marks.
    sys.stdout.buffer.write(mark + data + mark)
    sys.stdout.buffer.flush()
    os._exit(0)  # PYTHONINSPECT would keep it here


def _leave(_number: int, _frame: object) -> NoReturn:
    for number in ENDING:  # nothing interrupts the cleanup
        signal.signal(number, _stay)
    sys.exit(1)


def _stay(_number: int, _frame: object) -> None:
    """Ignore a signal. With SIG_IGN, Python prints a traceback if the signal has come already."""


def _reply(data: bytes) -> Reply:
    try:
        order = msgspec.json.decode(data, type=Order)
        return Reply(snapshot=json_text(_examined(order).as_json(), indent=None).encode())
    except AskError as error:
        return Reply(refused=as_said(error.args[0]), usage=isinstance(error, UsageError))
    except Exception as error:  # noqa: BLE001  # it becomes an error where it was asked
        return Reply(fault=f"{type(error).__name__}: {error}"[:1000])


class _Asked(Listener):
    """Ends the process if nobody waits for its answer any more."""

    def waits(self, names: Sequence[str], seconds: float) -> None:  # noqa: ARG002  # as inherited
        """Look whether somebody still waits."""
        _go_on_if_asked()

    def tests(self, grid: "ProgressGrid") -> None:  # noqa: ARG002  # as inherited
        """Look whether somebody still waits."""
        _go_on_if_asked()


def _examined(order: Order) -> Snapshot:
    begun = time.monotonic()
    tables, listener = open_tables(order.tables), _Asked()
    host = recorded(order.wish) if order.wish.machine else LiveHost()
    target = TargetWish(python=order.python, parent=os.getppid(), named_by=order.named_by)
    if order.what == "check":
        return examine(host, tables, order.wish, target, listener=listener)
    facts = collect(
        host,
        tables,
        target,
        request=Request(wheel_mirror=order.wish.wheel_mirror),
        timeout=order.wish.timeout,
        listener=listener,
    ).snapshot
    if order.what == "facts":
        return facts
    left = max(begun + order.tests.timeout - time.monotonic(), 1.0)
    tests = msgspec.structs.replace(order.tests, timeout=left)
    return selftests_alone(host, facts, tables, tests, show=listener.tests)


def _go_on_if_asked() -> None:
    """End the process if nobody waits for its answer any more."""
    if _SELECTS and _has_come(0) and not os.read(sys.stdin.fileno(), 1):
        sys.exit(1)


def _has_come(seconds: float) -> bool:
    """Whether something comes on stdin within so many seconds, or its end."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])
