"""Task 0 ends by an error of its own: it tells the others why, so that nobody calls it dead."""

import asyncio
import errno
import gc
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

import gpucheck
from gpucheck.cluster.session import Session
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.attempt import Who
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import Malformed, Verdict
from gpucheck.cluster.task.supervisor import ExitReason

PATIENCE = 10.0
FILES = Path("/proc/self/fd")


class Other:
    """Task 1, which waits for the verdict over a connection of its own."""

    def __init__(self, session: Session) -> None:
        place = session._place  # noqa: SLF001
        client = session._client  # noqa: SLF001
        self.heard: list[Verdict | Malformed | None] = []
        self._client = StoreClient.connect(
            "127.0.0.1", (client.port,), place.run, client.token, PATIENCE, Who(1, "another")
        )
        self._client.get(messages.VERDICT.name, PATIENCE, self._take)
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def end(self) -> None:
        self._thread.join(PATIENCE)

    def _take(self, text: bytes | None) -> None:
        self.heard.append(messages.VERDICT.read(text) if text is not None else None)

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while not self.heard and not self._client.lost and time.monotonic() < end:
            self._client.pump()
            time.sleep(0.01)
        self._client.close()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], list[Other]]:
    """Make this process task 0 of two, whose run ends by an error once the other has come."""
    for name in [*os.environ]:
        if name.startswith(("SLURM_", "TORCHELASTIC_", "LOCAL_", "OMPI_", "PMI_")):
            monkeypatch.delenv(name)
    port = str(random.randrange(20000, 29000))  # noqa: S311
    place = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in place.items():
        monkeypatch.setenv(name, value)

    def fail(error: BaseException) -> list[Other]:
        others: list[Other] = []

        def run(session: Session) -> ExitReason:
            others.append(Other(session))
            raise error

        monkeypatch.setattr(Session, "run", run)
        return others

    return fail


@pytest.mark.parametrize(
    ("error", "status", "why"),
    [
        (KeyboardInterrupt(), 3, "task 0 was interrupted"),
        (ValueError("secret"), 3, "task 0 failed by itself (ValueError)"),
        (OSError(errno.EIO, "broken"), 3, "task 0 failed by itself (OSError)"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), 4, "open"),
    ],
)
def test_the_others_hear_why(
    failing: Callable[[BaseException], list[Other]], error: BaseException, status: int, why: str
) -> None:
    others = failing(error)
    if status == 4:
        assert gpucheck.preflight(device="cpu", timeout=20).exit == 4
    else:
        with pytest.raises(type(error)):
            gpucheck.preflight(device="cpu", timeout=20)
    (other,) = others
    other.end()
    (verdict,) = other.heard
    assert isinstance(verdict, Verdict)
    assert verdict.exit == status
    assert verdict.exit_class == ("misconfiguration" if status == 4 else "inconclusive")
    assert why in verdict.why
    assert "secret" not in verdict.why
    assert verdict.culprits == ()


def test_a_verdict_that_is_there_stays(
    failing: Callable[[BaseException], list[Other]], monkeypatch: pytest.MonkeyPatch
) -> None:
    others, stores = failing(KeyboardInterrupt()), []
    fails = Session.run

    def run(session: Session) -> ExitReason:
        assert session._store is not None  # noqa: SLF001
        stores.append(session._store)  # noqa: SLF001
        stores[0].put(messages.VERDICT.name, Verdict(exit=5, exit_class="slow"))
        return fails(session)

    monkeypatch.setattr(Session, "run", run)
    with pytest.raises(KeyboardInterrupt):
        gpucheck.preflight(device="cpu", timeout=20)
    others[0].end()
    last = messages.VERDICT.read(stores[0].get(messages.VERDICT.name) or b"")
    for said in (last, *others[0].heard):
        assert isinstance(said, Verdict)
        assert said.exit == 5


@pytest.mark.parametrize("at", ["connect", "thread", "loop"])
def test_the_next_run_finds_the_port_free_if_this_one_fails_early(
    monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    for name in [*os.environ]:
        if name.startswith(("SLURM_", "TORCHELASTIC_", "LOCAL_", "OMPI_", "PMI_")):
            monkeypatch.delenv(name)
    port = random.randrange(20000, 29000)  # noqa: S311
    before = (set(threading.enumerate()), len(list(FILES.iterdir())))

    def fail(*_arguments: object, **_named: object) -> NoReturn:
        raise KeyboardInterrupt

    whose, name = {
        "connect": (StoreClient, "connect"),
        "thread": (threading.Thread, "start"),
        "loop": (asyncio.BaseEventLoop, "create_server"),
    }[at]
    monkeypatch.setattr(whose, name, fail)
    with pytest.raises(KeyboardInterrupt):
        gpucheck.preflight(device="cpu", ranks=1, timeout=20, port=port)
    monkeypatch.undo()
    gc.collect()
    assert (set(threading.enumerate()), len(list(FILES.iterdir()))) == before
    Store.open(port, None, "another").close()
