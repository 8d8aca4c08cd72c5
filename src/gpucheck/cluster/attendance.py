"""Who takes part: which tasks have come, which are still heard, and how the others were lost."""

import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gpucheck.cluster.launcher_variables import is_host
from gpucheck.cluster.model import RankResult, Roster, StepResult, TaskFacts
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store import wire
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import (
    M,
    Malformed,
    Question,
    RankProgress,
    Refusal,
    Registration,
    Seen,
    StorePlace,
    Topic,
    Witnessed,
)
from gpucheck.cluster.store.wire import TurnedAway
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say

TOLD_TO_END = "told-to-end"
"""The kind of a rank whose launcher ended its task before the job was judged."""
_MOST_MALFORMED = 5
"""Chosen: a forger could otherwise fill the report with its sentences."""
_WITNESSES = 8
"""How many hosts are asked about a silent one: with more, one that errs changes nothing."""
_MOST = 64
"""Places in one question; whoever is not asked about is not called dead."""
_PATIENCE = 8.0
"""Seconds for the answers: a look takes half as long, and hosts may be busy."""
SILENT = 12.0
"""Seconds without a heartbeat after which a task is lost; in large jobs, where heartbeats are
rarer, as many more as ``wire.silence`` says."""
FOR_TASKS = 1e-5
"""Seconds between two looks at the store for each task of the job, so that a look may cost some."""
_BEATS = 1.0
"""Seconds between two looks at the heartbeats: as often as they come in a small job
(``wire.LEAST``)."""


class Inbox:
    """Reads the messages of other tasks; one that is malformed is noted and passed over.

    Attributes:
        malformed: what was not believed, each in a sentence, by its key.
    """

    def __init__(self, store: Store) -> None:
        self.malformed: dict[str, str] = {}
        self._store = store

    def news(self, topic: Topic[M], *numbers: int) -> list[tuple[int, M]]:
        """Return what was set since the last look, each with the last number of its key."""
        folder = topic.key(*numbers)
        found = []
        for rest, text in self._store.news(folder).items():
            key = f"{folder}/{rest}"
            number = whole_number(rest)
            if number is None:
                continue
            message = topic.read(text)
            if not isinstance(message, Malformed):
                found.append((number, message))
            elif len(self.malformed) < _MOST_MALFORMED:
                sentence = say(
                    "the message {key} was rejected: {problem}",
                    key=key,
                    problem=message.problem,
                )
                self.malformed[key] = sentence
        return found


class Heard(msgspec.Struct, kw_only=True):
    """Everything that the judgement is based on."""

    roster: Roster
    facts: dict[int, TaskFacts]
    history: list[StepResult]
    late: tuple[int, ...] = ()
    """Tasks that came after the ranks had been assigned."""
    grown: dict[int, Mapping[str, Mapping[str, int]]] = {}
    """By how much error counters of RDMA ports have grown, by task."""
    seen: Mapping[int, Mapping[int, Seen]] = {}
    """What others saw of tasks that are not heard: by task, and by the task that was asked."""
    back: frozenset[int] = frozenset()
    """Tasks that were lost, and are heard again."""
    awaited: frozenset[int] = frozenset()
    """Tasks that have not come, and that still had time to."""
    left: frozenset[int] = frozenset()
    """Tasks that were told to end before the job was judged, and said so."""
    broken: frozenset[int] = frozenset()
    """Tasks whose connection ended without a word, just before the job was told to end."""
    closed: frozenset[int] = frozenset()
    """Tasks whose connection was closed as soon as they fell silent."""
    gave_up: Mapping[int, str] = {}
    """Tasks that have ended because nothing came from task 0 any more, with what they saw."""
    narrow: frozenset[int] = frozenset()
    """Tasks of which nothing came after their registration, not even their large message."""
    mute: frozenset[int] = frozenset()
    """Tasks that have connected, and have never registered."""
    turned_away: Sequence[TurnedAway] = ()
    """Processes that looked for the store and are none of the tasks."""
    is_blind: bool = False
    """Whether task 0 lost its own store: what it did not hear then means nothing."""
    refused: Mapping[int, Refusal] = {}
    """Tasks that were refused at their start."""
    wrong_tokens: Mapping[str, int] = {}
    """How often another token was presented, by address."""
    malformed: tuple[str, ...] = ()
    """Messages that were not believed, each in a sentence."""
    stopped_because: str = ""
    not_measured: str = ""
    """Why a measurement was left out, in a sentence; the job was tested without it."""


