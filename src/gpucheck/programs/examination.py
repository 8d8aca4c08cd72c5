"""Has the machine examined by a fresh process: docs/decisions/0016 has the reasons."""

import os
import sys
import time
from collections.abc import Callable

import msgspec

from gpucheck.facts.snapshot import Snapshot, decode
from gpucheck.interface.errors import AskError, NoAnswerError, RefusedError, UsageError, printable
from gpucheck.language import from_said, say
from gpucheck.machine import LiveHost
from gpucheck.machine.supervised import TERMINATE, Supervised, wait
from gpucheck.programs.examiner import Order, Reply

_MODULE = "gpucheck.programs.examiner"
_TICK = 0.1  # seconds; only how late a deadline or the end of the process is seen, as data wakes it
_GRACE = 20.0
"""Seconds beyond its own time limit: it has to start, to end its children and to answer."""
_FAREWELL = 5.0
"""Seconds to end its children when it is told to end."""
# Bytes. Chosen: four times what the child of one probe may answer (machine/children.py). The
# snapshot of a machine without a GPU has 46 KB; only what is no reply comes near the limit.
_LONGEST = 256 << 20

_BOOTSTRAP = (
    "import sys; sys.path[:] = [*filter(None, sys.path), sys.argv[1]]; "
    "import {module} as module; module.main()"
)


def examined(order: Order, seconds: float) -> Snapshot:
    """Return what a fresh process finds on this machine within so many seconds.

    Raises:
        UsageError, RefusedError: what was asked makes no sense, or cannot be used.
        NoAnswerError: the process gave no answer.
    """
    encoded_order = _encoded(order)
    command = _own_command(_MODULE)
    if not command:
        raise NoAnswerError(say("the path of the running Python is not known (sys.executable)"))
    answer = LiveHost().supervise(command)
    if answer.value is None:
        raise NoAnswerError(say("{source}: {why}", source=command[0], why=answer.problem))
    program, mark = answer.value, os.urandom(16).hex().encode()
    try:
        program.send(mark + b"\n" + encoded_order + b"\n")
        received = _heard(program, mark, time.monotonic() + seconds + _GRACE)
        return _understood(received, mark, program.printed)
    finally:
        _end(program)


def _encoded(order: Order) -> bytes:
    try:
        return msgspec.json.encode(order)
    except UnicodeEncodeError as error:  # a name of bytes that are no UTF-8
        raise UsageError(
            say("{name} cannot be written in UTF-8.", name=repr(printable(error.object)))
        ) from error


def _heard(program: Supervised, mark: bytes, end: float) -> bytes:
    """Return what it writes until its reply is complete or it has ended."""
    received = bytearray()
    while time.monotonic() < end and len(received) <= _LONGEST:
        wait([program], _TICK)
        has_ended = program.status() is not None
        received += program.stdout()
        if has_ended or received.endswith(mark):
            return bytes(received)
    raise NoAnswerError(say("the process that examines the machine did not answer in time"))


def _understood(received: bytes, mark: bytes, printed: Callable[[], str]) -> Snapshot:
    parts = received.split(mark)
    if len(parts) != 3:  # noqa: PLR2004  # around the reply
        last = (printed().strip().splitlines() or [""])[-1]
        raise NoAnswerError(
            say(
                "the process that examines the machine ended without an answer: {why}",
                why=printable(last) or say("it printed nothing"),
            )
        )
    try:
        reply = msgspec.msgpack.decode(parts[1], type=Reply)
        if reply.refused is None and not reply.fault:
            return decode(reply.snapshot, is_own=True)
    except (ValueError, RecursionError) as error:
        raise NoAnswerError(
            say(
                "the answer of the process that examines the machine is damaged: {why}",
                why=printable(str(error)),
            )
        ) from error
    raise _error_in(reply)


def _error_in(reply: Reply) -> AskError:
    if reply.fault:
        fault = printable(reply.fault)
        return NoAnswerError(
            say("a fault of gpucheck itself, please report it: {error}", error=fault)
        )
    kind = UsageError if reply.usage else RefusedError
    return kind(from_said(reply.refused))


def _end(program: Supervised) -> None:
    """End the process, with everything that it has started, whatever happened here."""
    if program.status() is None:
        program.signal(TERMINATE)
        end = time.monotonic() + _FAREWELL
        while program.status() is None and time.monotonic() < end:
            wait([program], _TICK)
    program.abandon()


# It finds the same gpucheck, and nothing in the current folder takes the place of a module.
def _own_command(module: str) -> list[str]:
    """Return the command that runs ``main()`` of a module; [] if this Python is not known."""
    if not sys.executable:
        return []
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
    beside = os.path.dirname(package)  # noqa: PTH120  # pathlib would cost two milliseconds
    return [sys.executable, "-c", _BOOTSTRAP.format(module=module), beside]
