"""Runs pieces of work side by side, each in a forked child that can be left behind.

Whatever can block in a driver or on a network disk runs here: a child with its own session and
no inherited stream, killed at its deadline and *given up on* when it cannot be killed (a process
in uninterruptible sleep). The parent never waits beyond a deadline, and the deadlines of children
that run side by side do not add up. Where ``fork`` does not exist (Windows), daemon threads do.
"""

import contextlib
import faulthandler
import os
import queue
import selectors
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Literal, NoReturn, Protocol

import msgspec

_FRAME = struct.Struct("!cI")
_RESULT, _STAGE, _STARTED, _CRASH = b"r", b"s", b"p", b"c"
_LIMIT = 64 * 1024 * 1024
_FORKS = hasattr(os, "fork")


class Tell(Protocol):
    """How a piece of work speaks to the parent while it runs."""

    def stage(self, name: str) -> None:
        """Name the dangerous step that comes next."""

    def started(self, pid: int) -> None:
        """Name a process that was started and leads a session of its own."""


Work = Callable[[Tell], bytes]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """How a piece of work ended; ``result`` is there when the status is ok."""

    name: str
    status: Literal["ok", "crashed", "timed-out"]
    seconds: float
    result: bytes = b""
    problem: str = ""


class Children:
    """Pieces of work under way."""

    def __init__(self) -> None:
        self._under_way: dict[str, _Forked | _Threaded] = {}

    def start(self, name: str, work: Work, deadline: float) -> None:
        """Start a piece of work; ``deadline`` is a time of ``time.monotonic()``."""
        kind = _Forked if _FORKS else _Threaded
        self._under_way[name] = kind(name, work, deadline)

    def names(self) -> list[str]:
        """Return the names of what has not ended yet."""
        return list(self._under_way)

    def wait(self, until: float) -> list[Done]:
        """Wait until something ends, a deadline passes or the time ``until`` comes."""
        end = min([until, *(child.deadline for child in self._under_way.values())])
        if _FORKS:
            self._select(end)
        else:
            _sleep_until(end, [c for c in self._under_way.values() if isinstance(c, _Threaded)])
        done = [found for child in self._under_way.values() if (found := child.done())]
        for found in done:
            del self._under_way[found.name]
        return done

    def stop(self) -> None:
        """Kill what is still under way."""
        for child in self._under_way.values():
            child.kill()
        self._under_way.clear()

    def _select(self, end: float) -> None:
        with selectors.DefaultSelector() as selector:
            for child in self._under_way.values():
                if isinstance(child, _Forked):
                    selector.register(child.pipe, selectors.EVENT_READ, child)
            for key, _events in selector.select(max(0.0, end - time.monotonic())):
                key.data.read()


