"""Real gloo ranks to which something is done from outside, at a random moment."""

import importlib.util
import os
import platform
import random
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gate_runs
import left_behind
import outside_faults as faults
import pytest

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
    pytest.mark.skipif(sys.platform != "linux", reason="what holds a process is read from /proc"),
]
SHAPE = gate_runs.Shape(2, 2)
OPTIONS = ("--timeout", "100")
TRIES = 12
"""A worker may have ended before its moment came: then nothing was done, and it is tried again."""
LONGEST = 0.8
Act = Callable[[int, int], None]


def meddled(
    folder: Path, act: Act, *, always: bool = False, env: dict[str, str] | None = None
) -> tuple[gate_runs.Gate, int]:
    """Run pre-flights until somebody has meddled with one; return it, and the rank."""
    seed = secrets.randbits(32)
    chance = random.Random(seed)  # noqa: S311
    for number in range(TRIES):
        mark, rank = secrets.token_hex(6), chance.randrange(SHAPE.world)
        port = 29700 + chance.randrange(2000)
        setting = gate_runs.Setting(env={left_behind.MARK: mark, **(env or {})}, port=port)
        moment = chance.uniform(0.0, LONGEST)
        print(f"seed {seed}, run {number}: rank {rank} at {moment:.3f} s")  # noqa: T201  # to run it again
        meddler = faults.Meddler(mark, rank, moment, act, always=always)
        with meddler.at_work():
            gate = gate_runs.run("torchrun", SHAPE, OPTIONS, folder / str(number), setting)
        gone = left_behind.wait_until(lambda mark=mark: not left_behind.alive(mark))  # type: ignore[misc]
        assert gone, "processes were left behind"
        # A worker that has sent its result may be killed: nobody misses it.
        if meddler.done and not (act is faults.kill and gate.status == 0):
            return gate, rank
        assert gate.statuses == dict.fromkeys(range(SHAPE.world), 0), gate.said
    pytest.fail(f"nothing was done in {TRIES} runs")


def named(
    gate: gate_runs.Gate, slug: str, rank: int, sure: Sequence[str] = ("certain",)
) -> dict[str, Any]:
    """Hold a run to naming this rank, so sure, and no other; return the entry."""
    assert gate.culprits == [(slug, (rank,))], gate.said
    assert gate.statuses == dict.fromkeys(range(SHAPE.world), 1), gate.said
    (culprit,) = gate.errors
    assert culprit["confidence"] in sure, culprit
    return culprit


@pytest.mark.parametrize("_again", faults.ROUNDS)
def test_a_worker_that_is_stopped_once(tmp_path: Path, _again: int) -> None:
    gate, rank = meddled(tmp_path, faults.stop)
    culprit = named(gate, "rank-hangs", rank)
    assert "stopped" in culprit["evidence"]
    assert culprit["data"]["look"]["state"] == "stopped"


@pytest.mark.parametrize("_again", faults.ROUNDS)
def test_every_worker_of_a_rank_is_stopped(tmp_path: Path, _again: int) -> None:
    gate, rank = meddled(tmp_path, faults.stop, always=True)
    assert "stopped" in named(gate, "rank-hangs", rank)["evidence"]


@pytest.mark.parametrize("_again", faults.ROUNDS)
def test_what_forks_the_workers_is_stopped(tmp_path: Path, _again: int) -> None:
    gate, rank = meddled(tmp_path, faults.stop_zygote)
    culprit = named(gate, "rank-hangs", rank)
    assert "forks its workers" in culprit["evidence"]
    assert culprit["data"]["look"]["zygote"] == "stopped"


def with_site(folder: Path) -> dict[str, str]:
    """Return the environment in which workers obey the signals of ``outside_faults``."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(faults.SITE)
    return {"PYTHONPATH": os.pathsep.join([str(site), *filter(None, sys.path)])}


@pytest.mark.parametrize("_again", faults.ROUNDS)
def test_a_worker_that_hangs_by_itself(tmp_path: Path, _again: int) -> None:
    gate, rank = meddled(tmp_path, faults.hang, env=with_site(tmp_path))
    named(gate, "rank-hangs", rank, sure=("certain", "likely"))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its number of clone(2) is used")
@pytest.mark.parametrize("_again", faults.ROUNDS)
def test_a_worker_that_waits_in_the_kernel(tmp_path: Path, _again: int) -> None:
    gate, rank = meddled(tmp_path, faults.block_in_the_kernel, env=with_site(tmp_path))
    culprit = named(gate, "rank-hangs", rank)
    assert culprit["data"]["look"]["state"] == "uninterruptible"


@pytest.mark.parametrize("_again", faults.ROUNDS)
def test_a_worker_that_is_killed(tmp_path: Path, _again: int) -> None:
    gate, rank = meddled(tmp_path, faults.kill)
    named(gate, "rank-crashed", rank)


def test_an_interface_that_is_not_there_blames_no_machine(tmp_path: Path) -> None:
    setting = gate_runs.Setting(env={"GLOO_SOCKET_IFNAME": "nope"}, port=29690)
    options = (*OPTIONS, "--exclude-file", "bad-hosts")
    gate = gate_runs.run("torchrun", SHAPE, options, tmp_path, setting)
    assert gate.statuses == dict.fromkeys(range(SHAPE.world), 4), gate.said
    assert {slug for slug, _ranks in gate.culprits} == {"nccl-network-interface"}
    assert "nope" in gate.errors[0]["evidence"]
    assert (tmp_path / "bad-hosts").read_text() == ""
