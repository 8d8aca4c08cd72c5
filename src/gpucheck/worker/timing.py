"""Measures how long a computation takes on the device under test."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Iterator

from .bench import Bench

_MOST_CALLS = 1 << 16  # chosen: a call that is so fast is measured well by then
# Seconds of a measurement. Chosen: short at the quick level, whose rates nothing judges.
_LEAST = {"quick": 0.02, "standard": 0.2, "stress": 1.0}


def synchronize(bench: Bench) -> None:
    """Wait until the device has finished all work; a fault in a kernel is reported here."""
    if bench.device.type == "cuda":
        bench.torch.cuda.synchronize(bench.device)


def seconds_per_call(bench: Bench, call: Callable[[], Any]) -> float:
    """Return how many seconds a call takes on average, after one call to warm up.

    The number of calls is doubled until they take long enough for the level. Starting a kernel then
    costs no extra time, because earlier kernels are still running.
    """
    least = _LEAST.get(bench.level, _LEAST["quick"])
    with _all_threads(bench):
        call()
        synchronize(bench)
        calls = 1
        while True:
            start = time.perf_counter()
            for _ in range(calls):
                call()
            synchronize(bench)
            seconds = time.perf_counter() - start
            if seconds >= least or calls >= _MOST_CALLS:
                return max(seconds, 1e-9) / calls
            calls *= 2


@contextlib.contextmanager
def _all_threads(bench: Bench) -> Iterator[None]:
    """Let torch use as many CPU threads as this process may; afterwards one again."""
    before = bench.torch.get_num_threads() if bench.threads else 0
    if bench.threads:
        bench.torch.set_num_threads(bench.threads)
    try:
        yield
    finally:
        if bench.threads:
            bench.torch.set_num_threads(before)


def release(bench: Bench) -> None:
    """Release cached GPU memory for the next test."""
    if bench.device.type == "cuda":
        bench.torch.cuda.empty_cache()


def by_level(bench: Bench, values: dict[str, Any]) -> Any:  # noqa: ANN401  # whatever is listed
    """Return the value for the level of this run."""
    return values.get(bench.level, values["quick"])
