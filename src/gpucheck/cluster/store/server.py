"""The store: a small key-value server that connects the supervisors of a pre-flight.

Task 0 runs it in a thread of its own. It carries what each task says of itself, orders, results and
heartbeats, never tensors. Everything from the network is bounded: connections, keys, the length of
a line, the size of all values and of unread answers. Connections that have not said a valid hello
have an allowance of their own, so that they keep no task away.
"""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from gpucheck.cluster.store import wire
from gpucheck.cluster.store.attempt import run_at
from gpucheck.cluster.store.connection import Connection, Hub, files_for
from gpucheck.cluster.store.entries import FullError
from gpucheck.cluster.store.wire import (
    BACKLOG,
    OWN_FILES,
    VALUE_LIMIT,
    NoPortError,
    SameRunError,
    Scene,
    StoreError,
    TurnedAway,
    ports,
)
from gpucheck.language import plain, say

_MANY = 512
"""From how many tasks on a low limit on open files is refused."""
_BATCH = 128
"""Connections that are accepted, and waiting clients that are answered, before others are served.
"""
_PULSE = 0.05
"""Seconds between two looks at how late the server is."""
_TOLERANCE = 0.05
"""Seconds by which a timer may be late on any machine."""


class Store:
    """A store that is open; all methods may be called from any thread."""

    def __init__(
        self, listener: socket.socket, run: str, token: str, clients: int,
        marks: Mapping[int, str] | None = None,
    ) -> None:  # fmt: skip
        self._delay = self._longest_pause = 0.0
        with contextlib.ExitStack() as opened:
            opened.callback(listener.close)
            self.port: int = listener.getsockname()[1]
            self._hub = Hub(Scene(run, self.port), token, clients, marks)
            self._loop = asyncio.new_event_loop()
            opened.callback(self._loop.close)
            # A stranger's broken connection is no news; the default handler would print it.
            self._loop.set_exception_handler(lambda _loop, _context: None)
            self._listening = self._loop.run_until_complete(
                self._loop.create_server(
                    lambda: Connection(self._hub), sock=listener, backlog=_BATCH
                )
            )
            listener.listen(BACKLOG)  # asyncio takes one number for both
            self._due = time.monotonic()
            self._pulse()
            run_forever = self._loop.run_forever
            self._thread = threading.Thread(target=run_forever, name="store", daemon=True)
            self._thread.start()
            opened.pop_all()

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
    def on(
        cls, listener: socket.socket, run: str, token: str, clients: int, marks: Mapping[int, str]
    ) -> "Store":
        """Serve a port that this process listens on already; who has connected is served, too.

        ``marks`` are those of the processes that are known as tasks: no other one is let in.
        """
        wire.allow_files(files_for(clients))
        return cls(listener, run, token, clients, marks)

    @classmethod
    def open(
        cls, port_wanted: int | None, master_port: int | None, run: str, token: str = "",
        clients: int = 64, *, here: bool = False,
    ) -> "Store":  # fmt: skip
        """Listen on ``--port``, or on the first free port behind MASTER_PORT.

        ``clients`` is the number of expected connections. For many, this process may open more
        files from now on. It listens on all interfaces, or ``here``, on this machine only.

        Raises:
            NoPortError: no port is free, or the one that is wanted is not.
            StoreError: this process may not open enough files for very many clients.
            SameRunError: another run here has the same name, so that tasks could mix them up.
            OSError: EMFILE, if this process may not open enough files for the clients.
        """
        wire.allow_files(files_for(clients))
        if (most := wire.files_allowed()) < clients + OWN_FILES and clients > _MANY:
            raise StoreError(
                say(
                    "{tasks} tasks need as many connections, and task 0 may open only {files} "
                    "files: raise its hard limit (ulimit -Hn)",
                    tasks=clients,
                    files=most,
                )
            )
        wire.refuse_too_few(clients)
        why: str = say("no port is left after it")
        for port in ports(port_wanted, master_port) or ((0,) if master_port is None else ()):
            try:
                listener = wire.listen(port, here=here)
            except OSError as error:
                why = error.strerror or str(error)
                _refuse_same_run(port, run)
            else:
                return cls(listener, run, token, clients)
        if port_wanted:
            raise NoPortError(
                say("cannot listen on --port {port}: {why}", port=port_wanted, why=why)
            )
        raise NoPortError(
            say(
                "cannot listen on a port after MASTER_PORT {port}: {why}",
                port=master_port,
                why=why,
            )
        )

    def get(self, key: str) -> bytes | None:
        """Return the JSON of a key, None when it is not there."""
        return self._hub.get(key)

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
            with self._hub.lock:
                for key, text in texts.items():
                    self._hub.entries.put(key, text)
        except FullError as error:
            raise StoreError(str(error)) from error
        self._loop.call_soon_threadsafe(self._tell, iter(texts.items()))

    def under(self, prefix: str) -> dict[str, bytes]:
        """Return the JSON of all keys that start so, by the rest of the key."""
        with self._hub.lock:
            return {key[len(prefix) :]: text for key, text in self._hub.entries.under(prefix)}

    def news(self, folder: str) -> dict[str, bytes]:
        """Return what was set in a folder since this was asked last, by the rest of the key."""
        with self._hub.lock:
            found = self._hub.entries.news(folder)
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
        return {task for task, connections in list(self._hub.tasks.items()) if connections}

    @property
    def wrong_tokens(self) -> dict[str, int]:
        """How often another token was presented, by the address from which it came."""
        return dict(self._hub.wrong_tokens)

    @property
    def turned_away(self) -> tuple[TurnedAway, ...]:
        """The processes that are none of the tasks, as they said."""
        return tuple(self._hub.turned_away)

    @property
    def wide(self) -> set[int]:
        """The tasks whose large message has arrived."""
        return set(self._hub.wide)

    @property
    def broken(self) -> dict[int, float]:
        """The tasks whose connection has ended without a word, and when: ``time.monotonic()``."""
        return dict(self._hub.broken)

    def close(self) -> None:
        """Close the port and all connections."""
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()

    def _tell(self, texts: Iterator[tuple[str, bytes]]) -> None:
        """Answer those who wait for the keys, some at a time: others are served meanwhile."""
        some = list(islice(texts, _BATCH))
        for key, text in some:
            self._hub.tell(key, text)
        if some:
            self._loop.call_soon(self._tell, texts)

    def _pulse(self) -> None:
        """Note how late the loop is: each time around it reads all connections."""
        now = time.monotonic()
        self._delay += max(0.0, now - self._due - _TOLERANCE)
        self._longest_pause = max(self._longest_pause, now - self._due)
        self._due = now + _PULSE
        self._loop.call_later(_PULSE, self._pulse)

    async def _end(self) -> None:
        """Let the loop go around until no connection is left, those included that just came."""
        for listener in self._listening.sockets:
            self._loop.remove_reader(listener)  # a closed server loses whom it just accepted
        accepting = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*accepting, return_exceptions=True)
        self._listening.close()
        while self._hub.connections:
            self._hub.stop()
            await asyncio.sleep(0)
        self._loop.stop()


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
