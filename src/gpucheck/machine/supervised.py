"""A supervised program: its owner can write to it, read from it, signal it and abandon it.

The program runs without a shell, in a session of its own. Its pipes are read as they fill, with
bounded memory. The supervisor never blocks on the program. A program that does not end even after
SIGKILL is stuck in a driver, and is left behind.
"""

import contextlib
import os
import queue
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine.sessions import end_session, has_ended

_CHUNK = 65536  # bytes: what a pipe holds
_TAIL = 32 * 1024
"""Bytes kept of the end of what the program prints on stderr."""
_REST = 1024 * 1024
"""The most bytes that a pipe holds; what comes after them, another process is still writing."""
_REST_SECONDS = 1.0
"""How long the threads may read what an ended program has left in its pipes."""
_TICK = 0.05  # seconds; chosen: how late the end of a program with closed pipes is seen
_SELECTS = os.name != "nt"
TERMINATE = int(signal.SIGTERM)
KILL = int(getattr(signal, "SIGKILL", signal.SIGTERM))
CONTINUE = int(getattr(signal, "SIGCONT", signal.SIGTERM))

_MOST_UNREAD = 64 * 1024 * 1024
"""Bytes that may wait; a program that leaves more unread is hung up on."""
_CAN_WAIT = os.name != "nt"


class Supervised:
    """One running program; made by :func:`start`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._outbox = Outbox(process.stdin) if process.stdin is not None else None
        self._stdout = bytearray()
        self._tail = bytearray()
        self._open: dict[str, IO[bytes]] = {}
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            if stream is not None:
                self._open[name] = stream
        self._queue: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._is_read = False
        """Whether nobody wants what the program, or what it has left behind, writes from now on."""
        self._pumps: list[threading.Thread] = []
        if not _SELECTS:
            for name, stream in self._open.items():
                pump = threading.Thread(target=self._pump, args=(name, stream), daemon=True)
                pump.start()
                self._pumps.append(pump)

    @property
    def pid(self) -> int:
        """The process id, which is also that of its process group."""
        return self._process.pid

    def send(self, data: bytes) -> None:
        """Write to its stdin; if it has ended, do nothing, because ``status`` reports that.

        What it does not read at once is written while somebody waits for it to say something.
        """
        if self._outbox is not None:
            self._outbox.put(data)

    def hang_up(self) -> None:
        """Close its stdin."""
        if self._outbox is not None:
            self._outbox.close()

    def read_now(self) -> None:
        """Read what it has written so far. A program that is not read stops at a full pipe."""
        wait([self], 0.0)

    def stdout(self) -> bytes:
        """Return its stdout since the last call."""
        data = bytes(self._stdout)
        self._stdout.clear()
        return data

    def printed(self) -> str:
        """Return the last part of its stderr."""
        return self._tail.decode("utf-8", "replace")

    def status(self) -> int | None:
        """Return its exit status (negative: the signal), None while it runs.

        Once it is not None, all output of the program has been read.
        """
        status = self._poll()
        if status is not None:
            self._take_rest()
        return status

    def _poll(self) -> int | None:
        """Return its exit status, and kill the rest of its session."""
        if self._process.returncode is None and has_ended(self.pid):
            end_session(self.pid)
        return self._process.poll()

    def signal(self, number: int) -> None:
        """Send a signal to its process group."""
        if os.name == "nt":
            self._process.kill()
            return
        for send in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                send(self.pid, number)

    def abandon(self) -> None:
        """Stop reading, and kill the program; leave it behind if it cannot be killed."""
        if self._poll() is None:
            self.signal(KILL)
            end_session(self.pid)
        self.hang_up()
        self._is_read = True
        self._pumps.clear()
        # Elsewhere a thread may be reading, and closing would wait for it: it closes what it reads.
        for stream in self._open.values() if _SELECTS else ():
            with contextlib.suppress(OSError, ValueError):
                stream.close()
        self._open.clear()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TICK)
        # Popen would warn about a child that is still there, and poll it later.
        if self._process.returncode is None:
            self._process.returncode = -KILL
            _dying.append(self.pid)

    def register(self, selector: selectors.BaseSelector) -> None:
        """Register its streams with the selector."""
        for stream in self._open.values():
            selector.register(stream, selectors.EVENT_READ, self)
        if self._outbox is not None and self._outbox.stream is not None:
            selector.register(self._outbox.stream, selectors.EVENT_WRITE, self)

    def serve(self, stream: object) -> None:
        """Read from one of the streams, or write to stdin what it has not read yet."""
        if self._outbox is not None and self._outbox.stream is stream:
            self._outbox.flush()
            return
        name = next(
            (name for name, open_stream in self._open.items() if open_stream is stream), None
        )
        if name is None:
            return
        data = os.read(self._open[name].fileno(), _CHUNK)
        if data:
            self._take(name, data)
        else:
            self._open.pop(name).close()

    def take_pumped(self) -> bool:
        """Take what the threads have read on systems whose pipes cannot be selected (Windows)."""
        size = self._queue.qsize()
        for _ in range(size):
            self._take(*self._queue.get_nowait())
        return size > 0

    def _take(self, name: str, data: bytes) -> None:
        if name == "stdout":
            self._stdout += data
        else:
            self._tail += data
            del self._tail[:-_TAIL]

    def _take_rest(self) -> None:
        """Read what is left in the pipes, which another process may still hold open."""
        if not _SELECTS:
            self._take_last_pumped()
            return
        for name, stream in list(self._open.items()):
            with contextlib.suppress(OSError):
                os.set_blocking(stream.fileno(), False)
                left = _REST
                while left > 0 and (data := os.read(stream.fileno(), _CHUNK)):
                    self._take(name, data)
                    left -= len(data)
            self._open.pop(name).close()

    def _take_last_pumped(self) -> None:
        """Take what the threads read until the pipes end; wait for them once, for a second."""
        end = time.monotonic() + _REST_SECONDS
        for pump in self._pumps:
            pump.join(max(0.0, end - time.monotonic()))
        self._pumps.clear()
        self._is_read = True
        self.take_pumped()

    def _pump(self, name: str, stream: IO[bytes]) -> None:
        """Read a stream to its end and close it; no other thread may, while this one reads."""
        with contextlib.suppress(OSError, ValueError), stream:
            while (data := os.read(stream.fileno(), _CHUNK)) and not self._is_read:
                self._queue.put((name, data))


_dying: list[int] = []
"""Those that were killed and not gone at once. Each is a zombie until somebody waits for it."""


def _reap() -> None:
    """Wait, without waiting, for those that have died since they were abandoned."""
    if os.name == "nt":
        return
    for pid in list(_dying):
        try:
            is_gone = os.waitpid(pid, os.WNOHANG)[0] == pid
        except OSError:  # somebody else has waited for it
            is_gone = True
        if is_gone:
            with contextlib.suppress(ValueError):  # another thread was faster
                _dying.remove(pid)


class _Started(subprocess.Popen[bytes]):
    """Hangs up when nobody knows it any more.

    A signal handler may raise between its start and the first line of its owner. Popen keeps it
    then, to reap it, and its pipes with it; the end of its stdin tells the program to end.
    """

    def __del__(self) -> None:
        # On Windows threads read the other two, and close them.
        for name in ("stdin", "stdout", "stderr") if _SELECTS else ("stdin",):
            stream = getattr(self, name, None)
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()
        super().__del__()


def start(argv: Sequence[str], env: Mapping[str, str]) -> Answer[Supervised]:
    """Start a program with pipes for its three streams, in a session of its own."""
    _reap()
    words = " ".join(argv[:2])
    try:
        process = _Started(  # argv is ours, no shell
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Answer(None, words, say("did not start: {error}", error=error))
    return Answer(Supervised(process), words)


def wait(programs: Sequence[Supervised], seconds: float) -> None:
    """Wait until one of the programs has written something, at most ``seconds``."""
    if not _SELECTS:
        end = time.monotonic() + seconds
        while sum(program.take_pumped() for program in programs) == 0 and time.monotonic() < end:
            time.sleep(_TICK / 5)
        return
    with selectors.DefaultSelector() as selector:
        for program in programs:
            program.register(selector)
        if not selector.get_map():
            time.sleep(min(seconds, _TICK))
            return
        for key, _events in selector.select(seconds):
            key.data.serve(key.fileobj)


def is_running(pid: int) -> bool:
    """Whether a process still runs (Linux); a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in (b"Z", b"X")


