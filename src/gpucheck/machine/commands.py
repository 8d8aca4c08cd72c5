"""Runs one command: no shell, C locale, its own session, bounded in time."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine.base import OUTPUT_LIMIT, Ran
from gpucheck.machine.paths import which
from gpucheck.machine.sessions import end_session

if sys.platform != "win32":
    import fcntl


# Runs one command: no shell, C locale, its own session, bounded in time and output.

_CHUNK = 65536  # bytes: what a pipe holds
_SELECTS = os.name != "nt"
_GRACE = 0.2 if _SELECTS else 1.0
"""Seconds to end after the answer, and to read what a command that has ended has written. Threads
may come to that late."""
# Seconds. Most commands end at once, so the first looks come quickly; a budget of 0.12 s for a
# whole check leaves no room for one look of 50 ms (docs/evidence.md, static check).
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.05
_MOST_READS = 64
"""More than a pipe holds; what comes after them, another process is still writing."""
_KILL = 9  # SIGKILL; Windows' module signal has no such name


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    stdin: bytes,
    env: Mapping[str, str],
    started: Callable[[int], None] | None,
    mark: str = "",
) -> Answer[Ran]:
    """Run ``argv`` for at most ``timeout`` seconds; keep at most 1 MiB of each stream.

    ``stdin`` is written at once, so it must fit into a pipe (64 KiB on Linux). A command that does
    not end is killed with its session, or left behind when it cannot be killed. Nobody waits for
    what a command has left behind, even if that holds its streams open; what is in its process
    group is killed. ``started`` gets the process id before the command begins, so that a probe that
    is killed at any moment does not leave its command running. None where there is no such probe.
    ``mark`` stands before and after the answer in what the command writes: with the second one the
    answer is complete, however the command ends, or does not.
    """
    words = " ".join(argv[:3])
    end = time.monotonic() + timeout
    unix = os.name != "nt"
    try:
        process = subprocess.Popen(  # noqa: S603  # argv is ours, no shell
            list(argv),
            stdin=subprocess.PIPE,  # a minimal container may have no /dev/null
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_c_locale(env),
            start_new_session=True,
            # In a probe, which has no threads: without a listener nothing runs after the fork.
            preexec_fn=(lambda: _announce(started)) if unix and started else None,  # noqa: PLW1509
        )
    except (OSError, ValueError) as error:
        # A script whose interpreter is missing, or a program without its loader, is there.
        if isinstance(error, FileNotFoundError) and which(argv[0]) is None:
            return Answer(None, words, say("not found"), missing=True)
        return Answer(None, words, say("did not start: {error}", error=error))
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.write(stdin)
        with contextlib.suppress(OSError):
            process.stdin.close()
    return _collect(process, words, end, mark.encode())


def _collect(
    process: "subprocess.Popen[bytes]", words: str, end: float, mark: bytes
) -> Answer[Ran]:
    output: _Selected | _Pumped = _Selected(process) if _SELECTS else _Pumped(process)
    is_answered = is_over = False
    pause = _SHORTEST_PAUSE
    while (output.is_open or not is_over) and (now := time.monotonic()) < end:
        if output.is_open:
            output.read(min(_LONGEST_PAUSE, end - now))
        else:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        is_complete = is_answered or is_over
        is_over = is_over or _has_ended(process)
        is_answered = is_answered or (bool(mark) and output.kept["out"].count(mark) > 1)
        if (is_answered or is_over) and not is_complete:
            end = min(end, time.monotonic() + _GRACE)
    left = output.is_open or not is_over
    output.stop()
    status = _end(process, with_session=left)
    if not (is_answered or is_over):
        return Answer(None, words, say("no answer in time, so it was killed"))
    return Answer(
        Ran(
            status=status,
            out=output.kept["out"].decode("utf-8", "replace"),
            err=output.kept["err"].decode("utf-8", "replace"),
        ),
        words,
    )


class _Output:
    """The two streams of a command, and what it has written into them."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.kept = {"out": bytearray(), "err": bytearray()}
        self._streams: dict[str, IO[bytes]] = {}
        for name, stream in (("out", process.stdout), ("err", process.stderr)):
            if stream is not None:
                self._streams[name] = stream

    @property
    def is_open(self) -> bool:
        """Whether somebody can still write into one of the streams."""
        return bool(self._streams)

    def _take(self, name: str) -> bool:
        """Read once; at the end of the stream close it and return False."""
        data = os.read(self._streams[name].fileno(), _CHUNK)
        # What exceeds the limit is read and dropped, so that the command can end.
        self.kept[name] += data[: max(0, OUTPUT_LIMIT - len(self.kept[name]))]
        if not data:
            self._streams.pop(name).close()
        return bool(data)


