"""A supervisor's connection to the store: it connects with patience, then never blocks."""

import errno
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from gpucheck.facts.numbers import whole_number
from gpucheck.language import in_series, plain, say
from gpucheck.preflight.store.wire import (
    LINE_LIMIT,
    PROTOCOL,
    Add,
    Answer,
    Get,
    Greeting,
    Hello,
    Ping,
    Set,
    StoreError,
    line,
    prove,
    proven,
)

Then = Callable[[bytes | None], None]
"""Gets the JSON of a key; None when it has none."""
Reason = Literal[
    "not-resolved", "refused", "no-route", "timed-out", "no-store", "another-run", "full",
    "wrong-token",
]  # fmt: skip

_WORST_FIRST: tuple[Reason, ...] = (
    "wrong-token", "full", "another-run", "refused", "timed-out", "no-store", "no-route",
    "not-resolved",
)  # fmt: skip
"""What is reported if several ports fail: the attempt that came furthest says most."""
_ATTEMPT = 3.0
"""Seconds for one port to answer."""
_PAUSES = (0.1, 1.0)
"""Seconds between two rounds over all ports: at first, and at most."""
_READ = 256 * 1024
_READS = 32
"""How often one ``pump`` reads at most, so that it always returns."""
_UNSENT = 64 * 1024 * 1024
"""Bytes that may wait to be sent."""
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL)

_NULL = b"null"

_GREETINGS = msgspec.json.Decoder(Greeting)
_ANSWERS = msgspec.json.Decoder(Answer)


