"""What the launcher starts: it keeps every deadline, and never touches torch or a GPU itself.

One loop looks after the board's connection, the workers and, in task 0, the conductor; nothing in
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
from gpucheck.preflight.blame import arms
from gpucheck.preflight.model import TaskFacts
from gpucheck.preflight.run import node
from gpucheck.preflight.run.rank_run import Deadlines, RankRun
from gpucheck.preflight.run.rank_workers import RankWorkers
from gpucheck.preflight.run.turn import Orders, Talk, Turn
from gpucheck.snapshot import Snapshot

TICK = 0.02
_BEAT = 1.0
_SILENCE = 15.0
"""Seconds without a word of the board after which it is taken for gone."""
_LONG = 600.0
_TOGETHER = 5.0
"""How long task 0 waits for the others to leave with the verdict."""
_GOODBYE = 1.0
_OVER = "over"
CENSUS = "census"

Script = Generator[None, None, None]
Reason = Literal["verdict", "board-lost", "time", "signal"]
Judge = Callable[[Snapshot], list[dict[str, Any]]]


class Connection(Talk, Protocol):
    """The board's client."""

    lost: str
    last_heard: float
    local_address: str

    def pump(self) -> None:
        """Take in what has come."""

    def ping(self) -> None:
        """Ask for a sign of life."""

    def close(self) -> None:
        """Hang up."""


class Conducting(Protocol):
    """The conductor, in task 0."""

    def tick(self) -> None:
        """Go on with what can be done now."""

    def stop(self, why: str) -> None:
        """Come to an end with what is known."""

    @property
    def all_have_left(self) -> bool:
        """Whether every task that lives has taken the verdict."""


