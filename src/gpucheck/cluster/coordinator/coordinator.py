"""The coordinator, in task 0. It assigns the ranks, sets the steps and collects the results.

It decides nothing by itself: which step comes next, and who is to blame, are pure functions of
what was heard (``localise``, ``culprits``). Like the supervisor it is a script that is resumed
whenever something may have happened.
"""

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

import msgspec

from gpucheck.cluster.coordinator.hearing import Hearing
from gpucheck.cluster.coordinator.rank_assignment import (
    TOLD_TO_END,
    JobSpec,
    assign_ranks,
    unfit,
)
from gpucheck.cluster.diagnose.naming import words_of
from gpucheck.cluster.model import Backend, RankResult, Roster, Step, StepResult, TaskFacts
from gpucheck.cluster.spans import pack
from gpucheck.cluster.store import messages, pace
from gpucheck.cluster.store.messages import (
    Group,
    M,
    Malformed,
    Message,
    RankAssignment,
    RankProgress,
    Refusal,
    Registration,
    Seen,
    StepOrders,
    Topic,
    Verdict,
)
from gpucheck.cluster.store.wire import TurnedAway
from gpucheck.cluster.survivors.announcer import Announcer
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say

SILENT = 12.0
"""Seconds without a heartbeat after which a task is lost; in large jobs, where heartbeats are
rarer, as many more as ``pace.silence`` says."""
_FOR_TASKS = 1e-5
"""Seconds between two looks at the store for each task of the job, so that a look may cost some."""
_OFTEN, _BEATS = 0.02, 1.0
_MARGIN = 2.0
"""Seconds beyond a step's own deadline, for it to begin and for its results to arrive."""
_RESERVE = 8.0
"""Seconds that are kept for the verdict and for leaving."""
_MOST_MALFORMED = 5

Script = Generator[None, None, None]


class LocalStore(Protocol):
    """The store as its own process sees it."""

    @property
    def delay(self) -> float:
        """For how many seconds in all the store did not read what had arrived."""

    @property
    def longest_pause(self) -> float:
        """The longest time in seconds for which it did not read anything."""

    @property
    def connected(self) -> AbstractSet[int]:
        """The tasks that are connected now."""

    @property
    def wrong_tokens(self) -> Mapping[str, int]:
        """How often another token was presented, by address."""

    @property
    def wide(self) -> AbstractSet[int]:
        """The tasks whose large message has arrived."""

    @property
    def turned_away(self) -> Sequence[TurnedAway]:
        """The processes that are none of the tasks, as they said."""

    @property
    def broken(self) -> Mapping[int, float]:
        """The tasks whose connection has ended without a word, and when."""

    def put(self, key: str, value: Message) -> None:
        """Put a message under a key."""

    def put_all(self, values: Mapping[str, Message]) -> None:
        """Put many messages."""

    def news(self, folder: str) -> Mapping[str, bytes]:
        """Return the texts set in a folder since the last call, by the rest of the key."""

    def under(self, prefix: str) -> Mapping[str, bytes]:
        """Return the texts under the keys that begin so, by the rest of the key."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a pre-flight does. Times in seconds; ``begun`` and ``end`` are of ``monotonic()``."""

    backend: Backend
    begun: float
    end: float
    arrival: float
    """How long tasks are waited for."""
    connect: float
    sizes: tuple[int, ...] = ()
    """Bytes; () leaves them to the worker, which knows its device."""
    level: str = "quick"
    seed: int = 0
    alone: float = 30.0
    start: float = 30.0
    set_device: float = 60.0


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


class _Beat(msgspec.Struct, frozen=True):
    """The last heartbeat of a task: its number, when it came, how far each rank was.

    ``when`` is a time of the store's own clock, which stands still while the store is late.
    """

    n: int
    when: float
    ranks: Mapping[int, RankProgress] = {}


Next = Callable[[Heard], Step | None]
Finish = Callable[[Heard], Verdict]
"""Judges what was heard."""
Tell = Callable[[str], None]


