"""The search for the store of a run among the ports on which it may be.

Somebody else may hold some of the ports, and even pretend to be the store. So every port is tried
by itself, again and again: one that is silent, lies or refuses delays no other one.
"""

import random
import selectors
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpucheck.cluster.store.attempt import Attempt, AttemptError, Reason, Secret, Who, words_of
from gpucheck.cluster.store.wire import StoreError
from gpucheck.language import in_clauses, in_series, say

_WORST_FIRST: tuple[Reason, ...] = (
    "task-taken", "other-size", "wrong-token", "full", "another-run", "no-store", "refused",
    "timed-out", "no-route", "not-resolved",
)  # fmt: skip
"""What is reported if several ports fail: the attempt that came furthest says most."""
_TOLD: tuple[Reason, ...] = ("task-taken", "other-size", "wrong-token")
"""What a store itself has said of this task: that it is gone when this task asks for the last time
takes nothing of it back."""
_ATTEMPT = 10.0
"""Seconds for one port: thousands of clients may have come at the same moment."""
_STAGGER = 0.5
"""Seconds until the next port is tried when one has neither succeeded nor failed."""
_PAUSES = (0.1, 1.0)
"""Seconds between two attempts at a port: at first, and at most."""
_LEAST = 0.3
"""Seconds without which no further attempt begins: it would fail for its haste."""
_GRAIN = 0.002
"""Seconds beyond what is due: a wait that ends a moment early would be repeated at once."""
_RESOLVED = 20.0
"""Seconds after which the name is looked up again."""


Place = tuple[int, tuple[Any, ...]]
"""The family of an address, and the address with a port."""


class ConnectError(StoreError):
    """No store of this run was found.

    ``reason`` is the cause in a word, the text is a sentence. ``was_there``: one was seen before.
    """

    def __init__(self, reason: Reason, sentence: str, *, was_there: bool = False) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.was_there = was_there


class StoreSearch:
    """A search for the store of a run.

    Args:
        host: where task 0 runs.
        ports: on which the store may be, in the order in which they are tried.
        run: the name of the run.
        secret: returns the token.
        seconds: after which it has failed.
        who: which task looks for it.
    """

    def __init__(
        self, host: str, ports: Sequence[int], run: str, secret: Secret, seconds: float,
        who: Who | None = None,
    ) -> None:  # fmt: skip
        self._who = who
        self._host = host
        self._ports = ports
        self._run = run
        self._secret = secret
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._failures: dict[Place, AttemptError] = {}
        self._told: dict[Place, AttemptError] = {}
        self.was_there = False
        """Whether a store of this run has greeted."""

    def find(self) -> Attempt:
        """Return the attempt that has met the store.

        Raises:
            ConnectError: no port had the store in time.
        """
        pause = _PAUSES[0]
        while True:
            self._failures.clear()
            try:
                places = _places(self._host, self._ports, self._deadline)
            except AttemptError as error:
                self._failures = {(0, (self._host, port)): error for port in self._ports}
            else:
                found = self._try(places, min(self._deadline, time.monotonic() + _RESOLVED))
                if found is not None:
                    return found
            if self._deadline - time.monotonic() <= pause:
                failed = _in_all(self._host, {**self._failures, **self._told}, self._seconds)
                failed.was_there = self.was_there
                raise failed
            pause = _wait(pause)

    def _try(self, places: Sequence[Place], until: float) -> Attempt | None:
        """Try the places side by side until one has the store, or the time is over."""
        with selectors.DefaultSelector() as selector:
            trials = [_Trial(self, selector, place, until) for place in places]
            try:
                while time.monotonic() < until:
                    if (found := _first(trials)) is not None:
                        return found
                    selector.select(_patience(trials, until))
                if (found := _first(trials)) is not None:
                    return found
            finally:
                for trial in trials:
                    trial.close()
        return None

    def begin(self, place: Place, until: float) -> Attempt:
        """Begin an attempt at a place."""
        end = min(until, time.monotonic() + _ATTEMPT)
        return Attempt(place, self._run, self._secret, end, self._who)

    def note(self, place: Place, error: AttemptError) -> None:
        """Note why the last attempt at a place failed."""
        self._failures[place] = error
        if error.reason in _TOLD:
            self._told[place] = error