class Parting(msgspec.Struct, frozen=True, kw_only=True):
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
        board: its connection to the board.
        start: starts a program (``LiveHost.supervise``).
        facts: what the system says of this node.
        drill: what a worker of a rank is told to do wrong, if anything.
        judge: names the errors that the static rules find in a snapshot.
        conductor: in task 0.
        progress: hears what is going on, ten times a second.
    """

    def __init__(
        self,
        me: Me,
        board: Connection,
        start: StartProgram,
        facts: TaskFacts,
        *,
        drill: Callable[[int], Message | None],
        judge: Judge,
        conductor: Conducting | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._me = me
        self._board = board
        self._start = start
        # Who reaches the board by a loopback stands beside it: others know the way there.
        here = board.local_address
        self._address = "" if here.startswith("127.") or here == "::1" else here
        self._facts = msgspec.structs.replace(facts, address=self._address, phase="import")
        self._drill = drill
        self._judge = judge
        self._conductor = conductor
        self._progress = progress
        self._workers = RankWorkers(start, me.python, self._hear, me.import_seconds, me.end)
        self._check: node.NodeCheck | None = None
        self._turn: Turn | None = None
        self._census: Message | None = None
        self._verdict: dict[str, Any] | None = None
        self._devices: dict[int, str] = {}
        self._beat_at = 0.0
        self._beats = 0
        self._told_to_end = False
        self._results: list[dict[str, Any]] = []
        self.snapshot: Snapshot | None = None
        """What the static probes found here, where they were run."""

    def run(self) -> Parting:
        """Do what the conductor wants until there is a verdict, or none can come any more."""
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
        self._board.set(f"left/{self._me.task}", 1)
        over: list[Any] = []
        self._board.get(_OVER, _LONG, then=over.append)
        begun = time.monotonic()
        if self._conductor is not None:
            end = begun + _TOGETHER
        else:
            end = min(begun + 2 * _TOGETHER, self._me.end) if self._verdict is not None else begun
        dismissed = False
        while not over and not self._board.lost:
            self._board.pump()
            if self._conductor is not None and not dismissed:
                self._conductor.tick()
                dismissed = self._conductor.all_have_left or time.monotonic() > end
                if dismissed:
                    self._board.set(_OVER, 1)
                    end = time.monotonic() + _GOODBYE
            elif time.monotonic() > end:
                return
            time.sleep(TICK)

    def _tick(self, script: Script) -> None:
        self._board.pump()
        self._workers.tick(TICK)
        if self._check is not None:
            self._check.tick()
        if self._conductor is not None:
            self._conductor.tick()
        next(script, None)
        self._beat()

    def _ending(self) -> Parting | None:
        now = time.monotonic()
        if self._verdict is not None:
            return Parting(reason="verdict", verdict=self._verdict)
        if self._told_to_end:
            return Parting(reason="signal", detail="it was told to end (SIGTERM)")
        if self._board.lost:
            return Parting(reason="board-lost", detail=self._board.lost)
        if now - self._board.last_heard > _SILENCE:
            return Parting(
                reason="board-lost", detail=f"no word from the board for {_SILENCE:.0f} s"
            )
        if now > self._me.end:
            return Parting(reason="time", detail="the time limit of the run was reached")
        return None

    def _script(self) -> Script:
        """What this task does, in order."""
        me = self._me
        self._board.get("verdict", _LONG, then=self._take_verdict)
        if me.absent:
            return
        self._workers.open()
        self._board.set(f"task/{me.task}", self._said_first())
        if me.cuda and me.local == 0:
            self._check = node.NodeCheck(self._start, self._me.python)
        yield from self._learn()
        self._board.set(f"facts/{me.task}", builtins(self._facts))
        roster = yield from self._await(f"roster/{me.task}")
        self._devices = {int(rank): str(one) for rank, one in roster["devices"].items()}
        at = 0
        while True:
            raw = yield from self._await(f"go/{me.task}/{at}")
            orders = msgspec.convert(raw, Orders)
            if not arms.VARIABLES.issuperset(orders.env):
                raise ValueError("orders with variables that no control arm has")
            yield from self._take_turn(orders)
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
                self._check = node.NodeCheck(self._start, self._me.python)
            self._facts = msgspec.structs.replace(self._facts, problem=problem, kind=kind)
        while self._check is not None and not self._check.done:
            yield
        if self._check is not None and self._check.snapshot is not None:
            self.snapshot = self._check.snapshot
            self._facts = node.with_snapshot(self._facts, self.snapshot)
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
            self._facts = node.with_census(self._facts, self._census, cuda=self._me.cuda)
            return self._facts.problem, self._facts.kind
        return run.result.detail, run.result.kind

    def _take_turn(self, orders: Orders) -> Script:
        while self._workers.state == "importing":
            yield
        turn = Turn(
            orders,
            self._devices,
            self._workers,
            self._board,
            address=self._address,
            drill=self._drill,
        )
        self._turn = turn
        turn.begin()
        while not turn.tick():
            yield
        self._turn = None
        self._results.append({"step": orders.kind, "results": list(turn.results.values())})

    def _await(self, key: str) -> Generator[None, None, Any]:
        """Wait for a key of the board."""
        box: list[Any] = []

        def then(value: Any) -> None:  # noqa: ANN401  # JSON-like data
            if value is None:
                self._board.get(key, _LONG, then=then)
            else:
                box.append(value)

        self._board.get(key, _LONG, then=then)
        while not box:
            yield
        return box[0]

    def _take_verdict(self, value: Any) -> None:  # noqa: ANN401  # JSON-like data
        if isinstance(value, dict):
            self._verdict = value
        else:
            self._board.get("verdict", _LONG, then=self._take_verdict)

    def _hear(self, run: RankRun, message: Message) -> None:
        if run.key == CENSUS:
            if message.get("event") == "census":
                self._census = message
        elif self._turn is not None:
            self._turn.heard(run, message)

    def _beat(self) -> None:
        now = time.monotonic()
        if now < self._beat_at:
            return
        self._beat_at = now + _BEAT
        if self._me.absent:
            self._board.ping()
            return
        self._beats += 1
        phases = self._turn.phases() if self._turn is not None else {}
        self._board.set(f"beat/{self._me.task}", {"n": self._beats, "phases": phases})
        if self._progress is not None:
            self._progress(self._facts.phase if self._turn is None else self._turn.orders.kind)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._told_to_end = True

    def _close(self) -> None:
        """Kill what still runs."""
        self._workers.close()
        if self._check is not None:
            self._check.close()
