"""Trials of a pre-flight on real torch over gloo, each rank forked here."""

import faulthandler
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from worker_support import torch

from gpucheck.worker import trial

Message = dict[str, Any]
Fault = Callable[[], None]
"""Breaks torch in the process of one rank."""

FIRST = 10
"""The rank of the job that has the first place in the group: the two differ."""
SIZES = (4, 1 << 12, 1 << 16)
LIMIT = 90.0
"""Seconds after which ranks that were not to hang have failed, on a machine that others use too."""
_STAYS = 0.3
"""Seconds for which ranks that hang are given the chance not to."""


class Said(msgspec.Struct):
    """What a rank has said, and how its process has ended (as by ``waitpid``)."""

    messages: list[Message]
    status: int
    seconds: float
    """Of the CPU."""
    ended: float
    """When, by ``time.monotonic()``, give or take a few ms."""

    @property
    def result(self) -> Message:
        (result_message,) = (message for message in self.messages if message["event"] == "result")
        return result_message

    @property
    def phases(self) -> list[tuple[str, int]]:
        return [(m["phase"], m["collective"]) for m in self.messages if m["event"] == "phase"]


def order(index: int, size: int, **more: Any) -> Message:  # noqa: ANN401
    return {
        "trial": "collective", "rank": FIRST + index, "index": index, "size": size,
        "group": [FIRST + at for at in range(size)], "device": "cpu", "backend": "gloo",
        "store": None, "address": "127.0.0.1", "env": {}, "connect_seconds": 10.0, "seconds": 30.0,
        "sizes": list(SIZES), "tests": [], "level": "quick", "seed": 0, "drill": None, **more,
    }  # fmt: skip


def run_group(
    size: int,
    *,
    drills: Mapping[int, list[Message]] | None = None,
    faults: Mapping[int, Fault] | None = None,
    until: Sequence[tuple[str, int]] | None = None,
    **more: Any,  # noqa: ANN401
) -> list[Said]:
    """Run a trial in so many ranks; return what each has said, by its place in the group.

    Ranks that are to hang are killed when all have come to the phase and the collective that
    ``until`` has for each of them.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        children = {}
        for index in range(size):
            child = os.fork()
            if child == 0:
                fault = (faults or {}).get(index)
                own = (drills or {}).get(index)
                sent_order = order(
                    index, size, **({"drill": {"faults": own}} if own else {}), **more
                )
                _be_rank(sent_order, folder, fault)
            children[child] = index
        return _wait(children, folder, until)


def _be_rank(message: Message, folder: Path, fault: Fault | None) -> NoReturn:
    try:
        faulthandler.disable()  # pytest's: a crash that is made on purpose is no news
        stream = (folder / str(message["index"])).open("w", buffering=1)
        if fault is not None:
            fault()
        if message["index"] and message["trial"] == "collective" and message["store"] is None:
            message["store"] = {"host": "127.0.0.1", "port": _port(folder)}
        trial.run(torch, message, {}, lambda message: print(json.dumps(message), file=stream))
    finally:
        os._exit(0)


def _port(folder: Path) -> int:
    while True:
        for message in _read(folder / "0"):
            if message["event"] == "store":
                port: int = message["port"]
                return port
        time.sleep(0.002)


def _read(file: Path) -> list[Message]:
    if not file.exists():
        return []
    return [
        json.loads(line) for line in file.read_text().splitlines(keepends=True) if line[-1:] == "\n"
    ]


def _wait(
    children: dict[int, int], folder: Path, until: Sequence[tuple[str, int]] | None
) -> list[Said]:
    end = time.monotonic() + LIMIT
    found: dict[int, Said] = {}
    hang_rightly = False
    while len(found) < len(children):
        if until is not None and _phases(folder, len(children)) == list(until):
            end, until, hang_rightly = time.monotonic() + _STAYS, None, True
        for child, index in children.items():
            if index in found:
                continue
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid:
                seconds = usage.ru_utime + usage.ru_stime
                found[index] = Said(_read(folder / str(index)), status, seconds, time.monotonic())
            elif time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    group = [found[index] for index in range(len(children))]
    if not hang_rightly and any(output.status == signal.SIGKILL for output in group):
        raise AssertionError("ranks hung:\n" + "\n".join(map(repr, group)))
    return group


def _phases(folder: Path, size: int) -> list[tuple[str, int] | None]:
    """Return the last phase of each rank."""
    found: list[tuple[str, int] | None] = []
    for index in range(size):
        phases = [m for m in _read(folder / str(index)) if m["event"] == "phase"]
        found.append((phases[-1]["phase"], phases[-1]["collective"]) if phases else None)
    return found
