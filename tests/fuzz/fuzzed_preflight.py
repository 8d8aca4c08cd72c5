"""What comes over the network: messages of other tasks, and the lines of the store's protocol."""

import asyncio
import json
import random
import socket
from typing import Any, cast
from unittest import mock

import msgspec
from forged_messages import deputies, deputys_verdict, facts, result, roll, survivor
from fuzz_target import Target
from meeting_support import judged
from memory_store import MemoryStore
from rules_support import TABLES

from gpucheck.cluster import attendance, coordinator, launcher, node_command
from gpucheck.cluster.files import exclusion, good_hosts
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.judgement import Judgement, Result
from gpucheck.cluster.pages import bundle as preflight_json
from gpucheck.cluster.pages import files as preflight_metrics
from gpucheck.cluster.pages import files as preflight_record
from gpucheck.cluster.pages import html
from gpucheck.cluster.pages import junit as preflight_junit
from gpucheck.cluster.pages import markdown as preflight_markdown
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.cluster.pages.bundle import Public, bundle
from gpucheck.cluster.store import attempt, client, connection
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import Attendees, Deputies, Malformed, Topic, Verdict
from gpucheck.cluster.store.wire import Scene
from gpucheck.cluster.task_0 import is_about_task_0
from gpucheck.language import speaking

_TASKS, _LIARS = 4, (2, 3)
_HEARD = (messages.REGISTRATIONS, messages.REPORTS, messages.HEARTBEATS)
_TOPICS = [topic for topic in vars(messages).values() if isinstance(topic, Topic)]
_LONGEST_JOB = 400


def _message(data: bytes) -> None:
    """A message of any kind: what is none is Malformed."""
    for topic in _TOPICS:
        said = topic.read(data)
        assert isinstance(said, Malformed) or msgspec.json.encode(said)


class _Job:
    """Four tasks, of which two say what the input says; a list in it is taken in turn."""

    now = 1000.0

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said
        self._chance = random.Random(0)  # noqa: S311  # the same job for the same input
        self.store = MemoryStore()
        self._beats = 0

    def monotonic(self) -> float:
        return self.now

    def answer(self) -> None:
        self._beats += 1
        for task in range(_TASKS):
            for topic in _HEARD:
                sound = _SOUND[topic.name]
                if topic is messages.HEARTBEATS:
                    sound = {**sound, "n": self._beats}
                self._say(topic.name, topic.key(task), sound, task)
        for key, text in list(self.store.texts.items()):
            name, *numbers = key.split("/")
            if name == messages.ORDERS.name:
                self._obey(int(numbers[0]), msgspec.json.decode(text))

    def _say(self, name: str, key: str, sound: dict[str, Any], task: int) -> None:
        if task in _LIARS:
            said = self._said.get(f"{name}/{task}", self._said.get(name, sound))
        else:
            said = {**sound, "facts": facts(task)} if "facts" in sound else sound
        self.store.texts[key] = json.dumps(said).encode()

    def _obey(self, task: int, orders: dict[str, Any]) -> None:
        key = messages.RESULTS.key(orders["step"], task)
        if key in self.store.texts:
            return
        mine = [rank for group in orders["groups"] for rank in group["mine"]]
        results = [{**result(rank, self._chance), "status": "passed", "kind": ""} for rank in mine]
        lie = self._said.get(messages.RESULTS.name)
        if task in _LIARS and isinstance(lie, list) and lie:
            one = lie[orders["step"] % len(lie)] if isinstance(orders["step"], int) else lie[0]
            results = [{**one, "rank": one.get("rank", rank)} if isinstance(one, dict) else one
                       for rank in mine]  # fmt: skip
        self.store.texts[key] = json.dumps({"message": "results", "results": results}).encode()


def _job(data: bytes) -> None:
    """Task 0 among tasks that lie: it judges, and its judgement can be shown."""
    try:
        decoded = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(decoded, dict):
        return
    cuda = bool(decoded.get("cuda"))
    job = _Job(decoded)
    with mock.patch.object(coordinator, "time", job), mock.patch.object(attendance, "time", job):
        judge = Judgement(
            JobPlan(), launcher.alone({}), TABLES, local=lambda: None, clock=lambda: 12.5
        )
        plan = JobPlan(
            tasks=_TASKS, cuda=cuda, per_task=None if cuda else 1, begun=1000, timeout=300,
            arrival=9.0, connect=9.0,
        )  # fmt: skip
        one = coordinator.Coordinator(
            job.store, plan, judge.next_step, judge.finish, lambda _text: None,
        )  # fmt: skip
        while judge.result is None:
            assert job.now < 1000 + _LONGEST_JOB, "the job never ends"
            job.answer()
            job.now += 1.0
            one.tick()
    for shown in (judge.result, Public(judge.result).result()):
        _show(shown)
    bundle("out.zip", judge.result)


