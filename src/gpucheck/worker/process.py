"""The two roles of a process in the target interpreter: a worker, or a zygote of workers."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import time
import warnings
from typing import Any, Dict, NoReturn

from .channel import Channel, take_stdout
from .errors import explain
from .lifeline import die_with_parent, exit_without_writer, outlive_parent, show_stack_when_killed
from .runner import action
from .sessions import end_session, has_ended

# A process that imports torch and then only forks a fresh worker for each order.
#
# It runs no tensor operation and queries no device, because afterwards a forked child might hang or
# CUDA might refuse it. Orders come as lines on stdin; at the end of stdin all workers end too.

Message = Dict[str, Any]

_CHUNK = 65536  # bytes: what a pipe holds
_TAIL = 16 * 1024
"""Bytes kept of what a worker prints."""
_REST = 1024 * 1024
"""The most bytes that a pipe holds; what comes after them, another process is still writing."""
# Bytes; of a worker that writes without line ends, only the end can be a message.
_LONGEST_LINE = 1024 * 1024
_AT_WORK = 0.02
"""Seconds between two looks at whether a worker has ended."""


class _Worker:
    """One forked child, with its messages and its printed output."""

    def __init__(self, key: str, pid: int, messages: int, printed: int) -> None:
        self.key = key
        self.pid = pid
        self.messages = messages
        self.printed = printed
        self.line = b""
        self.tail = b""


class Zygote:
    """Forks workers and relays their messages."""

    def __init__(self, torch: Any, notes: Message, channel: Channel) -> None:  # noqa: ANN401
        self._torch = torch
        self._notes = notes
        self._channel = channel
        self._workers: dict[str, _Worker] = {}
        self._selector = selectors.DefaultSelector()
        self._commands = b""

    def serve(self) -> NoReturn:
        """Serve orders until stdin ends, then kill the workers with all their descendants."""
        outlive_parent()
        problem = _why_not_fork()
        self._channel.send({"event": "ready", "notes": self._notes, "cannot_fork": problem})
        self._selector.register(0, selectors.EVENT_READ, None)
        with contextlib.suppress(BrokenPipeError):
            self._work()
        self._end()

    def _work(self) -> None:
        while True:
            for key, _events in self._selector.select(_AT_WORK if self._workers else None):
                worker: _Worker | None = key.data
                data = os.read(key.fd, _CHUNK)
                if worker is None:
                    if not data:
                        return
                    self._command(data)
                elif not data:
                    self._selector.unregister(key.fd)
                elif key.fd == worker.messages:
                    self._relay(worker, data)
                else:
                    worker.tail = (worker.tail + data)[-_TAIL:]
            self._reap()

    def _command(self, data: bytes) -> None:
        self._commands += data
        *lines, self._commands = self._commands.split(b"\n")
        for line in lines:
            command: Message = json.loads(line)
            if "order" in command:
                self._fork(command["worker"], command["order"])
            else:
                self._signal(command["worker"], command["signal"])

    def _fork(self, key: str, order: Message) -> None:
        own = os.getpid()
        messages, child_says = os.pipe()
        printed, child_prints = os.pipe()
        with contextlib.suppress(Exception):  # the worker will say why
            action(order)  # its data is read once here, and not again by each worker
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that threads do not survive a fork is known
            pid = os.fork()
        if pid == 0:
            self._be_worker(own, child_says, child_prints, order)
        os.close(child_says)
        os.close(child_prints)
        worker = _Worker(key, pid, messages, printed)
        self._workers[key] = worker
        self._channel.send({"event": "forked", "worker": key, "pid": pid})
        for handle in (messages, printed):
            os.set_blocking(handle, False)
            self._selector.register(handle, selectors.EVENT_READ, worker)

    def _be_worker(self, parent: int, says: int, prints: int, order: Message) -> NoReturn:
        """Run as the child: in its own session, with its own streams and no exit handlers."""
        status = 1
        try:
            os.setsid()
            die_with_parent(parent)
            os.dup2(_empty(), 0)
            os.dup2(prints, 1)
            os.dup2(prints, 2)
            self._selector.close()
            self._channel.close()
            show_stack_when_killed()

            line = Channel(says, "")
            action(order)(self._torch, order, self._notes, line.send)
            line.send({"event": "end"})
            sys.stdout.flush()
            sys.stderr.flush()
            status = 0
        except Exception:  # noqa: BLE001  # nothing may escape into the zygote's code
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)

    def _relay(self, worker: _Worker, data: bytes) -> None:
        """Pass on a worker's messages, line by line."""
        worker.line += data
        *lines, worker.line = worker.line.split(b"\n")
        worker.line = worker.line[-_LONGEST_LINE:]
        for line in filter(None, lines):
            self._channel.pass_on(worker.key, line)

    def _reap(self) -> None:
        for worker in list(self._workers.values()):
            if has_ended(worker.pid):
                end_session(worker.pid)
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid == 0:
                continue
            self._drain(worker)
            del self._workers[worker.key]
            self._channel.send(
                {
                    "event": "ended",
                    "worker": worker.key,
                    "status": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                    "printed": worker.tail.decode("utf-8", "replace"),
                }
            )

    def _drain(self, worker: _Worker) -> None:
        """Read what is left in the pipes of a worker that has ended, and close them."""
        for handle in (worker.messages, worker.printed):
            with contextlib.suppress(OSError):
                left = _REST
                while left > 0:
                    data = os.read(handle, _CHUNK)
                    left -= len(data)
                    if not data:
                        break
                    if handle == worker.messages:
                        self._relay(worker, data)
                    else:
                        worker.tail = (worker.tail + data)[-_TAIL:]
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(handle)
            os.close(handle)

    def _signal(self, key: str, number: int) -> None:
        worker = self._workers.get(key)
        if worker is not None:
            for send in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    send(worker.pid, number)

    def _end(self) -> NoReturn:
        for key, worker in self._workers.items():
            self._signal(key, signal.SIGKILL)
            end_session(worker.pid)
        os._exit(0)


