"""What the pre-flight of a job is to do, how long each part of it may take, and its drill.

A drill is faults that an administrator injects by ``--drill``, to see that they are found. The
worker of one rank makes the fault (``worker/drill.py``), except ``absent``: there that rank's task
does not take part.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.model import Backend
from gpucheck.facts.selftests import Level
from gpucheck.language import in_turn, say
from gpucheck.tables.meant_products import did_you_mean

Name = Literal["hang", "wrong", "slow", "crash", "stop", "absent", "link"]
FORMS = (
    "hang:rank=3, wrong:rank=5, slow:rank=2,factor=5, crash:rank=1, stop:rank=4, absent:rank=6, "
    "link:0-3"
)
_FACTOR, _LEAST_FACTOR, _MOST_FACTOR = 5.0, 1.1, 1000.0
"""The usual factor leaves a fifth of the speed: half of what a CPU rank may lose unaccused."""
_LONGEST = 80
"""Characters of a fault that is quoted. Chosen: one line of a terminal."""
_LINK = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
_NUMBER = re.compile(r"[0-9]{1,6}")
"""Ranks have up to six digits: a job has a million at most."""
_ARRIVAL = _IMPORT = _CONNECT = 60.0
"""Seconds for all tasks to arrive (pods may be late), to import torch, and to connect."""
_SHARE, _MOST = 0.2, 0.4
"""The share of a long time limit that each of these gets, and the most of a short one."""
_START = 30.0
"""Seconds for a worker to start. Chosen: it is forked, so only a busy node needs as much."""
_FIRST = 60.0
"""Seconds for the first collective with the usual time limit; later rounds have a quarter."""
_FEW, _SHARE_OF_FEW = 256, 0.75
"""Up to so many tasks connect faster, and have this share of the time for it. So a rank that hangs
is named within a minute."""
_ALONE: dict[Level, float] = {"quick": 30.0, "standard": 120.0, "stress": 300.0}
"""Seconds for one test of a GPU alone."""


class DrillFault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, in the worker of ``rank``; ``other`` is the far end of a link."""

    name: Name
    rank: int
    factor: float | None = None
    other: int | None = None


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """All faults of a run; ``text`` as they were asked for."""

    faults: tuple[DrillFault, ...] = ()
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.faults)

    @property
    def absent(self) -> frozenset[int]:
        """The ranks that are to stay away."""
        return frozenset(fault.rank for fault in self.faults if fault.name == "absent")

    def for_worker(self, rank: int) -> dict[str, Any] | None:
        """Return the fault that the worker of a rank must make, or None."""
        found = [
            {
                "fault": fault.name,
                **({"factor": fault.factor} if fault.factor is not None else {}),
                **({"other": fault.other} if fault.other is not None else {}),
            }
            for fault in self.faults
            if fault.rank == rank and fault.name != "absent"
        ]
        return {"faults": found} if found else None

    def problem(self, ranks: int) -> str:
        """Return in a sentence which fault names a rank that does not exist, or ""."""
        for fault in self.faults:
            highest = max(fault.rank, fault.other or 0)
            if highest >= ranks:
                if ranks > 1:
                    return say(
                        "--drill names rank {rank}, but the ranks are 0 to {last}",
                        rank=highest, last=ranks - 1,
                    )  # fmt: skip
                return say("--drill names rank {rank}, but the only rank is 0", rank=highest)
        return ""

    def lacks_task(self, tasks: int) -> str:
        """Return in a sentence which absent rank has no task, or "" if all have one.

        This is for GPUs, where the number of ranks is unknown before a task has looked.
        """
        highest = max(self.absent, default=0)
        if highest < tasks:
            return ""
        return say(
            "--drill absent:rank={rank}: on GPUs the whole task of that number stays away, and "
            "the last task is {last}",
            rank=highest,
            last=tasks - 1,
        )


def parse_drill(texts: Sequence[str]) -> Drill:
    """Read the values of ``--drill``, one fault each.

    Raises:
        ValueError: a value is not understood. The sentence says which values there are.
    """
    return Drill(
        faults=tuple(_fault(text) for text in texts), text=" ".join(text.strip() for text in texts)
    )


def _fault(text: str) -> DrillFault:
    name, _colon, rest = text.strip().partition(":")
    known = get_args(Name)
    if name not in known:
        refused = say("--drill {text}: a drill is one of {forms}.", text=_quoted(text), forms=FORMS)
        near = did_you_mean(name, known)
        raise ValueError(in_turn([refused, near]) if near else refused)
    if name == "link":
        return _link(text, rest)
    values = dict(_pairs(text, rest))
    rank = values.pop("rank", None)
    if rank is None or not _NUMBER.fullmatch(rank):
        raise ValueError(
            say(
                "--drill {text}: say which rank, as in {name}:rank=3",
                text=_quoted(text),
                name=name,
            )
        )
    factor = _factor(text, values.pop("factor", None)) if name == "slow" else None
    if values:
        raise ValueError(
            say(
                "--drill {text}: {name} does not take {extra}",
                text=_quoted(text),
                name=name,
                extra=_quoted(next(iter(values))),
            )
        )
    return DrillFault(name=msgspec.convert(name, Name), rank=int(rank), factor=factor)


def _link(text: str, rest: str) -> DrillFault:
    """Read a link; the worker at its lower end makes the fault."""
    ends = _LINK.fullmatch(rest)
    if not ends or int(ends[1]) == int(ends[2]):
        raise ValueError(
            say("--drill {text}: a link has two ranks, as in link:0-3", text=_quoted(text))
        )
    low, high = sorted((int(ends[1]), int(ends[2])))
    return DrillFault(name="link", rank=low, other=high)


def _pairs(text: str, rest: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key in dict(found):
            raise ValueError(
                say(
                    "--drill {text}: {part} is not understood",
                    text=_quoted(text),
                    part=_quoted(part),
                )
            )
        found.append((key, value))
    return found


def _factor(text: str, value: str | None) -> float:
    if value is None:
        return _FACTOR
    try:
        factor = float(value)
    except ValueError:
        factor = math.nan
    if not _LEAST_FACTOR <= factor <= _MOST_FACTOR:
        raise ValueError(
            say(
                "--drill {text}: factor is how many times slower, from {least:g} to {most:g}",
                text=_quoted(text),
                least=_LEAST_FACTOR,
                most=_MOST_FACTOR,
            )
        )
    return factor


def _quoted(text: str) -> str:
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return repr(shown)


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
            first_collective=min(first, share),
            least_collective=min(usual / 4, share / 2),
        )


def arrival_seconds(timeout: float) -> float:
    """Return how long all tasks of a run with this time limit may take to arrive."""
    return _limit(_ARRIVAL, timeout)


def _limit(usual: float, timeout: float) -> float:
    """Return a deadline that fits the time limit of the run: longer runs wait longer."""
    return min(max(usual, _SHARE * timeout), _MOST * timeout)
