"""What this task sees of others that task 0 does not hear: task 0 asks it before it judges them."""

import contextlib
import socket
import threading
import time

from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.attempt import Reason
from gpucheck.cluster.store.client import ConnectError, StoreClient
from gpucheck.cluster.store.task_messages import Malformed, Seen, StorePlace, Witnessed
from gpucheck.machine import process_identity
from gpucheck.machine.process_identity import ProcessIdentity

_APART = 1.0
"""Seconds between two looks: a state that both show is not a passing one."""
_AT_ONCE, _SECONDS = 0.5, 3.0
"""Seconds for two attempts to connect: a refusal comes at once, anything else may take longer."""
_STATES: dict[str, Seen] = {"": "ended", "T": "stopped", "t": "stopped", "D": "uninterruptible"}
"""States of ``/proc/PID/stat``; any other one runs."""
_ENDS: dict[Reason, Seen] = {
    "refused": "refused", "another-run": "refused", "other-size": "refused",
    "no-store": "says-nothing", "full": "answers", "wrong-token": "answers",
}  # fmt: skip
"""What the end of an attempt means; the others mean that nothing is reached."""
_LONG = 600.0
"""Seconds that one question to the store may wait; it is asked again, and ``wire.WAIT_LIMIT`` is
longer."""
_REACHED: tuple[Seen, ...] = ("refused", "says-nothing")
"""Of a host on which no task is known to listen, these ends mean that it answers."""


def look(process: ProcessIdentity, host: str, port: int, run: str, token: str) -> Seen:
    """Return what there is to see of task 0, within a few seconds.

    On its own machine the kernel says what became of the process. From elsewhere an attempt to
    connect shows more than the silence: a machine that runs refuses it where nobody listens, and a
    stopped process accepts it and says nothing.
    """
    here = _state(process)
    if here is not None and here != "runs":
        return here
    seen = _attempt(host, port, run, token, _AT_ONCE)
    if seen not in ("refused", "answers"):
        seen = _attempt(host, port, run, token, _SECONDS)
    return seen if here is None or seen == "answers" else here


def _attempt(host: str, port: int, run: str, token: str, seconds: float) -> Seen:
    try:
        StoreClient.connect(host, (port,), run, token, seconds).close()
    except ConnectError as error:
        return _ENDS.get(error.reason, "unreachable")
    return "answers"


def _state(process: ProcessIdentity) -> Seen | None:
    """Return the state of the process, None if it cannot be seen from here."""
    first = process_identity.state(process)
    if first is None:
        return None
    if first == "":
        return "ended"
    time.sleep(_APART)
    last = process_identity.state(process)
    if last in ("", first):
        return _STATES.get(last, "runs")
    return "runs"


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
        self._reported = 0

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
        if len(seen) > self._reported:
            self._reported = len(seen)
            self._store.set(messages.WITNESSED.key(self._task), Witnessed(seen=seen))

    def _look(self, place: StorePlace) -> None:
        store = self._store
        port = place.port or store.port
        host = place.host or store.peer_address
        if not place.process.pid:  # it never came: there is only the launcher's name of its host
            host = next(filter(_has_address, (host + self._domain, host)), "")
        if not host:
            return  # a name without an address says nothing about the host
        seen = look(place.process, host, port, self._run, store.token)
        if not place.port and seen in _REACHED:
            seen = "answers"
        self._seen[place.task] = seen


def _has_address(name: str) -> bool:
    with contextlib.suppress(OSError, UnicodeError):
        return bool(socket.getaddrinfo(name, None))
    return False
