"""One attempt to meet a store at an address: connect, read its greeting, prove, check its proof."""

import errno
import os
import socket
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from gpucheck.cluster.store import wire
from gpucheck.cluster.store.wire import (
    LINE_LIMIT,
    PROTOCOL,
    TAKEN,
    TOO_MANY,
    WRONG_TOKEN,
    Answer,
    Greeting,
    Hello,
    Scene,
    line,
    other_size,
    prove,
    proven,
)
from gpucheck.language import say, say_many

Reason = Literal[
    "not-resolved", "refused", "no-route", "timed-out", "no-store", "another-run", "full",
    "wrong-token", "task-taken", "other-size",
]  # fmt: skip
Secret = Callable[[bool], str]
"""Returns the token that counts now, "" without one; is told whether the store wants one."""

_READ = 65536
"""Bytes that are read at once. Chosen: more than a greeting and an answer have."""
_LOOK = 0.5
"""Seconds for a store on this machine to greet."""
_BEGUN = (0, errno.EINPROGRESS, errno.EAGAIN)
"""What connect_ex returns of a socket that does not block, once the attempt is under way."""
_GREETINGS = msgspec.json.Decoder(Greeting)
_ANSWERS = msgspec.json.Decoder(Answer)


class Who(msgspec.Struct, frozen=True):
    """Which task a client is, and what tells its process apart; -1 does not say."""

    task: int = -1
    process: str = ""


class Ends(msgspec.Struct, frozen=True):
    """The addresses of a connection on this side and on the other, and the port there."""

    local: str = ""
    peer: str = ""
    port: int = 0


class AttemptError(Exception):
    """An attempt failed, with the reason and its words."""

    def __init__(self, reason: Reason, words: str) -> None:
        super().__init__(words)
        self.reason = reason
        self.words = words


class StoreMeeting:
    """What is said until a store of this run has proven itself, without a socket.

    Args:
        scene: the run whose store is looked for, and the port.
        secret: returns the token.
        who: which task, in which process, wants to meet it; None does not say.
    """

    def __init__(self, scene: Scene, secret: Secret, who: Who | None = None) -> None:
        self._scene = scene
        self._who = who or Who()
        self._secret = secret
        self._token: str | None = None
        self._size: int | None = None
        self._nonce = os.urandom(16).hex()
        self.rest = b""
        """What has come and was not used."""
        self.beat: float | None = None
        """The seconds between two heartbeats, once the store has proven itself."""

    @property
    def token(self) -> str:
        """The token that it used; "" without one."""
        return self._token or ""

    @property
    def is_of_run(self) -> bool:
        """Whether a store of this run has greeted."""
        return self._token is not None and self._size is None

    def hear(self, data: bytes) -> bytes:
        """Read what the other side has sent. Return the answer.

        Raises:
            AttemptError: it is not a store of this run, or it accepts no more connections.
        """
        self.rest += data
        received = b""
        while self.beat is None and b"\n" in self.rest:
            first, _, self.rest = self.rest.partition(b"\n")
            if self._token is None:
                received += self._greet(first)
            else:
                self._check(first, self._token)
        if len(self.rest) > LINE_LIMIT:
            raise AttemptError("no-store", say("the program that listens there is not a store"))
        return received

    def _greet(self, first: bytes) -> bytes:
        """Check the greeting and return the hello."""
        greeting = _read(_GREETINGS, first)
        if greeting.gpucheck != PROTOCOL:
            raise AttemptError(
                "no-store",
                say(
                    "it uses {found!r}, not {wanted}",
                    found=greeting.gpucheck[:40],
                    wanted=PROTOCOL,
                ),
            )
        self._size = other_size(greeting.run, self._scene.run)
        if self._size is not None:
            # It is told whose task looks for it: it would call the task missing otherwise.
            self._token = ""
            who = self._who
            return line(Hello(PROTOCOL, self._scene.run, self._nonce, "", who.task, who.process))
        if greeting.run != self._scene.run:
            raise AttemptError("another-run", say("another run's store"))
        self._token = self._secret(greeting.asks)
        proof = prove(self._token, "client", greeting.nonce, self._scene)
        who = self._who
        return line(Hello(PROTOCOL, greeting.run, self._nonce, proof, who.task, who.process))

    def _check(self, first: bytes, token: str) -> None:
        """Check the answer to the hello."""
        if self._size is not None:
            raise AttemptError(
                "other-size",
                say_many(
                    self._size,
                    "the store of a job of {count} task with the same name: WORLD_SIZE, or the "
                    "number of tasks, is not the same in all tasks",
                    "the store of a job of {count:,} tasks with the same name: WORLD_SIZE, or the "
                    "number of tasks, is not the same in all tasks",
                ),
            )
        answer = _read(_ANSWERS, first)
        if answer.error == TOO_MANY:
            raise _full()
        if answer.error == TAKEN:
            raise AttemptError(
                "task-taken",
                say(
                    "another process already is task {task} of this run: two jobs have the same "
                    "MASTER_PORT, or the same --port, and as many tasks",
                    task=self._who.task,
                ),
            )
        if answer.error == WRONG_TOKEN or not (
            answer.error or proven(token, "server", self._nonce, self._scene, answer.proof)
        ):
            raise AttemptError("wrong-token", say("this run's store has another token"))
        if answer.error:
            raise AttemptError("no-store", say("it said: {error!r}", error=answer.error[:80]))
        self.beat = wire.beat_told(answer.beat)


