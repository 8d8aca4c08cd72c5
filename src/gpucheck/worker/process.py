"""The two roles of a process in the target interpreter: a worker, or a zygote of workers."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import Any, Dict, NoReturn

from .channel import Channel, take_stdout
from .errors import explain
from .lifeline import die_with_parent, exit_without_writer, show_stack_when_killed
from .runner import action
from .zygote import Zygote

Message = Dict[str, Any]


def main(mark: str, part: str) -> NoReturn:
    """Be a ``worker`` (one order, read from stdin) or a ``zygote`` (many)."""
    channel = take_stdout(mark)
    die_with_parent()
    show_stack_when_killed()
    status = 0
    try:
        _work(channel, part)
    except Exception:  # noqa: BLE001  # as Python would
        sys.excepthook(*sys.exc_info())
        status = 1
    # Everything is said. What a library has left behind (threads, an atexit) may fail or hang.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _work(channel: Channel, part: str) -> None:
    try:
        torch, notes = import_torch(channel)
    except Exception as error:  # noqa: BLE001  # that is the finding
        channel.send({"event": "import-failed", **explain(error)})
        return
    if part == "zygote":
        Zygote(torch, notes, channel).serve()
    channel.send({"event": "ready", "notes": notes})
    order: Message = json.loads(sys.stdin.readline())
    exit_without_writer()
    action(order)(torch, order, notes, channel.send)
    channel.send({"event": "end"})


def import_torch(channel: Channel) -> tuple[Any, Message]:
    """Import torch and nothing else; return the module and the seconds that the import took.

    Raises:
        Exception: whatever importing it raises.
    """
    channel.send({"event": "stage", "text": "import torch"})
    start = time.perf_counter()
    import torch  # noqa: PLC0415  # what is examined

    seconds = time.perf_counter() - start
    return torch, {"import_seconds": seconds, "torch": str(getattr(torch, "__version__", ""))}