class ConnectError(StoreError):
    """No store of this run was found; ``reason`` is the cause in a word, the text a sentence."""

    def __init__(self, reason: Reason, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


class _AttemptError(Exception):
    """One port failed, with the reason and its words."""

    def __init__(self, reason: Reason, words: str) -> None:
        super().__init__(words)
        self.reason = reason
        self.words = words


class StoreClient:
    """A connection to the store of this run.

    Answers reach the callbacks while ``pump`` runs: call it when ``fileno`` is readable, and now
    and then. Once ``lost`` says why the connection is over, nothing is sent and no callback is
    called.
    """

    def __init__(self, connection: socket.socket, rest: bytes) -> None:
        self._socket = connection
        self._rest = bytearray(rest)
        self._unsent = bytearray()
        self._on_answer: dict[int, Callable[[bytes], None]] = {}
        self._number = 0
        self.lost = ""
        """Why the connection is over; "" while it is not."""
        self.refused = ""
        """What the store refused last, such as too many keys."""
        self.last_heard = time.monotonic()
        """When something came last; a stopped store keeps the connection, but is silent."""
        self.local_address: str = connection.getsockname()[0]
        self.peer_address: str = connection.getpeername()[0]
        self.port: int = connection.getpeername()[1]
        connection.setblocking(False)  # noqa: FBT003  # the socket's own signature

    @classmethod
    def connect(
        cls, host: str, ports: Sequence[int], run: str, token: str = "", seconds: float = 60.0
    ) -> "StoreClient":
        """Try every port until one greets with this run's id, or the seconds are over.

        Raises:
            ConnectError: none did.
        """
        deadline = time.monotonic() + seconds
        pause = _PAUSES[0]
        while True:
            failures: dict[int, _AttemptError] = {}
            for port in ports:
                try:
                    return cls(*_attempt(host, port, run, token, deadline))
                except _AttemptError as error:
                    failures[port] = error
                    if error.reason in ("wrong-token", "not-resolved"):
                        break  # the other ports would say the same
            left = deadline - time.monotonic()
            if left <= pause or any(one.reason == "wrong-token" for one in failures.values()):
                raise _in_all(host, failures, seconds)
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # spreads thousands of clients
            pause = min(pause * 1.5, _PAUSES[1])

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
        """Ask for a sign of life, which ``last_heard`` shows."""
        self._ask(Ping(self._next()))

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
                self._lose(_words(error))
                return
            del self._unsent[:sent]

    def _read(self) -> bool:
        """Read once; whether there may be more."""
        try:
            data = self._socket.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._lose(_words(error))
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
    """Return the value of a counter; 0 of what is none."""
    return whole_number(text.decode("ascii", "replace")) or 0


def _attempt(
    host: str, port: int, run: str, token: str, deadline: float
) -> tuple[socket.socket, bytes]:
    """Connect to one port and say hello; return the connection and any further bytes."""
    until = min(deadline, time.monotonic() + _ATTEMPT)
    why = _AttemptError("not-resolved", say("the name has no address"))
    for family, address in _resolve(host, port, deadline):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(max(until - time.monotonic(), 0.05))
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return connection, _meet(connection, run, token, until)
        except OSError as error:
            why = _AttemptError(_reason(error), _words(error))
            connection.close()
        except _AttemptError as error:
            why = error
            connection.close()
    raise why


def _meet(connection: socket.socket, run: str, token: str, until: float) -> bytes:
    """Read the greeting, say hello, read the answer; return the bytes behind it."""
    try:
        first, rest = _line(connection, b"", until)
        greeting = _GREETINGS.decode(first)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _no_store(first) from error
    if greeting.gpucheck != PROTOCOL:
        raise _AttemptError(
            "no-store",
            say("it uses {found!r}, not {wanted}", found=greeting.gpucheck[:40], wanted=PROTOCOL),
        )
    if greeting.run != run:
        raise _AttemptError("another-run", say("another run's store"))
    nonce = os.urandom(16).hex()
    connection.sendall(
        line(Hello(PROTOCOL, run, nonce, prove(token, "client", greeting.nonce, run)))
    )
    first, rest = _line(connection, rest, until)
    try:
        answer = _ANSWERS.decode(first)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _no_store(first) from error
    if answer.error == "wrong token" or not (
        answer.error or proven(token, "server", nonce, run, answer.proof)
    ):
        raise _AttemptError("wrong-token", say("this run's store has another token"))
    if answer.error:
        raise _AttemptError("no-store", say("it said: {error!r}", error=answer.error[:80]))
    return rest


def _no_store(first: bytes) -> _AttemptError:
    """Return why the line is no greeting: a full store says so, anything else is no store."""
    if b"too many connections" in first:
        return _AttemptError("full", say("the store accepts no more connections"))
    return _AttemptError("no-store", say("the program that listens there is not a store"))


def _line(connection: socket.socket, rest: bytes, until: float) -> tuple[bytes, bytes]:
    """Return a line and the bytes behind it."""
    while b"\n" not in rest:
        connection.settimeout(max(until - time.monotonic(), 0.01))
        try:
            data = connection.recv(65536)
        except TimeoutError:
            raise _AttemptError(
                "no-store", say("the program that listens there says nothing")
            ) from None
        if not data or len(rest) > LINE_LIMIT or time.monotonic() > until:
            raise _AttemptError("no-store", say("the program that listens there is not a store"))
        rest += data
    first, _, rest = rest.partition(b"\n")
    return first, rest


def _resolve(host: str, port: int, deadline: float) -> list[tuple[int, Any]]:
    """Return the addresses of a name; a resolver that hangs is abandoned."""
    found: list[tuple[int, Any]] = []
    failure: list[str] = []

    def look() -> None:
        try:
            for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                found.append((family, address))
        except (OSError, UnicodeError) as error:
            failure.append(_words(error) if isinstance(error, OSError) else say("it is not a name"))

    resolver = threading.Thread(target=look, name="resolver", daemon=True)
    resolver.start()
    resolver.join(max(deadline - time.monotonic(), 0.05))
    if resolver.is_alive():
        raise _AttemptError("not-resolved", say("the name server does not answer"))
    if failure:
        raise _AttemptError("not-resolved", failure[0])
    return found


def _reason(error: OSError) -> Reason:
    if isinstance(error, TimeoutError):
        return "timed-out"
    if error.errno in _UNREACHABLE:
        return "no-route"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "no-store"
    return "refused"


def _words(error: OSError) -> str:
    """Return the system's words for an error, without the number."""
    if isinstance(error, TimeoutError) and not error.errno:
        return say("no answer")
    words = error.strerror or str(error)
    return words[:1].lower() + words[1:]


def _in_all(host: str, failures: Mapping[int, _AttemptError], seconds: float) -> ConnectError:
    """Return the error of a search that failed, from its last round."""
    if not failures:
        return ConnectError(
            "refused", say("no port is known on which {host} has a store", host=host)
        )
    worst = min(failures.values(), key=lambda one: _WORST_FIRST.index(one.reason))
    where: dict[str, list[str]] = {}
    for port, error in failures.items():
        where.setdefault(error.words, []).append(str(port))
    if worst.reason == "not-resolved":
        return ConnectError(
            "not-resolved", say("{host} cannot be resolved: {why}", host=host, why=worst.words)
        )
    told = _joined(
        [
            say("port {ports}: {why}", ports=in_series(numbers), why=words)
            for words, numbers in where.items()
        ]
    )
    return ConnectError(
        worst.reason,
        say(
            "no store of this run on {host} within {seconds:.0f} s ({attempts})",
            host=host,
            seconds=seconds,
            attempts=told,
        ),
    )


def _joined(parts: Sequence[str]) -> str:
    words = parts[0]
    for part in parts[1:]:
        words = say("{said}; {more}", said=words, more=part)
    return words
