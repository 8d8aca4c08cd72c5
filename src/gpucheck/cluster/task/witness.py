"""What this task sees of others that task 0 does not hear: task 0 asks it before it judges them."""

import contextlib
import socket
import threading

from gpucheck.cluster.store import messages
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.messages import Malformed, Place, Seen, Witnessed
from gpucheck.cluster.survivors import sight

_LONG = 600.0
_REACHED: tuple[Seen, ...] = ("refused", "says-nothing")


class Witness:
    """Looks at other tasks when task 0 asks for it.

    A look takes seconds, so each one has a thread; it may hang where a name is looked up, and holds
    nothing else up then.

    Args:
        task: its number.
        run: the name of the run.
        store: the connection to the store of task 0.
        domain: what follows the launcher's name of a host where it is looked up.
    """

    def __init__(self, task: int, run: str, store: StoreClient, domain: str = "") -> None:
        self._task = task
        self._run = run
        self._store = store
        self._domain = domain
        self._seen: dict[int, Seen] = {}
        self._said = 0

    def watch(self, number: int = 0) -> None:
        """Wait for the questions of task 0."""

        def then(text: bytes | None) -> None:
            found = messages.QUESTIONS.read(text) if text is not None else None
            if isinstance(found, Malformed):
                return
            for place in found.places if found is not None else ():
                look = threading.Thread(target=self._look, args=(place,), daemon=True)
                with contextlib.suppress(RuntimeError):  # no more threads are allowed
                    look.start()
            self.watch(number + (found is not None))

        self._store.get(messages.QUESTIONS.key(self._task, number), _LONG, then=then)

    def tick(self) -> None:
        """Say what was seen, if there is anything new."""
        seen = dict(self._seen)
        if len(seen) > self._said:
            self._said = len(seen)
            self._store.set(messages.WITNESSED.key(self._task), Witnessed(seen=seen))

    def _look(self, place: Place) -> None:
        store = self._store
        port = place.port or store.port
        host = place.host or store.peer_address
        if not place.process.pid:  # it never came: there is only the launcher's name of its host
            host = next(filter(_has_address, (host + self._domain, host)), "")
        if not host:
            return  # a name without an address says nothing about the host
        seen = sight.look(place.process, host, port, self._run, store.token)
        if not place.port and seen in _REACHED:
            seen = "answers"
        self._seen[place.task] = seen


def _has_address(name: str) -> bool:
    with contextlib.suppress(OSError, UnicodeError):
        return bool(socket.getaddrinfo(name, None))
    return False
