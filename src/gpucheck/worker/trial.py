"""One rank in one step of a pre-flight: alone, or in a group that adds up coded numbers.

An order has ``trial`` (``alone`` or ``collective``), ``rank`` in the job, ``group`` (the ranks of
the group), ``index`` in the group and the group's ``size``, ``device``, ``backend``, ``store``
(``host`` and ``port``; None for the first rank, which opens the store and reports its port),
``address`` (the rank's own), ``connect_seconds``, ``env``, ``sizes`` in bytes, ``tests``,
``level``, ``seed``, and ``drill``.

The messages are ``stage``; ``phase`` (of ``facts/preflight.py``), with the number of the
collective; ``store`` with its ``port``; ``flight`` (``flight.py``); then one ``result``. After the
result the rank stays until the others have left their last collective, so that no rank loses a
healthy peer.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict

from . import alone, drill, flight
from .bench import Failed
from .errors import explain
from .together import StepProgress, Together, meaning, mind_no_clock

Message = Dict[str, Any]
Torch = Any  # the module, of any version
Send = Callable[[Message], None]


def run(torch: Torch, order: Message, notes: Message, send: Send) -> None:
    """Carry out an order and send its result."""
    os.environ.setdefault("NCCL_DEBUG", "WARN")  # its messages say more than its result code
    os.environ.update(order.get("env") or {})
    mind_no_clock()
    torch.set_num_threads(1)
    stops = drill.arm(torch, order)
    progress = StepProgress(send)
    start = time.perf_counter()
    result: Message = {"event": "result", "status": "passed", "kind": "", "detail": "", "data": {}}
    result["measurements"] = {}
    together = None
    try:
        _set_device(torch, order, progress)
        if order["trial"] == "alone":
            result["measurements"] = alone.run(torch, order, notes, send, progress)
            result["data"] = {"cpu_seconds": round(time.process_time(), 3)}
        else:
            together = Together(torch, order, send, progress)
            flight.prepare()
            flight.watch(
                torch,
                together.backend,
                float(order.get("seconds") or 60.0),
                lambda: (progress.phase, progress.collective),
                send,
            )
            together.connect()
            for stop in stops:
                stop()
            result["measurements"] = together.check()
            result["pace"] = together.pace
        progress.at("done")
    except Failed as failed:
        result.update(status="failed", kind=failed.kind, detail=failed.detail, data=failed.data)
    except Exception as error:  # noqa: BLE001  # whatever a broken torch raises is a result
        failure = explain(error) if together is None else meaning(error, progress.phase)
        result.update(status="failed", **failure)
    result.update(phase=progress.phase, collective=progress.collective)
    result["seconds"] = time.perf_counter() - start
    send(result)
    if together is not None and progress.phase == "done":
        together.part()


def _set_device(torch: Torch, order: Message, progress: StepProgress) -> None:
    """Make the GPU the current one and use it once, which creates the CUDA context."""
    progress.at("set-device")
    device = torch.device(order.get("device") or "cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)
        torch.cuda.synchronize(device)
