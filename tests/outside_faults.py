"""Faults that somebody makes from outside, in the processes of a pre-flight that runs for real."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from left_behind import alive

ROUNDS = range(int(os.environ.get("GPUCHECK_ROUNDS", "1")))
"""How often each fault is made, at another moment and in another rank each time."""
_LOOK = 0.002
_EFFECT = 0.5
"""Seconds for a signal to take effect."""
NO_RANK = -1
"""Of a process whose environment tells no rank."""
Act = Callable[[int, int], None]
"""Does something to a worker, or to the zygote that forks it: their process ids."""


def zygotes(mark: str, rank: int) -> list[int]:
    """Return the processes of that task that fork workers."""
    return [pid for pid in alive(mark) if _is_zygote(pid) and _rank(pid) == rank]


def children(pid: int) -> list[int]:
    """Return the processes that a process has started itself, and that run."""
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    with contextlib.suppress(OSError):  # a kernel without that file
        names = (folder.name for folder in Path("/proc").iterdir())
        running = [int(name) for name in names if name.isdecimal()]
        return [child for child in running if _parent(child) == pid]
    return []


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def state(pid: int) -> str:
    """Return the letter of a process's state; "Z" if it is gone."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


def _is_zygote(pid: int) -> bool:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        leads = os.getsid(pid) == pid and os.getppid() != pid
        return b"zygote" in words and leads and not _is_child_of_its_kind(pid)
    return False


def _is_child_of_its_kind(pid: int) -> bool:
    """Whether its parent forked it: both have the same command line."""
    mine, theirs = (
        Path(f"/proc/{process}/cmdline").read_bytes() for process in (pid, _parent(pid))
    )
    return mine == theirs


def _rank(pid: int) -> int:
    with contextlib.suppress(OSError):
        for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _equals, value = word.partition(b"=")
            if name in (b"RANK", b"OMPI_COMM_WORLD_RANK", b"SLURM_PROCID"):
                return int(value)
    return NO_RANK


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def supervisors(mark: str, rank: int) -> list[int]:
    """Return the process that the launcher has started as that task."""
    return [pid for pid in alive(mark) if _is_supervisor(pid) and _rank(pid) == rank]


@contextlib.contextmanager
def signalled(mark: str, rank: int, number: int, moment: float) -> Iterator[list[int]]:
    """Send a signal to a task; yield to which processes.

    It is sent so many seconds after the task has read its options and started its waker.
    """
    over = threading.Event()
    done: list[int] = []

    def work() -> None:
        while not over.wait(10 * _LOOK):
            for pid in filter(children, supervisors(mark, rank)):
                if not over.wait(moment):
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)
                        done.append(pid)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def _is_supervisor(pid: int) -> bool:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        is_gpucheck = words[1:4] == [b"-m", b"gpucheck", b"preflight"]
        return is_gpucheck and not _is_child_of_its_kind(pid)
    return False


class Meddler:
    """Does something to a worker of a rank, or to what forks it, once or each time.

    Args:
        mark: of the run (``left_behind``).
        rank: whose worker.
        moment: so many seconds after the rank's first worker has begun; then to the next that runs.
        act: gets the worker and the zygote.
        always: whether it is done to every later worker as well.
        ranks: how many the task has, numbered from 0 where there are more than one. A worker is
            known by its place among the workers of its step, so all of them must be there.
    """

    def __init__(
        self, mark: str, rank: int, moment: float, act: Act, *, always: bool = False,
        ranks: int = 1,
    ) -> None:  # fmt: skip
        self._mark, self._rank, self._moment = mark, rank, moment
        self._act, self._always, self._ranks = act, always, ranks
        self._state = STATES.get(act)
        self._over = threading.Event()
        self.done: list[int] = []
        """The workers to which it was done."""
        self._thread = threading.Thread(target=self._work, daemon=True)

    @contextlib.contextmanager
    def at_work(self) -> Iterator["Meddler"]:
        """Meddle while something runs."""
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()

    def _zygotes(self) -> list[int]:
        return zygotes(self._mark, self._rank if self._ranks == 1 else NO_RANK)

    def _workers(self, zygote: int) -> list[int]:
        """Return the workers of the rank that run."""
        found = children(zygote)
        if self._ranks == 1:
            return found
        return sorted(found)[self._rank :][:1] if len(found) == self._ranks else []

    def _took_effect(self, worker: int, zygote: int) -> bool:
        """Whether a process is in the state that was wanted: one that has ended takes signals."""
        if self._state is None:
            return True
        end = time.monotonic() + _EFFECT
        while time.monotonic() < end:
            if self._state in (state(worker), state(zygote), _name(worker)):
                return True
            time.sleep(_LOOK)
        return False

    def _work(self) -> None:
        zygote, begun = 0, 0.0
        while not self._over.is_set() and (self._always or not self.done):
            if not zygote or not Path(f"/proc/{zygote}").exists():
                zygote = next(iter(self._zygotes()), 0)
            for pid in self._workers(zygote) if zygote else ():
                begun = begun or time.monotonic()
                if pid in self.done or time.monotonic() - begun < self._moment or state(pid) == "Z":
                    continue
                with contextlib.suppress(OSError):
                    self._act(pid, zygote)
                    if self._took_effect(pid, zygote):
                        self.done.append(pid)
                if not self._always:
                    break
            time.sleep(_LOOK if zygote else 10 * _LOOK)


def stop(worker: int, _zygote: int) -> None:
    """Stop a worker, as kill -STOP does."""
    os.kill(worker, signal.SIGSTOP)


def kill(worker: int, _zygote: int) -> None:
    """Kill a worker."""
    os.kill(worker, signal.SIGKILL)


def stop_zygote(_worker: int, zygote: int) -> None:
    """Stop the process that forks the workers."""
    os.kill(zygote, signal.SIGSTOP)


def block_in_the_kernel(worker: int, _zygote: int) -> None:
    """Have a worker wait in the kernel: its handler, see ``SITE``, makes a child and waits."""
    os.kill(worker, signal.SIGUSR1)


def hang(worker: int, _zygote: int) -> None:
    """Have a worker loop for ever: its handler, see ``SITE``, computes or sleeps."""
    os.kill(worker, signal.SIGUSR2)


STATES = {stop: "T", stop_zygote: "T", block_in_the_kernel: "D", kill: "Z", hang: "hanging"}
"""The state in which a process is then, or its name."""

SITE = """
import ctypes, os, random, signal, time

def hang(*_):
    with open("/proc/self/comm", "w") as name:
        name.write("hanging")
    pause = random.choice((0, 0.2))
    while True:
        if pause:
            time.sleep(pause)

def wait_in_the_kernel(*_):
    # A parent waits uninterruptibly (state D) for a child of this kind until it ends or runs a
    # program. The child is out of reach of signals to the worker's group.
    if ctypes.CDLL(None).syscall(56, 0x4000 | 17, 0, 0, 0, 0) == 0:
        os.setsid()
        for number in (15, 10):
            signal.signal(number, signal.SIG_IGN)
        end = time.monotonic() + 120
        while time.monotonic() < end and os.getppid() != 1:
            time.sleep(0.2)
        os._exit(0)

signal.signal(signal.SIGUSR1, wait_in_the_kernel)
signal.signal(signal.SIGUSR2, hang)
"""
"""A ``sitecustomize`` with which a worker can be sent into state D (x86-64), or into a loop."""