def _empty() -> int:
    """Return something to read that is empty; a minimal container may not have ``/dev/null``."""
    empty, end = os.pipe()
    os.close(end)
    return empty


def _why_not_fork() -> str:
    """Return why a forked child could not use CUDA ("" if it can): importing torch opened it."""
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return ""
    for name in names:
        with contextlib.suppress(OSError):  # the descriptor of the folder itself is closed by now
            path = os.readlink("/proc/self/fd/" + name)
            if path.startswith("/dev/nvidia"):
                return "importing torch opened " + path
    return ""


def main(mark: str, part: str) -> NoReturn:
    """Be a ``worker`` (one order, read from stdin) or a ``zygote`` (many)."""
    channel = take_stdout(mark)
    die_with_parent()
    show_stack_when_killed()
    status = 0
    try:
        _work(channel, part)
    except Exception:  # noqa: BLE001  # as Python would
        sys.excepthook(*sys.exc_info())
        status = 1
    # Everything is said. What a library has left behind (threads, an atexit) may fail or hang.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _work(channel: Channel, part: str) -> None:
    try:
        torch, notes = import_torch(channel)
    except Exception as error:  # noqa: BLE001  # that is the finding
        channel.send({"event": "import-failed", **explain(error)})
        return
    if part == "zygote":
        Zygote(torch, notes, channel).serve()
    channel.send({"event": "ready", "notes": notes})
    order: Message = json.loads(sys.stdin.readline())
    exit_without_writer()
    action(order)(torch, order, notes, channel.send)
    channel.send({"event": "end"})


def import_torch(channel: Channel) -> tuple[Any, Message]:
    """Import torch and nothing else; return the module and the seconds that the import took.

    Raises:
        Exception: whatever importing it raises.
    """
    channel.send({"event": "stage", "text": "import torch"})
    start = time.perf_counter()
    import torch  # noqa: PLC0415  # what is examined

    seconds = time.perf_counter() - start
    return torch, {"import_seconds": seconds, "torch": str(getattr(torch, "__version__", ""))}
