"""The messages of the store: what is malformed is a value, field by field."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from each import each

from gpucheck.cluster.figures.baseline import Baseline, SavedGpu
from gpucheck.cluster.model import Device, RankResult, RootCause, TaskFacts
from gpucheck.cluster.store import entries
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import (
    Dismissal,
    GaveUp,
    GroupBandwidth,
    GroupEnd,
    Heartbeat,
    Leaving,
    Malformed,
    Question,
    RankAssignment,
    RankProgress,
    Registration,
    Rendezvous,
    StepGroup,
    StepOrders,
    StepResults,
    StorePlace,
    TaskMessage,
    TaskReport,
    Topic,
    Verdict,
    Witnessed,
)
from gpucheck.cluster.store.wire import VALUE_LIMIT
from gpucheck.facts.claims import Confidence, Fix
from gpucheck.facts.preflight import Culprit, OwnFailure
from gpucheck.language import plain
from gpucheck.machine.process_identity import ProcessIdentity

FACTS = TaskFacts(
    task=3, host="node03", node=1, pid=77, address="10.0.0.3", python="3.11", torch="2.9.1",
    cuda="12.8", cudnn="9.1", nccl="2.27", driver="570.1",
    devices=[Device(index=0, name="H", memory=1 << 36, capability="9.0", uuid="GPU-1", pci="0:1")],
    gpu_numbers={"GPU-1": 4}, nvlinks={"GPU-1": 18}, infiniband=["mlx5_0/1 ACTIVE"],
    shm_bytes=1 << 33, memlock_bytes=-1, variables={"NCCL_DEBUG": "WARN"},
    baseline=Baseline(gpus={"GPU-1": SavedGpu(model="H", rates={"fp16 TFLOP/s": 1.0})}),
    problem="no torch", kind="import-failed",
    roots=[RootCause(
        slug="torch-missing", headline="No torch", confidence=Confidence.LIKELY,
        fixes=(Fix(text="Install it", commands=("pip install torch",)),),
    )],
    phase="import",
)  # fmt: skip
RESULT = RankResult(
    rank=5, status="timed-out", phase="enter", collective=2, kind="timed-out", detail="late",
    order=1, seconds=3.5, measurements={"fp16 TFLOP/s": 2.0},
    data={"in_phase": 20.5, "own_deadline": True, "rank": 4, "address": "10.0.0.1", "port": 80},
)  # fmt: skip
PROCESS = ProcessIdentity(pid=7, started=9, place="boot pid:[1] net:[2]")
SAMPLES: list[tuple[Topic[Any], TaskMessage]] = [
    (messages.REGISTRATIONS, Registration(facts=FACTS, seconds_left=300.0)),
    (messages.REPORTS, TaskReport(facts=FACTS)),
    (messages.ASSIGNMENTS, RankAssignment(devices={5: "cuda:0"}, world_size=8)),
    (
        messages.ORDERS,
        StepOrders(
            step=2, kind="arms", backend="nccl", seconds=15.0, connect_seconds=15.0, seed=7,
            groups=(StepGroup(number=0, ranks="0-7", mine=(4, 5)),), env={"NCCL_P2P_DISABLE": "1"},
            tests=("memory",), sizes=(4, 1024),
        ),
    ),
    (messages.RESULTS, StepResults(results=(RESULT,))),
    (
        messages.QUESTIONS,
        Question(places=(StorePlace(task=2, host="10.0.0.2", port=4711, process=PROCESS),)),
    ),
    (messages.WITNESSED, Witnessed(seen={2: "unreachable", 3: "refused"})),
    (messages.GAVE_UP, GaveUp(why="nothing came")),
    (messages.HEARTBEATS, Heartbeat(n=9, ranks={5: RankProgress("connect", 1, 0.5)})),
    (messages.RENDEZVOUS, Rendezvous(host="10.0.0.3", port=4711)),
    (messages.GROUP_ENDS, GroupEnd(reason="deadline")),
    (
        messages.VERDICT,
        Verdict(
            exit=1, exit_class="culprit", why="x", verdict="broken", root_causes=("rank-hangs",),
            culprits=(Culprit(slug="rank-hangs", ranks=(5,), data=OwnFailure({"kind": "hang"})),),
            world_size=8, groups=(GroupBandwidth(uuids=("GPU-1", None), size=4, busbw=None),),
        ),
    ),
    (messages.LEAVING, Leaving()),
    (messages.DISMISSAL, Dismissal()),
]  # fmt: skip
NAMES = [type(sample).__name__ for _topic, sample in SAMPLES]
FREE = (
    "data", "culprits.0.data", "culprits.0.sources", "culprits.0.problems", "message",
)  # fmt: skip
"""Fields that hold data of any form, and the tag, which has a test of its own."""


@each(("topic", "sample"), SAMPLES, ids=NAMES)
def test_a_message_is_read_as_it_was_sent(topic: Topic[Any], sample: TaskMessage) -> None:
    assert topic.read(msgspec.json.encode(sample)) == sample


@each(("topic", "sample"), SAMPLES, ids=NAMES)
def test_only_its_own_kind_stands_under_a_topic(topic: Topic[Any], sample: TaskMessage) -> None:
    for other, _sample in SAMPLES:
        if other is not topic:
            assert isinstance(other.read(msgspec.json.encode(sample)), Malformed)


@each(("topic", "sample"), SAMPLES, ids=NAMES)
def test_each_field_has_its_form(topic: Topic[Any], sample: TaskMessage) -> None:
    plain = json.loads(msgspec.json.encode(sample))
    for path, value in _fields(plain):
        for wrong in _others_than(value):
            forged = _with(plain, path, wrong)
            found = topic.read(json.dumps(forged).encode())
            assert isinstance(found, Malformed), (path, wrong)
            assert found.problem


@each(("topic", "sample"), SAMPLES, ids=NAMES)
def test_a_key_too_many_is_malformed(topic: Topic[Any], sample: TaskMessage) -> None:
    plain = json.loads(msgspec.json.encode(sample))
    assert isinstance(topic.read(json.dumps({**plain, "more": 1}).encode()), Malformed)


NONSENSE = (
    b"", b"null", b"{", b"[]", b"{}", b"3", b'"x"', b"\xff", b'{"message":"\xff"}',
    b'{"message":7}', b'{"message":"nothing"}', b'{"message":"nonsense"}',
    b"[" * 100_000, b'{"message":NaN}',
)  # fmt: skip


@each("topic", [topic for topic, _sample in SAMPLES], ids=NAMES)
def test_nonsense_is_malformed(topic: Topic[Any]) -> None:
    taken = [text[:40] for text in NONSENSE if not isinstance(topic.read(text), Malformed)]
    assert taken == []


def _registration(**facts: object) -> dict[str, Any]:
    return {"message": "registration", "facts": {"task": 0, "host": "a", **facts}}


def _results(**result: object) -> dict[str, Any]:
    return {"message": "results", "results": [{"rank": 0, "status": "passed", **result}]}


def _orders(**more: object) -> dict[str, Any]:
    group = {"number": 0, "ranks": "0-3", "mine": [1]}
    return {
        "message": "orders", "step": 0, "kind": "together", "backend": "gloo", "seconds": 1,
        "connect_seconds": 1, "groups": [group], **more,
    }  # fmt: skip


@each(
    ("topic", "said"),
    [
        (messages.REGISTRATIONS, _registration(host="x" * 1001)),
        (messages.REGISTRATIONS, _registration(task=-1)),
        (messages.REGISTRATIONS, _registration(task=10**7)),
        (messages.REGISTRATIONS, _registration(devices=[{}] * 257)),
        (messages.REGISTRATIONS, _registration(devices=[{"memory": -1}])),
        (messages.REGISTRATIONS, _registration(variables={"A": "x" * 70_000})),
        (messages.REGISTRATIONS, {**_registration(), "seconds_left": -1.0}),
        (messages.REGISTRATIONS, {**_registration(), "seconds_left": 1e300}),
        (messages.RESULTS, _results(rank=-1)),
        (messages.RESULTS, _results(detail="x" * 70_000)),
        (messages.RESULTS, _results(order=-1)),
        (messages.RESULTS, {"message": "results", "results": _results()["results"] * 101}),
        (messages.RESULTS, _results(data={"in_phase": "long"})),
        (messages.RESULTS, _results(data={"in_phase": [1]})),
        (messages.RESULTS, _results(data={"own_deadline": "yes"})),
        (messages.RESULTS, _results(data={"rank": {}})),
        (messages.RESULTS, _results(data={"address": ["10.0.0.1"]})),
        (messages.RESULTS, _results(data={"roots": [{"slug": ["x"]}]})),
        (messages.HEARTBEATS, {"message": "heartbeat", "n": -1}),
        (messages.HEARTBEATS, {"message": "heartbeat", "n": 1, "ranks": {"0": ["enter", -1, 0]}}),
        (messages.HEARTBEATS, {"message": "heartbeat", "n": 1, "ranks": {"0": ["lunch", 1, 0]}}),
        (messages.RENDEZVOUS, {"message": "rendezvous", "host": "a", "port": 70_000}),
        (messages.ORDERS, _orders(groups=[{"number": 0, "ranks": "0-3", "mine": [4]}])),
        (messages.ORDERS, _orders(groups=[{"number": 0, "ranks": "3-1", "mine": []}])),
        (messages.ORDERS, _orders(groups=[{"number": 0, "ranks": "a", "mine": []}])),
        (messages.ORDERS, _orders(groups=[{"number": 0, "ranks": "0-9999999", "mine": []}])),
        (
            messages.ORDERS,
            _orders(groups=[{"number": 0, "ranks": "0-99999", "mine": []}] * 10_000),
        ),
        (messages.ORDERS, _orders(env={"LD_PRELOAD": "/tmp/x.so"})),
        (messages.VERDICT, {"message": "verdict", "exit": 2, "class": "healthy"}),
        (messages.VERDICT, {"message": "verdict", "exit": 0, "class": "fine"}),
    ],
)
def test_a_message_beyond_its_bounds_is_malformed(topic: Topic[Any], said: dict[str, Any]) -> None:
    assert isinstance(topic.read(json.dumps(said).encode()), Malformed)


def test_the_samples_of_the_bounds_are_fine_otherwise() -> None:
    for topic, said in (
        (messages.REGISTRATIONS, _registration()),
        (messages.RESULTS, _results()),
        (messages.ORDERS, _orders()),
    ):
        assert isinstance(topic.read(json.dumps(said).encode()), TaskMessage)


def test_keys_and_who_may_set_them() -> None:
    assert messages.RESULTS.key(7, 3) == "done/7/3"
    assert messages.RESULTS.key(7, 3).startswith(messages.RESULTS.prefix(7))
    zeros = (messages.ASSIGNMENTS, messages.ORDERS, messages.DEPUTIES, messages.ATTENDEES,
             messages.QUESTIONS)  # fmt: skip
    for key in (messages.VERDICT.name, *(topic.key(1, 0) for topic in zeros)):
        assert entries.refusal(key, 1) == entries.refusal(key, 0) == "only task 0 itself says that"
    own = (messages.REGISTRATIONS, messages.REPORTS, messages.HEARTBEATS, messages.SURVIVORS,
           messages.LEAVING, messages.REFUSALS, messages.WITNESSED, messages.GAVE_UP)  # fmt: skip
    for topic in own:
        assert not entries.refusal(topic.key(1), 1)
        for task in (0, 2, -1):
            assert "itself only" in entries.refusal(topic.key(1), task)
        for number in ("", "x", "-1", "9" * 30, "²"):
            assert entries.refusal(f"{topic.name}/{number}", -1)
            assert entries.refusal(f"{topic.name}/{number}", 1)
    assert not entries.refusal(messages.RESULTS.key(1, 2), 7)
    assert not entries.refusal(messages.BAD_ENDS, 7)


def _fields(plain: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:  # noqa: ANN401  # JSON
    """Yield every field of a message with its path."""
    name = ".".join(map(str, path))
    if any(name.endswith(free) for free in FREE):
        return
    if path:
        yield path, plain
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from _fields(value, (*path, key))
    elif isinstance(plain, list):
        for at, value in enumerate(plain):
            yield from _fields(value, (*path, at))


def _others_than(value: object) -> list[object]:
    """Return values of forms that are not that of this value."""
    forms: list[object] = ["x", 7.5, [7.5], {"x": 7.5}, True]
    if isinstance(value, str):
        return [7.5, [value], {"x": value}, True]
    if isinstance(value, bool):
        return ["x", 7.5, [value]]
    if isinstance(value, int | float):
        return ["x", str(value), [value], {"x": value}, True]
    if isinstance(value, list):
        return [form for form in forms if form != [7.5]]
    return [form for form in forms if not isinstance(form, dict)] if value is not None else []


def _with(plain: Any, path: tuple[Any, ...], value: object) -> Any:  # noqa: ANN401  # JSON
    """Return a copy in which a field has another value."""
    if not path:
        return value
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    copy[path[0]] = _with(plain[path[0]], path[1:], value)
    return copy


def test_a_verdict_on_very_many_ranks_fits_into_the_store() -> None:
    ranks = tuple(range(56_000))
    hosts = tuple(f"gpu-node-{at:05}" for at in range(7000))
    one = Culprit(slug="rank-slow", ranks=ranks, hosts=hosts)
    few = messages.Verdict(exit=4, exit_class="misconfiguration", culprits=(one,))
    assert messages.fitting(few) is few
    many = msgspec.structs.replace(few, culprits=(one,) * 100)
    told = messages.fitting(many)
    assert len(msgspec.json.encode(told, enc_hook=plain)) <= VALUE_LIMIT
    assert len(told.culprits) == 100
    assert told.culprits[0].ranks == ranks[: len(told.culprits[0].ranks)] != ()
