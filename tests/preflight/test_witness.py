"""What a task sees of others when task 0 asks for it."""

import contextlib
import socket
import time

import pytest
from memory_store import MemoryStore

from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import Question, Seen, StorePlace
from gpucheck.cluster.task import witness
from gpucheck.cluster.task.witness import Witness
from gpucheck.machine import process_identity


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "_SECONDS", 0.6)
    monkeypatch.setattr(witness, "_APART", 0.02)


def seen(
    store: MemoryStore, *places: StorePlace, questions: int = 1, domain: str = "", answers: int = -1
) -> dict[str, Seen]:
    """Ask task 1 about these, in so many questions; return what it says in the end."""
    witness = Witness(1, "run", store, domain)
    witness.watch()
    for number in range(questions):
        asked = Question(places=places[number::questions])
        store.put(messages.QUESTIONS.key(1, number), asked)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        witness.tick()
        said: dict[str, Seen] = store.values.get("witness/1", {}).get("seen", {})
        if len(said) == (len(places) if answers < 0 else answers):
            break
        time.sleep(0.01)
    return said


@pytest.mark.parametrize("questions", [1, 2])
def test_what_there_is_to_see_of_a_port(questions: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with socket.create_server(("127.0.0.1", 0)) as ended:
            closed = ended.getsockname()[1]
        places = [
            StorePlace(task=2, host="127.0.0.1", port=silent.getsockname()[1]),
            StorePlace(task=3, host="127.0.0.1", port=closed),
            StorePlace(task=4, host="no-such-host.invalid"),
            StorePlace(task=5, host="", port=closed),  # where the store is
        ]
        said = seen(MemoryStore(), *places, questions=questions, answers=3)
    assert said == {"2": "says-nothing", "3": "refused", "5": "refused"}  # of 4 nothing is known


def test_where_nobody_has_to_listen_an_answer_only_shows_that_the_host_runs() -> None:
    store = MemoryStore()
    with contextlib.closing(Store.alone("run", "")) as open_one:
        store.port = open_one.port
        assert seen(store, StorePlace(task=2, host="127.0.0.1")) == {"2": "answers"}
    store = MemoryStore()
    store.port = open_one.port  # closed by now
    assert seen(store, StorePlace(task=2, host="127.0.0.1")) == {"2": "answers"}


def test_the_name_of_a_pod_that_never_came_is_looked_up_in_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other pods know a pod by its name behind the headless service only."""
    known = {"gate-1.localhost": "127.0.0.1"}
    lookup = socket.getaddrinfo

    def resolve(host: str, *rest: object, **more: object) -> object:
        if host.startswith("gate-") and host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return lookup(known.get(host, host), *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    store = MemoryStore()
    with contextlib.closing(Store.alone("run", "")) as open_one:
        store.port = open_one.port
        pods = (StorePlace(task=1, host="gate-1"), StorePlace(task=2, host="gate-2"))
        assert seen(store, *pods, domain=".localhost", answers=1) == {"1": "answers"}


def test_a_process_on_this_host_is_looked_at() -> None:
    place = StorePlace(task=2, host="127.0.0.1", port=1, process=process_identity.own())
    assert seen(MemoryStore(), place) == {"2": "runs"}
