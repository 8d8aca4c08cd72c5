"""Starts workers in the target interpreter: forked by a zygote, or each a process of its own.

Both speak the same messages (``worker/channel.py``): JSON between random marks on stdout, where
anything else that a broken environment prints is passed over.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from gpucheck import worker
from gpucheck.facts import Answer
from gpucheck.host.supervised import Supervised, wait

Message = dict[str, Any]
Start = Callable[[list[str]], Answer[Supervised]]

_BOOTSTRAP = str(Path(worker.__file__).with_name("bootstrap.py"))
_LARGEST = 4 * 1024 * 1024
"""Bytes between two marks; more is no answer of ours."""
_GOODBYE = 1.0
"""Seconds for the zygote to end its workers before it is killed itself."""
_TICK = 0.02


class Crew(Protocol):
    """Workers under way, each known by a key."""

    def start(self, key: str, order: Message) -> str:
        """Start a worker; return why that was impossible, else ""."""

    def events(self, seconds: float) -> list[tuple[str, Message]]:
        """Wait at most so long; return what workers have said, and that one has ended."""

    def signal(self, key: str, number: int) -> None:
        """Send a signal to a worker's process group."""

    def close(self) -> None:
        """Kill what still runs."""


class Stream:
    """Takes messages out of what a program writes."""

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._rest = b""

    def messages(self, data: bytes) -> list[Message]:
        """Return the messages that are complete by now."""
        parts = (self._rest + data).split(self._mark)
        # Noise and messages alternate; an even number of parts ends with half a message.
        half = len(parts) % 2 == 0
        rest = parts.pop()
        self._rest = (self._mark if half else b"") + rest[-_LARGEST:]
        return [read_message(part) for part in parts[1::2]]


def read_message(text: bytes) -> Message:
    """Read one message; what is none becomes the message that says so."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        return {"event": "bad-answer", "text": text[:200].decode("utf-8", "replace")}
    return message


class _Program:
    """A process in the target interpreter and the messages that it sends."""

    def __init__(self, start: Start, python: str, part: str) -> None:
        mark = os.urandom(12).hex()
        self._stream = Stream(mark)
        answer = start([python, _BOOTSTRAP, mark, part])
        self.child = answer.value
        self.problem = answer.problem
        self.ended = False

    def send(self, message: Message) -> None:
        """Send one line of JSON."""
        if self.child is not None:
            self.child.send(json.dumps(message).encode("ascii") + b"\n")

    def messages(self) -> list[Message]:
        """Return what it has said, and at last how it has ended."""
        if self.child is None or self.ended:
            return []
        status = self.child.status()
        found = self._stream.messages(self.child.said())
        if status is not None:
            self.ended = True
            found.append(_ended(status, self.child.printed()))
        return found


def _ended(status: int, printed: str) -> Message:
    return {
        "event": "ended",
        "status": status if status >= 0 else None,
        "signal": -status if status < 0 else None,
        "printed": printed,
    }


class OneByOne:
    """Workers that are processes of their own, each of which imports torch."""

    def __init__(self, start: Start, python: str) -> None:
        self._start = start
        self._python = python
        self._programs: dict[str, _Program] = {}

    def start(self, key: str, order: Message) -> str:
        """Start a worker; return why that was impossible, else ""."""
        program = _Program(self._start, self._python, "worker")
        if program.child is None:
            return program.problem
        program.send(order)
        self._programs[key] = program
        return ""

    def events(self, seconds: float) -> list[tuple[str, Message]]:
        """Wait at most so long; return what workers have said, and that one has ended."""
        wait([one.child for one in self._programs.values() if one.child is not None], seconds)
        found = [(key, m) for key, one in self._programs.items() for m in one.messages()]
        for key, message in found:
            if message["event"] == "ended":
                self._forget(key)
        return found

    def signal(self, key: str, number: int) -> None:
        """Send a signal to a worker's process group."""
        if key in self._programs and (child := self._programs[key].child) is not None:
            child.signal(number)

    def close(self) -> None:
        """Kill what still runs."""
        for key in list(self._programs):
            self._forget(key)

    def _forget(self, key: str) -> None:
        child = self._programs.pop(key).child
        if child is not None:
            child.abandon()


class FromZygote:
    """Workers that are forked by one process, which has imported torch once for all of them."""

    def __init__(self, start: Start, python: str) -> None:
        self._program = _Program(start, python, "zygote")
        self._under_way: dict[str, int] = {}
        self.problem = self._program.problem
        """Why it could not be started, else ""."""

    def start(self, key: str, order: Message) -> str:
        """Have a worker forked."""
        if self._program.ended:
            return "the process that forks the workers has ended"
        self._program.send({"worker": key, "order": order})
        self._under_way[key] = 0
        return ""

    def pid(self, key: str) -> int:
        """Return the process of a worker under way, 0 as long as that is not known."""
        return self._under_way.get(key, 0)

    def events(self, seconds: float) -> list[tuple[str, Message]]:
        """Wait at most so long; return what workers have said, and that one has ended.

        What the zygote says of itself has the key ""; when it ends, so have all its workers.
        """
        if self._program.child is None:
            return []
        wait([self._program.child], seconds)
        found: list[tuple[str, Message]] = []
        for message in self._program.messages():
            key = str(message.get("worker", ""))
            if message.get("event") == "said":
                found.append((key, read_message(str(message.get("said")).encode())))
                continue
            if message.get("event") == "forked":
                self._under_way[key] = int(message.get("pid") or 0)
                continue
            found.append((key, message))
            if key:
                self._under_way.pop(key, None)
            elif message.get("event") == "ended":
                found += [(key, message) for key in self._under_way]
                self._under_way.clear()
        return found

    def signal(self, key: str, number: int) -> None:
        """Send a signal to a worker's process group; with "" to the zygote itself."""
        if key:
            self._program.send({"worker": key, "signal": number})
        elif self._program.child is not None:
            self._program.child.signal(number)

    def close(self) -> None:
        """End the zygote: it kills its workers with all that they have started."""
        child = self._program.child
        if child is None:
            return
        if self._under_way:
            child.hang_up()
            end = time.monotonic() + _GOODBYE
            while child.status() is None and time.monotonic() < end:
                wait([child], _TICK)
        self._under_way.clear()
        child.abandon()
