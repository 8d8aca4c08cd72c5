"""Collectives on a real torch over gloo, through launcher and zygote, as a user runs them."""

import importlib.util
import json
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest
from test_cli import run

from gpucheck.facts.selftests import SelfTest
from gpucheck.machine import LiveHost
from gpucheck.selftests.launcher import Launcher
from gpucheck.selftests.plan import Wish, headers

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]
HERE = ("--python", sys.executable, "--device", "cpu")


LIGHT = ("all-reduce", "all-gather", "broadcast", "all-to-all", "send-recv")
HEAVY = ("all-reduce", "reduce-scatter", "ddp-step")
"""With gloo these take six seconds of eight ranks that share two cores."""


# Two ranks are those of selftests/test_faults_for_real.py: only what has a fault is red there.
@pytest.mark.parametrize(("ranks", "tests"), [(3, HEAVY), (8, LIGHT)])
def test_so_many_ranks_add_up(ranks: int, tests: tuple[str, ...]) -> None:
    done = run(
        "selftest", *HERE, "--ranks", str(ranks), "--tests", ",".join(tests), "--format", "json",
        timeout=60,
    )  # fmt: skip
    report = json.loads(done.stdout)
    results = [result for result in report["selftests"] if result["name"] in tests]
    assert sorted(
        (result["name"], result["rank"], result["status"]) for result in results
    ) == sorted((name, rank, "passed") for name in tests for rank in range(ranks)), results
    assert done.returncode == 0


SITE = """
import os, sys
from importlib.machinery import PathFinder

class Watched:  # it ends the process, as NCCL's watchdog does, where gloo only raises
    def __init__(self, work):
        self.work = work

    def wait(self, *more):
        try:
            return self.work.wait(*more)
        except Exception as error:
            os.write(2, f"watchdog thread terminated with exception: {{error}}\\n".encode())
            os.abort()

class Finder:
    def find_spec(self, name, path, target=None):
        if name != "torch.distributed":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            right = module.all_reduce

            def all_reduce(tensor, *more, **named):
                if module.get_rank() == 1 and tensor.numel() == 1000:
                    import time
                    {fault}
                work = right(tensor, *more, **named)
                return Watched(work) if {watched} and work is not None else work

            module.all_reduce = all_reduce

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        ("time.sleep(1000)", "timed-out", "rank 1 did not enter the all-reduce of 1000 fp32"),
        ("os._exit(7)", "crashed", "exit status 7 in: all-reduce of 1000 fp32"),
        ("os.kill(os.getpid(), 9)", "crashed", "killed by SIGKILL in: all-reduce of 1000 fp32"),
    ],
)
def test_the_rank_that_is_to_blame_alone_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, status: str, words: str
) -> None:
    """The fault is put under torch.distributed of one rank by a sitecustomize."""
    monkeypatch.setattr("gpucheck.selftests.job_runner._PEER_SECONDS", 0.5)
    results = run_faulty(tmp_path, monkeypatch, fault, watched=False)
    assert [result.status for result in results] == ["skipped", status, "skipped"], results
    assert words in results[1].detail
    assert results[0].kind == "stopped"


def test_ranks_that_abort_because_they_lost_one_are_not_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With gloo's own words on a lost connection, and an end like that of NCCL's watchdog."""
    results = run_faulty(tmp_path, monkeypatch, "os.kill(os.getpid(), 11)", watched=True)
    assert [result.status for result in results] == ["skipped", "crashed", "skipped"], results
    assert "killed by SIGSEGV" in results[1].detail
    for result in (results[0], results[2]):
        assert result.detail == "stopped: rank 1 on cpu had crashed"
        assert result.data["signal"] == "SIGABRT"
        assert "Connection" in result.data["saw"]


def run_faulty(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str, *, watched: bool
) -> list[SelfTest]:
    """Run ``all-reduce`` in three ranks with a fault under torch.distributed of rank 1."""
    text = textwrap.dedent(SITE).format(fault=fault, watched=watched)
    (folder / "sitecustomize.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    tests = dict(headers())
    tests["all-reduce"] = msgspec.structs.replace(tests["all-reduce"], seconds={"quick": 9.0})
    wish = Wish(tests=("all-reduce",), devices=("cpu",), ranks=3)
    found = Launcher(LiveHost().supervise, sys.executable, wish, tests).run()
    return [result for _path, result in found.of("all-reduce")]
