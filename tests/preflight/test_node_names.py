"""Slurm's names of nodes that no name server knows."""

import socket
from typing import Any

import msgspec
import pytest
from each import each

from gpucheck.cluster import task_0
from gpucheck.cluster.launcher import TaskPlace

TASK_0 = TaskPlace(launcher="slurm", task=0, tasks=2, nodes=2, master_host="rack1-n7")


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(name: str, *_: object, **__: object) -> Any:  # noqa: ANN401  # as the real one
        if name == "rack1-n7":
            raise socket.gaierror(-2, "Name or service not known")
        return []

    monkeypatch.setattr(socket, "getaddrinfo", ask)


def test_task_0_says_that_its_name_does_not_resolve() -> None:
    (said,) = task_0.notices(TASK_0, master_is_given=False)
    assert "rack1-n7, which does not resolve" in said
    assert "scontrol show node rack1-n7" in said


@each(
    ("change", "given"),
    [
        ({}, True),
        ({"master_host": "localhost"}, False),
        ({"task": 1}, False),
        ({"nodes": 1}, False),
        ({"launcher": "openmpi"}, False),
    ],
)
def test_otherwise_nothing_is_said(change: dict[str, Any], given: bool) -> None:  # noqa: FBT001
    place = msgspec.structs.replace(TASK_0, **change)
    assert task_0.notices(place, master_is_given=given) == ()


def test_the_others_say_what_to_give() -> None:
    said = task_0.advice("rack1-n7 cannot be resolved: name or service not known", "rack1-n7")
    assert said.startswith("rack1-n7 cannot be resolved")
    assert "--master" in said
