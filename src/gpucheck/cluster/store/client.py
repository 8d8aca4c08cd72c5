"""A supervisor's connection to the store: it connects with patience, then never blocks.

A task leaves with the verdict: together with the others, and never late.
"""

import socket
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store import wire
from gpucheck.cluster.store.attempt import Ends, Secret, Who, words_of
from gpucheck.cluster.store.search import ConnectError, StoreSearch
from gpucheck.cluster.store.task_messages import Dismissal, Leaving
from gpucheck.cluster.store.wire import (
    LINE_LIMIT,
    WIDE,
    Add,
    Answer,
    Get,
    Ping,
    Set,
    StoreError,
    line,
)
from gpucheck.facts.numbers import whole_number
from gpucheck.language import plain, say

__all__ = ["TICK", "ConnectError", "Leader", "StoreClient", "leave"]
Then = Callable[[bytes | None], None]
"""Gets the JSON of a key; None when it has none."""
_READ = 256 * 1024
"""Bytes that are read at once. Chosen: a quarter of the longest line, so few calls for any."""
_READS = 32
"""How often one ``pump`` reads at most, so that it always returns."""
_UNSENT = 64 * 1024 * 1024
"""Bytes that may wait to be sent."""
_NULL = b"null"
_ANSWERS = msgspec.json.Decoder(Answer)
TICK = 0.02
"""Seconds between two turns of a task. Chosen: a fraction of any deadline, and no load on the
node."""
_LONG = 600.0
"""Seconds that one question to the store may wait; it is asked again, and ``wire.WAIT_LIMIT`` is
longer."""
_TOGETHER = 5.0
"""How long the task that has the store waits for the others to leave with the verdict."""
_GOODBYE = 1.0
"""Seconds for the others to hear that they may leave. Chosen: many round trips of any network."""


