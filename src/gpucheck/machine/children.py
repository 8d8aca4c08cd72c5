"""Runs tasks in parallel, each in a forked child that can be abandoned.

Everything that can block in a driver or on a network disk runs here. A child has its own session
and no inherited stream; one that asks a driver ends with its parent (``lifeline``). It is killed at
its deadline, and *given up* when it cannot be killed (a process in uninterruptible sleep). The
parent never waits beyond a deadline, and the deadlines of children that run side by side do not add
up. Where there is no ``fork`` (Windows), daemon threads take the place of children.
"""

import contextlib
import faulthandler
import math
import os
import select
import signal
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, NoReturn, Protocol

import msgspec

from gpucheck.facts.numbers import whole_number
from gpucheck.facts.streams import ENDING, held, let_through
from gpucheck.language import say
from gpucheck.machine import process_end
from gpucheck.machine.process_end import signal_name

if sys.platform != "win32":
    import resource  # here once, rather than in every child

_FRAME = struct.Struct("!cI")
_ANSWER, _STAGE, _STARTED, _END, _CRASH = b"a", b"s", b"p", b"e", b"c"
# Bytes; chosen: an answer has some KB, and a driver's library may write into the pipe.
_LIMIT = 64 * 1024 * 1024
_FORKS = hasattr(os, "fork")
_SHORTEST_WAIT = 0.02  # seconds; chosen: shorter waits are usual, and would only wake the parent
_LAST_MESSAGES = 0.1
"""Seconds for the last messages of a child that was killed."""
_FAREWELL = 0.5
"""Seconds for children that have said everything to be taken apart by the kernel."""
_TICK = 0.002  # seconds until a child that has closed its pipe is a zombie, usually at once
_MOST_PID = 2**31  # pid_t has 32 bits with a sign


class Tell(Protocol):
    """How a task reports to the parent while it runs."""

    def answer(self, data: bytes) -> None:
        """Send one answer; a task may send several."""

    def stage(self, name: str) -> None:
        """Name the dangerous step that comes next."""

    def started(self, pid: int) -> None:
        """Report a process that was started and leads a session of its own."""