def _show(result: Result) -> None:
    """Write what people and programs get of a judgement."""
    for face in (preflight_json, preflight_junit, preflight_metrics, preflight_markdown, html):
        face.render(result).encode()
    with speaking("zh"):
        for face in (preflight_junit, preflight_markdown, html):
            face.render(result).encode()
        preflight_text.render(result, verbose=2).encode()
    for text in (
        preflight_text.render(result, verbose=2),
        preflight_record.run_record(result),
        node_command.of_result(result, ()),
        exclusion(result.preflight).text(),
        *good_hosts(result.preflight),
    ):
        text.encode()


def _meeting(data: bytes) -> None:
    """A deputy among tasks that lie, and a task whose deputy lies: a verdict is of task 0 only."""
    try:
        decoded = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(decoded, dict) or not isinstance(decoded.get("said"), dict):
        return
    texts = {
        name: json.dumps(document).encode() for name, document in decoded.items() if name != "said"
    }
    known = messages.DEPUTIES.read(texts.get("deputies", b""))
    there = messages.ATTENDEES.read(texts.get("roll", b""))
    if not isinstance(known, Deputies) or not isinstance(there, Attendees):
        return
    voices = {task: json.dumps(document).encode() for task, document in decoded["said"].items()}
    found = judged(_TASKS, known.host, there, voices)
    if found is None:
        return
    assert {host for culprit in found.verdict.culprits for host in culprit.hosts} <= {known.host}
    verdict = messages.VERDICT.read(texts.get("verdict", b""))
    if isinstance(verdict, Verdict) and is_about_task_0(verdict, found.loss):
        assert {culprit.host for culprit in verdict.culprits} <= {known.host}


class _Wire:
    """A transport that keeps nothing."""

    closing = False

    def write(self, data: bytes) -> None:
        assert data.endswith(b"\n")

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return "192.0.2.1", 1

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    resume_reading = pause_reading


_LOOP = asyncio.new_event_loop()


def _store(data: bytes) -> None:
    """The bytes of a client, from a stranger and behind a hello: the store answers or closes."""
    for hello in (b"", b'{"hello":"store/1","run":"r","nonce":"n"}\n'):
        _LOOP.run_until_complete(_served(hello + data))