class Hearing:
    """The questions, and what was answered.

    Args:
        store: where the questions are put.

    Attributes:
        seen: what was seen of each task that was asked about, by the witnesses.
    """

    def __init__(self, store: Store) -> None:
        self.seen: dict[int, dict[int, Seen]] = {}
        self._store = store
        self._asked: dict[int, set[int]] = {}
        self._numbers: dict[int, int] = {}
        self._until = 0.0

    def about_silent(
        self, silent: Iterable[int], came: Mapping[int, Registration], heard: set[int], now: float
    ) -> None:
        """Ask about tasks that have come and fallen silent.

        Where other tasks of their host are heard, the lowest of these sees their processes.
        Otherwise hosts are asked about a task that listens, if there is one.
        """
        lowest = _lowest(came, heard)
        places: dict[int, list[StorePlace]] = {}
        whole: dict[str, StorePlace] = {}
        for task in sorted(silent):
            registration = came[task]
            place = StorePlace(
                task=task,
                host=_address(registration),
                port=registration.deputy_port,
                process=registration.process,
            )
            host = registration.facts.host
            if host in lowest:
                places.setdefault(lowest[host], []).append(place)
            elif host not in whole or (place.port and not whole[host].port):
                whole[host] = place
        for witness in _spread(lowest):
            places.setdefault(witness, []).extend(whole.values())
        self._ask(places, now)

    def about_absent(
        self, hosts: Mapping[int, str], came: Mapping[int, Registration], now: float
    ) -> None:
        """Ask about tasks that have not come, by the names that the launcher has for their hosts.

        Nobody is known to listen there. But it shows whether the hosts can be reached at all.
        """
        lowest = _lowest(came, set(came))
        first: dict[str, StorePlace] = {}
        for task, host in sorted(hosts.items()):
            if host not in lowest and is_host(host):
                first.setdefault(host, StorePlace(task=task, host=host))
        self._ask({witness: list(first.values()) for witness in _spread(lowest)}, now)

    def take(self, witness: int, witnessed: Witnessed) -> None:
        """Note what a witness says about those for whom it was asked."""
        for task in self._asked.get(witness, set()) & witnessed.seen.keys():
            self.seen.setdefault(task, {})[witness] = witnessed.seen[task]

    def is_over(self, now: float, heard: set[int]) -> bool:
        """Whether all who can still answer have done so, or their time is over."""
        open_ones = (
            task
            for witness, tasks in self._asked.items()
            if witness in heard
            for task in tasks
            if witness not in self.seen.get(task, {})
        )
        return now > self._until or not any(True for _ in open_ones)

    def _ask(self, places: Mapping[int, list[StorePlace]], now: float) -> None:
        for witness, all_of_them in places.items():
            asked = self._asked.setdefault(witness, set())
            new = [place for place in all_of_them if place.task not in asked][:_MOST]
            if not new:
                continue
            number = self._numbers.get(witness, 0)
            self._numbers[witness] = number + 1
            asked.update(place.task for place in new)
            self._store.put(messages.QUESTIONS.key(witness, number), Question(places=tuple(new)))
            self._until = now + _PATIENCE


def _lowest(came: Mapping[int, Registration], heard: set[int]) -> dict[str, int]:
    """Return the lowest task that is heard on each host, the host of task 0 first."""
    found: dict[str, int] = {}
    for task in sorted(heard & came.keys()):
        found.setdefault(came[task].facts.host, task)
    return found