class _Selected(_Output):
    """Reads where pipes can be selected."""

    def read(self, seconds: float) -> bool:
        """Read what there is; wait for it at most so long. False if there is nothing."""
        with selectors.DefaultSelector() as selector:
            for name, stream in self._streams.items():
                selector.register(stream, selectors.EVENT_READ, name)
            ready = selector.select(seconds)
            for key, _events in ready:
                self._take(key.data)
        return bool(ready)

    def stop(self) -> None:
        """Read what a busy machine has left no time for, and close the streams."""
        for _read in range(_MOST_READS):
            if not (self.is_open and self.read(0.0)):
                break
        while self._streams:
            self._streams.popitem()[1].close()


class _Pumped(_Output):
    """Reads in threads, where pipes cannot be selected (Windows)."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(process)
        for name in list(self._streams):
            threading.Thread(target=self._pump, args=(name,), daemon=True).start()

    def _pump(self, name: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            while self._take(name):
                pass

    def read(self, seconds: float) -> None:
        """Wait a moment for the threads."""
        time.sleep(min(seconds, _SHORTEST_PAUSE))

    def stop(self) -> None:
        """Leave the streams to the threads: closing one would wait for whoever reads it."""


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether a command has ended.

    Where that is possible it is not reaped: until then no other process can get the number of its
    group.
    """
    if not hasattr(os, "waitid"):  # Windows; macOS has it from Python 3.13 on
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # SIGCHLD is ignored: the kernel has reaped it
        return True


def _announce(started: Callable[[int], None]) -> None:
    with contextlib.suppress(OSError):
        started(os.getpid())


def _end(process: "subprocess.Popen[bytes]", *, with_session: bool) -> int:
    """Kill what a command has left behind, and itself; return its exit status.

    A process in uninterruptible sleep is given up. Its session is searched only if something is
    left, because that reads the state of every process of the machine.
    """
    if os.name == "nt":
        process.kill()
    elif process.returncode is None:
        if with_session:
            end_session(process.pid)
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    # Popen would warn about a child that is still there, and poll it later: give it up.
    if process.returncode is None:
        process.returncode = -_KILL
    return process.returncode


def _c_locale(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with messages in English and no colour."""
    kept = {name: value for name, value in env.items() if name not in ("LANGUAGE", "LANG")}
    return {**kept, "LC_ALL": "C", "NO_COLOR": "1"}


# Runs one command that changes something, and knows whether an earlier one is still at it.
#
# The command writes into a file and holds a lock, both without this process: it goes on undisturbed
# if this process is killed, and the next one sees by the lock that it has not ended yet.

_POLL = 0.05  # seconds; chosen: output looks alive, and nobody notices that the end is seen so late
_TO_END = 60.0
"""Seconds that pip gets after Ctrl-C to put back what it has half replaced."""
_PART = 65536  # bytes: what a pipe holds


class Lock:
    """A file that one process at a time holds, with its children; Windows has no such children."""

    def __init__(self, path: str) -> None:
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def taken(self) -> bool:
        """Take the lock; False if another process has it."""
        if sys.platform == "win32":
            return True
        try:
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Let go of it, as far as this process is concerned."""
        os.close(self.handle)


def change(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    log: str,
    lock: Lock,
    show: Callable[[bytes], None] | None,
) -> int:
    """Run a command to its end and return its status; its output is added to the file ``log``.

    It leads a session, so that Ctrl-C in a terminal does not reach it at an unknown moment: a
    signal that ends this process is passed on once, and the command gets time to clean up.

    Args:
        argv: the command; no shell sees it.
        env: its environment.
        cwd: its folder.
        log: the file for its output.
        lock: what it holds as long as it runs.
        show: gets the output as it comes.

    Raises:
        OSError: it could not be started.
    """
    with open(log, "ab") as out, open(log, "rb") as back:  # noqa: PTH123  # paths are strings here
        back.seek(0, os.SEEK_END)
        process = subprocess.Popen(  # noqa: S603  # argv is checked word by word (fixing/commands)
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=() if sys.platform == "win32" else (lock.handle,),
        )

        def pump() -> None:
            while (data := back.read(_PART)) and show is not None:
                show(data)

        try:
            while process.poll() is None:
                pump()
                time.sleep(_POLL)
        except BaseException:
            _changing_end(process)
            raise
        finally:
            pump()
    return process.returncode


def _changing_end(process: "subprocess.Popen[bytes]") -> None:
    """Pass the interruption on, once; kill what has not ended in time, or at the second Ctrl-C."""
    with contextlib.suppress(OSError, ValueError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_TO_END)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