class _Forked:
    """One child process and what it has said so far."""

    def __init__(self, name: str, work: Work, deadline: float) -> None:
        self.deadline = deadline
        self._name = name
        self._start = time.monotonic()
        self._said = bytearray()
        self._stage = ""
        self._sessions: list[int] = []
        self._ended: Done | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pipe, theirs = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.pipe)
            _be_child(theirs, work)
        os.close(theirs)
        self._sessions.append(self._pid)

    def read(self) -> None:
        """Take in what the child has said; at the end of its pipe it is over."""
        data = os.read(self.pipe, 65536)
        self._said += data
        if len(self._said) > _LIMIT:
            self._end("crashed", problem=f"it answered more than {_LIMIT >> 20} MiB")
            return
        while self._ended is None and (frame := _take_frame(self._said)):
            self._hear(*frame)
        if not data and self._ended is None:
            self._end("crashed", problem=self._how_it_died())

    def done(self) -> Done | None:
        """Return how it ended; kill it first when its time is up."""
        if self._ended is None and time.monotonic() >= self.deadline:
            at = f" in {self._stage}" if self._stage else ""
            waited = time.monotonic() - self._start
            self._end("timed-out", problem=f"no answer{at} after {waited:.0f} s")
        return self._ended

    def kill(self) -> None:
        """Kill the child and the sessions that it started; do not wait for the unkillable."""
        for session in self._sessions:
            for send in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    send(session, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.close(self.pipe)
        with contextlib.suppress(OSError):
            os.waitpid(self._pid, os.WNOHANG)

    def _hear(self, kind: bytes, payload: bytes) -> None:
        if kind == _STAGE:
            self._stage = payload.decode()
        elif kind == _STARTED:
            self._sessions.append(int(payload))
        elif kind == _CRASH:
            self._end("crashed", problem=payload.decode("utf-8", "replace"))
        else:
            self._end("ok", result=payload)

    def _end(
        self, status: Literal["ok", "crashed", "timed-out"], *, result: bytes = b"",
        problem: str = "",
    ) -> None:  # fmt: skip
        seconds = time.monotonic() - self._start
        if status == "ok":
            # It has said everything and leaves by itself: only its pipe and its entry remain.
            os.close(self.pipe)
            with contextlib.suppress(OSError):
                os.waitpid(self._pid, 0)
        else:
            self.kill()
        self._ended = Done(
            name=self._name, status=status, seconds=seconds, result=result, problem=problem
        )

    def _how_it_died(self) -> str:
        at = f" in {self._stage}" if self._stage else ""
        with contextlib.suppress(OSError):
            _pid, status = os.waitpid(self._pid, 0)
            if os.WIFSIGNALED(status):
                return f"killed by {signal.Signals(os.WTERMSIG(status)).name}{at}"
            return f"ended with exit status {os.waitstatus_to_exitcode(status)}{at}"
        return f"ended without an answer{at}"


class _Pipe:
    """The child's end of the pipe."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def send(self, kind: bytes, payload: bytes) -> None:
        data = memoryview(_FRAME.pack(kind, len(payload)) + payload)
        while data:
            data = data[os.write(self._handle, data) :]

    def stage(self, name: str) -> None:
        self.send(_STAGE, name.encode())

    def started(self, pid: int) -> None:
        self.send(_STARTED, str(pid).encode())


def _be_child(handle: int, work: Work) -> NoReturn:
    """Live as the child: its own session, no streams, one answer, and no exit handlers."""
    status = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        sys.stdout = sys.stderr = os.fdopen(null, "w")
        faulthandler.disable()
        _no_core_dump()
        pipe = _Pipe(handle)
        try:
            pipe.send(_RESULT, work(pipe))
            status = 0
        except BaseException as error:  # noqa: BLE001  # nothing may escape into the parent's code
            pipe.send(_CRASH, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(status)


def _no_core_dump() -> None:
    import resource  # noqa: PLC0415  # not on Windows

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _take_frame(said: bytearray) -> tuple[bytes, bytes] | None:
    if len(said) < _FRAME.size:
        return None
    kind, length = _FRAME.unpack_from(said)
    if len(said) < _FRAME.size + length:
        return None
    payload = bytes(said[_FRAME.size : _FRAME.size + length])
    del said[: _FRAME.size + length]
    return kind, payload


class _Threaded:
    """The same, in a daemon thread: it cannot be killed, but it can be left behind."""

    def __init__(self, name: str, work: Work, deadline: float) -> None:
        self.deadline = deadline
        self.ended: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._name = name
        self._start = time.monotonic()
        self._stage = ""
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def stage(self, name: str) -> None:
        """Name the dangerous step that comes next."""
        self._stage = name

    def started(self, pid: int) -> None:
        """Nothing to note: there are no sessions here."""

    def done(self) -> Done | None:
        """Return how it ended; leave it behind when its time is up."""
        with contextlib.suppress(queue.Empty):
            return self.ended.get_nowait()
        if time.monotonic() < self.deadline:
            return None
        at = f" in {self._stage}" if self._stage else ""
        return self._say("timed-out", problem=f"no answer{at} in time")

    def kill(self) -> None:
        """A thread cannot be killed; as a daemon it does not hold the process."""

    def _run(self, work: Work) -> None:
        try:
            self.ended.put(self._say("ok", result=work(self)))
        except BaseException as error:  # noqa: BLE001  # a crash of a probe is a result
            self.ended.put(self._say("crashed", problem=f"{type(error).__name__}: {error}"))

    def _say(
        self, status: Literal["ok", "crashed", "timed-out"], *, result: bytes = b"",
        problem: str = "",
    ) -> Done:  # fmt: skip
        seconds = time.monotonic() - self._start
        return Done(name=self._name, status=status, seconds=seconds, result=result, problem=problem)


def _sleep_until(end: float, children: list[_Threaded]) -> None:
    while time.monotonic() < end and all(child.ended.empty() for child in children):
        time.sleep(0.005)
