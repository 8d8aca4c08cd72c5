"""How long something takes on the device under test."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Iterator

from .bench import Bench

_MOST_CALLS = 1 << 16
_LEAST = {"quick": 0.02, "standard": 0.2, "stress": 1.0}


def synchronize(bench: Bench) -> None:
    """Wait until the device has done what it was told; a fault of a kernel shows here."""
    if bench.device.type == "cuda":
        bench.torch.cuda.synchronize(bench.device)


def seconds_per_call(bench: Bench, call: Callable[[], Any]) -> float:
    """Return the seconds that a call takes on average, after one to warm up.

    The number of calls is doubled until they take long enough for the level, so that the cost of
    starting a kernel is hidden behind those that run.
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
    """Let torch use the threads of the CPU that this process may have, and one again afterwards."""
    before = bench.torch.get_num_threads() if bench.threads else 0
    if bench.threads:
        bench.torch.set_num_threads(bench.threads)
    try:
        yield
    finally:
        if bench.threads:
            bench.torch.set_num_threads(before)


def release(bench: Bench) -> None:
    """Give cached GPU memory back, so that the next test finds it."""
    if bench.device.type == "cuda":
        bench.torch.cuda.empty_cache()


def by_level(bench: Bench, values: dict[str, Any]) -> Any:  # noqa: ANN401  # whatever is listed
    """Return the value for the level of this run."""
    return values.get(bench.level, values["quick"])
