"""Runs one command: no shell, C locale, its own session, bounded in time and output."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine.base import OUTPUT_LIMIT, Ran

_CHUNK = 65536
_GRACE = 0.2
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.05


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    stdin: bytes,
    env: Mapping[str, str],
    started: Callable[[int], None] | None,
) -> Answer[Ran]:
    """Run ``argv`` for at most ``timeout`` seconds; keep at most 1 MiB of each stream.

    ``stdin`` is written at once, so it must fit into a pipe (64 KiB on Linux). A command that does
    not end is killed with its session, or left behind when it cannot be killed. What a command has
    left in its process group is killed as well. ``started`` gets the process id before the command
    begins, so that a probe that is killed at any moment does not leave its command running. None
    where there is no such probe.
    """
    words = " ".join(argv[:3])
    end = time.monotonic() + timeout
    unix = os.name != "nt"
    try:
        process = subprocess.Popen(  # noqa: S603  # argv is ours, no shell
            list(argv),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_c_locale(env),
            start_new_session=True,
            # In a probe, which has no threads: without a listener nothing runs after the fork.
            preexec_fn=(lambda: _announce(started)) if unix and started else None,  # noqa: PLW1509
        )
    except FileNotFoundError:
        return Answer(None, words, say("not found"), missing=True)
    except (OSError, ValueError) as error:
        return Answer(None, words, say("did not start: {error}", error=error))
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.write(stdin)
        with contextlib.suppress(OSError):
            process.stdin.close()
    if not unix:
        return _communicate(process, words, timeout)
    return _collect(process, words, end)


def _collect(process: "subprocess.Popen[bytes]", words: str, end: float) -> Answer[Ran]:
    kept = {"out": bytearray(), "err": bytearray()}
    with selectors.DefaultSelector() as selector:
        for name, stream in (("out", process.stdout), ("err", process.stderr)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, name)
        finished = _drain(selector, kept, end)
    status = _wait(process, end) if finished else None
    if status is None:
        _kill(process)
        return Answer(None, words, say("no answer in time, so it was killed"))
    return Answer(
        Ran(
            status=status,
            out=kept["out"].decode("utf-8", "replace"),
            err=kept["err"].decode("utf-8", "replace"),
        ),
        words,
    )


def _drain(selector: selectors.BaseSelector, kept: dict[str, bytearray], end: float) -> bool:
    """Read both streams to their end; False if the time ran out first."""
    while selector.get_map():
        left = end - time.monotonic()
        if left <= 0:
            return False
        for key, _events in selector.select(left):
            stream = key.fileobj
            data = os.read(key.fd, _CHUNK)
            if not data:
                selector.unregister(stream)
                _close(stream)
                continue
            # What exceeds the limit is read and dropped, so that the command can end.
            room = OUTPUT_LIMIT - len(kept[key.data])
            kept[key.data] += data[: max(0, room)]
    return True


def _close(stream: "IO[bytes] | int | object") -> None:
    close = getattr(stream, "close", None)
    if close is not None:
        close()


def _wait(process: "subprocess.Popen[bytes]", end: float) -> int | None:
    try:
        if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
            if not _wait_for_end(process.pid, end + _GRACE):
                return None
            # Until the leader is waited for, no other process can get the number of its group.
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.wait(max(0.0, end - time.monotonic()) + _GRACE)
    except subprocess.TimeoutExpired:
        return None


def _wait_for_end(pid: int, end: float) -> bool:
    """Wait until the child has ended, but do not reap it; False if the time ran out first."""
    pause = _SHORTEST_PAUSE
    with contextlib.suppress(ChildProcessError):  # SIGCHLD is ignored: the kernel has reaped it
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    return True


def _announce(started: Callable[[int], None]) -> None:
    with contextlib.suppress(OSError):
        started(os.getpid())


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the whole session; give up on a process in uninterruptible sleep."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    # Popen would warn about a child that is still there, and poll it later: give it up.
    if process.returncode is None:
        process.returncode = -signal.SIGKILL


def _communicate(process: "subprocess.Popen[bytes]", words: str, timeout: float) -> Answer[Ran]:
    """Collect the output where pipes cannot be polled (Windows)."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        return Answer(None, words, say("no answer in time, so it was killed"))
    return Answer(
        Ran(
            status=process.returncode,
            out=out[:OUTPUT_LIMIT].decode("utf-8", "replace"),
            err=err[:OUTPUT_LIMIT].decode("utf-8", "replace"),
        ),
        words,
    )


def _c_locale(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with messages in English and no colour."""
    kept = {name: value for name, value in env.items() if name not in ("LANGUAGE", "LANG")}
    return {**kept, "LC_ALL": "C", "NO_COLOR": "1"}
