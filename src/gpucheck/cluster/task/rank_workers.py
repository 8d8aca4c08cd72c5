"""The workers of one task: a zygote imports torch once, and a fork of it works for each rank."""

from collections.abc import Callable

import msgspec

from gpucheck.cluster.task import address_space, process_state
from gpucheck.cluster.task.rank_run import Deadlines, RankRun
from gpucheck.facts.process_state import Look
from gpucheck.language import say
from gpucheck.machine.supervised import is_running
from gpucheck.machine.worker_pool.exits import worker_exit
from gpucheck.machine.worker_pool.messages import Message
from gpucheck.machine.worker_pool.pool import State, WorkerPool
from gpucheck.machine.worker_pool.process import WorkerProcess
from gpucheck.machine.worker_pool.spawners import StartProgram
from gpucheck.worker import BOOTSTRAP

_GRACE = 5.0
"""Seconds from SIGTERM to SIGKILL, and from there to giving up."""

_LONGEST = 1000
"""Characters of the reason why torch could not be imported."""

Hear = Callable[[RankRun, Message], None]


class ImportFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there are no workers: torch cannot be imported, or its process hangs."""

    kind: str
    detail: str
    look: Look | None = None
    """What was seen of the process that did not end in time."""


class RankWorkers:
    """Runs the ranks of one task in workers.

    Args:
        start: starts a program (``LiveHost.supervise``).
        python: the target interpreter.
        hear: gets every message of a worker, after its ``RankRun`` has heard it.
        import_seconds: how long importing torch may take.
        end: when the whole run must be over, a time of ``time.monotonic()``.

    Attributes:
        failure: why torch could not be imported; None when it could.
    """

    def __init__(
        self, start: StartProgram, python: str, hear: Hear, import_seconds: float, end: float
    ) -> None:
        self._pool = WorkerPool(
            start, (python, BOOTSTRAP), self._take, end=end, grace=_GRACE,
            import_seconds=import_seconds, looks=True,
        )  # fmt: skip
        self._hear = hear
        self._import_limit = import_seconds
        self._stage = ""
        self._runs: dict[str, RankRun] = {}
        self.failure: ImportFailure | None = None

    @property
    def state(self) -> State:
        """Whether torch is still being imported, or was, or could not be."""
        return self._pool.state

    def open(self) -> None:
        """Have torch imported; ``state`` shows when that is done."""
        self._stage = "import torch"
        if problem := self._pool.open():
            self._fail("not-started", problem)

    def start(self, rank: int, key: str, order: Message, deadlines: Deadlines) -> RankRun:
        """Start a worker for a rank."""
        begin = deadlines.start + self._pool.own_import_seconds
        deadlines = msgspec.structs.replace(deadlines, start=begin)
        process = self._pool.start(key, order, begin)
        run = RankRun(rank, process, deadlines)
        if process.problem:
            run.hear({"event": "ended", "printed": process.problem})
        else:
            self._runs[key] = run
        return run

    def tick(self, seconds: float) -> None:
        """Wait at most this long for messages of workers. End those whose time is over."""
        self._pool.tick(seconds)

    def close(self) -> None:
        """Kill the processes that still run."""
        self._pool.close()

    def _take(self, process: WorkerProcess, message: Message) -> None:
        """Handle what a worker has said, or the zygote while it imports torch."""
        if process is self._pool.zygote:
            self._take_from_zygote(process, message)
            return
        run = self._runs[process.key]
        run.hear(message)
        self._hear(run, message)
        if process.is_gone:
            del self._runs[process.key]
            if process.is_unkillable and self._pool.forks:
                self._renew_zygote(run, process.pid)

    def _renew_zygote(self, run: RankRun, pid: int) -> None:
        """Find out whether the worker hangs, or the zygote, which did not pass the signal on."""
        problem = self._pool.renew(say("the process that forks the workers had to be ended"))
        if not (pid and is_running(pid)):
            run.blame_zygote()
        if problem:
            self._fail("not-started", problem)

    def _take_from_zygote(self, zygote: WorkerProcess, message: Message) -> None:
        event = message.get("event")
        if event == "stage":
            self._stage = str(message.get("text"))[:200]
        elif "too_old" in message:
            version = str(message["too_old"])[:20]
            said = say("it is Python {version}; gpucheck needs 3.8 or newer", version=version)
            self._fail("too-old", said)
        elif event == "import-failed":
            self._fail("import-failed", str(message.get("detail")))
        elif zygote.is_unkillable:
            said = say("import torch cannot be killed: it is stuck in the driver or on a disk")
            self._fail("unkillable", said, _look(zygote, ""))
        elif event == "ended":
            late = say(
                "import torch did not end within {seconds:.0f} s", seconds=self._import_limit
            )
            ended = worker_exit(message, self._stage, killed=late if zygote.is_signalled else "")
            printed = str(message.get("printed", ""))
            self._fail(ended.kind, ended.detail, _look(zygote, printed), printed)

    def _fail(self, kind: str, detail: str, look: Look | None = None, printed: str = "") -> None:
        kind, detail = address_space.explained(kind, detail[:_LONGEST], (printed,))
        self.failure = ImportFailure(kind=kind, detail=detail, look=look)


def _look(zygote: WorkerProcess, printed: str) -> Look | None:
    """Return what was seen of the zygote before it was ended, or None if it ended by itself."""
    if not zygote.is_signalled:
        return None
    return process_state.seen(zygote.looks, printed, killed=zygote.is_killed)
