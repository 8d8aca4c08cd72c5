"""What the pre-flight of a job is to do, and how long each part of it may take."""

import math
from collections.abc import Mapping

import msgspec

from gpucheck.cluster.drill import Drill
from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.cluster.launchers.entrance import TaskPlace
from gpucheck.cluster.model import Backend
from gpucheck.facts.selftests import Level

_ARRIVAL = _IMPORT = _CONNECT = 60.0
"""Seconds for all tasks to arrive (pods may be late), to import torch, and to connect."""
_SHARE, _MOST = 0.2, 0.4
"""The share of a long time limit that each of these gets, and the most of a short one."""
_START = 30.0
_ALONE: dict[Level, float] = {"quick": 30.0, "standard": 120.0, "stress": 300.0}
"""Seconds for one test of a GPU alone."""


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What all tasks of a job do. Times in seconds; ``begun`` and ``end`` are of ``monotonic()``.

    ``per_task`` is the number of ranks of each task, where it is given (``--ranks``; 1 under
    torchrun). Otherwise a task has one rank for each GPU that torch sees, if it is alone on its
    node or if no other task there sees its GPUs; each of several tasks that share GPUs has one
    rank. ``hosts`` has the host of each task, where the launcher gives them. A drill keeps
    ``kept_away`` tasks from registering.
    """

    tasks: int
    cuda: bool
    """Whether ranks are GPUs, or processes on the CPU over gloo."""
    per_task: int | None = None
    hosts: Mapping[int, str] = {}
    kept_away: frozenset[int] = frozenset()
    begun: float = 0.0
    end: float = math.inf
    arrival: float = _ARRIVAL
    """How long tasks are waited for."""
    import_seconds: float = _IMPORT
    """How long importing torch may take, and then starting CUDA."""
    connect: float = _CONNECT
    start: float = _START
    set_device: float = _CONNECT
    alone: float = 30.0
    sizes: tuple[int, ...] = ()
    """Bytes; () leaves them to the worker, which knows its device."""
    level: Level = "quick"
    seed: int = 0
    python: str = ""
    """The target interpreter."""
    chosen_by: str = ""
    """How it was chosen."""
    port: int | None = None
    token: str = ""
    drill: Drill = Drill()
    baseline: Baseline | None = None
    """What this node's GPUs reached before; None when nobody compares."""
    takes_signals: bool = True
    """Whether this process is gpucheck's own, so that a SIGTERM means the pre-flight."""

    @property
    def backend(self) -> Backend:
        """What the collectives go over."""
        return "nccl" if self.cuda else "gloo"

    def within(self, timeout: float, place: TaskPlace, ranks: int | None = None) -> "JobPlan":
        """Return the plan of the job that a launcher has started, within a time limit.

        Args:
            timeout: seconds for the whole run.
            place: what the launcher says.
            ranks: those of each task on the CPU.
        """
        per_task = None if self.cuda else ranks
        return msgspec.structs.replace(
            self,
            per_task=(per_task or 1) if place.one_gpu else per_task,
            hosts=dict(enumerate(place.hosts)),
            kept_away=frozenset(rank // (ranks or 1) for rank in self.drill.absent),
            end=self.begun + timeout,
            arrival=arrival_seconds(timeout),
            import_seconds=_limit(_IMPORT, timeout),
            connect=_limit(_CONNECT, timeout),
            set_device=_limit(_CONNECT, timeout),
            start=min(_START, timeout / 5),
            alone=min(_ALONE[self.level], timeout / 5),
        )


def arrival_seconds(timeout: float) -> float:
    """Return how long all tasks of a run with this time limit may take to arrive."""
    return _limit(_ARRIVAL, timeout)


def _limit(usual: float, timeout: float) -> float:
    """Return a deadline that fits the time limit of the run: longer runs wait longer."""
    return min(max(usual, _SHARE * timeout), _MOST * timeout)
