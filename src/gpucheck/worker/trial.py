"""One rank in one step of a pre-flight: alone, or in a group that adds up numbers."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict

from . import drill, pace, reference
from .bench import Bench, Failed
from .errors import explain
from .runner import run_tests
from .together import StepProgress, Together, meaning, mind_no_clock
from .words import say

# Tests one GPU, or one CPU process, by itself, and measures its speed.
#
# A rate is the best of many short repetitions: other load on the machine slows some of them down,
# but not all.

Message = Dict[str, Any]
Torch = Any  # the module, of any version
Send = Callable[[Message], None]

TESTS = ("device-placement", "cublas-matmul", "cudnn-convolution")
"""The tests of a GPU, where the order names none."""
_LONG, _TIMES = {"cpu": 0.001, "cuda": 0.005}, 25
"""Seconds of a repetition, and how many there are."""
# Sizes of what is measured. Chosen: a GPU is busy with 4096 (as the quick level of cublas-matmul),
# and eight ranks on the CPU share its cores.
_ROWS = {"cpu": 128, "cuda": 4096}
_BYTES = {"cpu": 1 << 18, "cuda": 1 << 25}
_CHECKED = 96  # chosen: a CPU multiplies this in no time, and eight ranks share its cores


def run_alone(
    torch: Torch, order: Message, notes: Message, send: Send, progress: StepProgress
) -> dict[str, float]:
    """Test the device of the order; return its rates by name; each name ends with the unit.

    Raises:
        Failed: a self-test has failed.
    """
    device = torch.device(order.get("device") or "cpu")
    progress.at("alone")
    bench = Bench(torch, device, seed=order.get("seed", 0), tell=send)
    if device.type == "cuda":
        _self_tests(torch, order, notes, send)
    else:
        _short_checks(bench)
    return _rates(bench)


def _self_tests(torch: Torch, order: Message, notes: Message, send: Send) -> None:
    """Run self-tests one after the other; stop at the first failure."""

    def hear(message: Message) -> None:
        event = message["event"]
        if event == "stage":
            send({"event": "stage", "text": f"{name}: {message['text']}"})
        elif event == "result" and message["status"] == "failed":
            data = {**message["data"], "test": name}
            raise Failed(message["kind"], f"{name}: {message['detail']}", data)

    seconds = float(order.get("seconds") or 60.0)
    for name in order.get("tests") or TESTS:
        run_tests(torch, {**order, "tests": [name], "seconds": {name: seconds}}, notes, hear)


def _short_checks(bench: Bench) -> None:
    """Check a matrix product of integers and a copy: tests short enough for every CPU process."""
    torch, source = bench.torch, reference.generator(bench.torch, bench.seed)
    bench.stage(say("a product of integers"))
    left, right = (reference.integers(torch, source, (_CHECKED, _CHECKED), 6) for _ in range(2))
    reference.same("fp32 product", torch.mm(left.float(), right.float()), left @ right, bench)
    bench.stage(say("a copy"))
    values = reference.integers(torch, source, (_BYTES["cpu"] // 8,), 50)
    reference.same("copy", torch.empty_like(values).copy_(values), values, bench)


def _rates(bench: Bench) -> dict[str, float]:
    torch, device = bench.torch, bench.device
    found = {"fp32 TFLOP/s": _product(bench, torch.float32)}
    if device.type == "cuda":
        found["fp16 TFLOP/s"] = _product(bench, torch.float16)
    count = _BYTES[device.type]
    here = torch.ones(count, dtype=torch.uint8, device=device)
    there = torch.empty_like(here)
    bench.stage(say("speed of copies"))
    found["copy GB/s"] = count / _seconds(bench, lambda: there.copy_(here)) / 1e9
    if device.type == "cuda":
        bench.stage(say("speed of copies of pinned memory"))
        pinned = torch.ones(count, dtype=torch.uint8).pin_memory()
        for name, target, origin in (
            ("pinned copy to the GPU GB/s", there, pinned),
            ("pinned copy from the GPU GB/s", pinned, here),
        ):
            seconds = _seconds(bench, lambda: target.copy_(origin, non_blocking=True))  # noqa: B023
            found[name] = count / seconds / 1e9
    return found


def _product(bench: Bench, dtype: Any) -> float:  # noqa: ANN401  # a torch.dtype
    torch, size = bench.torch, _ROWS[bench.device.type]
    bench.stage(say("speed of products"))
    left, right, product = (
        torch.ones(size, size, dtype=dtype, device=bench.device) for _ in range(3)
    )
    return 2.0 * size**3 / _seconds(bench, lambda: torch.mm(left, right, out=product)) / 1e12


def _seconds(bench: Bench, call: Callable[[], Any]) -> float:
    """Return how many seconds a call takes in the fastest repetition."""
    long = _LONG[bench.device.type]
    once = min(_timed(bench, call, 1) for _ in range(4))  # the first ones warm up
    calls = max(1, round(long / once))
    return min(_timed(bench, call, calls) for _ in range(_TIMES)) / calls


def _timed(bench: Bench, call: Callable[[], Any], calls: int) -> float:
    """Return how many seconds this many calls take; on a GPU, measured by the GPU's own clock."""
    if bench.device.type == "cuda":
        begin, end = (bench.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return max(float(begin.elapsed_time(end)) / 1e3, 1e-9)
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return max(time.perf_counter() - start, 1e-9)


# One rank in one step of a pre-flight: alone, or in a group that adds up coded numbers.
#
# An order has ``trial`` (``alone`` or ``collective``), ``rank`` in the job, ``group`` (the ranks of
# the group), ``index`` in the group and the group's ``size``, ``device``, ``backend``, ``store``
# (``host`` and ``port``; None for the first rank, which opens the store and reports its port),
# ``address`` (the rank's own), ``connect_seconds``, ``env``, ``sizes`` in bytes, ``tests``,
# ``level``, ``seed``, and ``drill``.
#
# The messages are ``stage``; ``phase`` (of ``facts/preflight.py``), with the number of the
# collective; ``store`` with its ``port``; ``flight`` (``pace.py``); then one ``result``. After
# the result the rank stays until the others have left their last collective, so that no rank loses
# a healthy peer.


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
            result["measurements"] = run_alone(torch, order, notes, send, progress)
            result["data"] = {"cpu_seconds": round(time.process_time(), 3)}
        else:
            together = Together(torch, order, send, progress)
            pace.prepare()
            pace.watch(
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
