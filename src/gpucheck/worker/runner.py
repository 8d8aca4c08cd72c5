"""Runs self-tests one after the other in one process, and reports each as soon as it ends."""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any, Callable, Dict

from . import selftests
from .bench import QUICK_MEMORY, Bench, Failed, Skipped
from .errors import explain
from .words import with_said

Message = Dict[str, Any]
Send = Callable[[Message], None]

# docs/selftests/README.md promises it, in the table of levels; quick has 256 MiB. On a CPU the
# memory is that of other programs as well.
_SHARE_OF_FREE = {"standard": 0.25, "stress": 0.9}
_MOST_ON_CPU = {"standard": 1 << 30, "stress": 4 << 30}


def run_tests(torch: Any, order: Message, notes: Message, send: Send) -> None:  # noqa: ANN401  # the module
    """Run the tests of an order, in the sequence that it gives.

    After a failed test on a GPU the process runs no further test, because a CUDA error may persist
    in its context. The launcher starts a fresh process for the rest.
    """
    os.environ.setdefault("NCCL_DEBUG", "WARN")  # its messages say more than its result code
    os.environ.update(order.get("env") or {})
    # Values are checked on small tensors: more threads would mostly wait for each other, which on a
    # busy machine takes five times as long. Speed is measured with all of them.
    torch.set_num_threads(1)
    names: list[str] = order["tests"]
    for at, name in enumerate(names):
        ok = _run_one(torch, name, order, notes, send)
        is_last = at + 1 == len(names)
        if not ok and not is_last and str(order.get("device", "cpu")).startswith("cuda"):
            return


def _run_one(torch: Any, name: str, order: Message, notes: Message, send: Send) -> bool:  # noqa: ANN401
    """Run one test and send its result; return whether the process may run further tests."""
    send({"event": "begin", "test": name, "deadline": _seconds(name, order)})
    start = time.perf_counter()
    result: Message = {"event": "result", "test": name, "kind": "", "detail": "", "data": {}}
    bench = None
    try:
        bench = _bench(torch, name, order, notes, send)
        selftests.load(name).run(bench)
        result.update(status="passed", detail=bench.remark)
    except Skipped as skipped:
        result.update(status="skipped", detail=skipped.reason)
    except Failed as failed:
        result.update(status="failed", kind=failed.kind, detail=failed.detail, data=failed.data)
    except Exception as error:  # noqa: BLE001  # whatever a broken torch raises is a result
        result.update(status="failed", **explain(error))
    result["seconds"] = time.perf_counter() - start
    if bench is not None:
        result["measurements"] = bench.measurements
        result["data"] = {**bench.data, **result["data"]}
    send(with_said(result, "detail"))
    return result["status"] in ("passed", "skipped")


def _bench(torch: Any, name: str, order: Message, notes: Message, send: Send) -> Bench:  # noqa: ANN401
    device = order.get("device") or "cpu"
    level = order.get("level") or "quick"
    if str(device).startswith("cuda"):
        send({"event": "stage", "text": f"torch.cuda.set_device({device})"})
        torch.cuda.set_device(torch.device(device))
    return Bench(
        torch,
        device,
        order.get("devices") or (),
        level=level,
        rank=order.get("rank", 0),
        world_size=order.get("world_size", 1),
        memory_limit=_memory_limit(torch, device, level),
        seed=order.get("seed", 0),
        folder=order.get("folder") or "",
        threads=int(order.get("threads") or 0),
        deadline=time.monotonic() + _seconds(name, order),
        expect_gpu=bool(order.get("expect_gpu")),
        notes=notes,
        tell=send,
    )


def _seconds(name: str, order: Message) -> float:
    return float((order.get("seconds") or {}).get(name, 60.0))


def _memory_limit(torch: Any, device: str, level: str) -> int:  # noqa: ANN401
    """Return the bytes that a test may use: few at the quick level, else a share of free memory."""
    share = _SHARE_OF_FREE.get(level)
    if share is None:
        return QUICK_MEMORY
    if device.startswith("cuda"):
        free, _total = torch.cuda.mem_get_info(torch.device(device))
        return int(free * share)
    return min(_MOST_ON_CPU[level], int(_free_on_cpu() * share))


def _free_on_cpu() -> int:
    """Return the kernel's count of free memory in bytes; 1 GiB if the kernel does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 30


# The orders that a worker accepts: self-tests, a trial of a pre-flight, or a census.

Act = Callable[[Any, Message, Message, Callable[[Message], None]], None]
"""Takes torch, the order, what the process knows, and a function that sends a message."""

_PARTS = ("trial", "census")


def action(order: Message) -> Act:
    """Return the function that carries out an order.

    No compiled file is written to gpucheck's own folder.
    """
    part = next((name for name in _PARTS if name in order), None)
    if part is None:
        return run_tests
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        act: Act = importlib.import_module("." + part, __package__).run
    finally:
        sys.dont_write_bytecode = before
    return act
