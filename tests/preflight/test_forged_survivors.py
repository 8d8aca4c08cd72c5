"""Tasks that lie at the meeting without task 0: each counts once, and no healthy host is named."""

import contextlib
import json
import random
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from forged_messages import LEAVES, deputies, deputys_verdict, forged, roll, survivor
from meeting_support import judged
from memory_store import MemoryStore

from gpucheck.cluster import meeting
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.meeting import DeputyDesk, FoundDeputy, Meeting, Standby, choose
from gpucheck.cluster.model import TaskFacts
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.attempt import Who
from gpucheck.cluster.store.client import ConnectError, StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import (
    Attendees,
    Deputies,
    Malformed,
    Registration,
    Seat,
    Survivor,
    Topic,
)
from gpucheck.cluster.store.wire import mark
from gpucheck.machine.process_identity import ProcessIdentity

RUN, TOKEN = "run-1", "secret"
SEEN = (
    "ended", "stopped", "uninterruptible", "refused", "says-nothing", "unreachable", "runs",
    "answers",
)  # fmt: skip


def text(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def of_five_hosts() -> Attendees:
    """Ten tasks, two on each host; ranks as tasks."""
    return Attendees(
        tasks=10, hosts=5, beside=2, ranks="0", world_size=10,
        seats={task: Seat(task // 2, mark(f"process {task}")) for task in range(1, 10)},
    )  # fmt: skip


@pytest.mark.hostile
@pytest.mark.parametrize("seed", range(0, 600, 100))
def test_one_liar_at_a_meeting_of_a_host_that_is_cut_off(seed: int) -> None:
    """Tasks 2 and 3 have lost sight of a healthy task 0; whatever task 4 says, they tell so."""
    for number in range(seed, seed + 100):
        chance = random.Random(number)  # noqa: S311  # the same lies every time
        lie = {**survivor(4, chance.choice(SEEN)), "host": chance.choice(("n0", "n4", "\x1b[2J"))}
        if chance.random() < 0.7:
            lie = forged(lie, chance)
        said = {"2": text(survivor(2)), "4": text(lie), "3": text(survivor(3))}
        found = judged(10, "n0", of_five_hosts(), said)
        assert found is not None
        assert not found.verdict.culprits, lie
        assert found.verdict.exit == 3
        assert {2, 3} <= set(found.loss.met) <= {2, 3, 4}
        assert found.loss.met[2].host == found.loss.met[3].host == "n1"


@pytest.mark.parametrize("seen", SEEN)
def test_another_name_is_no_further_host(seen: str) -> None:
    """Both are on one host, of which each gives another name."""
    said = {"2": text(survivor(2)), "3": text({**survivor(3, seen), "host": "elsewhere"})}
    small = {1: Seat(0, ""), 2: Seat(1, ""), 3: Seat(1, "")}
    found = judged(4, "n0", Attendees(tasks=4, hosts=2, beside=2, seats=small), said)
    assert found is not None
    assert {one.host for one in found.loss.met.values()} == {"n1"}
    if seen in ("unreachable", "answers", "runs"):
        assert found.conclusion.confidence is None


@pytest.mark.parametrize("seen", ["ended", "stopped", "uninterruptible"])
def test_the_kernel_of_another_machine_says_nothing(seen: str) -> None:
    assert (
        judged(10, "n0", of_five_hosts(), {"4": text({**survivor(4, seen), "host": "n0"})}) is None
    )
    found = judged(10, "n0", of_five_hosts(), {"4": text(survivor(4, seen))})
    assert found is not None
    assert found.conclusion.confidence is None
    there = judged(10, "n0", of_five_hosts(), {"1": text(survivor(1, seen))})
    assert there is not None
    assert there.conclusion.confidence is not None
    assert [one.hosts for one in there.verdict.culprits] == [("n0",)]


def test_who_was_not_there_does_not_count() -> None:
    few = {1: Seat(0, ""), 2: Seat(1, "")}
    store = MemoryStore()
    desk = DeputyDesk(store, 9, "n0", Attendees(tasks=3, hosts=2, beside=2, seats=few))
    keys = ("1", "2", "3", "0", "-1", "²", "9", "99999999999999", "x", "1/2", "")
    for key in keys:
        store.texts[f"survivor/{key}"] = text(survivor(2 if key == "2" else 1))
    desk.tick()
    assert set(desk.met) == {1, 2}
    store.texts["survivor/1"] = text(survivor(1, "answers"))
    desk.tick()
    assert desk.met[1].seen == "unreachable", "each speaks once"


def test_ranks_of_others_are_not_believed() -> None:
    said = {
        "2": text({**survivor(2), "ranks": {"0": "cuda:0", "2": "cuda:2", "77": "cuda:9"}}),
        "3": text({**survivor(3), "ranks": {"2": "cuda:7", "3": "cuda:3"}}),
    }
    found = judged(10, "n0", of_five_hosts(), said)
    assert found is not None
    assert found.loss.met[2].ranks == {2: "cuda:2"}
    assert found.loss.met[3].ranks == {3: "cuda:3"}


@pytest.mark.parametrize("make", [deputies, roll, lambda: survivor(2), deputys_verdict])
def test_samples_are_sound_and_each_field_has_its_form(make: Any) -> None:  # noqa: ANN401
    topics: dict[str, Topic[Any]] = {
        "deputies": messages.DEPUTIES, "roll": messages.ATTENDEES, "survivor": messages.SURVIVORS,
        "verdict": messages.VERDICT,
    }  # fmt: skip
    topic = topics[make()["message"]]
    assert not isinstance(topic.read(text(make())), Malformed)
    for field in make():
        wrongs: list[Any] = [[[]], {"": 0}, 10**400, -1.5]
        for wrong in wrongs:
            said = topic.read(text({**make(), field: wrong}))
            assert isinstance(said, Malformed) or field == "closed", (field, wrong)


@pytest.mark.parametrize("host", ["a\0b", "\x1b[2J", "x" * 300, "a b", "a/b", "²", "-" * 254, "\n"])
def test_what_is_no_host_is_never_looked_up(host: str) -> None:
    said = deputies()
    said["deputies"][0]["host"] = host
    assert isinstance(messages.DEPUTIES.read(text(said)), Malformed)
    came = {
        task: Registration(
            facts=TaskFacts(task=task, host=f"n{task}", address=address), deputy_port=4000 + task
        )
        for task, address in enumerate(("", host, "10.0.0.2"))
    }
    assert [one.task for one in choose(came)] == [2], "a liar keeps no other from being deputy"


@pytest.mark.hostile
def test_an_heir_bears_whatever_task_0_says() -> None:
    chance = random.Random(0)  # noqa: S311
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(300):
            store, standby = MemoryStore(), Standby(1, listener)
            standby.watch(store)
            for key in ("deputies/0", "roll/0"):
                made = forged(deputies() if key[0] == "d" else roll(), chance)
                store.put(key, made)
            assert standby.deputies is None or isinstance(standby.deputies, Deputies)
            assert standby.attendees is None or isinstance(standby.attendees, Attendees)


class Deputy:
    """The store of a deputy of three tasks, as task 1 opens it, with what a liar may try."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        marks = {1: mark("process 1"), 2: mark("process 2")}
        self.store = Store.on(self.listener, RUN, TOKEN, 3, marks)

    def client(self, task: int, process: str, run: str = RUN, token: str = TOKEN) -> StoreClient:
        return StoreClient.connect("127.0.0.1", (self.port,), run, token, 0.5, Who(task, process))


@pytest.fixture
def deputy() -> Iterator[Deputy]:
    made = Deputy()
    yield made
    made.store.close()


def said_to(client: StoreClient, key: str) -> str:
    """Return why a deputy refuses a survivor under this key, "" if it does not."""
    answered: list[object] = []
    client.set(key, Survivor(host="n1", seen="refused", closed=True, seconds=1.0))
    client.get("nothing", 0, then=answered.append)
    end = time.monotonic() + 5
    while not answered:
        assert time.monotonic() < end
        client.pump()
        time.sleep(0.005)
    return client.refused


def test_a_task_cannot_speak_as_another(deputy: Deputy) -> None:
    with contextlib.closing(deputy.client(2, "process 2")) as liar:
        assert "itself only" in said_to(liar, "survivor/1")
    with contextlib.closing(deputy.client(2, "process 2")) as honest:
        assert said_to(honest, "survivor/2") == ""
    assert set(deputy.store.under("survivor/")) == {"2"}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"task": 1, "process": "process 2"}, "task-taken"),
        ({"task": 1, "process": mark("process 1")}, "task-taken"),
        ({"task": 1, "process": ""}, "task-taken"),
        ({"task": 2, "process": "process 2", "run": "run-2"}, "other-size"),
        ({"task": 2, "process": "process 2", "run": "another-1"}, "another-run"),
        ({"task": 2, "process": "process 2", "token": "of another run"}, "wrong-token"),
        ({"task": 2, "process": "process 2", "token": ""}, "wrong-token"),
    ],
)
def test_nobody_else_is_let_in(deputy: Deputy, how: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConnectError) as refused:
        deputy.client(**how)
    assert refused.value.reason == reason


def test_a_number_that_nobody_has_says_nothing(deputy: Deputy) -> None:
    for task in (-1, 0, 3, 10**6):
        with contextlib.closing(deputy.client(task, "process 9")) as liar:
            for number in (1, 2, -1):
                assert "itself only" in said_to(liar, f"survivor/{number}")


def meet(port: int, seen: str, roll_of: Attendees | None = None) -> FoundDeputy:
    """Go to a deputy as task 2, which has lost the task 0 of host n0."""
    said = messages.SURVIVORS.read(text({**survivor(2, seen), "host": "n1"}))
    known = messages.DEPUTIES.read(
        text({**deputies(), "deputies": [{"task": 1, "host": "127.0.0.1", "port": port}]})
    )
    assert isinstance(said, Survivor)
    assert isinstance(known, Deputies)
    standby = Standby(2, None)
    standby.attendees = roll_of
    with contextlib.closing(Store.alone(RUN, TOKEN)) as closed:
        lost = StoreClient.connect("127.0.0.1", (closed.port,), RUN, TOKEN, 5, Who(2, "process 2"))
    end = time.monotonic() + 10

    def judge(*_told: object) -> Any:  # noqa: ANN401
        raise AssertionError("this task is no deputy")

    place = TaskPlace(launcher="local", task=2, tasks=3, run=RUN)
    one = Meeting(standby, known, lost, said, place, judge, after=3.0, end=lambda: end)
    try:
        return one.hold()
    finally:
        one.close()
        lost.close()


def test_a_deputy_that_names_the_host_of_task_0_is_believed(deputy: Deputy) -> None:
    deputy.store.put(messages.VERDICT.name, deputys_verdict("n0"))
    found = meet(deputy.port, "unreachable")
    assert found.verdict is not None
    assert found.verdict.exit == 1


LIES = [
    deputys_verdict("n1"),
    {**deputys_verdict("n0"), "culprits": [*deputys_verdict("n0")["culprits"],
     *deputys_verdict("n3")["culprits"]]},
    {**deputys_verdict("n0"), "culprits": [{**deputys_verdict("n0")["culprits"][0],
     "hosts": ["n0", "n1"]}]},
    {**deputys_verdict("n0"), "culprits": [{**deputys_verdict("n0")["culprits"][0],
     "slug": "gpu-xid"}]},
    {**deputys_verdict("n0"), "culprits": []},
    {**deputys_verdict("n0"), "culprits": [], "exit": 0, "class": "healthy"},
    {**deputys_verdict("n0"), "culprits": {}},
    {"message": "verdict"}, 1, "\x1b[2J", None, [[]],
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(LIES)))
def test_a_deputy_that_says_anything_else_is_not_believed(
    deputy: Deputy, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meeting, "_WINDOW", 0.5)  # "null" is no verdict yet: it is waited for
    monkeypatch.setattr(meeting, "_PATIENCE", 0.5)
    deputy.store.put(messages.VERDICT.name, LIES[number])
    found = meet(deputy.port, "unreachable")
    assert found.verdict is None
    assert "cut off" in found.sentence


@pytest.mark.parametrize("seen", ["answers", "runs"])
def test_a_deputy_that_names_a_host_which_still_answers_is_not_believed(
    deputy: Deputy, seen: str
) -> None:
    deputy.store.put(messages.VERDICT.name, deputys_verdict("n0"))
    assert meet(deputy.port, seen).verdict is None


@pytest.mark.parametrize("key", ["verdict", "deputies/0", "roll/0", "task/1", "survivor/1"])
def test_a_counter_cannot_stand_where_a_message_stands(deputy: Deputy, key: str) -> None:
    with contextlib.closing(deputy.client(2, "process 2")) as liar:
        told: list[int] = []
        liar.add(key, told.append)
        end = time.monotonic() + 5
        while not liar.refused:
            assert time.monotonic() < end
            liar.pump()
            time.sleep(0.005)
    assert deputy.store.get(key) is None


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_process_of_task_0_that_makes_no_sense_is_elsewhere(leaf: object) -> None:
    for field in ("pid", "started", "place"):
        said = deputies()
        said["process"][field] = leaf
        found = messages.DEPUTIES.read(text(said))
        assert isinstance(found, Malformed) or isinstance(found.process, ProcessIdentity)
