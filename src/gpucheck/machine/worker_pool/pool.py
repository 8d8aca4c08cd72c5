"""The workers of one target interpreter, independent of how they are started."""

import os
from collections.abc import Callable, Sequence
from typing import Literal

from gpucheck.facts.secrets import without_secrets_in
from gpucheck.language import say
from gpucheck.machine.worker_pool.process import Message, WorkerProcess, count_in
from gpucheck.machine.worker_pool.spawners import (
    ZYGOTE,
    ForkingSpawner,
    SeparateSpawner,
    Spawner,
    StartProgram,
)

CAN_FORK = hasattr(os, "fork")
State = Literal["importing", "ready", "failed"]
Hear = Callable[[WorkerProcess, Message], None]
_GIVEN_UP: Message = {"event": "ended"}


class WorkerPool:
    """Starts workers, listens to them, and ends them in time.

    The last message of every worker is ``ended``, even if the worker was given up.

    Args:
        start: starts a program (``LiveHost.supervise``).
        command: the target interpreter and the worker's bootstrap.
        hear: called with every message of a worker, and of the zygote until torch is imported.
        end: when the whole run must be over, a time of ``time.monotonic()``.
        grace: seconds from SIGTERM to SIGKILL, and from there to giving up.
        import_seconds: how many seconds importing torch may take.
        forks: whether workers are forked by one process that imports torch.
        looks: whether to look at a worker, and at the zygote, before it is ended.

    Attributes:
        state: ``failed`` if the zygote could not import torch.
        zygote: the process that forks the workers, while it imports torch and afterwards.
    """

    def __init__(
        self,
        start: StartProgram,
        command: Sequence[str],
        hear: Hear,
        *,
        end: float,
        grace: float,
        import_seconds: float,
        forks: bool = CAN_FORK,
        looks: bool = False,
    ) -> None:
        self._start_program = start
        self._command = command
        self._hear = hear
        self._end = end
        self._grace = grace
        self._import_seconds = import_seconds
        self._forks = forks
        self._looks = looks
        self._spawner: Spawner = SeparateSpawner(start, command)
        self._workers: dict[str, WorkerProcess] = {}
        self.state: State = "ready"
        self.zygote: WorkerProcess | None = None

    @property
    def forks(self) -> bool:
        """Whether workers are forked."""
        return self._forks

    @property
    def own_import_seconds(self) -> float:
        """The additional seconds that a worker may take to begin if it imports torch itself."""
        return 0.0 if self._forks else self._import_seconds

    def open(self) -> str:
        """Have the zygote import torch; return why it could not be started, else ""."""
        if not self._forks:
            return ""
        spawner = ForkingSpawner(self._start_program, self._command)
        self._spawner = spawner
        self.zygote = self._process(ZYGOTE, self._import_seconds)
        self.zygote.pid = spawner.pid(ZYGOTE)
        self.state = "failed" if spawner.problem else "importing"
        return spawner.problem

    def start(self, key: str, order: Message, seconds: float) -> WorkerProcess:
        """Start a worker; if that fails, its ``problem`` says why.

        Args:
            key: its name, which no other running worker has.
            order: the work to do.
            seconds: the time it may take, unless it is given more.
        """
        worker = self._process(key, seconds)
        worker.problem = self._spawner.start(key, order)
        worker.is_gone = bool(worker.problem)
        worker.pid = self._spawner.pid(key)
        worker.zygote_pid = self._spawner.pid(ZYGOTE)
        if not worker.is_gone:
            self._workers[key] = worker
        return worker

    def tick(self, seconds: float) -> None:
        """Wait at most this long for messages of workers; end those whose time is over."""
        for key, received in self._spawner.events(seconds):
            message: Message = without_secrets_in(received)  # before anybody passes it on
            if key != ZYGOTE:
                self._take(key, message)
            elif self.state == "importing":
                self._take_from_zygote(message)
        if self.state == "importing" and self.zygote is not None:
            self._push(self.zygote)
        for worker in list(self._workers.values()):
            self._push(worker)

    def stop_forking(self) -> None:
        """Start each further worker as a separate process; end the forked ones."""
        self._end_all(say("the process that forks the workers was ended"))
        self._forks = False
        self._spawner = SeparateSpawner(self._start_program, self._command)
        self.state = "ready"

    def renew(self, why: str) -> str:
        """Kill the zygote with its workers, and have another one import torch.

        Args:
            why: the reason, which stands for the output of the workers that still run.

        Returns:
            why the zygote could not be started, or "".
        """
        self._end_all(why)
        return self.open()

    def close(self) -> None:
        """Kill what still runs."""
        self._spawner.close()
        self._workers.clear()

    def _process(self, key: str, seconds: float) -> WorkerProcess:
        return WorkerProcess(key, seconds, self._end, self._grace, looks=self._looks)

    def _end_all(self, why: str) -> None:
        """Kill the zygote with its workers, or the workers; ``why`` stands for their output."""
        self._spawner.close()
        for worker in list(self._workers.values()):
            self._conclude(worker, {"event": "ended", "printed": why})

    def _take(self, key: str, message: Message) -> None:
        worker = self._workers.get(key)
        if worker is None:
            return
        event = message.get("event")
        if event == "forked":
            worker.pid = count_in(message, "pid")
        elif event == "ended":
            self._conclude(worker, message)
        else:
            self._hear(worker, message)

    def _take_from_zygote(self, message: Message) -> None:
        assert self.zygote is not None  # noqa: S101  # it is importing
        event = message.get("event")
        if event == "ready":
            self.state = "ready"
            if message.get("cannot_fork"):
                self.stop_forking()
        elif event in ("ended", "import-failed") or "too_old" in message:
            self._fail()
        self._hear(self.zygote, message)

    def _push(self, worker: WorkerProcess) -> None:
        if worker.push(lambda number: self._spawner.signal(worker.key, number)):
            worker.is_unkillable = True
            if worker is self.zygote:
                self._fail()
                self._hear(worker, _GIVEN_UP)
            else:
                self._conclude(worker, _GIVEN_UP)

    def _fail(self) -> None:
        self.state = "failed"
        self._spawner.close()

    def _conclude(self, worker: WorkerProcess, message: Message) -> None:
        worker.is_gone = True
        del self._workers[worker.key]
        self._hear(worker, message)
