"""The coordinator, in task 0. It assigns the ranks, sets the steps and collects the results.

It decides nothing by itself: which step comes next, and who is to blame, are pure functions of
what was heard (``localise``, ``culprits``), and so are the numbers of the ranks. Like the
supervisor it is a script that is resumed whenever something may have happened.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping

import msgspec

from gpucheck.cluster.attendance import FOR_TASKS, TOLD_TO_END, Attendance, Heard, Inbox
from gpucheck.cluster.diagnose.naming import words_of
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.meeting import Announcer
from gpucheck.cluster.model import (
    Rank,
    RankResult,
    Roster,
    Status,
    Step,
    StepResult,
    TaskFacts,
    gpu_number,
    pack,
)
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import (
    RankAssignment,
    Registration,
    StepGroup,
    StepOrders,
    TaskMessage,
    Verdict,
)
from gpucheck.facts import builtins
from gpucheck.language import say

_OFTEN = 0.02
"""Seconds between two turns of a small job. Chosen: a fraction of any step, and no load on task
0."""
_MARGIN = 2.0
"""Seconds beyond a step's own deadline, for it to begin and for its results to arrive."""
_RESERVE = 8.0
"""Seconds that are kept for the verdict and for leaving."""
Script = Generator[None, None, None]
Next = Callable[[Heard], Step | None]
Finish = Callable[[Heard], Verdict]
"""Judges what was heard."""
Tell = Callable[[str], None]
_NO_DEVICE = "none"


