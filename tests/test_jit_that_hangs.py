"""A compiler that hangs is ended at the deadline, with all that it has started: on a real torch."""

import importlib.util
import os
import sys
from pathlib import Path

import msgspec
import pytest
from left_behind import MARK, alive, wait_until

from gpucheck.facts.selftests import SelfTest
from gpucheck.machine import LiveHost
from gpucheck.machine.worker_pool.process import Send, WorkerProcess
from gpucheck.selftests.launcher import Launcher
from gpucheck.selftests.plan import Wish, headers

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

COMPILER = """#!{python}
import os, signal, sys, time
if set(sys.argv) & {{"--version", "-v", "-dumpversion", "-dumpfullversion"}}:
    print("g++ (GCC) 13.2.0")
    sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:  # the program behind the driver, as cc1plus and cicc are
    os.setpgid(0, 0)
    open({marker!r}, "w").close()
time.sleep(600)
"""
NINJA = """#!{python}
import os, subprocess, sys
if "--version" in sys.argv:
    print("1.11.1")
    sys.exit()
subprocess.run(["g++", "-c"], preexec_fn=os.setpgrp)  # ninja gives each command its own group
"""
WITHOUT_COMPILE = """
import sys
from importlib.machinery import PathFinder

class Finder:
    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            del module.compile

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""


def run_jit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SelfTest:
    """Run ``jit`` with a compiler that hangs; its deadline comes once the compiler is at work."""
    marker = folder / "compiling"
    tools = folder / "bin"
    tools.mkdir()
    for name, text in (("g++", COMPILER), ("c++", COMPILER), ("ninja", NINJA)):
        (tools / name).write_text(text.format(python=sys.executable, marker=str(marker)))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    monkeypatch.setenv("CXX", str(tools / "g++"))
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    push = WorkerProcess.push

    def hasty(process: WorkerProcess, send: Send) -> bool:
        if marker.exists() and process.key:
            process.stop("deadline")
        return push(process, send)

    monkeypatch.setattr(WorkerProcess, "push", hasty)
    tests = dict(headers())
    tests["jit"] = msgspec.structs.replace(tests["jit"], seconds={"quick": 200.0})
    wish = Wish(tests=("jit",), devices=("cpu",), timeout=240.0)
    launcher = Launcher(LiveHost().supervise, sys.executable, wish, tests)
    monkeypatch.setattr(launcher, "_confirm", lambda: None)  # it would hang a second time
    ((_path, result),) = launcher.run().of("jit")
    assert marker.exists(), result
    return result


@pytest.mark.parametrize("stage", ["torch.compile", "building an extension"])
def test_nothing_of_it_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    if stage != "torch.compile":
        (tmp_path / "sitecustomize.py").write_text(WITHOUT_COMPILE)
    monkeypatch.setenv(MARK, mark := f"{os.getpid()}-{stage}")
    result = run_jit(tmp_path, monkeypatch)
    assert (result.status, result.kind, result.stage) == ("timed-out", "timed-out", stage), result
    assert f"in: {stage}" in result.detail
    assert "Current thread" in result.data["printed"]
    monkeypatch.delenv(MARK)
    assert wait_until(lambda: not alive(mark), 10), "a compiler stayed behind"
