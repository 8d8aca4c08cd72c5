"""Runs one command that changes something, and knows whether an earlier one is still at it.

The command writes into a file and holds a lock, both without this process: it goes on undisturbed
if this process is killed, and the next one sees by the lock that it has not ended yet.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

if sys.platform != "win32":
    import fcntl

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
            _end(process)
            raise
        finally:
            pump()
    return process.returncode


def _end(process: "subprocess.Popen[bytes]") -> None:
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
