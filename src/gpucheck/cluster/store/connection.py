"""The connections to the store, and what they share: the entries, who is connected, who waits.

A connection begins with a greeting, which a valid hello has to answer in time. Each line is
bounded, and so are the gets that wait and the answers that are not read.
"""

import asyncio
import ipaddress
import os
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from gpucheck.cluster.store import entries, wire
from gpucheck.cluster.store.entries import LONG_KEY, Entries, FullError, Share
from gpucheck.cluster.store.task_messages import LEAVING, VERDICT
from gpucheck.cluster.store.wire import (
    KEY_LIMIT,
    LINE_LIMIT,
    OWN_FILES,
    PROTOCOL,
    TAKEN,
    TOO_MANY,
    WAIT_LIMIT,
    WIDE,
    WRONG_TOKEN,
    Add,
    Answer,
    Get,
    Greeting,
    Hello,
    Ping,
    Scene,
    Set,
    TurnedAway,
    line,
    mark,
    other_size,
    prove,
    proven,
)

C = TypeVar("C")
_IPV6_NETWORK = 64
"""Bits of an IPv6 address that one owner of a network cannot choose."""
_HELLO_LIMIT = 4096
"""Bytes of a client's first line: strangers may send no more."""
_HELLO_SECONDS = 10.0
"""Chosen: a stranger may hold a place that long, and a task on a busy node is still let in."""
_WAITS = 256
"""How many gets of one connection may wait at the same time."""
_UNREAD = 32 * 1024 * 1024
"""Bytes of answers that a connection may leave unread."""
_LONGEST_PROCESS = 300
"""Characters of the mark of a process, which has 16; others are cut."""
_HELLOS = msgspec.json.Decoder(Hello)
_REQUESTS = msgspec.json.Decoder(Set | Get | Add | Ping)
_NULL = msgspec.Raw(b"null")
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


class Strangers(Generic[C]):
    """The connections that are not known yet, by address, each with constant cost.

    If there are too many, the oldest one of the address with the most has to go. So whoever opens
    many connections pushes out only their own, as long as a newcomer has fewer.
    """

    def __init__(self) -> None:
        self._of: dict[str, dict[C, None]] = {}
        self._by_size: dict[int, dict[str, None]] = {}
        self._largest = 0
        self._count = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def __iter__(self) -> Iterator[C]:
        """Return all of them."""
        for connections in self._of.values():
            yield from connections

    def add(self, connection: C, address: str) -> None:
        """Add a connection from an address."""
        connections = self._of.setdefault(address, {})
        self._move(address, len(connections), len(connections) + 1)
        connections[connection] = None
        self._count += 1

    def remove(self, connection: C, address: str) -> None:
        """Remove a connection if it is there."""
        connections = self._of.get(address, {})
        if connection not in connections:
            return
        self._move(address, len(connections), len(connections) - 1)
        del connections[connection]
        if not connections:
            del self._of[address]
        self._count -= 1

    def next_out(self) -> C:
        """Return the one that has to go; there must be one."""
        address = next(iter(self._by_size[self._largest]))
        return next(iter(self._of[address]))

    def _move(self, address: str, old: int, new: int) -> None:
        """Note that an address has another number of connections."""
        if old:
            del self._by_size[old][address]
        if new:
            self._by_size.setdefault(new, {})[address] = None
        self._largest = max(self._largest, new)
        while self._largest and not self._by_size.get(self._largest):
            self._largest -= 1


