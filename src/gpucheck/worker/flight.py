"""What PyTorch's flight recorder knows of a collective that takes long: which this rank began.

The recorder keeps the last collectives of a process in memory. torch gives them as JSON, those of
NCCL from 2.5 on, those of gloo in later releases (2.13 was tried). It is asked once for each step
of the work, by a thread, after half of the time that the step may take: a rank that hangs cannot
ask by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from typing import Any, Callable, Dict, Tuple

Message = Dict[str, Any]
Torch = Any  # the module, of any version
Send = Callable[[Message], None]
Where = Callable[[], Tuple[str, int]]

_SIZE = "64"
"""Collectives that are kept, if the user has not said how many."""
_VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
"""Its name in newer releases, and the name before it."""
_DUMPS = {
    "nccl": ("_dump_nccl_trace_json", "_dump_fr_trace_json"),
    "gloo": ("_dump_fr_trace_json",),
}
_TICK = 0.25
_PHASES = ("connect", "enter", "leave")
_LONGEST = 100


def prepare() -> None:
    """Switch the recorder on; it reads this when it keeps its first collective."""
    for name in _VARIABLES:
        os.environ.setdefault(name, _SIZE)


def watch(torch: Torch, backend: str, seconds: float, where: Where, send: Send) -> None:
    """Start the thread that reports what was recorded, if this torch can tell.

    Args:
        torch: the module.
        backend: of the process group.
        seconds: how long a collective may take.
        where: returns the phase and the number of the collective.
        send: to the supervisor.
    """
    native = getattr(torch._C, "_distributed_c10d", None)  # noqa: SLF001  # no other name
    found = (getattr(native, name, None) for name in _DUMPS.get(backend, ()))
    dump = next((recorder for recorder in found if recorder is not None), None)
    if dump is not None:
        given = (dump, seconds / 2, where, send)
        threading.Thread(target=_report, args=given, daemon=True).start()


def _report(dump: Callable[[], Any], seconds: float, where: Where, send: Send) -> None:
    with contextlib.suppress(Exception):
        # SIGTERM makes the main thread print its stack, not this one.
        if hasattr(signal, "pthread_sigmask"):  # not on Windows
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        last, since, reported = where(), time.monotonic(), False
        while last[0] != "done":
            time.sleep(_TICK)
            now = where()
            if now != last:
                last, since, reported = now, time.monotonic(), False
            elif not reported and now[0] in _PHASES and time.monotonic() - since > seconds:
                reported = True
                send({"event": "flight", **read(dump())})


def read(text: Any) -> Message:  # noqa: ANN401  # str or bytes
    """Return the last collective of a record and the last that was completed; 0 is none."""
    entries = [entry for entry in json.loads(text).get("entries") or () if not entry.get("is_p2p")]
    last = entries[-1] if entries else {}
    done = [entry for entry in entries if entry.get("retired") or entry.get("state") == "completed"]
    return {
        "begun": int(last.get("collective_seq_id") or 0),
        "completed": max((int(entry["collective_seq_id"]) for entry in done), default=0),
        "operation": str(last.get("profiling_name", ""))[:_LONGEST],
        "state": str(last.get("state", ""))[:_LONGEST],
    }