Work = Callable[[Tell], None]
Status = Literal["ok", "crashed", "timed-out"]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a task."""

    name: str
    data: bytes


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """How a task ended; ``seconds`` since its last answer or its start."""

    name: str
    status: Status
    seconds: float
    problem: str = ""


def waited_for_processor(pid: int | str = "self") -> float:
    """Return for how many seconds a process has waited for a processor; 0 if unknown."""
    try:
        file = os.open(f"/proc/{pid}/schedstat", os.O_RDONLY)  # asked for each file that is read
        try:
            return int(os.read(file, 100).split()[1]) / 1e9
        finally:
            os.close(file)
    except (OSError, ValueError, IndexError):
        return 0.0


class Children:
    """The tasks that are running.

    Args:
        latest: the latest time (of ``time.monotonic()``) to which waiting for a processor may
            extend a deadline; None never extends one.
    """

    def __init__(self, latest: float | None = None) -> None:
        self._latest = latest
        self._under_way: dict[str, _Forked | _Threaded] = {}
        self._leaving: list[_Forked | _Threaded] = []
        """Those that have said everything; the kernel takes a moment to take them apart."""

    def start(self, name: str, work: Work, deadline: float) -> None:
        """Start a task; ``deadline`` is a time of ``time.monotonic()``."""
        if not _FORKS:
            self._under_way[name] = _Threaded(name, work, deadline, self._latest)
            return
        with held():
            self._under_way[name] = _Forked(name, work, deadline, self._latest)

    def extend(self, name: str, deadline: float) -> None:
        """Give a running task another deadline."""
        if name in self._under_way:
            self._under_way[name].renew(deadline)

    def names(self) -> list[str]:
        """Return the names of the tasks that have not ended yet."""
        return list(self._under_way)

    def wait(self, until: float) -> list[Said | Done]:
        """Wait until a task answers or ends, a deadline passes, or the time ``until`` has come."""
        end = min([until, *(child.deadline for child in self._under_way.values())])
        if _FORKS:
            self._select(end)
        else:
            _sleep_until(end, [c for c in self._under_way.values() if isinstance(c, _Threaded)])
        heard = [event for child in self._under_way.values() for event in child.events()]
        for event in heard:
            if isinstance(event, Done):
                self._leaving.append(self._under_way.pop(event.name))
        self._leaving = [child for child in self._leaving if not child.gone()]
        return heard

    def give_up(self, name: str, problem: str) -> Done:
        """Kill a task whose answer makes no sense, and return its end."""
        child = self._under_way.pop(name, None)
        if child is not None:
            child.kill()
        return Done(name=name, status="crashed", seconds=0.0, problem=problem)

    def stop(self) -> None:
        """Kill the children that still run, and reap those that have ended; no signal cuts it."""
        with held():
            for child in self._under_way.values():
                child.kill()
            self._under_way.clear()
            end = time.monotonic() + _FAREWELL
            left = self._leaving
            while (
                left := [remaining for remaining in left if not remaining.gone()]
            ) and time.monotonic() < end:
                time.sleep(_TICK / 4)
            self._leaving.clear()

    def _select(self, end: float) -> None:
        poll = select.poll()
        forked = {
            child.pipe: child for child in self._under_way.values() if isinstance(child, _Forked)
        }
        if closed := [pipe for pipe, child in forked.items() if child.has_closed]:
            end = min(end, time.monotonic() + _TICK)
        for pipe in forked.keys() - closed:
            poll.register(pipe, select.POLLIN)
        for pipe, _events in poll.poll(math.ceil(max(0.0, end - time.monotonic()) * 1000)):
            forked[pipe].read()


class _Child:
    """The common part of a forked and a threaded child."""

    def __init__(self, name: str, deadline: float, latest: float | None) -> None:
        self.deadline = deadline
        self._latest = latest
        self._name = name
        self._since = time.monotonic()
        self._stage = ""

    def renew(self, deadline: float) -> None:
        """Set another deadline."""
        self.deadline = deadline

    def _output(self, data: bytes) -> Said:
        self._since = time.monotonic()
        self._stage = ""
        return Said(name=self._name, data=data)

    def _done(self, status: Status, problem: str = "") -> Done:
        seconds = time.monotonic() - self._since
        return Done(name=self._name, status=status, seconds=seconds, problem=problem)

    def _late(self) -> str:
        seconds = time.monotonic() - self._since
        if self._stage:
            return say(
                "no answer from {stage} within {seconds:.0f} s", stage=self._stage, seconds=seconds
            )
        return say("no answer after {seconds:.0f} s", seconds=seconds)


class _Forked(_Child):
    """One child process and its messages so far."""

    def __init__(self, name: str, work: Work, deadline: float, latest: float | None = None) -> None:
        super().__init__(name, deadline, latest)
        self._waited = 0.0
        self._bytes = bytearray()
        self._events: list[Said | Done] = []
        self._ended = False
        self._exits = False
        self.has_closed = False
        """Whether its pipe is closed. It has ended, or some library closed every file."""
        self._sessions: list[int] = []
        sys.stdout.flush()
        sys.stderr.flush()
        self.pipe, theirs = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.pipe)
            _be_child(theirs, work, parent)
        os.close(theirs)
        self._sessions.append(self._pid)

    def read(self) -> None:
        """Read the child's messages."""
        data = os.read(self.pipe, 1 << 18)
        self._bytes += data
        if len(self._bytes) > _LIMIT:
            self._end("crashed", say("it answered more than {limit} MiB", limit=_LIMIT >> 20))
            return
        while not self._ended and (frame := _take_frame(self._bytes)):
            self._hear(*frame)
        self.has_closed = not data

    def events(self) -> list[Said | Done]:
        """Return the messages since the last call; kill the child first if its time is over."""
        if self.has_closed and not self._ended:
            self._see_its_end()
        late = time.monotonic() >= self.deadline
        if late and not self._ended and not self._events and not self._put_off():
            self._end("timed-out", self._late())
        events, self._events = self._events, []
        return events

    def renew(self, deadline: float) -> None:
        """Set another deadline; earlier waiting for a processor does not extend it."""
        self._waited = waited_for_processor(self._pid)
        super().renew(deadline)

    def _put_off(self) -> bool:
        """Extend the deadline by the child's waiting for a processor since the last call.

        So no answer is lost on a busy machine. A child that hangs for another reason gets no more
        time.
        """
        waited = waited_for_processor(self._pid)
        more, self._waited = waited - self._waited, waited
        now = time.monotonic()
        if self._latest is None or now >= self._latest or more < _SHORTEST_WAIT:
            return False
        self.deadline = min(now + more, self._latest)
        return True

    def kill(self) -> None:
        """Kill the child and the sessions that it started; do not wait if it cannot be killed."""
        for session in self._sessions:
            _kill_session(session)
        with contextlib.suppress(OSError):
            self._kill_the_latest()
        with contextlib.suppress(OSError):
            os.close(self.pipe)
        with contextlib.suppress(OSError):
            os.waitpid(self._pid, os.WNOHANG)

    def _kill_the_latest(self) -> None:
        """Kill what the child has started since its messages were read.

        A command announces itself before it begins, so the end of the pipe is the end of the list.
        Only a child that cannot be killed keeps the pipe open.
        """
        end = time.monotonic() + _LAST_MESSAGES
        poll = select.poll()
        poll.register(self.pipe, select.POLLIN)
        while poll.poll(math.ceil(max(0.0, end - time.monotonic()) * 1000)):
            data = os.read(self.pipe, 1 << 18)
            self._bytes += data
            if not data or len(self._bytes) > _LIMIT:
                break
        while frame := _take_frame(self._bytes):
            for leader in _leader_in(frame[1]) if frame[0] == _STARTED else ():
                _kill_session(leader)

    def _end_group(self) -> None:
        """Kill the child, which has sent everything, and whatever a library has forked in it."""
        with contextlib.suppress(OSError):
            os.killpg(self._pid, signal.SIGKILL)

    def gone(self) -> bool:
        """Whether nothing is left to wait for; a child that had to be killed is not waited for."""
        with contextlib.suppress(OSError):
            return not self._exits or os.waitpid(self._pid, os.WNOHANG)[0] != 0
        return True

    def _hear(self, kind: bytes, payload: bytes) -> None:
        if kind == _ANSWER:
            self._events.append(self._output(payload))
        elif kind == _STAGE:
            self._stage = payload.decode("utf-8", "replace")
        elif kind == _STARTED:
            self._sessions += _leader_in(payload)
        elif kind == _CRASH:
            self._end("crashed", payload.decode("utf-8", "replace"))
        else:
            self._end("ok")

    def _end(self, status: Status, problem: str = "") -> None:
        self._events.append(self._done(status, problem))
        self._ended = True
        if status != "ok":
            self.kill()
            return
        # Its number stays its own until it is waited for.
        self._end_group()
        os.close(self.pipe)
        self._exits = True

    def _see_its_end(self) -> None:
        """Note how it died, once it has; it may also go on without its pipe."""
        try:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
        except OSError:
            self._end("crashed", self._without_answer())
            return
        if pid and os.WIFSIGNALED(status):
            self._end("crashed", self._killed_by(signal_name(os.WTERMSIG(status))))
        elif pid:
            self._end("crashed", self._ended_with(os.waitstatus_to_exitcode(status)))

    def _without_answer(self) -> str:
        if self._stage:
            return say("ended without an answer in {stage}", stage=self._stage)
        return say("ended without an answer")

    def _killed_by(self, name: str) -> str:
        if self._stage:
            return say("killed by {signal} in {stage}", signal=name, stage=self._stage)
        return say("killed by {signal}", signal=name)

    def _ended_with(self, status: int) -> str:
        if self._stage:
            return say(
                "ended with exit status {status} in {stage}", status=status, stage=self._stage
            )
        return say("ended with exit status {status}", status=status)


