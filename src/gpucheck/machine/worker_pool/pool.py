"""The workers of one target interpreter, independent of how they are started."""

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from gpucheck.facts import Answer
from gpucheck.facts.secrets import without_secrets_in
from gpucheck.language import say
from gpucheck.machine.supervised import Supervised, wait
from gpucheck.machine.worker_pool.process import (
    Message,
    MessageStream,
    WorkerProcess,
    count_in,
    read_message,
)

# Two ways to start workers: forked by a zygote, or each as a separate process.

StartProgram = Callable[[list[str]], Answer[Supervised]]
"""Starts a program under supervision (``LiveHost.supervise``)."""

ZYGOTE = ""
"""The key of the zygote's own messages."""
_GOODBYE = 1.0
"""Seconds for the zygote to end its workers before it is killed itself."""
_TICK = 0.02  # seconds between two looks whether the zygote has ended


class Spawner(Protocol):
    """Starts workers and listens to them; each has a key."""

    def start(self, key: str, order: Message) -> str:
        """Start a worker; return why it could not be started, else ""."""

    def events(self, seconds: float) -> list[tuple[str, Message]]:
        """Wait at most this long; return the workers' messages, and which workers have ended."""

    def signal(self, key: str, number: int) -> None:
        """Send a signal to a worker's process group."""

    def pid(self, key: str) -> int:
        """Return the process id of a worker or of the zygote; 0 if it is unknown here."""

    def close(self) -> None:
        """Kill what still runs."""


class _Program:
    """A process in the target interpreter and the messages that it sends.

    Args:
        start: starts a program.
        command: the interpreter and the worker's bootstrap.
        part: ``worker`` or ``zygote``.
    """

    def __init__(self, start: StartProgram, command: Sequence[str], part: str) -> None:
        mark = os.urandom(12).hex()
        self._stream = MessageStream(mark)
        answer = start([*command, mark, part])
        self.child = answer.value
        self.problem = answer.problem
        self.has_ended = False

    @property
    def pid(self) -> int:
        """The process id; 0 if it was not started or has ended."""
        return self.child.pid if self.child is not None and not self.has_ended else 0

    def send(self, message: Message) -> None:
        """Send one line of JSON."""
        if self.child is not None:
            self.child.send(json.dumps(message).encode("ascii") + b"\n")

    def messages(self) -> list[Message]:
        """Return its messages, and at last how it ended."""
        if self.child is None or self.has_ended:
            return []
        status = self.child.status()
        found = self._stream.messages(self.child.stdout())
        if status is not None:
            self.has_ended = True
            found.append(_ended(status, self.child.printed()))
        return found


def _ended(status: int, printed: str) -> Message:
    return {
        "event": "ended",
        "status": status if status >= 0 else None,
        "signal": -status if status < 0 else None,
        "printed": printed,
    }


class SeparateSpawner:
    """Starts each worker as a separate process, which imports torch itself."""

    def __init__(self, start: StartProgram, command: Sequence[str]) -> None:
        self._start = start
        self._command = command
        self._programs: dict[str, _Program] = {}

    def start(self, key: str, order: Message) -> str:
        """Start a worker; return why it could not be started, else ""."""
        program = _Program(self._start, self._command, "worker")
        if program.child is None:
            return program.problem
        program.send(order)
        self._programs[key] = program
        return ""

    def events(self, seconds: float) -> list[tuple[str, Message]]:
        """Wait at most this long; return the workers' messages, and which workers have ended."""
        wait(
            [program.child for program in self._programs.values() if program.child is not None],
            seconds,
        )
        found = [(key, m) for key, program in self._programs.items() for m in program.messages()]
        for key, message in found:
            if message.get("event") == "ended":
                self._forget(key)
        return found

    def signal(self, key: str, number: int) -> None:
        """Send a signal to a worker's process group."""
        if key in self._programs and (child := self._programs[key].child) is not None:
            child.signal(number)

    def pid(self, key: str) -> int:
        """Return the process id of a worker; 0 if there is none."""
        program = self._programs.get(key)
        return program.pid if program is not None else 0

    def close(self) -> None:
        """Kill what still runs."""
        for key in list(self._programs):
            self._forget(key)

    def _forget(self, key: str) -> None:
        program = self._programs.pop(key, None)  # a worker may say twice that it has ended
        if program is not None and program.child is not None:
            program.child.abandon()


class ForkingSpawner:
    """Has workers forked by one process, the zygote, which imports torch once for all of them."""

    def __init__(self, start: StartProgram, command: Sequence[str]) -> None:
        self._zygote = _Program(start, command, "zygote")
        self._under_way: set[str] = set()
        self.problem = self._zygote.problem
        """Why the zygote could not be started, else ""."""

    def start(self, key: str, order: Message) -> str:
        """Have a worker forked; return why it could not be started, else ""."""
        if self._zygote.child is None or self._zygote.has_ended:
            return say("the process that forks the workers has ended")
        self._zygote.send({"worker": key, "order": order})
        self._under_way.add(key)
        return ""

    def events(self, seconds: float) -> list[tuple[str, Message]]:
        """Wait at most this long; return the workers' messages, and which workers have ended.

        When the zygote ends, all its workers have ended too.
        """
        wait([self._zygote.child] if self._zygote.child is not None else [], seconds)
        found: list[tuple[str, Message]] = []
        for message in self._zygote.messages():
            key = str(message.get("worker", ZYGOTE))
            event = message.get("event")
            if event == "said":
                found.append((key, read_message(str(message.get("said")).encode())))
                continue
            found.append((key, message))
            if event == "ended" and key == ZYGOTE:
                found += [(worker, message) for worker in sorted(self._under_way)]
                self._under_way.clear()
            elif event == "ended":
                self._under_way.discard(key)
        return found

    def signal(self, key: str, number: int) -> None:
        """Send a signal to the process group of a worker, or of the zygote."""
        if key != ZYGOTE:
            self._zygote.send({"worker": key, "signal": number})
        elif self._zygote.child is not None:
            self._zygote.child.signal(number)

    def pid(self, key: str) -> int:
        """Return the process id of the zygote; those of its workers come in their messages."""
        return self._zygote.pid if key == ZYGOTE else 0

    def close(self) -> None:
        """End the zygote: it kills its workers and everything that they have started."""
        child = self._zygote.child
        if child is None:
            return
        if self._under_way:
            child.hang_up()
            end = time.monotonic() + _GOODBYE
            while child.status() is None and time.monotonic() < end:
                wait([child], _TICK)
        self._under_way.clear()
        self._zygote.has_ended = True
        child.abandon()


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
