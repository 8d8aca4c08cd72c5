"""What the other tasks do when task 0 is lost: they meet at a deputy, and judge what they see.

Task 0 tells them early where they meet, and the deputies who is there. The first deputy that can
be reached opens the store on the port that it has kept ready. For a limited time each task tells it
what it saw of task 0. Then it sets the verdict as task 0 would have done.
"""

import contextlib
import socket
import time
from collections.abc import Callable, Mapping

import msgspec

from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.launcher_variables import is_host
from gpucheck.cluster.model import RankNumber, Roster, pack, unpack
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store import wire
from gpucheck.cluster.store.client import TICK, ConnectError, StoreClient, leave
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import (
    Attendees,
    Deputies,
    Deputy,
    Malformed,
    Registration,
    Seat,
    Survivor,
    Verdict,
)
from gpucheck.cluster.store.wire import StoreError
from gpucheck.cluster.task_0 import Loss, LossConclusion, conclude, is_about_task_0
from gpucheck.facts.numbers import whole_number

_LONG = 600.0
"""Seconds that one question to the store may wait; it is asked again, and ``wire.WAIT_LIMIT`` is
longer."""
DEPUTIES = 3
"""How many there are: one after another may be lost, too."""
_BY_NUMBER, _AMONG = 3, 256
"""The first tasks that listen, and the number from which on no task does, in case task 0 is lost.
"""
_PAUSE, _PAUSE_OF_TASK = 1.0, 5e-4
"""Seconds between two lists of attendees, and how many more for each task, which has a seat in each
list."""
_MOST_SEATS = 25_000
"""As many as fit into a message."""
_SETTLE = 1.0
"""Seconds from the first to the last task, even if all have met: a launcher that ends a whole job
at once may have begun with task 0."""
_WINDOW, _PATIENCE = 5.0, 4.0
"""Seconds for the others to come to a deputy, and for a deputy to open its store."""
_SPREAD = 2.0
"""How many heartbeats later than another a task may notice a silence."""
_TRY = 1.0
"""Seconds for one attempt at a deputy."""
Judge = Callable[[Loss, LossConclusion], Verdict]


class Standby:
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
        self.attendees: Attendees | None = None
        """Who was there. Only deputies ask."""
        self._follows = False

    @classmethod
    def prepared(cls, task: int, local: int, *, here: bool) -> "Standby":
        """Listen on a free port if this task may become a deputy.

        Nobody is served there as long as task 0 lives. ``here``: on this machine only.
        """
        listener = None
        if may_be_deputy(task, local):
            with contextlib.suppress(OSError):
                listener = wire.listen(0, here=here)
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
        return self.listener is not None and any(deputy.task == self.task for deputy in known)

    def _follow(self, store: StoreClient, number: int) -> None:
        """Wait for what task 0 tells its deputies."""

        def then(text: bytes | None) -> None:
            found = messages.ATTENDEES.read(text) if text is not None else None
            if isinstance(found, Malformed):
                return
            self.attendees = found or self.attendees
            self._follow(store, number + (found is not None))

        store.get(messages.ATTENDEES.key(number), _LONG, then=then)


class DeputyDesk:
    """What the others have told a deputy.

    Args:
        store: the store of the deputy.
        tasks: how many tasks the job has.
        host: that of task 0.
        attendees: who was there.
    """

    def __init__(self, store: Store, tasks: int, host: str, attendees: Attendees) -> None:
        self._store = store
        self._tasks = tasks
        self._attendees = attendees
        self._host = host
        self._names = {0: host}
        """By the numbers of the attendees."""
        self._taken: set[RankNumber] = set(unpack(attendees.ranks))
        self._came: set[int] = set()
        self._gone: set[int] = set()
        self.met: dict[int, Survivor] = {}
        """What each task saw."""

    def tick(self) -> None:
        """Take what was said."""
        for key, text in self._store.news(messages.SURVIVORS.name).items():
            found = messages.SURVIVORS.read(text)
            task = whole_number(key)
            if task is None or not isinstance(found, Survivor):
                continue
            self._came.add(task)
            if self._counts(task, found):
                self.met[task] = self._as_known(task, found)
        left = map(whole_number, self._store.news(messages.LEAVING.name))
        self._gone.update(task for task in left if task is not None)

    @property
    def all_have_left(self) -> bool:
        """Whether all who came have taken the verdict."""
        return self._gone >= self._came

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _counts(self, task: int, survivor: Survivor) -> bool:
        """Whether a task counts: one that was there, and that speaks for the first time.

        One that lies about whether it runs on the host of task 0 does not.
        """
        if not 0 < task < self._tasks or task in self.met:
            return False
        if not self._attendees.seats:
            return True
        seat = self._attendees.seats.get(task)
        return seat is not None and (seat.host == 0) is (survivor.host == self._host)

    def _as_known(self, task: int, survivor: Survivor) -> Survivor:
        """Return what a task said, on the host where it was, with ranks that nobody else has.

        A task counts once, for one host, whatever name it gives that host now.
        """
        size = self._attendees.world_size
        ranks = {
            rank: device
            for rank, device in survivor.ranks.items()
            if rank not in self._taken and (not size or rank < size)
        }
        self._taken.update(ranks)
        seat = self._attendees.seats.get(task)
        host = (
            self._names.setdefault(seat.host, survivor.host) if seat is not None else survivor.host
        )
        return msgspec.structs.replace(survivor, host=host, ranks=ranks)