def _leader_in(payload: bytes) -> tuple[int, ...]:
    """Return the process that a message names; () if it names none.

    A library in the child may have written the message. 0 would stand for this process's own group.
    """
    number = whole_number(payload.decode("ascii", "replace"))
    return (number,) if number is not None and 1 < number < _MOST_PID else ()


def _kill_session(leader: int) -> None:
    for send in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            send(leader, signal.SIGKILL)


class _Pipe:
    """The child's end of the pipe."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        data = memoryview(_FRAME.pack(kind, len(payload)) + payload)
        while data:
            data = data[os.write(self._handle, data) :]

    def answer(self, data: bytes) -> None:
        self.send(_ANSWER, data)

    def stage(self, name: str) -> None:
        self.send(_STAGE, _encoded(name))

    def started(self, pid: int) -> None:
        self.send(_STARTED, str(pid).encode())


def _be_child(handle: int, work: Work, parent: int) -> NoReturn:
    """Run as the child: with its own session, without streams and exit handlers."""
    status = 1
    try:
        os.setsid()
        process_end.is_child_of(parent)
        null = nothing()
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        sys.stdout = sys.stderr = os.fdopen(null, "w")
        faulthandler.disable()
        _no_core_dump()
        # The parent notices a signal by itself. It could not name one that became an exception.
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        let_through()
        pipe = _Pipe(handle)
        try:
            work(pipe)
            pipe.send(_END)
            status = 0
        except BaseException as error:  # noqa: BLE001  # nothing may escape into the parent's code
            pipe.send(_CRASH, _encoded(f"{type(error).__name__}: {error}"))
    finally:
        os._exit(status)


def nothing() -> int:
    """Open what takes the place of the streams; a minimal container may not have ``/dev/null``."""
    try:
        return os.open(os.devnull, os.O_RDWR)
    except OSError:
        return os.memfd_create("nothing")


def _encoded(words: str) -> bytes:
    """Encode text that may contain a file name that is not UTF-8."""
    return words.encode("utf-8", "backslashreplace")


def _no_core_dump() -> None:
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _take_frame(buffer: bytearray) -> tuple[bytes, bytes] | None:
    if len(buffer) < _FRAME.size:
        return None
    kind, length = _FRAME.unpack_from(buffer)
    if len(buffer) < _FRAME.size + length:
        return None
    payload = bytes(buffer[_FRAME.size : _FRAME.size + length])
    del buffer[: _FRAME.size + length]
    return kind, payload


class _Threaded(_Child):
    """The same in a daemon thread: it cannot be killed, but it can be abandoned."""

    def __init__(self, name: str, work: Work, deadline: float, latest: float | None = None) -> None:
        super().__init__(name, deadline, latest)
        self.queue: deque[Said | Done] = deque()
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def answer(self, data: bytes) -> None:
        """Give one answer."""
        self.queue.append(self._output(data))

    def stage(self, name: str) -> None:
        """Name the dangerous step that comes next."""
        self._stage = name

    def started(self, pid: int) -> None:
        """Do nothing: there are no sessions here."""

    def events(self) -> list[Said | Done]:
        """Return the messages since the last call; abandon the thread if its time is over."""
        events: list[Said | Done] = []
        while self.queue:
            events.append(self.queue.popleft())
        if not events and time.monotonic() >= self.deadline:
            events.append(self._done("timed-out", self._late()))
        return events

    def kill(self) -> None:
        """Abandon the thread: it cannot be killed, but a daemon does not keep the process alive."""

    def gone(self) -> bool:
        """Whether nothing is left to wait for: a daemon thread needs no reaping."""
        return True

    def _run(self, work: Work) -> None:
        try:
            work(self)
            self.queue.append(self._done("ok"))
        except BaseException as error:  # noqa: BLE001  # a crash of a probe is a result
            self.queue.append(self._done("crashed", f"{type(error).__name__}: {error}"))


def _sleep_until(end: float, children: list[_Threaded]) -> None:
    while time.monotonic() < end and not any(child.queue for child in children):
        time.sleep(0.005)
