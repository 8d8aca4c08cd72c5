"""Task 0 among tasks that send whatever they like: it judges, shows the result, and never fails."""

import json
import random
from typing import Any

import msgspec
import pytest
from forged_messages import ROOT, facts, forged, result
from memory_store import MemoryStore
from rules_support import TABLES

from gpucheck.cluster import attendance, launcher
from gpucheck.cluster import coordinator as module
from gpucheck.cluster.coordinator import Coordinator
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.judgement import Judgement
from gpucheck.cluster.pages import bundle as preflight_json
from gpucheck.cluster.pages import files as preflight_metrics
from gpucheck.cluster.pages import junit as preflight_junit
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.cluster.pages.bundle import Public
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import Malformed

TASKS = 4


class Liars:
    """Tasks that answer every order, half of them with forged messages."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311  # the same messages every time
        self.store = MemoryStore()

    def say(self, key: str, message: dict[str, Any], task: int) -> None:
        if task >= TASKS // 2 and self.chance.random() < 0.8:
            message = forged(message, self.chance)
        self.store.texts[key] = json.dumps(message).encode()

    def answer(self) -> None:
        for task in range(TASKS):
            if messages.REGISTRATIONS.key(task) not in self.store.texts:
                said = {"message": "registration", "facts": facts(task), "seconds_left": 300.0}
                self.say(messages.REGISTRATIONS.key(task), said, task)
                self.say(
                    messages.REPORTS.key(task), {"message": "report", "facts": facts(task)}, task
                )
            beat = {"message": "heartbeat", "n": self.chance.randrange(9),
                    "ranks": {"1": ["enter", 1, 0.5]}}  # fmt: skip
            self.say(messages.HEARTBEATS.key(task), beat, task)
        for key, text in list(self.store.texts.items()):
            topic, *numbers = key.split("/")
            if topic == messages.ORDERS.name:
                self._obey(int(numbers[0]), msgspec.json.decode(text))

    def _obey(self, task: int, orders: dict[str, Any]) -> None:
        key = messages.RESULTS.key(orders["step"], task)
        if key in self.store.texts:
            return
        mine = [rank for group in orders["groups"] for rank in group["mine"]]
        results = [result(rank, self.chance) for rank in mine]
        grown = {"mlx5_0/1": {"link_downed": 1, "out_of_sequence": 3}}
        said = {"message": "results", "results": results, "grown": grown}
        self.say(key, said, task)


class Clock:
    """Seconds that pass as fast as the test wants."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.hostile
@pytest.mark.parametrize("seed", range(0, 400, 20))
def test_a_job_with_liars(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in range(seed, seed + 20):
        clock = Clock()
        for each in (attendance, module):
            monkeypatch.setattr(each, "time", clock)
        liars = Liars(one)
        cuda = bool(one % 2)
        judge = Judgement(
            JobPlan(), launcher.alone({}), TABLES, local=lambda: None, clock=lambda: 12.5
        )
        plan = JobPlan(
            tasks=TASKS, cuda=cuda, per_task=None if cuda else 1, begun=clock.now,
            timeout=300, arrival=9.0, connect=9.0,
        )  # fmt: skip
        coordinator = Coordinator(
            liars.store, plan, judge.next_step, judge.finish, lambda _text: None
        )
        while judge.result is None:
            assert clock.now < 1400
            liars.answer()
            clock.now += 1.0
            coordinator.tick()
        for shown in (judge.result, Public(judge.result).result()):
            for face in (preflight_json, preflight_junit, preflight_metrics):
                face.render(shown)
            preflight_text.render(shown, verbose=2)


SLUGS = ["", "\x1b[2J", "no such slug", "a\n", "../x", "A", "x" * 100, "-", "a--b"]


@pytest.mark.parametrize("slug", SLUGS)
def test_a_slug_that_is_none_is_not_believed(slug: str) -> None:
    said = facts(1)
    said["roots"] = [{**ROOT, "slug": slug}]
    message = json.dumps({"message": "report", "facts": said}).encode()
    assert isinstance(messages.REPORTS.read(message), Malformed)
    one = {**result(1, random.Random(0)), "data": {"roots": said["roots"]}}  # noqa: S311
    message = json.dumps({"message": "results", "results": [one]}).encode()
    assert isinstance(messages.RESULTS.read(message), Malformed)


@pytest.mark.parametrize("name", ["uuid", "pci", "name", "capability"])
@pytest.mark.parametrize("wrong", [[], {}, ["GPU-1"], 7, True])
def test_a_device_has_words_and_nothing_else(name: str, wrong: object) -> None:
    said = facts(1)
    said["devices"][0][name] = wrong
    message = json.dumps({"message": "report", "facts": said}).encode()
    assert isinstance(messages.REPORTS.read(message), Malformed)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("fault", []), ("error", {}), ("nccl_warnings", 7), ("nccl_warnings", [[]]), ("way", {}),
        ("variables", {"X;reboot;Y": "1"}), ("fixes", [{"text": "t", "commands": ["reboot"]}]),
        ("address", "fe80::1%$(id)"), ("address", "$(id)"), ("address", "fe80::1%" + "a" * 16),
        ("rank", -1), ("rank", 10**15), ("port", -1), ("port", 10**9), ("in_phase", -1.0),
    ],
)  # fmt: skip
def test_data_that_the_diagnosis_reads_have_their_form(name: str, wrong: object) -> None:
    one = {**result(1, random.Random(0)), "data": {name: wrong}}  # noqa: S311
    message = json.dumps({"message": "results", "results": [one]}).encode()
    assert isinstance(messages.RESULTS.read(message), Malformed)


@pytest.mark.parametrize("address", ["", "n1.cluster", "10.0.0.2", "fe80::1%eth0.5"])
def test_an_address_may_name_its_interface(address: str) -> None:
    one = {**result(1, random.Random(0)), "data": {"address": address}}  # noqa: S311
    message = json.dumps({"message": "results", "results": [one]}).encode()
    assert not isinstance(messages.RESULTS.read(message), Malformed)