def may_be_deputy(task: int, local: int) -> bool:
    """Whether a task listens in case task 0 is lost: the first ones, and the first of each node."""
    return 0 < task < _AMONG and (local == 0 or task <= _BY_NUMBER)


class Announcer:
    """Says who takes over, as the tasks come."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._came: dict[int, Registration] = {}
        self._times = self._lists = self._world_size = 0
        self._ranks = ""
        self._has_changed = False
        self._next = 0.0

    def welcome(self, registration: Registration) -> None:
        """Note a task that has come. The first that can be a deputy is announced at once."""
        self._came[registration.facts.task] = registration
        self._has_changed = True
        first = self._came.get(0)
        if first is not None and not self._times and (deputies := choose(self._came)):
            self._announce(first, deputies)

    def all_came(self) -> None:
        """Announce the deputies for good: nobody is waited for any longer."""
        first, deputies = self._came.get(0), choose(self._came)
        if first is not None and deputies:
            self._announce(first, deputies)
            self.go_on(self._next)

    def assigned(self, roster: Roster) -> None:
        """Note the ranks of task 0."""
        self._ranks = pack(rank.rank for rank in roster.ranks if rank.task == 0)
        self._world_size = len(roster.ranks)
        self._has_changed = True
        self._next = 0.0  # a task 0 that dies in the first step is named with its ranks

    def go_on(self, now: float) -> None:
        """Tell the deputies who is there, if that has changed."""
        if self._times and now >= self._next and self._has_changed:
            self._next = now + _PAUSE + _PAUSE_OF_TASK * len(self._came)
            self._has_changed = False
            self._store.put(messages.ATTENDEES.key(self._lists), self._attendees())
            self._lists += 1

    def _attendees(self) -> Attendees:
        numbers = {self._came[0].facts.host: 0}
        hosts = {
            task: numbers.setdefault(registration.facts.host, len(numbers))
            for task, registration in self._came.items()
        }
        seats = {
            task: Seat(hosts[task], registration.mark)
            for task, registration in self._came.items()
            if task
        }
        return Attendees(
            tasks=len(hosts), hosts=len(numbers), beside=sum(not host for host in hosts.values()),
            ranks=self._ranks, world_size=self._world_size,
            seats=seats if len(seats) <= _MOST_SEATS else {},
        )  # fmt: skip

    def _announce(self, first: Registration, deputies: tuple[Deputy, ...]) -> None:
        announcement = Deputies(deputies=deputies, host=first.facts.host, process=first.process)
        self._store.put(messages.DEPUTIES.key(self._times), announcement)
        self._times += 1


def choose(came: Mapping[int, Registration]) -> tuple[Deputy, ...]:
    """Return the deputies among the tasks that have come.

    Those on other hosts than task 0 come first, each on a host of its own if possible, then the
    lowest.
    """
    first = came.get(0)
    used = {first.facts.host} if first is not None else set()
    able = [came[task] for task in sorted(came) if task and _is_able(came[task])]
    apart = []
    for registration in able:
        if registration.facts.host not in used:
            used.add(registration.facts.host)
            apart.append(registration)
    here = first.facts.host if first is not None else ""
    rest = sorted(
        (registration for registration in able if registration not in apart),
        key=lambda registration: registration.facts.host == here,
    )
    return tuple(
        Deputy(
            task=registration.facts.task,
            host=registration.facts.address,
            port=registration.deputy_port,
        )
        for registration in [*apart, *rest][:DEPUTIES]
    )


def _is_able(registration: Registration) -> bool:
    """Whether a task has a port, and an address that can be one."""
    address = registration.facts.address
    return bool(registration.deputy_port) and (not address or is_host(address))


class FoundDeputy(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a meeting: the verdict, if there is one, and the sentence about task 0."""

    verdict: Verdict | None
    sentence: str