def owner(host: str) -> str:
    """Return what stands for the owner of an address: an IPv4 address, or a network of IPv6."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:  # noqa: PLR2004  # IPv4
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))


class Connection(asyncio.Protocol):
    """One connection, from the greeting on."""

    _transport: asyncio.Transport

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._nonce = os.urandom(16).hex()
        self._share = Share()
        self.task, self.process = -1, ""
        """Which task it is, and in which process."""
        self.known = False
        """Whether it has said a valid hello."""
        self.address = ""
        """What stands for the owner of its address."""
        self._rest = bytearray()
        self._full = False
        self._late: asyncio.TimerHandle | None = None
        self.waiting: dict[int, tuple[str, asyncio.TimerHandle]] = {}
        """Gets that wait, by number: the key, and what ends the wait."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the client; it has to answer in time."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # what a stream server gives
        self._transport = transport
        self.address = owner(str((transport.get_extra_info("peername") or ("",))[0]))
        self._late = asyncio.get_running_loop().call_later(
            _HELLO_SECONDS, self._refuse, "no hello came"
        )
        run, asks = self._hub.scene.run, bool(self._hub.token)
        transport.write(line(Greeting(PROTOCOL, run, self._nonce, asks)))
        self._hub.enter(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Forget it, and what it waits for."""
        if self._late:
            self._late.cancel()
        self._hub.leave(self)

    def eof_received(self) -> None:
        """Close: a client that has finished writing wants no answers."""

    def pause_writing(self) -> None:
        """Carry out nothing as long as the answers are not read."""
        self._full = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on with what has come meanwhile."""
        self._full = False
        self._transport.resume_reading()
        self._work()

    def data_received(self, data: bytes) -> None:
        """Carry out what has come."""
        self._rest += data
        self._work()

    def answer(self, number: int, value: bytes) -> None:
        """Answer a request with a JSON text."""
        self._send(Answer(number, msgspec.Raw(value)))

    def send_away(self) -> None:
        """Close, because others need the place."""
        self._refuse(TOO_MANY)
        self.stop()

    def stop(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _work(self) -> None:
        """Carry out the requests that have come, as long as their answers can be sent."""
        done = 0
        while not self._full and not self._transport.is_closing():
            end = self._rest.find(b"\n", done)
            if end < 0:
                break
            self._take(bytes(self._rest[done:end]))
            done = end + 1
        del self._rest[:done]
        if not self._full and len(self._rest) >= self._longest():
            self._refuse("the line is too long")

    def _longest(self) -> int:
        return LINE_LIMIT if self.known else _HELLO_LIMIT

    def _take(self, text: bytes) -> None:
        try:
            if len(text) >= self._longest():
                self._refuse("the line is too long")
            elif self.known:
                self._do(_REQUESTS.decode(text))
            else:
                self._meet(_HELLOS.decode(text))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self._refuse(f"this is a gpucheck {PROTOCOL}, and the line is none of its requests")

    def _meet(self, hello: Hello) -> None:
        hub = self._hub
        if hello.hello != PROTOCOL or hello.run != hub.scene.run:
            if (tasks := other_size(hello.run, hub.scene.run)) is not None:
                hub.note_turned_away(TurnedAway(self.address, hello.task, tasks))
            self._refuse("another run's store")
        elif not proven(hub.token, "client", self._nonce, hub.scene, hello.proof):
            hub.note_wrong_token(self.address)
            self._refuse(WRONG_TOKEN)
        else:
            if self._late:
                self._late.cancel()
            if 0 <= hello.task < hub.clients:
                self.task, self.process = hello.task, hello.process[:_LONGEST_PROCESS]
            if hub.is_taken(self):
                hub.note_turned_away(TurnedAway(self.address, self.task))
                self._refuse(TAKEN)
            elif hub.is_over_for(self):
                self._refuse("another run's store")
            elif hub.welcome(self):
                proof = prove(hub.token, "server", hello.nonce, hub.scene)
                self._send(Answer(0, proof=proof, beat=hub.beat))
            else:
                self._refuse(TOO_MANY)

    def _do(self, request: Set | Get | Add | Ping) -> None:
        try:
            if isinstance(request, Set):
                self._hub.set(request.key, request.value, self._share, self.task)
                self.answer(request.id, _NULL)
            elif isinstance(request, Add):
                self.answer(request.id, self._hub.add(request, self._share, self.task))
            elif isinstance(request, Get):
                self._get(request)
            elif request.pad:
                self._hub.wide.add(self.task)
                self.answer(request.id, b'"%s"' % (b" " * min(len(request.pad), WIDE)))
            else:
                self.answer(request.id, _NULL)
        except FullError as error:
            self._send(Answer(request.id, error=str(error)))

    def _get(self, request: Get) -> None:
        if len(request.key) > KEY_LIMIT:
            raise FullError(LONG_KEY)
        value = self._hub.get(request.key)
        if value is not None or not request.wait > 0:
            self.answer(request.id, value or _NULL)
        elif len(self.waiting) >= _WAITS or request.id in self.waiting:
            raise FullError(f"{_WAITS} gets at most may wait, each with a number of its own")
        else:
            seconds = min(request.wait, WAIT_LIMIT)
            handle = asyncio.get_running_loop().call_later(
                seconds, self._hub.end_wait, self, request.id, _NULL
            )
            self.waiting[request.id] = (request.key, handle)
            self._hub.expect(request.key, self, request.id)

    def _send(self, answer: Answer) -> None:
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > _UNREAD:
            self.stop()
            return
        self._transport.write(line(answer))

    def _refuse(self, why: str) -> None:
        self._send(Answer(error=why))
        self._transport.close()


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
        self.beat = wire.beat(clients)
        self.lock = threading.Lock()
        self.entries = Entries(clients)
        self.clients = clients
        self._marks = marks or {}
        self.connections: set[Connection] = set()
        """All that are open, those included that are being closed."""
        self._known: set[Connection] = set()
        self.tasks: dict[int, dict[Connection, None]] = {}
        """The connections of each task."""
        self._processes: dict[int, str] = {}
        self._strangers: Strangers[Connection] = Strangers()
        self._files = max(wire.files_allowed() - OWN_FILES, _FEW)
        self._expected: dict[str, dict[tuple[Connection, int], None]] = {}
        self.wrong_tokens: dict[str, int] = {}
        """How often another token came, by address."""
        self.turned_away: dict[TurnedAway, None] = {}
        """Processes that are none of the tasks, as they said."""
        self.wide: set[int] = set()
        """The tasks whose large message has arrived."""
        self.broken: dict[int, float] = {}
        """When the last connection of a task ended that had not said that it leaves."""

    def enter(self, connection: Connection) -> None:
        """Note a new connection; others that are not known either may have to go for it."""
        self.connections.add(connection)
        self._strangers.add(connection, connection.address)
        while len(self._strangers) > self._most_strangers:
            stranger = self._strangers.next_out()
            self._strangers.remove(stranger, stranger.address)
            stranger.send_away()

    def welcome(self, connection: Connection) -> bool:
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

    def is_taken(self, connection: Connection) -> bool:
        """Whether another process is that task: one that is connected, or one that is known."""
        known = self._marks.get(connection.task)
        if known and known != mark(connection.process):
            return True
        others = self.tasks.get(connection.task, {})
        return any(peer.process != connection.process for peer in others)

    def is_over_for(self, connection: Connection) -> bool:
        """Whether it is of the next run of the same name: this one has a verdict and its tasks."""
        process = self._processes.get(connection.task, connection.process)
        return process != connection.process and self.get(VERDICT.name) is not None

    def note_wrong_token(self, address: str) -> None:
        """Count a token that is not ours, for a few addresses."""
        if address in self.wrong_tokens or len(self.wrong_tokens) < _WRONG:
            self.wrong_tokens[address] = self.wrong_tokens.get(address, 0) + 1

    def note_turned_away(self, stranger: TurnedAway) -> None:
        """Note who is none of the tasks, for a few of them."""
        if len(self.turned_away) < _WRONG:
            self.turned_away[stranger] = None

    def leave(self, connection: Connection) -> None:
        """Remove a connection and what it waits for."""
        self.connections.discard(connection)
        self._known.discard(connection)
        if (connections := self.tasks.get(connection.task)) is not None:
            was_there = connection in connections
            connections.pop(connection, None)
            if was_there and not connections and self.get(LEAVING.key(connection.task)) is None:
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

    def expect(self, key: str, connection: Connection, number: int) -> None:
        """Note that a connection waits for a key."""
        self._expected.setdefault(key, {})[connection, number] = None

    def tell(self, key: str, text: bytes) -> None:
        """Answer the clients that wait for the key."""
        for connection, number in list(self._expected.get(key, ())):
            self.end_wait(connection, number, text)

    def end_wait(self, connection: Connection, number: int, text: bytes) -> None:
        """Answer a client that waits."""
        self._forget_wait(connection, number)
        connection.answer(number, text)

    def stop(self) -> None:
        """Close all connections."""
        for connection in self.connections:
            connection.stop()

    def _forget_wait(self, connection: Connection, number: int) -> None:
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
    if why := entries.refusal(key, task):
        raise FullError(why)