async def _served(data: bytes) -> None:
    shared = connection.Hub(Scene("r", 1), "", 2)
    one = connection.Connection(shared)
    wire = cast("asyncio.Transport", _Wire())
    with mock.patch.object(asyncio, "Transport", _Wire):
        one.connection_made(wire)
    for part in (data[: len(data) // 2], data[len(data) // 2 :]):
        if not wire.is_closing():
            one.data_received(part)
    one.connection_lost(None)
    assert not shared._expected  # noqa: SLF001  # nobody is waited for any more


class _Socket:
    """A connection over which these bytes come."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def recv(self, size: int) -> bytes:
        part, self._data = self._data[:size], self._data[size:]
        return part

    def send(self, data: bytes) -> int:
        return len(data)

    def sendall(self, data: bytes) -> None: ...

    def settimeout(self, seconds: float) -> None: ...

    setblocking = settimeout

    def close(self) -> None: ...


def _client(data: bytes) -> None:
    """The bytes of a store, or of something else: the client takes them, refuses, or is lost."""
    meeting = attempt.StoreMeeting(Scene("r", 1), lambda _asks: "")
    try:
        assert meeting.hear(data) is not None
        rest = meeting.rest
    except attempt.AttemptError:
        rest = data
    store_client = client.StoreClient(cast("socket.socket", _Socket(rest)), b"")
    heard: list[object] = []
    store_client.add("a", heard.append)
    store_client.get("b", 1.0, heard.append)
    store_client.ping()
    store_client.pump()
    assert store_client.lost  # the connection has come to its end


_SOUND: dict[str, dict[str, Any]] = {
    messages.REGISTRATIONS.name: {
        "message": "registration", "facts": facts(2), "seconds_left": 300.0
    },
    messages.REPORTS.name: {"message": "report", "facts": facts(2)},
    messages.HEARTBEATS.name: {"message": "heartbeat", "n": 1, "ranks": {"1": ["enter", 1, 0.5]}},
}  # fmt: skip


def _jobs() -> list[bytes]:
    found = []
    chance = random.Random(1)  # noqa: S311  # the same samples every time
    for at in range(8):
        results = []
        for _ in range(3):
            one = result(0, chance)
            del one["rank"]
            results.append(one)
        fields: dict[str, Any] = {"cuda": bool(at % 2), messages.RESULTS.name: results}
        for task in _LIARS:
            for topic in _HEARD:
                sound = _SOUND[topic.name]
                own = {**sound, "facts": facts(task)} if "facts" in sound else sound
                fields[f"{topic.name}/{task}"] = own
        found.append(json.dumps(fields).encode())
    return found


def _meetings() -> list[bytes]:
    seen = ("unreachable", "refused", "ended", "says-nothing")
    return [
        json.dumps(
            {
                "deputies": deputies(), "roll": roll(), "verdict": deputys_verdict(),
                "said": {str(task): survivor(task, one) for task in range(1, _TASKS)},
            }
        ).encode()
        for one in seen
    ]  # fmt: skip


def _messages() -> list[bytes]:
    orders = {
        "message": "orders", "step": 1, "kind": "alone", "backend": "gloo", "seconds": 5.0,
        "connect_seconds": 5.0, "groups": [{"number": 0, "ranks": "0-3,5", "mine": [0, 1]}],
        "env": {"NCCL_P2P_DISABLE": "1"}, "tests": ["t"], "sizes": [1, 2],
    }  # fmt: skip
    chance = random.Random(2)  # noqa: S311
    others: list[dict[str, Any]] = [
        orders, {"message": "results", "results": [result(rank, chance) for rank in range(3)]},
        {"message": "ranks", "devices": {"0": "cuda:0"}, "world_size": 4},
        {"message": "rendezvous", "host": "n1", "port": 80}, {"message": "leaving"},
        {"message": "group-end", "reason": "deadline"}, {"message": "dismissal"},
        {"message": "verdict", "exit": 0, "class": "good", "culprits": [], "root_causes": ["a-b"],
         "groups": [{"uuids": ["GPU-1", None], "size": 8, "busbw": 1.0}]},
        deputies(), roll(), survivor(2), deputys_verdict(), {"message": "refusal", "host": "n1",
        "why": "w"},
    ]  # fmt: skip
    return [json.dumps(document).encode() for document in (*_SOUND.values(), *others)]


_REQUESTS = [
    b'{"op":"set","id":1,"key":"task/0","value":{"a":1}}\n{"op":"get","id":2,"key":"task/0"}\n',
    b'{"op":"add","id":3,"key":"ends","amount":1}\n{"op":"ping","id":5}\n',
    b'{"op":"get","id":6,"key":"x","wait":60.0}\n{"op":"set","id":7,"key":"x","value":null}\n',
    b'{"op":"set","id":8,"key":"verdict","value":0}\n{"op":"add","id":9,"key":"task/0"}\n',
]
_ANSWERS = [
    b'{"gpucheck":"store/1","run":"r","nonce":"n"}\n{"proof":""}\n{"id":1,"value":3}\n{"id":3}\n',
    b'{"error":"too many connections"}\n', b'{"gpucheck":"store/1","run":"x","nonce":"n"}\n',
    b'{"gpucheck":"store/1","run":"r","nonce":"n"}\n{"id":0,"error":"wrong token"}\n',
    b'{"id":1,"value":"\xc2\xb2"}\n{"id":1,"error":"full"}\n{"id":2,"value":null}\n',
]  # fmt: skip
_WORDS = (
    b'"op":"get"',
    b'"wait":1e308',
    b'"amount":9007199254740992',
    b'"key":"',
    b"}\n{",
    b'"id":0',
)

TARGETS = (
    Target("messages", _message, _messages, "json"),
    Target("lying-tasks", _job, _jobs, "json"),
    Target("meeting", _meeting, _meetings, "json"),
    Target("store", _store, lambda: _REQUESTS, "text", _WORDS),
    Target("store-client", _client, lambda: _ANSWERS, "text", _WORDS),
)
