"""Task 0 is lost: who is named by the others, how surely, and where they meet."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from memory_store import MemoryStore

from gpucheck.cluster import meeting
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.meeting import Announcer, FoundDeputy, Meeting, Standby, choose, may_be_deputy
from gpucheck.cluster.model import Rank, Roster, TaskFacts
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.attempt import Who
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import (
    Attendees,
    Deputies,
    Deputy,
    Registration,
    Seat,
    Seen,
    Survivor,
    Verdict,
)
from gpucheck.cluster.store.wire import mark
from gpucheck.cluster.task import witness
from gpucheck.cluster.task_0 import Loss, LossConclusion, conclude, section
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit
from gpucheck.machine import process_identity
from gpucheck.machine.process_identity import ProcessIdentity

RUN = "run-1"
TOKEN = "secret"  # noqa: S105  # of this test
CERTAIN, LIKELY = Confidence.CERTAIN, Confidence.LIKELY


def survivor(seen: Seen, host: str = "a", ranks: dict[int, str] | None = None) -> Survivor:
    return Survivor(host=host, seen=seen, closed=True, seconds=1.0, ranks=ranks or {})


def loss(*seen: tuple[Seen, str], tasks: int, hosts: int, beside: int = 1, ranks: str = "") -> Loss:
    """Return the loss of task 0 on ``a``, with what each task that met saw from its host."""
    met = {number: survivor(witness, host) for number, (witness, host) in enumerate(seen, 1)}
    roll = Attendees(tasks=tasks, hosts=hosts, beside=beside, ranks=ranks)
    return Loss(host="a", attendees=roll, met=met, after=33.0)


@pytest.mark.parametrize(
    ("seen", "sure"),
    [
        ("ended", CERTAIN),
        ("stopped", CERTAIN),
        ("refused", CERTAIN),
        ("uninterruptible", LIKELY),
        ("says-nothing", LIKELY),
        ("runs", None),
        ("answers", None),
    ],
)
def test_what_is_seen_decides(seen: Seen, sure: Confidence | None) -> None:
    on_one_host = conclude(loss((seen, "a"), (seen, "a"), tasks=3, hosts=1, beside=3))
    assert on_one_host.confidence is sure
    assert "task 0 on host a stopped answering after 33 s, while 2 other" in on_one_host.sentence


@pytest.mark.parametrize(
    ("met", "tasks", "named"),
    [
        (("b",), 2, False),  # two hosts: either may be cut off
        (("b", "c"), 3, True),
        (("b", "c"), 4, False),  # half is not most
        (("b", "c", "d"), 4, True),
        (("b", "b", "b", "c"), 9, False),  # many tasks, of few hosts
    ],
)
def test_who_reaches_nothing_names_it_only_with_most_hosts(
    met: tuple[str, ...],
    tasks: int,
    named: bool,  # noqa: FBT001  # a column of the table
) -> None:
    seen: list[tuple[Seen, str]] = [("unreachable", host) for host in met]
    found = conclude(loss(*seen, tasks=tasks, hosts=min(tasks, 4)))
    assert found.confidence is (LIKELY if named else None)
    assert ("cut off" in found.sentence) is not named


@pytest.mark.parametrize(("tasks", "sure"), [(4, LIKELY), (5, LIKELY), (6, None)])
def test_tasks_that_never_came_may_be_on_the_side_of_task_0(
    tasks: int, sure: Confidence | None
) -> None:
    known = loss(("unreachable", "b"), ("unreachable", "c"), ("unreachable", "d"), tasks=4, hosts=4)
    assert conclude(msgspec.structs.replace(known, tasks=tasks)).confidence is sure


def test_one_that_is_refused_and_one_that_is_cut_off() -> None:
    found = conclude(loss(("unreachable", "b"), ("refused", "c"), tasks=3, hosts=3))
    assert found.confidence is CERTAIN
    assert "its process has ended" in found.sentence


def test_one_that_still_gets_an_answer_acquits_it() -> None:
    found = conclude(loss(("refused", "b"), ("refused", "c"), ("answers", "d"), tasks=4, hosts=4))
    assert found.confidence is None


def test_a_few_of_many_tasks_name_nobody() -> None:
    found = conclude(loss(("refused", "b"), ("refused", "b"), tasks=9, hosts=3, beside=3))
    assert found.confidence is None
    assert "2 of 9 tasks met" in found.sentence


def test_the_kernel_of_its_machine_needs_no_majority() -> None:
    found = conclude(loss(("ended", "a"), tasks=9, hosts=3, beside=3))
    assert found.confidence is CERTAIN


def test_all_tasks_elsewhere_are_enough() -> None:
    """The host of task 0 has most of the tasks, and all went with it."""
    found = conclude(loss(("refused", "b"), ("refused", "c"), tasks=9, hosts=3, beside=7))
    assert found.confidence is CERTAIN


def test_the_report_names_the_host_and_accuses_no_survivor() -> None:
    one = loss(("ended", "a"), tasks=2, hosts=1, beside=2, ranks="0-1")
    met = {1: survivor("ended", ranks={2: "cuda:0"})}
    known = section(msgspec.structs.replace(one, met=met), LossConclusion(CERTAIN, "it ended"))
    assert known.culprits is not None
    (culprit,) = known.culprits
    assert (culprit.slug, culprit.ranks, culprit.hosts) == ("rank-missing", (0, 1), ("a",))
    assert [(r.rank, r.task, r.status) for r in known.ranks or ()] == [
        (0, 0, "lost"), (1, 0, "lost"), (2, 1, "stopped"),
    ]  # fmt: skip
    assert known.finished is False


def registration(task: int, host: str, port: int = 0) -> Registration:
    facts = TaskFacts(task=task, host=host, address=f"10.0.0.{task}")
    return Registration(facts=facts, deputy_port=port)


def test_deputies_are_elsewhere_each_on_a_host_of_its_own() -> None:
    places = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "d"}
    came = {task: registration(task, host, 1000 + task) for task, host in places.items()}
    assert [one.task for one in choose({0: registration(0, "a"), **came})] == [3, 5, 6]
    few = {task: came[task] for task in (1, 2, 3, 4)}
    assert [one.task for one in choose({0: registration(0, "a"), **few})] == [3, 4, 1]


def test_few_tasks_of_a_large_job_listen() -> None:
    assert [task for task in range(20) if may_be_deputy(task, task % 8)] == [1, 2, 3, 8, 16]
    assert sum(may_be_deputy(task, 0) for task in range(20_000)) < 300


def test_a_deputy_is_announced_early_and_again_when_all_have_come() -> None:
    store = MemoryStore()
    announcer = Announcer(store)
    announcer.welcome(registration(1, "a", 1001))
    assert not store.values, "nobody knows yet which host task 0 is on"
    announcer.welcome(registration(0, "a"))
    (first,) = store.values["deputies/0"]["deputies"]
    assert (first["task"], first["host"], first["port"]) == (1, "10.0.0.1", 1001)
    announcer.welcome(registration(2, "b", 1002))
    announcer.go_on(0.0)
    assert store.values["roll/0"]["tasks"] == 3
    announcer.all_came()
    assert [one["task"] for one in store.values["deputies/1"]["deputies"]] == [2, 1]
    roster = Roster(ranks=tuple(Rank(rank=r, task=r, node=0, host="a", local=r) for r in range(3)))
    announcer.assigned(roster)
    announcer.go_on(0.1)  # at once
    announcer.go_on(9.0)
    assert store.values["roll/1"] == {
        "message": "roll", "tasks": 3, "hosts": 2, "beside": 2, "ranks": "0", "world_size": 3,
        "seats": {"1": [0, ""], "2": [1, ""]},
    }  # fmt: skip
    assert "roll/2" not in store.values, "nothing has changed since"


def test_only_a_deputy_asks_who_is_there() -> None:
    store = MemoryStore()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        standbys = [Standby(1, listener), Standby(2, None)]
        for standby in standbys:
            standby.watch(store)
        deputy = Deputy(task=1, host="", port=1001)
        said = Deputies(deputies=(deputy,), host="a", process=ProcessIdentity())
        store.put("deputies/0", said)
        store.put("roll/0", Attendees(tasks=3, hosts=1, beside=3))
        store.put("roll/1", Attendees(tasks=4, hosts=1, beside=4))
        assert [standby.deputies for standby in standbys] == [said, said]
        assert standbys[0].attendees == Attendees(tasks=4, hosts=1, beside=4)
        assert standbys[1].attendees is None


def verdict_of(conclusion: LossConclusion) -> Verdict:
    """Return what a deputy says about task 0 on host ``a``."""
    if conclusion.confidence is None:
        return Verdict(exit=3, exit_class="inconclusive", why=conclusion.sentence)
    culprit = Culprit(
        slug="rank-missing", confidence=conclusion.confidence, host="a", hosts=("a",),
        evidence=conclusion.sentence,
    )  # fmt: skip
    return Verdict(exit=1, exit_class="culprit", culprits=(culprit,))


def seen(port: int, address: str = "127.0.0.1", run: str = RUN) -> Seen:
    """Return what is seen of a process of which nothing is known but its port."""
    return witness.look(ProcessIdentity(), address, port, run, TOKEN)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait as long as in earnest."""
    for name, seconds in (("_SETTLE", 0.1), ("_WINDOW", 0.6), ("_PATIENCE", 1.0), ("_TRY", 0.3)):
        monkeypatch.setattr(meeting, name, seconds)
    monkeypatch.setattr(witness, "_SECONDS", 0.6)
    monkeypatch.setattr(witness, "_APART", 0.02)