class Meeting:
    """One task at a meeting.

    Args:
        standby: what it has kept ready.
        deputies: where to meet.
        lost: the connection to task 0 that was lost.
        said: what it saw itself.
        place: which task it is.
        judge: makes the verdict if this task turns out to be the deputy.
        after: seconds from the start of the run to the last sign of task 0.
        end: returns when the meeting must be over, a time of ``time.monotonic()``.
    """

    def __init__(
        self, standby: Standby, deputies: Deputies, lost: StoreClient, survivor: Survivor,
        place: TaskPlace, judge: Judge, *, after: float, end: Callable[[], float],
    ) -> None:  # fmt: skip
        self._standby = standby
        self._deputies = deputies
        self._lost = lost
        self._survivor = survivor
        self._place = place
        self._judge = judge
        self._after = after
        self._end = end
        late = 0.0 if survivor.closed else _SPREAD * lost.beat
        self._window, self._patience = _WINDOW + late, _PATIENCE + late
        self._desk: DeputyDesk | None = None
        self._client: StoreClient | None = None

    def hold(self) -> FoundDeputy:
        """Meet the others; return what came of it."""
        for deputy in self._deputies.deputies:
            if deputy.task == self._standby.task:
                if self._standby.listener is not None:
                    return self._preside(self._standby.listener)
                continue
            client = self._go_to(deputy.host or self._lost.peer_address, deputy.port)
            if client is not None:
                self._client = client
                return self._listen(client)
        return FoundDeputy(verdict=None, sentence=conclude(self._loss({})).sentence)

    @property
    def presides(self) -> bool:
        """Whether this task is the deputy."""
        return self._desk is not None

    def leave(self, end: float) -> None:
        """Leave with the others."""
        if self._client is not None:
            leave(self._client, self._standby.task, end, self._desk)

    def close(self) -> None:
        """End the connections."""
        if self._client is not None:
            self._client.close()
        if self._desk is not None:
            self._desk.close()

    def _go_to(self, host: str, port: int) -> StoreClient | None:
        """Return a connection to a deputy, None if there is none; one that refuses is dead, too."""
        end = min(time.monotonic() + self._patience, self._end())
        while (left := end - time.monotonic()) > 0:
            try:
                return StoreClient.connect(
                    host,
                    (port,),
                    self._place.run,
                    self._lost.token,
                    min(_TRY, left),
                    self._lost.who,
                )
            except ConnectError as error:
                if error.reason == "refused":
                    return None
        return None

    def _listen(self, client: StoreClient) -> FoundDeputy:
        """Tell the deputy what was seen, and wait for its verdict."""
        box: list[Verdict | Malformed] = []

        def then(text: bytes | None) -> None:
            if text is not None:
                box.append(messages.VERDICT.read(text))

        wait = self._window + self._patience
        end = min(time.monotonic() + wait, self._end())
        client.set(messages.SURVIVORS.key(self._standby.task), self._survivor)
        client.get(messages.VERDICT.name, wait, then)
        while not box and not client.lost and time.monotonic() < end:
            client.pump()
            time.sleep(TICK)
        found = box[0] if box else None
        if isinstance(found, Verdict) and is_about_task_0(found, self._loss({})):
            culprit = found.culprits[0].evidence if found.culprits else ""
            return FoundDeputy(verdict=found, sentence=found.why or culprit)
        return FoundDeputy(verdict=None, sentence=conclude(self._loss({})).sentence)

    def _preside(self, listener: socket.socket) -> FoundDeputy:
        """Hold the store for the others, and judge."""
        place, lost = self._place, self._lost
        marks = {task: seat.mark for task, seat in self._attendees.seats.items()}
        store = Store.on(listener, place.run, lost.token, place.tasks, marks)
        desk = self._desk = DeputyDesk(store, place.tasks, self._deputies.host, self._attendees)
        try:
            self._client = StoreClient.connect(
                "127.0.0.1", (store.port,), place.run, lost.token, _PATIENCE, lost.who
            )
        except StoreError as error:
            return FoundDeputy(verdict=None, sentence=str(error))
        self._client.set(messages.SURVIVORS.key(self._standby.task), self._survivor)
        loss = self._loss(self._await(desk))
        conclusion = conclude(loss)
        verdict = self._judge(loss, conclusion)
        store.put(messages.VERDICT.name, verdict)
        return FoundDeputy(verdict=verdict, sentence=conclusion.sentence)

    def _await(self, desk: DeputyDesk) -> dict[int, Survivor]:
        """Return who has come, and what each of them saw, until all are there or time is up."""
        begun = time.monotonic()
        others = self._attendees.tasks - 1
        while True:
            assert self._client is not None  # noqa: S101  # it has just connected
            self._client.pump()
            desk.tick()
            now = time.monotonic()
            seconds = _SETTLE if len(desk.met) >= others else self._window
            if now >= min(begun + seconds, self._end()):
                return desk.met
            time.sleep(TICK)

    @property
    def _attendees(self) -> Attendees:
        """Who was there; without any news all tasks, each on a host of its own."""
        tasks = self._place.tasks
        return self._standby.attendees or Attendees(tasks=tasks, hosts=tasks, beside=1)

    def _loss(self, met: dict[int, Survivor]) -> Loss:
        return Loss(
            host=self._deputies.host,
            attendees=self._attendees,
            met=met or {self._standby.task: self._survivor},
            after=self._after,
            tasks=self._place.tasks,
        )
