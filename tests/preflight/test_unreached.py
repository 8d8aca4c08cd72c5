"""Task 0 is not there, or dies at once: what each task says, and that it names nobody."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import gate_runs
import pytest

import gpucheck
from gpucheck.cluster import launcher
from gpucheck.cluster.job_plan import arrival_seconds
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.store.attempt import Reason
from gpucheck.cluster.store.client import ConnectError
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.task_0 import never_met
from gpucheck.language import say

PLACE = TaskPlace(
    launcher="slurm", task=1, tasks=3, master_host="10.0.0.1", hosts=("gate01", "gate02")
)
TIMEOUT = 12.0


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("refused", "has not started, has ended or could not listen, or a firewall refuses them"),
        ("timed-out", "The host may be down"),
        ("no-route", "the network between the hosts may be cut"),
        ("no-store", "may be stopped or busy, or another program listens there"),
    ],
)
def test_each_reason_says_what_is_known(reason: Reason, says: str) -> None:
    error = ConnectError(reason, say("no store of this run on {host}", host="10.0.0.1"))
    said = never_met(error, PLACE)
    assert said.startswith("task 0 on host gate01 was not reached: no store of this run on 10.0")
    assert says in said
    assert "cannot tell which, so it names no host" in said


def test_a_store_that_was_seen_has_been_started() -> None:
    error = ConnectError("refused", say("no store of this run"), was_there=True)
    said = never_met(error, PLACE)
    assert "Its store was open before" in said
    assert "has not started" not in said


@pytest.mark.parametrize("reason", ["another-run", "full"])
def test_what_the_store_itself_has_said_is_not_explained(reason: Reason) -> None:
    assert never_met(ConnectError(reason, say("another run's store")), PLACE) == (
        "another run's store"
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ("task 0 on host localhost was not reached", "(127.0.0.1", "within 5 s",
                "connection refused", "names no host")),
        ("zh", ("没有连接到主机 localhost 上的任务 0", "127.0.0.1", "5 秒内", "不指认任何主机")),
    ],
)  # fmt: skip
def test_two_tasks_without_task_0(tmp_path: Path, lang: str, words: tuple[str, ...]) -> None:
    port = random.randrange(20000, 29000)  # noqa: S311
    env = gate_runs.environment(sys.executable, tmp_path)
    command = [
        sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--timeout", str(TIMEOUT),
        "--lang", lang, "--exclude-file", "bad", "--status-file", "status", "--each", "each",
    ]  # fmt: skip
    tasks = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
            env={
                **env, "RANK": str(task), "WORLD_SIZE": "3", "LOCAL_RANK": "0",
                "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port),
            },
        )
        for task in (1, 2)
    ]  # fmt: skip
    for task in tasks:
        said, _ = task.communicate(timeout=60)
        assert task.returncode == 3, said
        for word in (*words, str(port + 1), str(port + 8)):
            assert word in said
        assert "Traceback" not in said
    for number in (1, 2):
        left = json.loads((tmp_path / "each" / f"task-{number}.json").read_text())
        assert left["verdict"]["exit"] == 3
        assert left["host"] == os.uname().nodename
    assert list(tmp_path.glob("bad")) == list(tmp_path.glob("status")) == []


def test_a_task_0_whose_ports_are_all_taken_is_misconfigured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [*os.environ]:
        if name.startswith(("SLURM_", "TORCHELASTIC_", "LOCAL_", "OMPI_", "PMI_")):
            monkeypatch.delenv(name)
    port = random.randrange(20000, 29000)  # noqa: S311
    place = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    with contextlib.ExitStack() as taken:
        for one in range(port + 1, port + 9):
            taken.enter_context(socket.create_server(("", one)))
        found = gpucheck.preflight(device="cpu", timeout=20)
    assert (found.exit, found.exit_class) == (4, "misconfiguration")
    assert "cannot listen on a port after MASTER_PORT" in found.why


@pytest.mark.process
def test_task_0_dies_before_it_has_named_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is there, and then it is not; nobody knows where to meet."""
    for name in [*os.environ]:
        if name.startswith(("SLURM_", "TORCHELASTIC_", "LOCAL_", "OMPI_", "PMI_")):
            monkeypatch.delenv(name)
    with socket.create_server(("", 0)) as some:
        port = int(some.getsockname()[1])
    place = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": str(port - 1)}  # fmt: skip
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    run = launcher.find(os.environ, launcher.PlaceRequest()).run
    monkeypatch.setenv(launcher.TOKEN_VARIABLE, "secret")
    assert arrival_seconds(30) > 5

    with contextlib.closing(Store.open(port, None, run, "secret", 2)) as store:

        def die() -> None:
            end = time.monotonic() + 20
            while store.get("task/1") is None and time.monotonic() < end:
                time.sleep(0.01)
            store.close()

        thread = threading.Thread(target=die)
        thread.start()
        outcome = gpucheck.preflight(device="cpu", timeout=30)
        thread.join()
    assert (outcome.exit, outcome.culprits) == (3, ())
    assert f"task 0 on host 127.0.0.1 (127.0.0.1, port {port}) was lost before" in outcome.why
    assert "the network between the hosts may be cut" in outcome.why