class Coordinator:
    """One pre-flight.

    Args:
        store: where it reads and writes messages.
        job: what is known before anyone has come.
        plan: how long everything may take.
        next_step: says what is to be done next.
        finish: judges at the end.
        tell: is told in words what is going on.
    """

    def __init__(
        self, store: LocalStore, job: JobSpec, plan: Plan, next_step: Next, finish: Finish,
        tell: Tell,
    ) -> None:  # fmt: skip
        self._store = store
        self._job = job
        self._plan = plan
        self._next_step = next_step
        self._finish = finish
        self._tell = tell
        self._reserve = min(_RESERVE, (plan.end - plan.begun) / 5)
        self._end = plan.end - self._reserve
        self._came: dict[int, TaskFacts] = {}
        self._registered: dict[int, Registration] = {}
        self._beats: dict[int, _Beat] = {}
        self._beats_at = self._look_at = 0.0
        self._sent: dict[int, int] = {}
        self._lost: set[int] = set()
        self._back: set[int] = set()
        self._hearing = Hearing(store)
        self._awaits = True
        self._is_blind = False
        self._gone: set[int] = set()
        self._left: set[int] = set()
        self._broken: set[int] = set()
        self._gave_up: dict[int, str] = {}
        self._patience = pace.silence(SILENT, pace.beat(job.tasks))
        self._refused: dict[int, Refusal] = {}
        self._malformed: dict[str, str] = {}
        self._announcer = Announcer(store)
        self._heard: Heard | None = None
        self._under_way: tuple[Step, dict[int, RankResult]] | None = None
        self._done = False
        self._script = self._work()

    def tick(self) -> None:
        """Go on with what can be done now."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + max(_OFTEN, _FOR_TASKS * self._job.tasks)
        if self.is_given_up:
            return  # the others may have a verdict of their own
        self._look_at_beats(now)
        self._announcer.go_on(now)
        if not self._done and now > self._end:
            self.stop(say("the time limit of the run was reached"))
        if not self._done:
            next(self._script, None)

    def stop(self, why: str, *, is_blind: bool = False) -> None:
        """End the run with what is known; ``is_blind``: task 0 lost its own store."""
        if self._done:
            return
        self._is_blind = is_blind
        self._note_left()
        if not is_blind:
            self._note_broken()
        if is_blind:
            why = say(
                "task 0 lost the connection to its own store, as on a host that is far too busy "
                "({why}); nobody is named, because it could not hear the others",
                why=why,
            )
        elif self._awaits and (late := self._not_come()):
            why = say(
                "{why}; by then, {count} of {all} tasks had not come ({tasks})",
                why=why, count=len(late), all=self._job.tasks, tasks=words_of(late),
            )  # fmt: skip
        heard = self._heard or self._nothing_done()
        if self._under_way is not None and self._under_way[0].only_measures:
            heard.not_measured, why = why, ""
        elif self._under_way is not None:
            step, results = self._under_way
            heard.history.append(StepResult(step=step, results=self._completed(step, results)))
        heard.stopped_because = heard.stopped_because or why
        self._conclude(heard)

    @property
    def all_have_left(self) -> bool:
        """Whether every task that lives has taken the verdict."""
        self._note_left()
        return self._gone >= set(self._came) - self._lost

    def _note_left(self) -> None:
        """Note who has left. Who does so before the job is judged was told to end."""
        gone = {task for task, _said in self._news(messages.LEAVING)}
        self._gone |= gone
        if not self._done:
            early = gone & self._came.keys() - self._lost
            self._left |= early
            self._lost |= early

    def _note_broken(self) -> None:
        """Note whose connection broke just before this task was told to end."""
        self._broken = self._store.broken.keys() & self._came.keys() - self._lost - self._gone
        self._lost |= self._broken

    @property
    def is_given_up(self) -> bool:
        """Whether all others have left without a verdict, because this one stood still for long."""
        others = set(self._came) - {0}
        if self._done or not others or self._store.longest_pause <= self._patience:
            return False
        return others.isdisjoint(self._store.connected)

    def _work(self) -> Script:
        yield from self._await_tasks()
        # A task that began early may end this one before the others' time to come is over.
        self._awaits = time.monotonic() < self._awaited_until()
        self._announcer.all_came()
        if self._refused:
            self._conclude(self._nothing_done())
            return
        yield from self._learn()
        heard = self._heard = self._nothing_done()
        self._assign(heard.roster)
        known = unfit(heard.roster, heard.facts, cuda=self._job.cuda)
        while (step := self._next_step(heard)) is not None:
            if why := self._why_no_time(step):
                if step.only_measures:
                    heard.not_measured = why
                else:
                    heard.stopped_because = why
                break
            yield from self._take(step, heard, known)
            known = {}
        yield from self._hear_witnesses(heard.roster)
        self._conclude(heard)

    def _hear_witnesses(self, roster: Roster) -> Script:
        """Wait for what others see of the tasks that are not heard."""
        absent = {one.task: one.host for one in roster.ranks if one.rank in roster.absent}
        if absent:
            self._hearing.about_absent(absent, self._registered, time.monotonic())
        while not self._hearing.is_over(time.monotonic(), set(self._came) - self._lost):
            yield

    def _nothing_done(self) -> Heard:
        theirs = {task: one.host for task, one in self._refused.items()}
        job = msgspec.structs.replace(self._job, hosts={**self._job.hosts, **theirs})
        return Heard(roster=assign_ranks(job, self._came), facts=dict(self._came), history=[])

    def _await_tasks(self) -> Script:
        """Wait for every task; the clock starts when the first one has registered: this one."""
        while self._are_awaited() and time.monotonic() < min(self._awaited_until(), self._end):
            for task, said in self._news(messages.REGISTRATIONS):
                is_ours = said.facts.task == task < self._job.tasks
                if is_ours and task not in self._came:
                    self._welcome(said)
            for task, refusal in self._news(messages.REFUSALS):
                if task < self._job.tasks:
                    self._refused[task] = refusal
            self._tell(
                say("{count} of {all} tasks have come", count=len(self._came), all=self._job.tasks)
            )
            yield

    def _awaited_until(self) -> float:
        """Return when a task is late; while the store is late itself, nobody can come."""
        return self._plan.begun + self._plan.arrival + self._store.delay

    def _not_come(self) -> list[int]:
        """Return the tasks that have neither come nor been refused so far."""
        return sorted(set(range(self._job.tasks)) - self._came.keys() - self._refused.keys())

    def _are_awaited(self) -> bool:
        """Whether tasks may still come that have to be waited for."""
        return len(self._came.keys() | self._refused.keys()) < self._job.tasks

    def _welcome(self, said: Registration) -> None:
        self._came[said.facts.task] = said.facts
        self._registered[said.facts.task] = said
        self._beats[said.facts.task] = _Beat(0, self._heard_until())
        self._announcer.welcome(said)
        # Who began earlier ends earlier: the verdict must be there before the first of them goes.
        self._end = min(self._end, time.monotonic() + said.seconds_left - self._reserve)

    def _learn(self) -> Script:
        """Wait until each task has reported torch and its devices, or has fallen silent."""
        told: set[int] = set()
        while told | self._lost < set(self._came):
            self._note_lost()
            for task, said in self._news(messages.REPORTS):
                if said.facts.task == task and task in self._came:
                    self._came[task] = said.facts
                    told.add(task)
            self._tell(
                say(
                    "{count} of {all} tasks have imported torch",
                    count=len(told),
                    all=len(self._came),
                )
            )
            yield
        self._note_untold(self._lost - told)

    def _note_untold(self, tasks: Iterable[int]) -> None:
        """Note why tasks have not reported what they have."""
        for task in tasks:
            has_left = task in self._left
            self._came[task] = msgspec.structs.replace(
                self._came[task],
                problem=_told_to_end() if has_left else say("its supervisor stopped responding"),
                kind=TOLD_TO_END if has_left else "silent",
            )

    def _assign(self, roster: Roster) -> None:
        """Tell each task its ranks."""
        self._announcer.assigned(roster)
        devices: dict[int, dict[int, str]] = {task: {} for task in self._came}
        for one in roster.ranks:
            if one.task in devices:
                devices[one.task][one.rank] = one.device
        self._store.put_all(
            {
                messages.ASSIGNMENTS.key(task): RankAssignment(
                    devices=mine, world_size=len(roster.ranks)
                )
                for task, mine in devices.items()
            }
        )

    def _why_no_time(self, step: Step) -> str:
        """Return why a step is not started: a step that cannot end in time says nothing."""
        left = self._end - time.monotonic()
        needs = self._plan.alone if step.kind == "alone" else self._connect(step) + step.seconds
        if left > needs + _MARGIN:
            return ""
        return say(
            "{seconds:.0f} s were left, too few for the step {step}", seconds=left, step=step.kind
        )

    def _connect(self, step: Step) -> float:
        return min(self._plan.connect, max(step.seconds, 10.0))

    def _take(self, step: Step, heard: Heard, known: Mapping[int, RankResult]) -> Script:
        """Have a step run, and note the result of each rank."""
        roster = heard.roster
        results = {rank: one for rank, one in known.items() if any(rank in g for g in step.groups)}
        self._under_way = (step, results)
        wanted = {rank for group in step.groups for rank in group} - set(results)
        every: dict[str, Message] = {}
        for task, orders in self._orders(step, roster, wanted).items():
            number = self._sent.get(task, 0)
            every[messages.ORDERS.key(task, number)] = orders
            self._sent[task] = number + 1
        self._store.put_all(every)
        while missing := wanted - set(results):
            for first, said in self._news(messages.RESULTS, step.number):
                if said.grown and first in wanted:
                    heard.grown[roster.ranks[first].task] = said.grown
                results.update({one.rank: one for one in said.results if one.rank in missing})
            self._note_lost()
            for rank in wanted - set(results):
                if roster.ranks[rank].task in self._lost:
                    results[rank] = self._unheard(roster, rank)
            self._tell(
                say(
                    "{step}: {count} of {all} ranks are done",
                    step=step.kind,
                    count=len(results),
                    all=len(wanted),
                )
            )
            yield
        self._under_way = None
        heard.history.append(StepResult(step=step, results=results))
        dead = {rank for rank, one in results.items() if one.kind == "unkillable"}
        dead |= {one.rank for one in roster.ranks if one.task in self._lost}
        heard.roster = msgspec.structs.replace(roster, dead=roster.dead | dead)

    def _orders(self, step: Step, roster: Roster, wanted: set[int]) -> dict[int, StepOrders]:
        groups: dict[int, list[Group]] = {}
        for number, ranks in enumerate(step.groups):
            by_task: dict[int, list[int]] = {}
            for rank in ranks:
                if rank in wanted:
                    by_task.setdefault(roster.ranks[rank].task, []).append(rank)
            words = pack(ranks)
            for task, mine in by_task.items():
                group = Group(number=number, ranks=words, mine=tuple(mine))
                groups.setdefault(task, []).append(group)
        return {
            task: StepOrders(
                step=step.number,
                kind=step.kind,
                backend=step.backend,
                groups=tuple(mine),
                seconds=step.seconds,
                connect_seconds=self._connect(step),
                env=step.env,
                tests=step.tests,
                sizes=step.sizes or self._plan.sizes,
                level=self._plan.level,
                seed=self._plan.seed,
                alone_seconds=self._plan.alone,
                start_seconds=self._plan.start,
                device_seconds=self._plan.set_device,
            )
            for task, mine in groups.items()
        }

    def _completed(self, step: Step, results: dict[int, RankResult]) -> dict[int, RankResult]:
        """Return the results of a step that was broken off: what is missing was not run."""
        found = dict(results)
        for group in step.groups:
            for rank in group:
                if rank not in found and self._heard is not None:
                    found[rank] = unheard = self._unheard(self._heard.roster, rank)
                    if self._heard.roster.ranks[rank].task not in self._lost:
                        found[rank] = msgspec.structs.replace(
                            unheard,
                            status="not-run",
                            kind="run-limit",
                            detail=say("the run ended"),
                        )
        return found

    def _unheard(self, roster: Roster, rank: int) -> RankResult:
        """Return what is known of a rank whose supervisor has fallen silent, or has left."""
        beat = self._beats.get(roster.ranks[rank].task)
        at = beat.ranks.get(rank) if beat is not None else None
        if roster.ranks[rank].task in self._left:
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

    def _look_at_beats(self, now: float) -> None:
        if now < self._beats_at:
            return
        self._note_left()
        self._beats_at = now + max(_BEATS, _FOR_TASKS * self._job.tasks)
        until = self._heard_until()
        for task, said in self._news(messages.HEARTBEATS):
            before = self._beats.get(task)
            if before is not None and before.n != said.n:
                self._beats[task] = _Beat(said.n, until, said.ranks)
                if task in self._lost:
                    self._back.add(task)
        for task, gave_up in self._news(messages.GAVE_UP):
            if task in self._came and not self._done:
                self._gave_up[task] = gave_up.why
                self._lost.add(task)
        for task, witnessed in self._news(messages.WITNESSED):
            self._hearing.take(task, witnessed)

    def _note_lost(self) -> None:
        now = self._heard_until()
        lost = {
            task
            for task in self._came.keys() - self._lost
            if task in self._beats and now - self._beats[task].when > self._patience
        }
        if lost:
            self._lost |= lost
            heard = set(self._came) - self._lost
            self._hearing.about_silent(lost, self._registered, heard, time.monotonic())

    def _heard_until(self) -> float:
        """Return the time of a clock that stands still while the store is late.

        What a task sends in that time is not heard, which is not the task's silence.
        """
        return time.monotonic() - self._store.delay

    def _conclude(self, heard: Heard) -> None:
        self._done = True
        heard.facts = dict(self._came)
        if not heard.history:
            self._note_untold(self._broken | self._left)
            heard.facts = dict(self._came)
            self._note_unfit(heard)
        registered = self._store.under(messages.REGISTRATIONS.prefix())
        tasks = {whole_number(task) for task in registered} - set(self._came)
        heard.late = tuple(sorted(t for t in tasks if t is not None and t < self._job.tasks))
        heard.malformed = tuple(self._malformed.values())
        heard.refused, heard.wrong_tokens = self._refused, self._store.wrong_tokens
        heard.seen, heard.back = self._hearing.seen, frozenset(self._back)
        heard.left, heard.broken = frozenset(self._left), frozenset(self._broken)
        heard.gave_up, heard.turned_away = self._gave_up, self._store.turned_away
        known = self._came.keys() | self._refused.keys() | self._job.kept_away
        heard.closed = frozenset(
            task
            for task, when in self._store.broken.items()
            if task in self._beats and when - self._beats[task].when < self._patience / 2
        )
        heard.mute = frozenset(self._store.connected - known)
        heard.narrow = frozenset(
            task
            for task in self._lost - self._store.wide - self._gave_up.keys()
            if self._beats[task].n == 0
        )
        heard.is_blind = self._is_blind
        if self._left and not heard.stopped_because:
            heard.stopped_because = say(
                "tasks were told to end before the job was judged ({tasks})",
                tasks=words_of(sorted(self._left)),
            )
        if self._awaits:
            heard.awaited = frozenset(self._not_come())
        self._store.put(messages.VERDICT.name, self._finish(heard))

    def _note_unfit(self, heard: Heard) -> None:
        """Note the ranks that could not take part: they are known even if no step was begun."""
        known = unfit(heard.roster, heard.facts, cuda=self._job.cuda)
        if not known:
            return
        groups = tuple((rank,) for rank in sorted(known))
        step = Step(
            number=0, kind="alone", groups=groups, backend=self._plan.backend,
            seconds=self._plan.alone,
        )  # fmt: skip
        heard.history.append(StepResult(step=step, results=known))

    def _news(self, topic: Topic[M], *numbers: int) -> list[tuple[int, M]]:
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
            elif len(self._malformed) < _MOST_MALFORMED:
                said = say(
                    "the message {key} was rejected: {problem}",
                    key=key,
                    problem=message.problem,
                )
                self._malformed[key] = said
        return found


def _told_to_end() -> str:
    return say("its launcher told its task to end")
