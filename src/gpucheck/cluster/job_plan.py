"""What the pre-flight of a job is to do, and how long each part of it may take."""

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
_FIRST = 60.0
"""Seconds for the first collective with the usual time limit; later rounds have a quarter."""
_FEW, _SHARE_OF_FEW = 256, 0.75
"""Up to so many tasks connect faster, and have this share of the time for it. So a rank that hangs
is named within a minute."""
_ALONE_STEP = 30.0
_ALONE: dict[Level, float] = {"quick": 30.0, "standard": 120.0, "stress": 300.0}
"""Seconds for one test of a GPU alone."""


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What all tasks of a job do. Times in seconds; ``begun`` and ``end`` are of ``monotonic()``.

    The steps and the judgement follow it, too. Of the drill they know only that there is one.

    ``per_task`` is the number of ranks of each task, where it is given (``--ranks``; 1 under
    torchrun). Otherwise a task has one rank for each GPU that torch sees, if it is alone on its
    node or if no other task there sees its GPUs; each of several tasks that share GPUs has one
    rank. ``hosts`` has the host of each task, where the launcher gives them. A drill keeps
    ``kept_away`` tasks from registering.
    """

    tasks: int = 1
    cuda: bool = False
    """Whether ranks are GPUs, or processes on the CPU over gloo."""
    per_task: int | None = None
    hosts: Mapping[int, str] = {}
    kept_away: frozenset[int] = frozenset()
    begun: float = 0.0
    timeout: float = 300.0
    """For the whole run."""
    arrival: float = _ARRIVAL
    """How long tasks are waited for."""
    import_seconds: float = _IMPORT
    """How long importing torch may take, and then starting CUDA."""
    connect: float = _CONNECT
    start: float = _START
    set_device: float = _CONNECT
    alone: float = 30.0
    alone_step: float = 30.0
    """Deadline of a step of tests without communication."""
    first_collective: float = 60.0
    """Deadline of a collective over all ranks, which sets everything up."""
    least_collective: float = 15.0
    """Deadline in the rounds; five times the slowest group that passed, if that is longer."""
    tests: tuple[str, ...] = ()
    """The self-tests of each GPU alone."""
    links: bool = False
    """Whether to test every link between nodes: that takes one round for each node but one."""
    largest_world: int = 4000
    """With more ranks than this, pairs are tried before all together."""
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

    @property
    def end(self) -> float:
        """When the whole run must be over."""
        return self.begun + self.timeout

    def within(self, place: TaskPlace, ranks: int | None = None) -> "JobPlan":
        """Return the plan of the job that a launcher has started, within its time limit.

        Args:
            place: what the launcher says.
            ranks: those of each task on the CPU.
        """
        per_task, timeout = None if self.cuda else ranks, self.timeout
        share, usual = timeout / 4, max(_FIRST, timeout / 5)
        first = usual if place.tasks > _FEW else _SHARE_OF_FEW * usual
        return msgspec.structs.replace(
            self,
            per_task=(per_task or 1) if place.one_gpu else per_task,
            hosts=dict(enumerate(place.hosts)),
            kept_away=frozenset(rank // (ranks or 1) for rank in self.drill.absent),
            arrival=arrival_seconds(timeout),
            import_seconds=_limit(_IMPORT, timeout),
            connect=_limit(_CONNECT, timeout),
            set_device=_limit(_CONNECT, timeout),
            start=min(_START, timeout / 5),
            alone=min(_ALONE[self.level], timeout / 5),
            alone_step=min(_ALONE_STEP, share),
            first_collective=min(first, share),
            least_collective=min(usual / 4, share / 2),
        )


def arrival_seconds(timeout: float) -> float:
    """Return how long all tasks of a run with this time limit may take to arrive."""
    return _limit(_ARRIVAL, timeout)


def _limit(usual: float, timeout: float) -> float:
    """Return a deadline that fits the time limit of the run: longer runs wait longer."""
    return min(max(usual, _SHARE * timeout), _MOST * timeout)
