"""What all connections to a store share: the entries, who is connected, and who waits for what."""

import asyncio
import threading
import time
from collections.abc import Mapping
from typing import Protocol

import msgspec

from gpucheck.cluster.store import owners, pace, sockets
from gpucheck.cluster.store.entries import Entries, FullError, Share
from gpucheck.cluster.store.messages import LEAVING, VERDICT
from gpucheck.cluster.store.sockets import OWN_FILES
from gpucheck.cluster.store.strangers import Strangers
from gpucheck.cluster.store.wire import KEY_LIMIT, Add, Scene, TurnedAway, mark

_SPARE = 64
"""Connections beyond two for each expected client."""
_STRANGERS = 128
"""Connections without a valid hello, beyond the expected clients that have not come yet."""
_FEW = 32
"""Connections that are tried even with a low limit on open files."""
_WRONG = 64
"""From how many addresses wrong tokens are counted."""
_COUNTER_LIMIT = 2**53
"""Counters stay within the integers that every JSON reader accepts."""


class Peer(Protocol):
    """A connection, as far as the others have to do with it."""

    task: int
    process: str
    known: bool
    address: str
    waiting: dict[int, tuple[str, asyncio.TimerHandle]]

    def answer(self, number: int, value: bytes) -> None:
        """Answer a request with a JSON text."""

    def send_away(self) -> None:
        """Close, because others need the place."""

    def stop(self) -> None:
        """Close at once."""


def files_for(clients: int) -> int:
    """Return how many files a process needs that serves so many clients."""
    return 3 * clients + _SPARE + _STRANGERS + OWN_FILES


class Hub:
    """What all connections share.

    Everything but ``lock`` and ``entries`` is for the loop's thread only.
    """

    def __init__(
        self, scene: Scene, token: str, clients: int, marks: Mapping[int, str] | None = None
    ) -> None:
        self.scene = scene
        self.token = token
        self.beat = pace.beat(clients)
        self.lock = threading.Lock()
        self.entries = Entries(clients)
        self.clients = clients
        self._marks = marks or {}
        self._known: set[Peer] = set()
        self.tasks: dict[int, dict[Peer, None]] = {}
        """The connections of each task."""
        self._processes: dict[int, str] = {}
        self._strangers: Strangers[Peer] = Strangers()
        self._files = max(sockets.files_allowed() - OWN_FILES, _FEW)
        self._expected: dict[str, dict[tuple[Peer, int], None]] = {}
        self.wrong_tokens: dict[str, int] = {}
        """How often another token came, by address."""
        self.turned_away: dict[TurnedAway, None] = {}
        """Processes that are none of the tasks, as they said."""
        self.wide: set[int] = set()
        """The tasks whose large message has arrived."""
        self.broken: dict[int, float] = {}
        """When the last connection of a task ended that had not said that it leaves."""

    def enter(self, connection: Peer) -> None:
        """Note a new connection; others that are not known either may have to go for it."""
        self._strangers.add(connection, connection.address)
        while len(self._strangers) > self._most_strangers:
            one = self._strangers.next_out()
            self._strangers.remove(one, one.address)
            one.send_away()

    def welcome(self, connection: Peer) -> bool:
        """Note a connection with a valid hello; whether there is room for it."""
        self._strangers.remove(connection, connection.address)
        connection.known = len(self._known) < 2 * self.clients + _SPARE
        if connection.known:
            self._known.add(connection)
            if connection.task >= 0:
                self.tasks.setdefault(connection.task, {})[connection] = None
                self.broken.pop(connection.task, None)
                self._processes.setdefault(connection.task, connection.process)
        return connection.known

    def is_taken(self, connection: Peer) -> bool:
        """Whether another process is that task: one that is connected, or one that is known."""
        known = self._marks.get(connection.task)
        if known and known != mark(connection.process):
            return True
        others = self.tasks.get(connection.task, {})
        return any(one.process != connection.process for one in others)

    def is_over_for(self, connection: Peer) -> bool:
        """Whether it is of the next run of the same name: this one has a verdict and its tasks."""
        process = self._processes.get(connection.task, connection.process)
        return process != connection.process and self.get(VERDICT.name) is not None

    def note_wrong_token(self, address: str) -> None:
        """Count a token that is not ours, for a few addresses."""
        if address in self.wrong_tokens or len(self.wrong_tokens) < _WRONG:
            self.wrong_tokens[address] = self.wrong_tokens.get(address, 0) + 1

    def note_turned_away(self, one: TurnedAway) -> None:
        """Note who is none of the tasks, for a few of them."""
        if len(self.turned_away) < _WRONG:
            self.turned_away[one] = None

    def leave(self, connection: Peer) -> None:
        """Remove a connection and what it waits for."""
        self._known.discard(connection)
        if (those := self.tasks.get(connection.task)) is not None:
            was_there = connection in those
            those.pop(connection, None)
            if was_there and not those and self.get(LEAVING.key(connection.task)) is None:
                self.broken[connection.task] = time.monotonic()
        self._strangers.remove(connection, connection.address)
        for number in list(connection.waiting):
            self._forget_wait(connection, number)

    @property
    def _most_strangers(self) -> int:
        """How many connections may be without a valid hello now; clients come all at once."""
        missing = max(0, self.clients - len(self._known))
        return max(1, min(missing + _STRANGERS, self._files - len(self._known)))

    def get(self, key: str) -> bytes | None:
        """Return the JSON of a key."""
        with self.lock:
            return self.entries.get(key)

    def set(self, key: str, value: msgspec.Raw, share: Share, task: int) -> None:
        """Set a key for a task, and answer the clients that wait for it."""
        _refuse_for(key, task)
        text = bytes(value)
        msgspec.json.decode(text)  # whoever gets it must be able to read it
        with self.lock:
            self.entries.put(key, text, share)
        self.tell(key, text)

    def add(self, request: Add, share: Share, task: int) -> bytes:
        """Add to a counter for a task, and return its new value."""
        key = request.key
        _refuse_for(key, task)
        with self.lock:
            old = msgspec.json.decode(self.entries.get(key) or b"0")
            if not isinstance(old, int) or abs(old + request.amount) > _COUNTER_LIMIT:
                raise FullError(f"{key[:KEY_LIMIT]} is no counter, or runs over")
            text = b"%d" % (old + request.amount)
            self.entries.put(key, text, share)
        self.tell(key, text)
        return text

    def expect(self, key: str, connection: Peer, number: int) -> None:
        """Note that a connection waits for a key."""
        self._expected.setdefault(key, {})[connection, number] = None

    def tell(self, key: str, text: bytes) -> None:
        """Answer the clients that wait for the key."""
        for connection, number in list(self._expected.get(key, ())):
            self.end_wait(connection, number, text)

    def end_wait(self, connection: Peer, number: int, text: bytes) -> None:
        """Answer a client that waits."""
        self._forget_wait(connection, number)
        connection.answer(number, text)

    def stop(self) -> None:
        """Close all connections."""
        for connection in (*self._known, *self._strangers):
            connection.stop()

    def _forget_wait(self, connection: Peer, number: int) -> None:
        key, handle = connection.waiting.pop(number)
        handle.cancel()
        expected = self._expected[key]
        del expected[connection, number]
        if not expected:
            del self._expected[key]


def _refuse_for(key: str, task: int) -> None:
    """Refuse a key that is not for this task.

    Raises:
        FullError: it is not.
    """
    if why := owners.refusal(key, task):
        raise FullError(why)