@pytest.mark.usefixtures("hasty")
def test_what_an_attempt_to_connect_shows() -> None:
    with contextlib.closing(Store.alone(RUN, TOKEN)) as store:
        assert seen(store.port) == "answers"
        assert seen(store.port, run="another") == "refused"
    assert seen(store.port) == "refused"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert seen(silent.getsockname()[1]) == "says-nothing"
    assert seen(1, "no-such-host.invalid") == "unreachable"


@pytest.mark.usefixtures("hasty")
def test_a_process_that_runs_here_is_not_dead() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert witness.look(process_identity.own(), "127.0.0.1", port, RUN, TOKEN) == "runs"


class Job:
    """A task 0 with a store, and others that are connected to it, all in this process."""

    def __init__(self, tasks: int, deputies: tuple[int, ...]) -> None:
        self.store = Store.open(None, None, RUN, TOKEN, tasks)
        self.standbys = {task: Standby.prepared(task, 0, here=True) for task in range(1, tasks)}
        said = Deputies(
            deputies=tuple(
                Deputy(task=task, host="127.0.0.1", port=self.standbys[task].port)
                for task in deputies
            ),
            host="a",
            process=ProcessIdentity(),
        )  # fmt: skip
        self.clients = {
            task: StoreClient.connect(
                "127.0.0.1", (self.store.port,), RUN, TOKEN, 5, Who(task, f"process {task}")
            )
            for task in self.standbys
        }
        for task, standby in self.standbys.items():
            standby.watch(self.clients[task])
        self.store.put(messages.DEPUTIES.key(0), said)
        seats = {task: Seat(0, mark(f"process {task}")) for task in self.standbys}
        self.store.put(
            messages.ATTENDEES.key(0), Attendees(tasks=tasks, hosts=1, beside=tasks, seats=seats)
        )
        self._until(lambda: all(self.standbys[task].attendees for task in deputies))
        self.judged: list[int] = []

    def lose(self) -> None:
        self.store.close()
        self._until(lambda: all(one.lost for one in self.clients.values()))

    def meet(
        self, *tasks: int, seen: Seen = "ended", seconds: float = 20.0
    ) -> dict[int, FoundDeputy]:
        """Have these tasks meet at the same time; return what came of it for each."""
        found: dict[int, FoundDeputy] = {}
        end = time.monotonic() + seconds

        def go(task: int) -> None:
            deputies = self.standbys[task].deputies
            assert deputies is not None

            def judge(what: Loss, conclusion: LossConclusion) -> Verdict:
                self.judged.append(task)
                assert set(what.met) == set(tasks)
                return verdict_of(conclusion)

            place = TaskPlace(launcher="local", task=task, tasks=9, run=RUN)
            one = Meeting(
                self.standbys[task], deputies, self.clients[task], survivor(seen), place, judge,
                after=3.0, end=lambda: end,
            )  # fmt: skip
            found[task] = one.hold()
            one.leave(end)
            one.close()

        threads = [threading.Thread(target=go, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def close(self) -> None:
        self.store.close()
        for standby in self.standbys.values():
            standby.close()
        for client in self.clients.values():
            client.close()

    def _until(self, there: Callable[[], Any]) -> None:
        end = time.monotonic() + 5
        while not there():
            assert time.monotonic() < end
            for client in self.clients.values():
                client.pump()
            time.sleep(0.005)


@pytest.fixture
def job(request: pytest.FixtureRequest) -> Iterator[Job]:
    made = Job(*request.param)
    yield made
    made.close()


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("job", [(4, (1, 2, 3))], indirect=True)
def test_all_meet_at_the_first_deputy_with_one_verdict(job: Job) -> None:
    job.lose()
    found = job.meet(1, 2, 3)
    assert job.judged == [1]
    assert {one.verdict.exit for one in found.values() if one.verdict} == {1}
    assert len({one.sentence for one in found.values()}) == 1
    assert len(found) == 3


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("job", [(4, (1, 2, 3))], indirect=True)
def test_a_deputy_that_is_dead_as_well_is_passed_over(job: Job) -> None:
    job.lose()
    job.standbys[1].close()
    found = job.meet(2, 3)
    assert job.judged == [2]
    assert [one.verdict.exit for one in found.values() if one.verdict] == [1, 1]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("job", [(4, (1, 2))], indirect=True)
def test_a_deputy_that_lives_with_task_0_serves_nobody(job: Job) -> None:
    """Task 3 alone lost its connection: the others are not at the meeting."""
    job.lose()
    begun = time.monotonic()
    found = job.meet(3, seen="unreachable")
    assert found[3].verdict is None
    assert "cut off" in found[3].sentence
    assert time.monotonic() - begun < 8
    assert not job.judged


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("job", [(9, (1,))], indirect=True)
def test_too_few_at_a_deputy_name_nobody(job: Job) -> None:
    job.lose()
    found = job.meet(1, 2, seen="refused")
    assert [one.verdict.exit for one in found.values() if one.verdict] == [3, 3]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("job", [(4, (1, 2, 3))], indirect=True)
def test_a_meeting_ends_in_time(job: Job) -> None:
    job.lose()
    begun = time.monotonic()
    job.meet(3, seconds=0.5)
    assert time.monotonic() - begun < 3


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("job", [(3, (1,))], indirect=True)
def test_a_stranger_without_the_token_is_not_at_the_meeting(job: Job) -> None:
    port = job.standbys[1].port
    job.lose()
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(b'{"op":"set","id":1,"key":"survivor/5","value":{}}\n' * 3)
        found = job.meet(1, 2)
    assert [one.verdict.exit for one in found.values() if one.verdict] == [1, 1]
