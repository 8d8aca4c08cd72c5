"""The store: a small key-value server that connects the supervisors of a pre-flight.

Task 0 runs it in a thread of its own. It carries what each task says of itself, orders, results and
heartbeats, never tensors. Everything from the network is bounded: connections, keys, the length of
a line, the size of all values and of unread answers. Connections that have not said a valid hello
have an allowance of their own, so that they keep no task away.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from gpucheck.cluster.store import pace, sockets
from gpucheck.cluster.store.attempt import run_at
from gpucheck.cluster.store.entries import LONG_KEY, Entries, FullError, Share
from gpucheck.cluster.store.messages import OF_TASK_0, VERDICT
from gpucheck.cluster.store.sockets import BACKLOG, OWN_FILES
from gpucheck.cluster.store.strangers import Strangers, owner
from gpucheck.cluster.store.wire import (
    KEY_LIMIT,
    LINE_LIMIT,
    PROTOCOL,
    TAKEN,
    TOO_MANY,
    VALUE_LIMIT,
    WAIT_LIMIT,
    WRONG_TOKEN,
    Add,
    Answer,
    Get,
    Greeting,
    Hello,
    Ping,
    SameRunError,
    Scene,
    Set,
    StoreError,
    line,
    ports,
    prove,
    proven,
)
from gpucheck.language import plain, say

_HELLO_LIMIT = 4096
"""Bytes of a client's first line: strangers may send no more."""
_HELLO_SECONDS = 10.0
_WAITS = 256
"""How many gets of one connection may wait at the same time."""
_UNREAD = 32 * 1024 * 1024
"""Bytes of answers that a connection may leave unread."""
_SPARE = 64
"""Connections beyond two for each expected client."""
_STRANGERS = 128
"""Connections without a valid hello, beyond the expected clients that have not come yet."""
_FEW, _MANY = 32, 512
"""Connections that are tried even with a low limit on open files, and from how many tasks on such a
limit is refused."""
_BATCH = 128
"""Connections that are accepted, and waiting clients that are answered, before others are served.
"""
_PULSE = 0.05
"""Seconds between two looks at how late the server is."""
_TOLERANCE = 0.05
"""Seconds by which a timer may be late on any machine."""
_LONGEST_PROCESS = 300
_WRONG = 64
"""From how many addresses wrong tokens are counted."""
_COUNTER_LIMIT = 2**53
"""Counters stay within the integers that every JSON reader accepts."""

_HELLOS = msgspec.json.Decoder(Hello)
_REQUESTS = msgspec.json.Decoder(Set | Get | Add | Ping)
_NULL = msgspec.Raw(b"null")


