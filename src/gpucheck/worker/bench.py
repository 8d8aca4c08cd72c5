"""What is passed to a self-test, and the two exceptions by which it ends without passing.

A self-test is a module of ``tests/`` with these names:

- ``NAME``: its name in reports and on the command line; a contract.
- ``PER``: ``"gpu"`` runs it once for each GPU (tests of one GPU share a process), ``"machine"``
  once for the machine, ``"ranks"`` once in each of ``world_size`` processes at the same time.
- ``LEVELS``: the levels it belongs to; one that is named by ``--tests`` runs at any level.
- ``ABOUT``: one line for ``gpucheck list``.
- ``SECONDS`` (optional): a longer deadline than the usual one, by level.
- ``run(bench)``: returns when all is well; raises :class:`Failed` or :class:`Skipped`.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, NoReturn, Sequence, Union

from .words import with_said

Message = Dict[str, Any]
Number = Union[int, float]

QUICK_MEMORY = 256 * 1024 * 1024
"""Bytes that all tests of the quick level together may use on a GPU."""


class Failed(Exception):  # noqa: N818  # an outcome, not an error of ours
    """The test has found a fault.

    Args:
        kind: what is wrong, in a word that rules know: ``wrong-value``, ``not-finite``,
            ``wrong-shape``, ``cudnn-not-used``, ``out-of-memory``, ``slow``, ``nccl-error`` ...
        detail: one sentence with the figures.
        data: more, as JSON-like data.
    """

    def __init__(self, kind: str, detail: str, data: Message | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.data = data or {}


class Skipped(Exception):  # noqa: N818  # an outcome, not an error of ours
    """The test does not apply here; the reason is one sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _to_nobody(_message: Message) -> None:
    """Discard a report: there is no launcher outside a worker."""


class Bench:
    """The surroundings of a self-test: torch, the devices, the limits, and the channel for reports.

    Attributes:
        torch: the module.
        device: the ``torch.device`` under test.
        devices: every device that this test may use, for tests that need several.
        level: ``quick``, ``standard`` or ``stress``.
        rank, world_size: of a test that runs in several processes; else 0 and 1.
        memory_limit: bytes that this test may take on one device.
        seed: for every random number of the test.
        folder: a folder of this step, shared by its ranks, removed afterwards; "" without one.
        threads: how many CPU threads torch uses while a speed is measured; 0 keeps torch's default.
        deadline: the time of ``time.monotonic()`` at which the launcher stops waiting.
        expect_gpu: whether torch must find a GPU: the machine has one and torch is a CUDA build.
        notes: what the harness knows besides, such as ``import_seconds``.
        measurements, data: what was measured, and further facts for rules, as JSON-like data.
        remark: one sentence that reports show beside a passed test.
    """

    def __init__(  # noqa: PLR0913  # all that a test may want to know of where it runs
        self,
        torch: Any,  # noqa: ANN401  # the module, of any version
        device: Any = "cpu",  # noqa: ANN401  # a torch.device or its name
        devices: Sequence[Any] = (),
        *,
        level: str = "quick",
        rank: int = 0,
        world_size: int = 1,
        memory_limit: int = QUICK_MEMORY,
        seed: int = 0,
        folder: str = "",
        threads: int = 0,
        deadline: float = math.inf,
        expect_gpu: bool = False,
        notes: Message | None = None,
        tell: Callable[[Message], None] = _to_nobody,
    ) -> None:
        self.torch = torch
        self.device = torch.device(device)
        self.devices: list[Any] = [torch.device(name) for name in devices or (device,)]
        self.level = level
        self.rank = rank
        self.world_size = world_size
        self.memory_limit = memory_limit
        self.seed = seed
        self.folder = folder
        self.threads = threads
        self.deadline = deadline
        self.expect_gpu = expect_gpu
        self.notes: Message = notes or {}
        self.measurements: list[Message] = []
        self.data: Message = {}
        self.remark = ""
        self._tell = tell

    def stage(self, text: str) -> None:
        """Name the dangerous step that comes next, so that a crash or a hang names it."""
        self._tell(with_said({"event": "stage", "text": text}, "text"))

    def measure(
        self,
        name: str,
        value: Number,
        unit: str,
        bound: Number | None = None,
        bound_from: str = "",
    ) -> None:
        """Note a measured number, the bound that it is compared with, and the origin of the bound.

        This judges nothing; ``require`` does. A value that is not finite is noted as unknown.
        """
        measured: Message = {
            "name": name,
            "value": _finite(value),
            "unit": unit,
            "bound": None if bound is None else _finite(bound),
            "bound_from": bound_from,
        }
        self.measurements.append(with_said(measured, "bound_from"))

    def require(
        self,
        ok: Any,  # noqa: ANN401  # a bool, or a tensor of one
        kind: str,
        detail: str,
        data: Message | None = None,
    ) -> None:
        """Fail with this kind and detail unless ``ok``."""
        if not ok:
            raise Failed(kind, detail, data)

    def skip(self, reason: str) -> NoReturn:
        """End the test because it does not apply here."""
        raise Skipped(reason)

    @contextlib.contextmanager
    def own_folder(self, prefix: str) -> Iterator[str]:
        """Make a folder for the files of one test.

        Windows does not remove the file of a library that is loaded. What is left goes with the
        folder of the step, once this process has ended.
        """
        folder = tempfile.mkdtemp(prefix=prefix, dir=self.folder or None)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def seconds_left(self) -> float:
        """Return how many seconds remain before the launcher stops waiting."""
        return self.deadline - time.monotonic()


def _finite(value: Number) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


# Measures how long a computation takes on the device under test.

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
