"""What the end of a worker's process means, and which part of its output to keep."""

import re
from typing import Any, Literal

import msgspec

from gpucheck.language import say
from gpucheck.machine.exit_statuses import exit_status, signal_name
from gpucheck.machine.worker_pool.worker_messages import Message

_PRINTED, _BEFORE = 3000, 600
"""Characters of the last output, and of what came before a stack: the error that led to it."""
_KILLED = 9  # SIGKILL, which the kernel sends where memory runs out
# NCCL has no other mark for its own errors; the rest of a line is its sentence.
_NCCL_WARN = re.compile(r"NCCL WARN ([^\n]{1,300})")
_STACK = "Current thread"
_PEER_LOST = (
    "Watchdog caught collective operation timeout",
    "remote process exited",
    "NCCL communicator was aborted",
    "Connection closed by remote peer",
    "Connection closed by peer",
    "Connection reset by peer",
)
"""Messages of NCCL, gloo and torch's watchdog if another rank is gone or does not answer."""
_OWN_FAULT = ("CUDA error", "Cuda failure", "CUDA out of memory")
"""Messages with which the watchdog ends a process because of its own GPU."""


class WorkerExit(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended before it had finished its work.

    ``kind`` is ``timed-out``, ``signal``, ``exit-status`` or ``no-answer``.
    """

    status: Literal["timed-out", "crashed"]
    kind: str
    detail: str
    data: dict[str, Any]


def worker_exit(message: Message, stage: str, *, killed: str = "") -> WorkerExit:
    """Return the meaning of the message ``ended``.

    Args:
        message: the message of the process, or of the zygote about the process.
        stage: its next dangerous step; "" if unknown.
        killed: why gpucheck ended it; "" if it ended by itself.
    """
    printed = str(message.get("printed", ""))
    data = last_words(printed)
    if killed:
        return WorkerExit(status="timed-out", kind="timed-out", detail=killed, data=data)
    number, status = message.get("signal"), message.get("status")
    if number:
        name = signal_name(number)
        detail = _killed_by(name, stage)
        if number == _KILLED:
            detail = say(
                "{killed} (the kernel does this when the memory of the host runs out)",
                killed=detail,
            )
        return _crashed("signal", detail, {**data, "signal": name})
    if status:
        last = next((line for line in reversed(printed.splitlines()) if line.strip()), "")
        detail = _ended_with(status, stage)
        if last:
            detail = say("{source}: {why}", source=detail, why=last.strip()[:300])
        return _crashed("exit-status", detail, {**data, "exit_status": status})
    if stage:
        detail = say("its process ended without an answer in: {stage}", stage=stage)
        return _crashed("no-answer", detail, data)
    return _crashed("no-answer", say("its process ended without an answer"), data)


def _killed_by(name: str, stage: str) -> str:
    if stage:
        return say("killed by {signal} in: {stage}", signal=name, stage=stage)
    return say("killed by {signal}", signal=name)


def _ended_with(status: int, stage: str) -> str:
    shown = exit_status(status)
    if stage:
        return say(
            "its process ended with exit status {status} in: {stage}", status=shown, stage=stage
        )
    return say("its process ended with exit status {status}", status=shown)


def last_words(printed: str) -> dict[str, Any]:
    """Return the useful output of a process: NCCL's warnings and the last lines."""
    data: dict[str, Any] = {}
    if warnings := _NCCL_WARN.findall(printed):
        data["nccl_warnings"] = warnings[-5:]
    if lost := _lost_peer(printed):
        data["lost_peer"] = lost
    if printed.strip():
        # A stack that was dumped at the end is read from its top: the innermost call comes first.
        at = printed.rfind(_STACK)
        data["printed"] = printed[at : at + _PRINTED] if at >= 0 else printed[-_PRINTED:]
        if at >= 0 and (before := printed[:at].strip()):
            data["before"] = before[-_BEFORE:]
    return data


def _crashed(kind: str, detail: str, data: dict[str, Any]) -> WorkerExit:
    return WorkerExit(status="crashed", kind=kind, detail=detail, data=data)


def _lost_peer(printed: str) -> str:
    """Return the line in which a process says that another rank is gone; "" if there is none."""
    if any(words in printed for words in _OWN_FAULT):
        return ""
    lines = printed.splitlines()
    found = (line.strip() for line in lines if any(words in line for words in _PEER_LOST))
    return next(found, "")[:300]