class Outbox:
    """Writes to a pipe without ever waiting for the reader.

    Where pipes cannot be made non-blocking (Windows), a daemon thread waits in their place.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._unsent = bytearray()
        self._queue: queue.SimpleQueue[bytes] | None = None
        if _CAN_WAIT:
            os.set_blocking(stream.fileno(), False)
        else:
            self._queue = queue.SimpleQueue()
            threading.Thread(target=self._pump, args=(self._queue,), daemon=True).start()

    @property
    def stream(self) -> IO[bytes] | None:
        """The pipe while something waits until it can take more, else None."""
        return self._stream if self._unsent and not self._stream.closed else None

    def put(self, data: bytes) -> None:
        """Write as much as the pipe takes; the rest waits for ``flush``."""
        if self._queue is not None:
            self._queue.put(data)
            return
        self._unsent += data
        self.flush()
        if len(self._unsent) > _MOST_UNREAD:
            self.close()

    def flush(self) -> None:
        """Write as much as the pipe takes now. If nobody can read it any more, drop it."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._stream.fileno(), self._unsent)]
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, ValueError):
            self._unsent.clear()

    def close(self) -> None:
        """Close the pipe; what still waits is dropped."""
        self._unsent.clear()
        if self._queue is not None:
            self._queue.put(b"")  # the thread may be writing, and closing would wait for it
            return
        with contextlib.suppress(OSError, ValueError):
            self._stream.close()

    def _pump(self, waiting: "queue.SimpleQueue[bytes]") -> None:
        with contextlib.suppress(OSError, ValueError), self._stream:
            while data := waiting.get():
                self._stream.write(data)
                self._stream.flush()
