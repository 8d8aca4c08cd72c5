"""What the launcher starts: it keeps every deadline, and never touches torch or a GPU itself.

One loop looks after the store's connection, the workers and, in task 0, the coordinator; nothing in
it waits for anything. What the task does in order is a script (a generator) that is resumed each
time around.
"""

import signal
import time
from collections.abc import Callable, Generator
from typing import Any, Literal, Protocol

import msgspec

from gpucheck.facts import builtins
from gpucheck.host.worker_pool.messages import Message
from gpucheck.host.worker_pool.spawners import StartProgram
from gpucheck.preflight.diagnose import control_runs
from gpucheck.preflight.model import TaskFacts
from gpucheck.preflight.task import node_facts
from gpucheck.preflight.task.rank_run import Deadlines, RankRun
from gpucheck.preflight.task.rank_workers import RankWorkers
from gpucheck.preflight.task.step_run import Orders, StepRun, Talk
from gpucheck.snapshot import Snapshot

TICK = 0.02
_BEAT = 1.0
_SILENCE = 15.0
"""Seconds without a word of the store after which it is taken for gone."""
_LONG = 600.0
_TOGETHER = 5.0
"""How long task 0 waits for the others to leave with the verdict."""
_GOODBYE = 1.0
_OVER = "over"
CENSUS = "census"

Script = Generator[None, None, None]
Reason = Literal["verdict", "store-lost", "time", "signal"]
Judge = Callable[[Snapshot], list[dict[str, Any]]]


class Connection(Talk, Protocol):
    """The store's client."""

    lost: str
    last_heard: float
    local_address: str

    def pump(self) -> None:
        """Take in what has come."""

    def ping(self) -> None:
        """Ask for a sign of life."""

    def close(self) -> None:
        """Hang up."""


class Coordinating(Protocol):
    """The coordinator, in task 0."""

    def tick(self) -> None:
        """Go on with what can be done now."""

    def stop(self, why: str) -> None:
        """Come to an end with what is known."""

    @property
    def all_have_left(self) -> bool:
        """Whether every task that lives has taken the verdict."""