class Attempt:
    """An attempt that never blocks: call ``go_on`` when its socket is ready, or its time is over.

    Args:
        address: as ``getaddrinfo`` gives it, with its family.
        run: whose store is looked for.
        secret: returns the token.
        until: when it has failed, a time of ``time.monotonic()``.
        who: which task this is.
    """

    def __init__(
        self, address: tuple[int, tuple[Any, ...]], run: str, secret: Secret, until: float,
        who: Who | None = None,
    ) -> None:  # fmt: skip
        family, where = address
        self.port = int(where[1])
        self.until = until
        self.meeting = StoreMeeting(Scene(run, self.port), secret, who)
        self.connection = socket.socket(family, socket.SOCK_STREAM)
        self.connection.setblocking(False)  # noqa: FBT003  # the socket's own signature
        self.is_connected = False
        self.ends = Ends()
        """Its addresses, once the store has proven itself."""
        self._begun = self.connection.connect_ex(where)

    def go_on(self) -> bool:
        """Go on as far as possible. Return whether the store has proven itself.

        Raises:
            AttemptError: it failed.
        """
        try:
            if self._connect():
                self._talk()
                self.ends = _ends(self.connection)
        except (BlockingIOError, InterruptedError):
            pass  # more has to come
        except OSError as error:
            raise AttemptError(_reason(error), words_of(error)) from error
        if self.meeting.beat is None and time.monotonic() > self.until:
            raise self._late()
        return self.meeting.beat is not None

    def close(self) -> None:
        """Give up."""
        self.connection.close()

    def _connect(self) -> bool:
        """Return whether it is connected by now."""
        if self.is_connected:
            return True
        if self._begun not in _BEGUN:
            raise OSError(self._begun, os.strerror(self._begun))
        if code := self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, os.strerror(code))
        try:
            self.connection.getpeername()
        except OSError:
            return False
        self.is_connected = True
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return True

    def _talk(self) -> None:
        while self.meeting.beat is None:
            data = self.connection.recv(_READ)
            if not data:
                raise AttemptError("no-store", say("the program that listens there is not a store"))
            if reply := self.meeting.hear(data):
                self.connection.sendall(reply)

    def _late(self) -> AttemptError:
        if self.is_connected:
            return AttemptError("no-store", say("the program that listens there says nothing"))
        return AttemptError("timed-out", say("no answer"))


def _ends(connection: socket.socket) -> Ends:
    """Return its addresses.

    Raises:
        ConnectionResetError: it has none, because the other side has ended it already.
    """
    try:
        local, peer = connection.getsockname(), connection.getpeername()
    except OSError as error:
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from error
    return Ends(local[0], peer[0], peer[1])


def run_at(port: int) -> str:
    """Return the name of the run whose store is open on a port of this machine, or ""."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_LOOK) as connection:
            connection.settimeout(_LOOK)
            first = connection.recv(_READ)
        greeting = _GREETINGS.decode(first.partition(b"\n")[0])
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return ""
    return greeting.run if greeting.gpucheck == PROTOCOL else ""


def words_of(error: OSError) -> str:
    """Return the system's words for an error, without the number."""
    if isinstance(error, TimeoutError) and not error.errno:
        return say("no answer")
    words = error.strerror or str(error)
    return words[:1].lower() + words[1:]


def _read(decoder: "msgspec.json.Decoder[Any]", first: bytes) -> Any:  # noqa: ANN401
    try:
        return decoder.decode(first)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        if TOO_MANY.encode() in first:
            raise _full() from error
        raise AttemptError(
            "no-store", say("the program that listens there is not a store")
        ) from error


def _full() -> AttemptError:
    return AttemptError("full", say("the store accepts no more connections"))


def _reason(error: OSError) -> Reason:
    if isinstance(error, TimeoutError):
        return "timed-out"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "no-store"
    return "refused" if isinstance(error, ConnectionRefusedError) else "no-route"