class Coordinator:
    """One pre-flight.

    Args:
        store: where it reads and writes messages.
        plan: what is to be done, and how long everything may take.
        next_step: says what is to be done next.
        finish: judges at the end.
        tell: is told in words what is going on.
    """

    def __init__(
        self, store: Store, plan: JobPlan, next_step: Next, finish: Finish,
        tell: Tell,
    ) -> None:  # fmt: skip
        self._store = store
        self._plan = plan
        self._next_step = next_step
        self._finish = finish
        self._tell = tell
        self._reserve = min(_RESERVE, (plan.end - plan.begun) / 5)
        self._end = plan.end - self._reserve
        self._inbox = Inbox(store)
        self._tasks = Attendance(store, self._inbox, plan.tasks)
        self._look_at = 0.0
        self._sent: dict[int, int] = {}
        self._awaits = True
        self._is_blind = False
        self._announcer = Announcer(store)
        self._heard: Heard | None = None
        self._under_way: tuple[Step, dict[int, RankResult]] | None = None
        self._script = self._work()

    def tick(self) -> None:
        """Go on with what can be done now."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + max(_OFTEN, FOR_TASKS * self._plan.tasks)
        if self.is_given_up:
            return  # the others may have a verdict of their own
        self._tasks.look(now)
        self._announcer.go_on(now)
        if not self._tasks.is_judged and now > self._end:
            self.stop(say("the time limit of the run was reached"))
        if not self._tasks.is_judged:
            next(self._script, None)

    @property
    def is_given_up(self) -> bool:
        """Whether all others have left without a verdict, because this one stood still for long."""
        return self._tasks.is_given_up

    @property
    def all_have_left(self) -> bool:
        """Whether every task that lives has taken the verdict."""
        return self._tasks.all_have_left

    def stop(self, why: str, *, is_blind: bool = False) -> None:
        """End the run with what is known; ``is_blind``: task 0 lost its own store."""
        if self._tasks.is_judged:
            return
        self._is_blind = is_blind
        self._tasks.note_left()
        if not is_blind:
            self._tasks.note_broken()
        if is_blind:
            why = say(
                "task 0 lost the connection to its own store, as on a host that is far too busy "
                "({why}); nobody is named, because it could not hear the others",
                why=why,
            )
        elif self._awaits and (late := self._tasks.not_come()):
            why = say(
                "{why}; by then, {count} of {all} tasks had not come ({tasks})",
                why=why, count=len(late), all=self._plan.tasks, tasks=words_of(late),
            )  # fmt: skip
        heard = self._heard or self._nothing_done()
        if self._under_way is not None and self._under_way[0].only_measures:
            heard.not_measured, why = why, ""
        elif self._under_way is not None:
            step, results = self._under_way
            heard.history.append(StepResult(step=step, results=self._completed(step, results)))
        heard.stopped_because = heard.stopped_because or why
        self._conclude(heard)

    def _work(self) -> Script:
        yield from self._await_tasks()
        # A task that began early may end this one before the others' time to come is over.
        self._awaits = time.monotonic() < self._awaited_until()
        self._announcer.all_came()
        if self._tasks.refused:
            self._conclude(self._nothing_done())
            return
        yield from self._learn()
        heard = self._heard = self._nothing_done()
        self._assign(heard.roster)
        known = unfit(heard.roster, heard.facts, cuda=self._plan.cuda)
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
        absent = {rank.task: rank.host for rank in roster.ranks if rank.rank in roster.absent}
        if absent:
            self._tasks.ask_about_absent(absent)
        while not self._tasks.all_is_seen:
            yield

    def _nothing_done(self) -> Heard:
        theirs = {task: refusal.host for task, refusal in self._tasks.refused.items()}
        job = msgspec.structs.replace(self._plan, hosts={**self._plan.hosts, **theirs})
        return Heard(
            roster=assign_ranks(job, self._tasks.came), facts=dict(self._tasks.came), history=[]
        )

    def _await_tasks(self) -> Script:
        """Wait for every task; the clock starts when the first one has registered: this one."""
        tasks, every = self._tasks, self._plan.tasks
        while tasks.are_awaited() and time.monotonic() < min(self._awaited_until(), self._end):
            for task, registration in self._inbox.news(messages.REGISTRATIONS):
                if registration.facts.task == task < every and task not in tasks.came:
                    self._welcome(registration)
            for task, refusal in self._inbox.news(messages.REFUSALS):
                if task < every:
                    tasks.refused[task] = refusal
            self._tell(say("{count} of {all} tasks have come", count=len(tasks.came), all=every))
            yield

    def _awaited_until(self) -> float:
        """Return when a task is late; while the store is late itself, nobody can come."""
        return self._plan.begun + self._plan.arrival + self._store.delay

    def _welcome(self, registration: Registration) -> None:
        self._tasks.welcome(registration)
        self._announcer.welcome(registration)
        # Who began earlier ends earlier: the verdict must be there before the first of them goes.
        self._end = min(self._end, time.monotonic() + registration.seconds_left - self._reserve)

    def _learn(self) -> Script:
        """Wait until each task has reported torch and its devices, or has fallen silent."""
        reported: set[int] = set()
        while reported | self._tasks.lost < set(self._tasks.came):
            self._tasks.note_lost()
            for task, report in self._inbox.news(messages.REPORTS):
                if report.facts.task == task and task in self._tasks.came:
                    self._tasks.came[task] = report.facts
                    reported.add(task)
            self._tell(
                say(
                    "{count} of {all} tasks have imported torch",
                    count=len(reported),
                    all=len(self._tasks.came),
                )
            )
            yield
        self._tasks.note_untold(self._tasks.lost - reported)

    def _assign(self, roster: Roster) -> None:
        """Tell each task its ranks."""
        self._announcer.assigned(roster)
        devices: dict[int, dict[int, str]] = {task: {} for task in self._tasks.came}
        for rank in roster.ranks:
            if rank.task in devices:
                devices[rank.task][rank.rank] = rank.device
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
        results = {
            rank: result for rank, result in known.items() if any(rank in g for g in step.groups)
        }
        self._under_way = (step, results)
        wanted = {rank for group in step.groups for rank in group} - set(results)
        every: dict[str, TaskMessage] = {}
        for task, orders in self._orders(step, roster, wanted).items():
            number = self._sent.get(task, 0)
            every[messages.ORDERS.key(task, number)] = orders
            self._sent[task] = number + 1
        self._store.put_all(every)
        while missing := wanted - set(results):
            for first, done in self._inbox.news(messages.RESULTS, step.number):
                if done.grown and first in wanted:
                    heard.grown[roster.ranks[first].task] = done.grown
                results |= {
                    result.rank: result for result in done.results if result.rank in missing
                }
            self._tasks.note_lost()
            for rank in wanted - set(results):
                if roster.ranks[rank].task in self._tasks.lost:
                    results[rank] = self._tasks.unheard(roster, rank)
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
        dead = {rank for rank, result in results.items() if result.kind == "unkillable"}
        dead |= {rank.rank for rank in roster.ranks if rank.task in self._tasks.lost}
        heard.roster = msgspec.structs.replace(roster, dead=roster.dead | dead)

    def _orders(self, step: Step, roster: Roster, wanted: set[int]) -> dict[int, StepOrders]:
        groups: dict[int, list[StepGroup]] = {}
        for number, ranks in enumerate(step.groups):
            by_task: dict[int, list[int]] = {}
            for rank in ranks:
                if rank in wanted:
                    by_task.setdefault(roster.ranks[rank].task, []).append(rank)
            words = pack(ranks)
            for task, mine in by_task.items():
                group = StepGroup(number=number, ranks=words, mine=tuple(mine))
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
                    found[rank] = unheard = self._tasks.unheard(self._heard.roster, rank)
                    if self._heard.roster.ranks[rank].task not in self._tasks.lost:
                        found[rank] = msgspec.structs.replace(
                            unheard,
                            status="not-run",
                            kind="run-limit",
                            detail=say("the run ended"),
                        )
        return found

    def _conclude(self, heard: Heard) -> None:
        self._tasks.is_judged = True
        self._tasks.tell(heard)
        if not heard.history:
            self._note_unfit(heard)
        heard.malformed = tuple(self._inbox.malformed.values())
        known = self._tasks.came.keys() | self._tasks.refused.keys() | self._plan.kept_away
        heard.mute = frozenset(self._store.connected - known)
        heard.is_blind = self._is_blind
        if self._tasks.left and not heard.stopped_because:
            heard.stopped_because = say(
                "tasks were told to end before the job was judged ({tasks})",
                tasks=words_of(sorted(self._tasks.left)),
            )
        if self._awaits:
            heard.awaited = frozenset(self._tasks.not_come())
        self._store.put(messages.VERDICT.name, self._finish(heard))

    def _note_unfit(self, heard: Heard) -> None:
        """Note the ranks that could not take part: they are known even if no step was begun."""
        known = unfit(heard.roster, heard.facts, cuda=self._plan.cuda)
        if not known:
            return
        groups = tuple((rank,) for rank in sorted(known))
        step = Step(
            number=0, kind="alone", groups=groups, backend=self._plan.backend,
            seconds=self._plan.alone,
        )  # fmt: skip
        heard.history.append(StepResult(step=step, results=known))


def assign_ranks(job: JobPlan, came: Mapping[int, TaskFacts]) -> Roster:
    """Number the ranks by node, task and device; by task alone where each task has one rank."""
    nodes = _nodes(job, came)
    shared = Counter(nodes.values())
    owners = _owners(nodes, came)
    counts = {
        task: _count(job, facts, alone=shared[nodes[task]] == 1 or nodes[task] in owners)
        for task, facts in came.items()
    }
    usual = Counter(counts.values()).most_common(1)[0][0] if counts else 1
    order = sorted(range(job.tasks), key=lambda task: (nodes[task], task))
    if usual == 1 and set(counts.values()) <= {1}:
        order = list(range(job.tasks))
    numbers: dict[int, dict[str, int]] = {}
    for task, facts in came.items():
        numbers.setdefault(nodes[task], {}).update(facts.gpu_numbers or {})
    ranks: list[Rank] = []
    on_node: Counter[int] = Counter()
    for task in order:
        node, count = nodes[task], counts.get(task, usual)
        of_task = came.get(task)
        for at in range(count):
            place = Rank(
                rank=len(ranks), task=task, node=node, host=_host(job, came, task),
                local=on_node[node],
            )  # fmt: skip
            if job.cuda:
                at_device = place.local if count == 1 else at
                place = _with_device(place, of_task, at_device, numbers.get(node, {}))
            ranks.append(place)
            on_node[node] += 1
    absent = frozenset(rank.rank for rank in ranks if rank.task not in came)
    return Roster(ranks=tuple(ranks), absent=absent)


def unfit(roster: Roster, came: Mapping[int, TaskFacts], *, cuda: bool) -> dict[int, RankResult]:
    """Return the results of ranks that cannot even take part in the first step."""
    found = {}
    for rank in roster.ranks:
        facts = came.get(rank.task)
        if facts is None:
            continue
        if facts.problem:
            found[rank.rank] = RankResult(
                rank=rank.rank, status=_status(facts.kind), phase=facts.phase, kind=facts.kind,
                detail=facts.problem, data={"roots": builtins(facts.roots)}, look=facts.look,
            )  # fmt: skip
        elif cuda and rank.device == _NO_DEVICE:
            found[rank.rank] = RankResult(
                rank=rank.rank, status="failed", phase="census", kind="no-device",
                detail=say("torch sees no GPU for it"), data={"roots": builtins(facts.roots)},
            )  # fmt: skip
    return found


def _status(kind: str) -> Status:
    if kind == "silent":
        return "lost"
    if kind == TOLD_TO_END:
        return "stopped"
    if kind in ("timed-out", "unkillable"):
        return "timed-out"
    return "crashed" if kind in ("signal", "exit-status", "no-answer") else "failed"


def _owners(nodes: Mapping[int, int], came: Mapping[int, TaskFacts]) -> set[int]:
    """Return the nodes on which no two tasks see the same GPU."""
    seen: dict[int, list[str | None]] = {}
    unknown = set()
    for task, facts in came.items():
        uuids = [device.uuid for device in facts.devices or ()]
        seen.setdefault(nodes[task], []).extend(uuids)
        if not uuids or not all(uuids):
            unknown.add(nodes[task])
    return {node for node, uuids in seen.items() if len(set(uuids)) == len(uuids)} - unknown


def _count(job: JobPlan, facts: TaskFacts, *, alone: bool) -> int:
    if job.per_task is not None:
        return job.per_task
    return max(1, len(facts.devices or ())) if job.cuda and alone else 1


def _host(job: JobPlan, came: Mapping[int, TaskFacts], task: int) -> str:
    return came[task].host if task in came else job.hosts.get(task, "")


def _nodes(job: JobPlan, came: Mapping[int, TaskFacts]) -> dict[int, int]:
    """Number the nodes: as the launcher does, or by their names in the order of tasks."""
    given = {task: facts.node for task, facts in came.items()}
    names: dict[str, int] = {}
    used = {node for node in given.values() if node is not None}
    free = iter(number for number in range(10 * job.tasks + 10) if number not in used)
    found: dict[int, int] = {}
    for task in range(job.tasks):
        node = given.get(task)
        name = _host(job, came, task)
        if node is None:
            node = names.get(name) if name else None
        if node is None:
            node = next(free)
        if name:
            names.setdefault(name, node)
        found[task] = node
    return found


def _with_device(
    rank: Rank, facts: TaskFacts | None, place: int, numbers: Mapping[str, int]
) -> Rank:
    """Return the rank with the device at this place of its task.

    A task that sees one device uses it, whatever the task's place on the node.
    """
    devices = (facts.devices if facts is not None else None) or []
    if len(devices) == 1:
        place = 0
    if place >= len(devices):
        known = facts is not None and facts.devices is not None
        return msgspec.structs.replace(rank, device=_NO_DEVICE if known else f"cuda:{place}")
    device = devices[place]
    return msgspec.structs.replace(
        rank,
        device=f"cuda:{place}",
        gpu=gpu_number(device, numbers),
        pci=device.pci,
        uuid=device.uuid,
        model=device.name,
    )
