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


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    stdin: bytes,
    env: Mapping[str, str],
    started: Callable[[int], None],
) -> Answer[Ran]:
    """Run ``argv`` for at most ``timeout`` seconds; keep at most 1 MiB of each stream.

    ``stdin`` is written at once, so it must fit into a pipe (64 KiB on Linux). A command that does
    not end is killed with its session, or left behind when it cannot be killed. ``started`` gets
    the process id at once, so that a killed probe does not leave its command running.
    """
    words = " ".join(argv[:3])
    end = time.monotonic() + timeout
    try:
        process = subprocess.Popen(  # noqa: S603  # argv is ours, no shell
            list(argv),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_c_locale(env),
            start_new_session=True,
        )
    except FileNotFoundError:
        return Answer(None, words, say("not found"), missing=True)
    except (OSError, ValueError) as error:
        return Answer(None, words, say("did not start: {error}", error=error))
    started(process.pid)
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.write(stdin)
        with contextlib.suppress(OSError):
            process.stdin.close()
    if os.name == "nt":
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
        return process.wait(max(0.0, end - time.monotonic()) + _GRACE)
    except subprocess.TimeoutExpired:
        return None


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