class _Trial:
    """The attempts at one place, one after another.

    Args:
        search: what it belongs to.
        selector: where its sockets are waited for.
        place: an address with its family.
        until: when no attempt may go on.
    """

    def __init__(
        self, search: StoreSearch, selector: selectors.BaseSelector, place: Place, until: float
    ) -> None:
        self._search = search
        self._selector = selector
        self._place = place
        self._until = until
        self._pause = _PAUSES[0]
        self._attempt: Attempt | None = None
        self.begun: float | None = None
        """When its first attempt began."""
        self.has_failed = False
        self.due = 0.0
        """When it has to be looked at."""

    def go_on(self) -> Attempt | None:
        """Go on as far as possible. Return the attempt once it has met the store."""
        now = time.monotonic()
        if self._attempt is None:
            if now < self.due or (self.has_failed and self._until - now < _LEAST):
                return None
            self._begin()
        attempt = self._attempt
        if attempt is None:
            return None
        try:
            if attempt.go_on():
                self._release()
                return attempt
            self._watch(attempt)
        except AttemptError as error:
            self._fail(error)
        return None

    def close(self) -> None:
        """Stop the attempt that is under way."""
        if self._attempt is not None:
            self._attempt.close()
            self._release()

    def _begin(self) -> None:
        if self.begun is None:
            self.begun = time.monotonic()
        try:
            self._attempt = self._search.begin(self._place, self._until)
        except OSError as error:  # no such family here, or no file is left
            self._fail(AttemptError("no-route", words_of(error)))
        else:
            self.due = self._attempt.until
            self._selector.register(self._attempt.connection, selectors.EVENT_WRITE)

    def _watch(self, attempt: Attempt) -> None:
        event = selectors.EVENT_READ if attempt.is_connected else selectors.EVENT_WRITE
        self._selector.modify(attempt.connection, event)

    def _fail(self, error: AttemptError) -> None:
        if self._attempt is not None and self._attempt.meeting.is_of_run:
            self._search.was_there = True
        self._search.note(self._place, error)
        self.close()
        self.has_failed = True
        spread = random.uniform(0.5, 1)  # noqa: S311  # thousands of clients do not come at once
        self.due = time.monotonic() + self._pause * spread
        self._pause = min(self._pause * 1.5, _PAUSES[1])

    def _release(self) -> None:
        """Stop waiting for its socket."""
        if self._attempt is not None:
            self._selector.unregister(self._attempt.connection)
            self._attempt = None


def _first(trials: Sequence[_Trial]) -> Attempt | None:
    """Continue all trials that may go on. Return the first attempt that has met the store.

    At first, each one begins when the one before it has failed, or has had some time.
    """
    before: _Trial | None = None
    for trial in trials:
        if trial.begun is None and before is not None and not _is_turn(before):
            return None
        if (found := trial.go_on()) is not None:
            return found
        before = trial
    return None


def _is_turn(before: _Trial) -> bool:
    """Whether the place behind this one may be tried for the first time."""
    if before.begun is None or before.has_failed:
        return before.has_failed
    return time.monotonic() - before.begun >= _STAGGER


def _patience(trials: Sequence[_Trial], until: float) -> float:
    """Return the seconds until there is work even if nothing arrives."""
    due = [trial.due for trial in trials if trial.begun is not None]
    if len(due) < len(trials):
        due.append(time.monotonic() + _STAGGER / 5)
    return max(0.0, min([until, *due]) - time.monotonic()) + _GRAIN


def _wait(pause: float) -> float:
    """Wait; return the next, longer pause."""
    time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # thousands do not come at once
    return min(pause * 1.5, _PAUSES[1])


def _places(host: str, ports: Sequence[int], deadline: float) -> list[Place]:
    """Return the addresses of a name with each port; a resolver that hangs is abandoned.

    Raises:
        AttemptError: the name has none.
    """
    found: list[Place] = []
    failure: list[str] = []

    def look() -> None:
        try:
            for port in ports:
                of_port = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                found.extend((int(family), address) for family, _, _, _, address in of_port)
        except (OSError, UnicodeError) as error:
            failure.append(
                words_of(error) if isinstance(error, OSError) else say("it is not a name")
            )

    resolver = threading.Thread(target=look, name="resolver", daemon=True)
    resolver.start()
    resolver.join(max(deadline - time.monotonic(), 0.05))
    if resolver.is_alive():
        raise AttemptError("not-resolved", say("the name server does not answer"))
    if failure:
        raise AttemptError("not-resolved", failure[0])
    return found


def _in_all(host: str, failures: Mapping[Place, AttemptError], seconds: float) -> ConnectError:
    """Return the error of a search that failed, from the last attempt at each place."""
    if not failures:
        return ConnectError(
            "refused", say("no port is known on which {host} has a store", host=host)
        )
    of_port: dict[int, AttemptError] = {}
    for (_family, address), error in failures.items():
        port = int(address[1])
        of_port[port] = min(of_port.get(port, error), error, key=_rank)
    worst = min(of_port.values(), key=_rank)
    if worst.reason == "not-resolved":
        return ConnectError(
            "not-resolved", say("{host} cannot be resolved: {why}", host=host, why=worst.words)
        )
    where: dict[str, list[str]] = {}
    for port, error in of_port.items():
        where.setdefault(error.words, []).append(str(port))
    sentence = in_clauses(
        [
            say("port {ports}: {why}", ports=in_series(numbers), why=words)
            for words, numbers in where.items()
        ]
    )
    return ConnectError(
        worst.reason,
        say(
            "no store of this run on {host} within {seconds:.0f} s ({attempts})",
            host=_with_addresses(host, failures),
            seconds=seconds,
            attempts=sentence,
        ),
    )


def _with_addresses(host: str, places: Iterable[Place]) -> str:
    """Return a name with the addresses at which it was looked for."""
    found = [str(name) for name in dict.fromkeys(address[0] for _family, address in places)]
    if found in ([], [host]):
        return host
    return say("{host} ({addresses})", host=host, addresses=in_series(found))


def _rank(error: AttemptError) -> int:
    return _WORST_FIRST.index(error.reason)
