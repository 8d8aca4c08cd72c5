"""What a task keeps ready in case task 0 is lost: a port of its own, and where the others meet."""

import contextlib
import socket

from gpucheck.cluster.store import messages, sockets
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.messages import Deputies, Malformed, Roll
from gpucheck.cluster.survivors.announcer import may_be_deputy

_LONG = 600.0


class Heir:
    """What one task knows in advance.

    Args:
        task: its number.
        listener: the port on which it would hold a store; None if it will not.
    """

    def __init__(self, task: int, listener: socket.socket | None) -> None:
        self.task = task
        self.listener = listener
        self.deputies: Deputies | None = None
        """Who takes over; None as long as nobody has been announced."""
        self.roll: Roll | None = None
        """Who was there. Only deputies ask."""
        self._follows = False

    @classmethod
    def prepared(cls, task: int, local: int, *, here: bool) -> "Heir":
        """Listen on a free port if this task may become a deputy.

        Nobody is served there as long as task 0 lives. ``here``: on this machine only.
        """
        listener = None
        if may_be_deputy(task, local):
            with contextlib.suppress(OSError):
                listener = sockets.listen(0, here=here)
        return cls(task, listener)

    @property
    def port(self) -> int:
        """The port on which it listens, 0 without one."""
        return int(self.listener.getsockname()[1]) if self.listener is not None else 0

    def watch(self, store: StoreClient, number: int = 0) -> None:
        """Wait for the announcements of task 0."""

        def then(text: bytes | None) -> None:
            found = messages.DEPUTIES.read(text) if text is not None else None
            if isinstance(found, Malformed):
                return
            if found is not None:
                self.deputies = found
            if self._is_deputy() and not self._follows:
                self._follows = True
                self._follow(store, 0)
            self.watch(store, number + (found is not None))

        store.get(messages.DEPUTIES.key(number), _LONG, then=then)

    def close(self) -> None:
        """Give up the port."""
        if self.listener is not None:
            self.listener.close()

    def _is_deputy(self) -> bool:
        """Whether this task was announced as one."""
        known = self.deputies.deputies if self.deputies is not None else ()
        return self.listener is not None and any(one.task == self.task for one in known)

    def _follow(self, store: StoreClient, number: int) -> None:
        """Wait for what task 0 tells its deputies."""

        def then(text: bytes | None) -> None:
            found = messages.ROLL.read(text) if text is not None else None
            if isinstance(found, Malformed):
                return
            self.roll = found or self.roll
            self._follow(store, number + (found is not None))

        store.get(messages.ROLL.key(number), _LONG, then=then)