class StoreClient:
    """A supervisor's connection to the store of this run.

    Answers reach the callbacks while ``pump`` runs: call it when ``fileno`` is readable, and now
    and then. Once ``lost`` says why the connection is over, nothing is sent and no callback is
    called.
    """

    def __init__(
        self, connection: socket.socket, rest: bytes, beat: float = wire.LEAST, token: str = "",
        who: Who | None = None, ends: Ends | None = None,
    ) -> None:  # fmt: skip
        self._socket = connection
        self.token = token
        """The token that counted; "" without one."""
        self.who = who
        """Which task it said it is; None if it did not."""
        self._rest = bytearray(rest)
        self._unsent = bytearray()
        self._on_answer: dict[int, Callable[[bytes], None]] = {}
        self._number = 0
        self.beat = beat
        """The seconds between two heartbeats that the store wants."""
        self.lost = ""
        """Why the connection is over; "" while it is not."""
        self.refused = ""
        """What the store refused last, such as too many keys."""
        self.is_stalled = False
        """Whether the answer to a large message has not come so far."""
        self.last_heard = time.monotonic()
        """When something came last; a stopped store keeps the connection, but is silent."""
        known = ends or Ends()
        self.local_address = known.local
        self.peer_address = known.peer
        self.port = known.port
        connection.setblocking(False)  # noqa: FBT003  # the socket's own signature

    @classmethod
    def connect(
        cls, host: str, ports: Sequence[int], run: str, token: str | Secret = "",
        seconds: float = 60.0, who: Who | None = None,
    ) -> "StoreClient":  # fmt: skip
        """Try the ports until one has the store of this run, or the seconds are over.

        ``token`` may be a function: the token may be written only while this looks for the store.
        A store accepts one process for each task, if they say ``who`` they are.

        Raises:
            ConnectError: none did.
        """
        secret = token if callable(token) else lambda _asks: token
        met = StoreSearch(host, ports, run, secret, seconds, who).find()
        meeting = met.meeting
        beat = meeting.beat or wire.LEAST
        return cls(met.connection, meeting.rest, beat, meeting.token, who, met.ends)

    def set(self, key: str, value: object) -> None:
        """Set a key to JSON data, or a struct of it.

        Raises:
            StoreError: the value is too large.
        """
        self._ask(Set(self._next(), key, msgspec.Raw(msgspec.json.encode(value, enc_hook=plain))))

    def add(self, key: str, then: Callable[[int], None] | None = None, amount: int = 1) -> None:
        """Add to a counter; ``then`` gets its new value, 0 if it was refused."""
        hear = then or _ignore
        self._ask(Add(self._next(), key, amount), lambda text: hear(_number(text)))

    def get(self, key: str, wait: float, then: Then) -> None:
        """Get a key, for which the store waits this long; ``then`` gets None if in vain."""
        self._ask(Get(self._next(), key, wait), lambda text: then(None if text == _NULL else text))

    def ping(self) -> None:
        """Ask for any answer, whose time ``last_heard`` shows."""
        self._ask(Ping(self._next()))

    def send_wide(self) -> None:
        """Send a message that no frame takes, and ask for such an answer."""
        self.is_stalled = True

        def come(_text: bytes) -> None:
            self.is_stalled = False

        self._ask(Ping(self._next(), " " * WIDE), come)

    def fileno(self) -> int:
        """Return the file descriptor to wait on; -1 when closed."""
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._unsent) and not self.lost

    def pump(self) -> None:
        """Send waiting messages, read received ones, call the callbacks."""
        self._send()
        for _ in range(_READS):
            if self.lost or not self._read():
                return

    def close(self) -> None:
        """Close the connection."""
        self.lost = self.lost or "closed"
        self._socket.close()

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _ask(
        self, request: Set | Get | Add | Ping, hear: Callable[[bytes], None] | None = None
    ) -> None:
        if self.lost:
            return
        text = line(request)
        if len(text) > LINE_LIMIT:
            raise StoreError(
                say(
                    "a request of {size} bytes, more than a line of the store takes", size=len(text)
                )
            )
        if hear is not None:
            self._on_answer[request.id] = hear
        self._unsent += text
        self._send()

    def _send(self) -> None:
        while self._unsent and not self.lost:
            try:
                sent = self._socket.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                if len(self._unsent) > _UNSENT:
                    self._lose(say("the store no longer reads anything"))
                return
            except OSError as error:
                self._lose(words_of(error))
                return
            del self._unsent[:sent]

    def _read(self) -> bool:
        """Read once; whether there may be more."""
        try:
            data = self._socket.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._lose(words_of(error))
            return False
        if not data:
            self._lose(say("the store closed the connection"))
            return False
        self.last_heard = time.monotonic()
        self._rest += data
        if b"\n" in data:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            for text in lines:
                self._hear(text)
        if len(self._rest) > LINE_LIMIT:
            self._lose(say("the store sent a line without end"))
        return True

    def _hear(self, text: bytes) -> None:
        if self.lost:
            return
        try:
            answer = _ANSWERS.decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self._lose(say("the store sent something that is not an answer"))
            return
        if answer.error:
            self.refused = answer.error
        if answer.id == 0 and answer.error:
            self._lose(say("the store said: {error}", error=answer.error[:200]))
            return
        hear = self._on_answer.pop(answer.id, None)
        if hear is not None:
            hear(bytes(answer.value))

    def _lose(self, why: str) -> None:
        self.lost = why
        self._on_answer.clear()
        self._socket.close()


def _ignore(_number: int) -> None:
    """Ignore the answer."""


def _number(text: bytes) -> int:
    """Return the value of a counter, or 0 if the answer is not a number."""
    return whole_number(text.decode("ascii", "replace")) or 0


class Leader(Protocol):
    """What looks after the others in the task that has the store."""

    def tick(self) -> None:
        """Go on with what can be done now."""

    @property
    def all_have_left(self) -> bool:
        """Whether every task that lives has taken the verdict."""


def leave(store: StoreClient, task: int, end: float, leader: Leader | None = None) -> None:
    """Report that the verdict was taken and everything is written; leave with the others.

    A launcher may end the other tasks as soon as one leaves with a status that is not 0. So the
    task with the store, which has the most to write, says when all have taken the verdict. The
    others wait for that, but never beyond ``end``, a time of ``time.monotonic()``.
    """
    store.set(messages.LEAVING.key(task), Leaving())
    over: list[object] = []
    store.get(messages.DISMISSAL.name, _LONG, then=over.append)
    begun = time.monotonic()
    end = begun + _TOGETHER if leader is not None else min(begun + 2 * _TOGETHER, end)
    dismissed = False
    while not over and not store.lost:
        store.pump()
        if leader is not None and not dismissed:
            leader.tick()
            dismissed = leader.all_have_left or time.monotonic() > end
            if dismissed:
                store.set(messages.DISMISSAL.name, Dismissal())
                end = time.monotonic() + _GOODBYE
        elif time.monotonic() > end:
            return
        time.sleep(TICK)