class _Connection(asyncio.Protocol):
    """One connection."""

    _transport: asyncio.Transport

    def __init__(self, server: "_Server") -> None:
        self._server = server
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
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # what a stream server gives
        self._transport = transport
        self.address = owner(str((transport.get_extra_info("peername") or ("",))[0]))
        self._late = asyncio.get_running_loop().call_later(
            _HELLO_SECONDS, self._refuse, "no hello came"
        )
        run, asks = self._server.scene.run, bool(self._server.token)
        transport.write(line(Greeting(PROTOCOL, run, self._nonce, asks)))
        self._server.enter(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._late:
            self._late.cancel()
        self._server.leave(self)

    def eof_received(self) -> None:
        """Close: a client that has finished writing wants no answers."""

    def pause_writing(self) -> None:
        self._full = True  # who reads no answers asks no more
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._full = False
        self._transport.resume_reading()
        self._work()

    def data_received(self, data: bytes) -> None:
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
        server = self._server
        if hello.hello != PROTOCOL or hello.run != server.scene.run:
            self._refuse("another run's store")
        elif not proven(server.token, "client", self._nonce, server.scene, hello.proof):
            server.note_wrong_token(self.address)
            self._refuse(WRONG_TOKEN)
        else:
            if self._late:
                self._late.cancel()
            if 0 <= hello.task < server.clients:
                self.task, self.process = hello.task, hello.process[:_LONGEST_PROCESS]
            if server.is_taken(self):
                self._refuse(TAKEN)
            elif server.is_over_for(self):
                self._refuse("another run's store")
            elif server.welcome(self):
                proof = prove(server.token, "server", hello.nonce, server.scene)
                self._send(Answer(0, proof=proof, beat=server.beat))
            else:
                self._refuse(TOO_MANY)

    def _do(self, request: Set | Get | Add | Ping) -> None:
        try:
            if isinstance(request, Set):
                self._server.set(request.key, request.value, self._share)
                self.answer(request.id, _NULL)
            elif isinstance(request, Add):
                self.answer(request.id, self._server.add(request, self._share))
            elif isinstance(request, Get):
                self._get(request)
            else:
                self.answer(request.id, _NULL)
        except FullError as error:
            self._send(Answer(request.id, error=str(error)))

    def _get(self, request: Get) -> None:
        if len(request.key) > KEY_LIMIT:
            raise FullError(LONG_KEY)
        value = self._server.get(request.key)
        if value is not None or not request.wait > 0:
            self.answer(request.id, value or _NULL)
        elif len(self.waiting) >= _WAITS or request.id in self.waiting:
            raise FullError(f"{_WAITS} gets at most may wait, each with a number of its own")
        else:
            seconds = min(request.wait, WAIT_LIMIT)
            handle = asyncio.get_running_loop().call_later(
                seconds, self._server.end_wait, self, request.id, _NULL
            )
            self.waiting[request.id] = (request.key, handle)
            self._server.expect(request.key, self, request.id)

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


class _Server:
    """What all connections share.

    Everything but ``lock`` and ``entries`` is for the loop's thread only.
    """

    def __init__(self, scene: Scene, token: str, clients: int) -> None:
        self.scene = scene
        self.token = token
        self.beat = pace.beat(clients)
        self.lock = threading.Lock()
        self.entries = Entries(clients)
        self.clients = clients
        self._known: set[_Connection] = set()
        self.tasks: dict[int, dict[_Connection, None]] = {}
        """The connections of each task."""
        self._processes: dict[int, str] = {}
        self._strangers: Strangers[_Connection] = Strangers()
        self._files = max(sockets.files_allowed() - OWN_FILES, _FEW)
        self._expected: dict[str, dict[tuple[_Connection, int], None]] = {}
        self.wrong_tokens: dict[str, int] = {}
        """How often another token came, by address."""

    def enter(self, connection: _Connection) -> None:
        """Note a new connection; others that are not known either may have to go for it."""
        self._strangers.add(connection, connection.address)
        while len(self._strangers) > self._most_strangers:
            one = self._strangers.next_out()
            self._strangers.remove(one, one.address)
            one.send_away()

    def welcome(self, connection: _Connection) -> bool:
        """Note a connection with a valid hello; whether there is room for it."""
        self._strangers.remove(connection, connection.address)
        connection.known = len(self._known) < 2 * self.clients + _SPARE
        if connection.known:
            self._known.add(connection)
            if connection.task >= 0:
                self.tasks.setdefault(connection.task, {})[connection] = None
                self._processes.setdefault(connection.task, connection.process)
        return connection.known

    def is_taken(self, connection: _Connection) -> bool:
        """Whether another process is connected as the same task."""
        others = self.tasks.get(connection.task, {})
        return any(one.process != connection.process for one in others)

    def is_over_for(self, connection: _Connection) -> bool:
        """Whether it is of the next run of the same name: this one has a verdict and its tasks."""
        process = self._processes.get(connection.task, connection.process)
        return process != connection.process and self.get(VERDICT.name) is not None

    def note_wrong_token(self, address: str) -> None:
        """Count a token that is not ours, for a few addresses."""
        if address in self.wrong_tokens or len(self.wrong_tokens) < _WRONG:
            self.wrong_tokens[address] = self.wrong_tokens.get(address, 0) + 1

    def leave(self, connection: _Connection) -> None:
        """Remove a connection and what it waits for."""
        self._known.discard(connection)
        if (those := self.tasks.get(connection.task)) is not None:
            those.pop(connection, None)
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

    def set(self, key: str, value: msgspec.Raw, share: Share) -> None:
        """Set a key and answer the clients that wait for it."""
        if key.startswith(OF_TASK_0):
            raise FullError("only task 0 itself says that")
        text = bytes(value)
        msgspec.json.decode(text)  # whoever gets it must be able to read it
        with self.lock:
            self.entries.put(key, text, share)
        self.tell(key, text)

    def add(self, request: Add, share: Share) -> bytes:
        """Add to a counter and return its new value."""
        key = request.key
        with self.lock:
            old = msgspec.json.decode(self.entries.get(key) or b"0")
            if not isinstance(old, int) or abs(old + request.amount) > _COUNTER_LIMIT:
                raise FullError(f"{key[:KEY_LIMIT]} is no counter, or runs over")
            text = b"%d" % (old + request.amount)
            self.entries.put(key, text, share)
        self.tell(key, text)
        return text

    def expect(self, key: str, connection: _Connection, number: int) -> None:
        """Note that a connection waits for a key."""
        self._expected.setdefault(key, {})[connection, number] = None

    def tell(self, key: str, text: bytes) -> None:
        """Answer the clients that wait for the key."""
        for connection, number in list(self._expected.get(key, ())):
            self.end_wait(connection, number, text)

    def end_wait(self, connection: _Connection, number: int, text: bytes) -> None:
        """Answer a client that waits."""
        self._forget_wait(connection, number)
        connection.answer(number, text)

    def stop(self) -> None:
        """Close all connections."""
        for connection in (*self._known, *self._strangers):
            connection.stop()

    def _forget_wait(self, connection: _Connection, number: int) -> None:
        key, handle = connection.waiting.pop(number)
        handle.cancel()
        expected = self._expected[key]
        del expected[connection, number]
        if not expected:
            del self._expected[key]


class Store:
    """A store that is open; all methods may be called from any thread."""

    def __init__(self, listener: socket.socket, run: str, token: str, clients: int) -> None:
        self.port: int = listener.getsockname()[1]
        self._server = _Server(Scene(run, self.port), token, clients)
        self._loop = asyncio.new_event_loop()
        # A stranger's broken connection is no news; the default handler would print it.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._listening = self._loop.run_until_complete(
            self._loop.create_server(
                lambda: _Connection(self._server), sock=listener, backlog=_BATCH
            )
        )
        listener.listen(BACKLOG)  # asyncio takes one number for both
        self._delay = self._longest_pause = 0.0
        self._due = time.monotonic()
        self._pulse()
        self._thread = threading.Thread(target=self._loop.run_forever, name="store", daemon=True)
        self._thread.start()

    @classmethod
    def alone(cls, run: str, token: str) -> "Store":
        """Listen on any port, for this machine only.

        Raises:
            StoreError: that is impossible.
        """
        try:
            return cls(socket.create_server(("127.0.0.1", 0)), run, token, 1)
        except OSError as error:
            why = error.strerror or error
            raise StoreError(say("cannot listen on 127.0.0.1: {why}", why=why)) from error

    @classmethod
    def on(cls, listener: socket.socket, run: str, token: str, clients: int) -> "Store":
        """Serve a port that this process listens on already; who has connected is served, too."""
        sockets.allow_files(3 * clients + _SPARE + _STRANGERS + OWN_FILES)
        return cls(listener, run, token, clients)

    @classmethod
    def open(
        cls, port_wanted: int | None, master_port: int | None, run: str, token: str = "",
        clients: int = 64, *, here: bool = False,
    ) -> "Store":  # fmt: skip
        """Listen on ``--port``, or on the first free port behind MASTER_PORT.

        ``clients`` is the number of expected connections. For many, this process may open more
        files from now on. It listens on all interfaces, or ``here``, on this machine only.

        Raises:
            StoreError: no port is free, or the one that is wanted is not.
            SameRunError: another run here has the same name, so that tasks could mix them up.
            OSError: EMFILE, if this process may not open enough files for the clients.
        """
        sockets.allow_files(3 * clients + _SPARE + _STRANGERS + OWN_FILES)
        if (most := sockets.files_allowed()) < clients + OWN_FILES and clients > _MANY:
            raise StoreError(
                say(
                    "{tasks} tasks need as many connections, and task 0 may open only {files} "
                    "files: raise its hard limit (ulimit -Hn)",
                    tasks=clients,
                    files=most,
                )
            )
        sockets.refuse_too_few(clients)
        why: str = say("no port is left after it")
        for port in ports(port_wanted, master_port) or ((0,) if master_port is None else ()):
            try:
                listener = sockets.listen(port, here=here)
            except OSError as error:
                why = error.strerror or str(error)
                _refuse_same_run(port, run)
            else:
                return cls(listener, run, token, clients)
        if port_wanted:
            raise StoreError(
                say("cannot listen on --port {port}: {why}", port=port_wanted, why=why)
            )
        raise StoreError(
            say(
                "cannot listen on a port after MASTER_PORT {port}: {why}",
                port=master_port,
                why=why,
            )
        )

    def get(self, key: str) -> bytes | None:
        """Return the JSON of a key, None when it is not there."""
        return self._server.get(key)

    def put(self, key: str, value: Any) -> None:  # noqa: ANN401  # JSON data or structs of it
        """Set a key, and answer the clients that wait for it.

        Raises:
            StoreError: the store is full.
        """
        self.put_all({key: value})

    def put_all(self, values: Mapping[str, Any]) -> None:
        """Set many keys: for thousands of tasks this takes the lock, and wakes the server, once.

        Raises:
            StoreError: the store is full.
        """
        texts = {key: _encoded(key, value) for key, value in values.items()}
        try:
            with self._server.lock:
                for key, text in texts.items():
                    self._server.entries.put(key, text)
        except FullError as error:
            raise StoreError(str(error)) from error
        self._loop.call_soon_threadsafe(self._tell, iter(texts.items()))

    def under(self, prefix: str) -> dict[str, bytes]:
        """Return the JSON of all keys that start so, by the rest of the key."""
        with self._server.lock:
            return {key[len(prefix) :]: text for key, text in self._server.entries.under(prefix)}

    def news(self, folder: str) -> dict[str, bytes]:
        """Return what was set in a folder since this was asked last, by the rest of the key."""
        with self._server.lock:
            found = self._server.entries.news(folder)
        return {key[len(folder) + 1 :]: text for key, text in found}

    @property
    def delay(self) -> float:
        """For how many seconds in all the server has not come to reading what had arrived.

        It does not count against a task that nothing was heard from it in that time.
        """
        return self._delay + max(0.0, time.monotonic() - self._due - _TOLERANCE)

    @property
    def longest_pause(self) -> float:
        """The longest time in seconds for which the server stood still, this one included."""
        return max(self._longest_pause, time.monotonic() - self._due)

    @property
    def connected(self) -> set[int]:
        """The tasks that are connected now."""
        return {task for task, those in list(self._server.tasks.items()) if those}

    @property
    def wrong_tokens(self) -> dict[str, int]:
        """How often another token was presented, by the address from which it came."""
        return dict(self._server.wrong_tokens)

    def close(self) -> None:
        """Close the port and all connections."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()

    def _tell(self, texts: Iterator[tuple[str, bytes]]) -> None:
        """Answer those who wait for the keys, some at a time: others are served meanwhile."""
        some = list(islice(texts, _BATCH))
        for key, text in some:
            self._server.tell(key, text)
        if some:
            self._loop.call_soon(self._tell, texts)

    def _pulse(self) -> None:
        """Note how late the loop is: each time around it reads all connections."""
        now = time.monotonic()
        self._delay += max(0.0, now - self._due - _TOLERANCE)
        self._longest_pause = max(self._longest_pause, now - self._due)
        self._due = now + _PULSE
        self._loop.call_later(_PULSE, self._pulse)

    def _end(self) -> None:
        self._listening.close()
        self._server.stop()
        self._loop.call_soon(self._loop.stop)


def _refuse_same_run(port: int, run: str) -> None:
    """Refuse to open a second store of a run.

    Raises:
        SameRunError: another one is open on this port.
    """
    if run_at(port) == run:
        raise SameRunError(
            say(
                "another job on this machine has the same name, and its store is on port {port}: "
                "give each job a MASTER_PORT, or a --port, of its own, or wait for the other to "
                "end",
                port=port,
            )
        )


def _encoded(key: str, value: Any) -> bytes:  # noqa: ANN401  # JSON data or structs of it
    text = msgspec.json.encode(value, enc_hook=plain)
    if len(text) > VALUE_LIMIT:
        raise StoreError(
            say(
                "the value of {key} has {size} bytes, more than a line takes",
                key=key,
                size=len(text),
            )
        )
    return text
