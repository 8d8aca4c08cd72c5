"""One connection to the store: what it says is checked and carried out, within limits.

It begins with a greeting, which a valid hello has to answer in time. Each line is bounded, and so
are the gets that wait and the answers that are not read.
"""

import asyncio
import os

import msgspec

from gpucheck.cluster.store.entries import LONG_KEY, FullError, Share
from gpucheck.cluster.store.hub import Hub
from gpucheck.cluster.store.strangers import owner
from gpucheck.cluster.store.wire import (
    KEY_LIMIT,
    LINE_LIMIT,
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
    Set,
    TurnedAway,
    line,
    other_size,
    prove,
    proven,
)

_HELLO_LIMIT = 4096
"""Bytes of a client's first line: strangers may send no more."""
_HELLO_SECONDS = 10.0
_WAITS = 256
"""How many gets of one connection may wait at the same time."""
_UNREAD = 32 * 1024 * 1024
"""Bytes of answers that a connection may leave unread."""
_LONGEST_PROCESS = 300

_HELLOS = msgspec.json.Decoder(Hello)
_REQUESTS = msgspec.json.Decoder(Set | Get | Add | Ping)
_NULL = msgspec.Raw(b"null")


class Connection(asyncio.Protocol):
    """One connection, from the greeting on."""

    _transport: asyncio.Transport

    def __init__(self, hub: Hub) -> None:
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