class ExitReason(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended for a task: with the verdict of all, or without."""

    reason: Reason
    verdict: dict[str, Any] | None = None
    detail: str = ""


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Which task this is."""

    task: int
    tasks: int
    node: int | None
    local: int
    """Its place among the tasks of its node."""
    cuda: bool
    """Whether ranks are GPUs, or processes on the CPU."""
    python: str
    """The target interpreter."""
    end: float
    """When the run must be over, a time of ``time.monotonic()``."""
    import_seconds: float = 60.0
    """How long importing torch may take, and then starting CUDA."""
    absent: bool = False
    """A drill: it takes no part."""


class Supervisor:
    """One task of a pre-flight.

    Args:
        me: which task this is.
        store: its connection to the store.
        start: starts a program (``LiveHost.supervise``).
        facts: what the system says of this node.
        drill: what a worker of a rank is told to do wrong, if anything.
        judge: names the errors that the static rules find in a snapshot.
        coordinator: in task 0.
        progress: hears what is going on, ten times a second.
    """

    def __init__(
        self,
        me: Me,
        store: Connection,
        start: StartProgram,
        facts: TaskFacts,
        *,
        drill: Callable[[int], Message | None],
        judge: Judge,
        coordinator: Coordinating | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._me = me
        self._store = store
        self._start = start
        # Who reaches the store by a loopback stands beside it: others know the way there.
        here = store.local_address
        self._address = "" if here.startswith("127.") or here == "::1" else here
        self._facts = msgspec.structs.replace(facts, address=self._address, phase="import")
        self._drill = drill
        self._judge = judge
        self._coordinator = coordinator
        self._progress = progress
        self._workers = RankWorkers(start, me.python, self._hear, me.import_seconds, me.end)
        self._check: node_facts.NodeCheck | None = None
        self._step_run: StepRun | None = None
        self._census: Message | None = None
        self._verdict: dict[str, Any] | None = None
        self._devices: dict[int, str] = {}
        self._beat_at = 0.0
        self._beats = 0
        self._told_to_end = False
        self._results: list[dict[str, Any]] = []
        self.snapshot: Snapshot | None = None
        """What the static probes found here, where they were run."""

    def run(self) -> ExitReason:
        """Do what the coordinator wants until there is a verdict, or none can come any more."""
        before = signal.signal(signal.SIGTERM, self._on_signal)
        script = self._script()
        try:
            while True:
                self._tick(script)
                if (ending := self._ending()) is not None:
                    return ending
        finally:
            self._close()
            signal.signal(signal.SIGTERM, before)

    @property
    def own(self) -> dict[str, Any]:
        """What this task has seen itself: its facts, and the results of its ranks by step."""
        plain: dict[str, Any] = builtins({"facts": self._facts, "steps": self._results})
        return plain

    @property
    def told_to_end(self) -> bool:
        """Whether a signal has told it to end."""
        return self._told_to_end

    def leave(self) -> None:
        """Say that the verdict has been taken and all is written; leave together with the others.

        A launcher may end the others as soon as one has left with a status that is not 0. So task
        0, which has the most to write, says when all have taken the verdict, and the others wait
        for its word, never beyond the time limit of the run.
        """
        self._store.set(f"left/{self._me.task}", 1)
        over: list[Any] = []
        self._store.get(_OVER, _LONG, then=over.append)
        begun = time.monotonic()
        if self._coordinator is not None:
            end = begun + _TOGETHER
        else:
            end = min(begun + 2 * _TOGETHER, self._me.end) if self._verdict is not None else begun
        dismissed = False
        while not over and not self._store.lost:
            self._store.pump()
            if self._coordinator is not None and not dismissed:
                self._coordinator.tick()
                dismissed = self._coordinator.all_have_left or time.monotonic() > end
                if dismissed:
                    self._store.set(_OVER, 1)
                    end = time.monotonic() + _GOODBYE
            elif time.monotonic() > end:
                return
            time.sleep(TICK)

    def _tick(self, script: Script) -> None:
        self._store.pump()
        self._workers.tick(TICK)
        if self._check is not None:
            self._check.tick()
        if self._coordinator is not None:
            self._coordinator.tick()
        next(script, None)
        self._beat()

    def _ending(self) -> ExitReason | None:
        now = time.monotonic()
        if self._verdict is not None:
            return ExitReason(reason="verdict", verdict=self._verdict)
        if self._told_to_end:
            return ExitReason(reason="signal", detail="it was told to end (SIGTERM)")
        if self._store.lost:
            return ExitReason(reason="store-lost", detail=self._store.lost)
        if now - self._store.last_heard > _SILENCE:
            return ExitReason(
                reason="store-lost", detail=f"no word from the store for {_SILENCE:.0f} s"
            )
        if now > self._me.end:
            return ExitReason(reason="time", detail="the time limit of the run was reached")
        return None

    def _script(self) -> Script:
        """What this task does, in order."""
        me = self._me
        self._store.get("verdict", _LONG, then=self._take_verdict)
        if me.absent:
            return
        self._workers.open()
        self._store.set(f"task/{me.task}", self._said_first())
        if me.cuda and me.local == 0:
            self._check = node_facts.NodeCheck(self._start, self._me.python)
        yield from self._learn()
        self._store.set(f"facts/{me.task}", builtins(self._facts))
        roster = yield from self._await(f"roster/{me.task}")
        self._devices = {int(rank): str(one) for rank, one in roster["devices"].items()}
        at = 0
        while True:
            raw = yield from self._await(f"go/{me.task}/{at}")
            orders = msgspec.convert(raw, Orders)
            if not control_runs.VARIABLES.issuperset(orders.env):
                raise ValueError("orders with variables that no control run has")
            yield from self._run_step(orders)
            at += 1

    def _said_first(self) -> dict[str, Any]:
        left = round(self._me.end - time.monotonic(), 1)
        return {"facts": builtins(self._facts), "seconds_left": left}

    def _learn(self) -> Script:
        """Learn what torch and the driver are here; what goes wrong in that is a fact as well."""
        while self._workers.state == "importing":
            yield
        failure = self._workers.failure
        if failure is not None:
            problem, kind = failure.detail, failure.kind
        else:
            problem, kind = yield from self._ask_torch()
        if problem:
            if self._check is None:
                self._check = node_facts.NodeCheck(self._start, self._me.python)
            self._facts = msgspec.structs.replace(self._facts, problem=problem, kind=kind)
        while self._check is not None and not self._check.done:
            yield
        if self._check is not None and self._check.snapshot is not None:
            self.snapshot = self._check.snapshot
            self._facts = node_facts.with_snapshot(self._facts, self.snapshot)
            if problem:
                roots = self._judge(self.snapshot)
                self._facts = msgspec.structs.replace(self._facts, roots=roots)

    def _ask_torch(self) -> Generator[None, None, tuple[str, str]]:
        """Ask torch in a worker what it is and which devices it sees; return what is wrong."""
        order = {"census": True, "device": "cuda" if self._me.cuda else "cpu"}
        run = self._workers.start(-1, CENSUS, order, Deadlines(start=self._me.import_seconds))
        while run.result is None:
            yield
        self._facts = msgspec.structs.replace(self._facts, phase="census")
        if self._census is not None:
            self._facts = node_facts.with_census(self._facts, self._census, cuda=self._me.cuda)
            return self._facts.problem, self._facts.kind
        return run.result.detail, run.result.kind

    def _run_step(self, orders: Orders) -> Script:
        while self._workers.state == "importing":
            yield
        step_run = StepRun(
            orders,
            self._devices,
            self._workers,
            self._store,
            address=self._address,
            drill=self._drill,
        )
        self._step_run = step_run
        step_run.begin()
        while not step_run.tick():
            yield
        self._step_run = None
        self._results.append({"step": orders.kind, "results": list(step_run.results.values())})

    def _await(self, key: str) -> Generator[None, None, Any]:
        """Wait for a key of the store."""
        box: list[Any] = []

        def then(value: Any) -> None:  # noqa: ANN401  # JSON-like data
            if value is None:
                self._store.get(key, _LONG, then=then)
            else:
                box.append(value)

        self._store.get(key, _LONG, then=then)
        while not box:
            yield
        return box[0]

    def _take_verdict(self, value: Any) -> None:  # noqa: ANN401  # JSON-like data
        if isinstance(value, dict):
            self._verdict = value
        else:
            self._store.get("verdict", _LONG, then=self._take_verdict)

    def _hear(self, run: RankRun, message: Message) -> None:
        if run.key == CENSUS:
            if message.get("event") == "census":
                self._census = message
        elif self._step_run is not None:
            self._step_run.heard(run, message)

    def _beat(self) -> None:
        now = time.monotonic()
        if now < self._beat_at:
            return
        self._beat_at = now + _BEAT
        if self._me.absent:
            self._store.ping()
            return
        self._beats += 1
        phases = self._step_run.phases() if self._step_run is not None else {}
        self._store.set(f"beat/{self._me.task}", {"n": self._beats, "phases": phases})
        if self._progress is not None:
            self._progress(
                self._facts.phase if self._step_run is None else self._step_run.orders.kind
            )

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._told_to_end = True

    def _close(self) -> None:
        """Kill what still runs."""
        self._workers.close()
        if self._check is not None:
            self._check.close()