def _spread(lowest: Mapping[str, int]) -> list[int]:
    """Return some of the witnesses, from all parts of the job; task 0 is always among them."""
    every = list(lowest.values())
    count = min(len(every), _WITNESSES)
    return [every[at * len(every) // count] for at in range(count)]


def _address(registration: Registration) -> str:
    """Return the address of a task; "" if it is none, or where the store is."""
    return registration.facts.address if is_host(registration.facts.address) else ""


class _Beat(msgspec.Struct, frozen=True):
    """The last heartbeat of a task: its number, when it came, how far each rank was.

    ``when`` is a time of the store's own clock, which stands still while the store is late.
    """

    n: int
    when: float
    ranks: Mapping[int, RankProgress] = {}


class Attendance:
    """The tasks of one pre-flight, as task 0 hears them.

    Args:
        store: where they are connected.
        inbox: what they have sent.
        tasks: how many the job has.

    Attributes:
        came: the facts of each task that has registered.
        refused: the tasks that were refused at their start.
        lost: those that are not heard any more, or have left early.
        left: those that were told to end before the job was judged, and said so.
        is_judged: whether the job is judged, so that whoever leaves was not told to end.
    """

    def __init__(self, store: Store, inbox: Inbox, tasks: int) -> None:
        self.came: dict[int, TaskFacts] = {}
        self.refused: dict[int, Refusal] = {}
        self.lost: set[int] = set()
        self.left: set[int] = set()
        self.is_judged = False
        self._store = store
        self._inbox = inbox
        self._tasks = tasks
        self._patience = wire.silence(SILENT, wire.beat(tasks))
        self._hearing = Hearing(store)
        self._registered: dict[int, Registration] = {}
        self._beats: dict[int, _Beat] = {}
        self._beats_at = 0.0
        self._back: set[int] = set()
        self._gone: set[int] = set()
        self._broken: set[int] = set()
        self._gave_up: dict[int, str] = {}

    def welcome(self, registration: Registration) -> None:
        """Note that a task has come."""
        self.came[registration.facts.task] = registration.facts
        self._registered[registration.facts.task] = registration
        self._beats[registration.facts.task] = _Beat(0, self._heard_until())

    def not_come(self) -> list[int]:
        """Return the tasks that have neither come nor been refused so far."""
        return sorted(set(range(self._tasks)) - self.came.keys() - self.refused.keys())

    def are_awaited(self) -> bool:
        """Whether tasks may still come that have to be waited for."""
        return len(self.came.keys() | self.refused.keys()) < self._tasks

    @property
    def all_have_left(self) -> bool:
        """Whether every task that lives has taken the verdict."""
        self.note_left()
        return self._gone >= set(self.came) - self.lost

    def note_left(self) -> None:
        """Note who has left. Who does so before the job is judged was told to end."""
        gone = {task for task, _leaving in self._inbox.news(messages.LEAVING)}
        self._gone |= gone
        if not self.is_judged:
            early = gone & self.came.keys() - self.lost
            self.left |= early
            self.lost |= early

    def note_broken(self) -> None:
        """Note whose connection broke just before this task was told to end."""
        self._broken = self._store.broken.keys() & self.came.keys() - self.lost - self._gone
        self.lost |= self._broken

    @property
    def is_given_up(self) -> bool:
        """Whether all others have left without a verdict, because this one stood still for long."""
        others = set(self.came) - {0}
        if self.is_judged or not others or self._store.longest_pause <= self._patience:
            return False
        return others.isdisjoint(self._store.connected)

    def look(self, now: float) -> None:
        """Hear who has sent something since the last look, once a second at most."""
        if now < self._beats_at:
            return
        self.note_left()
        self._beats_at = now + max(_BEATS, FOR_TASKS * self._tasks)
        until = self._heard_until()
        for task, heartbeat in self._inbox.news(messages.HEARTBEATS):
            before = self._beats.get(task)
            if before is not None and before.n != heartbeat.n:
                self._beats[task] = _Beat(heartbeat.n, until, heartbeat.ranks)
                if task in self.lost:
                    self._back.add(task)
        for task, gave_up in self._inbox.news(messages.GAVE_UP):
            if task in self.came and not self.is_judged:
                self._gave_up[task] = gave_up.why
                self.lost.add(task)
        for task, witnessed in self._inbox.news(messages.WITNESSED):
            self._hearing.take(task, witnessed)

    def note_lost(self) -> None:
        """Note who has fallen silent, and have others asked about them."""
        now = self._heard_until()
        lost = {
            task
            for task in self.came.keys() - self.lost
            if task in self._beats and now - self._beats[task].when > self._patience
        }
        if lost:
            self.lost |= lost
            heard = set(self.came) - self.lost
            self._hearing.about_silent(lost, self._registered, heard, time.monotonic())

    def _heard_until(self) -> float:
        """Return the time of a clock that stands still while the store is late.

        What a task sends in that time is not heard, which is not the task's silence.
        """
        return time.monotonic() - self._store.delay

    def unheard(self, roster: Roster, rank: int) -> RankResult:
        """Return what is known of a rank whose supervisor has fallen silent, or has left."""
        beat = self._beats.get(roster.ranks[rank].task)
        at = beat.ranks.get(rank) if beat is not None else None
        if roster.ranks[rank].task in self.left:
            return RankResult(
                rank=rank, status="stopped", phase=at.phase if at is not None else "start",
                kind=TOLD_TO_END, detail=_told_to_end(),
            )  # fmt: skip
        return RankResult(
            rank=rank,
            status="lost",
            phase=at.phase if at is not None else "start",
            collective=at.collective if at is not None else 0,
            kind="silent",
            detail=say(
                "its supervisor stopped responding: no heartbeat for {seconds:.0f} s",
                seconds=self._patience,
            ),
        )

    def note_untold(self, tasks: Iterable[int]) -> None:
        """Note why tasks have not reported what they have."""
        for task in tasks:
            has_left = task in self.left
            self.came[task] = msgspec.structs.replace(
                self.came[task],
                problem=_told_to_end() if has_left else say("its supervisor stopped responding"),
                kind=TOLD_TO_END if has_left else "silent",
            )

    def ask_about_absent(self, hosts: Mapping[int, str]) -> None:
        """Ask what others see of tasks that have not come, by the names of their hosts."""
        self._hearing.about_absent(hosts, self._registered, time.monotonic())

    @property
    def all_is_seen(self) -> bool:
        """Whether all who were asked about others have answered, or cannot any more."""
        return self._hearing.is_over(time.monotonic(), set(self.came) - self.lost)

    def tell(self, heard: Heard) -> None:
        """Add what is known of the tasks to that on which the job is judged."""
        if not heard.history:
            self.note_untold(self._broken | self.left)
        heard.facts = dict(self.came)
        registered = self._store.under(messages.REGISTRATIONS.prefix())
        tasks = {whole_number(task) for task in registered} - set(self.came)
        heard.late = tuple(sorted(t for t in tasks if t is not None and t < self._tasks))
        heard.refused, heard.wrong_tokens = self.refused, self._store.wrong_tokens
        heard.seen, heard.back = self._hearing.seen, frozenset(self._back)
        heard.left, heard.broken = frozenset(self.left), frozenset(self._broken)
        heard.gave_up, heard.turned_away = self._gave_up, self._store.turned_away
        heard.closed = frozenset(
            task
            for task, when in self._store.broken.items()
            if task in self._beats and when - self._beats[task].when < self._patience / 2
        )
        heard.narrow = frozenset(
            task
            for task in self.lost - self._store.wide - self._gave_up.keys()
            if self._beats[task].n == 0
        )


def _told_to_end() -> str:
    return say("its launcher told its task to end")
