"""Runs gpucheck and the others on this machine, each of them once.

GPUCHECK_GPU_DEVICE=cpu rehearses the tests on a machine without a GPU. GPUCHECK_GPU_REPORTS is a
folder with what was printed before, such as ``quick.json``, which is not run again.
GPUCHECK_GPU_PYTHON is the Python with torch, if it is another one than that of the tests.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import on_a_gpu_ask
import on_a_gpu_facts
import pytest

Json = dict[str, Any]

DEVICE = os.environ.get("GPUCHECK_GPU_DEVICE", "cuda")
ON_CPU = DEVICE == "cpu"
PYTHON = os.environ.get("GPUCHECK_GPU_PYTHON", sys.executable)
_SOURCE = Path(__file__).parent.parent.parent / "src"
_ON_CPU = ("--device", "cpu") if ON_CPU else ()
_DRIVER = ("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg")
NEEDS_A_GPU = pytest.mark.skipif(
    not ON_CPU and not any(Path(path).exists() for path in _DRIVER),
    reason="needs an NVIDIA GPU and its driver",
)
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "check": ("--no-selftest",),
    "facts": ("collect", "--no-redact"),
    "quick": ("selftest", "--level", "quick", *_ON_CPU),
    "standard": ("selftest", "--level", "standard", *_ON_CPU),
    "preflight": ("preflight", *_ON_CPU),
    **{
        name: ("selftest", "--tests", name, "--level", "standard", *_ON_CPU)
        for name in ("batch-size", "jit", "onnx-export", "tensorrt", "sustained")
    },
}
"""What the tests look at, by name."""


class Done(NamedTuple):
    """How a program ended and what it printed."""

    status: int
    out: str
    err: str

    @property
    def report(self) -> Json:
        """The report that it printed."""
        assert self.out, f"exit status {self.status}, no report: {self.err[-2000:]}"
        found: Json = json.loads(self.out)
        return found


def run(*command: str, seconds: float = 300.0, **env: str) -> Done:
    """Run a program to its end."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **env},
    )
    return Done(done.returncode, done.stdout, done.stderr)


def source(*before: str | Path) -> str:
    """Return a PYTHONPATH with these folders, and with gpucheck if it is not there already."""
    more = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, [*map(str, before), more, str(_SOURCE)]))


def gpucheck(*words: str, seconds: float = 300.0, **env: str) -> Done:
    """Run gpucheck on the Python of these tests; its report is JSON."""
    form = () if words[:1] == ("collect",) else ("--format", "json", "--fail-on", "error")
    command = (sys.executable, "-m", "gpucheck", *words, "--python", PYTHON, *form, "-q")
    return run(*command, seconds=seconds, **{"PYTHONPATH": source(), **env})


@functools.cache
def printed(name: str) -> Json:
    """Return what a command of ``COMMANDS`` prints."""
    before = _printed_before(name)
    found: Json = gpucheck(*COMMANDS[name]).report if before is None else json.loads(before)
    return found


@functools.cache
def asked() -> Json:
    """Return what torch, nvidia-smi and the system say."""
    before = _printed_before("asked")
    if before is None:
        before = run(PYTHON, str(on_a_gpu_ask.__file__), seconds=120).out
    found = on_a_gpu_facts.last_json(before)
    assert found, before
    return found


def _printed_before(name: str) -> str | None:
    """Return what a step of ``on_a_gpu.py`` has printed; None if there was none."""
    file = Path(os.environ.get("GPUCHECK_GPU_REPORTS") or "nowhere") / f"{name}.json"
    return file.read_text(encoding="utf-8") if file.is_file() else None


def facts(snapshot: Json | None = None) -> Json:
    """Return the facts of a snapshot, or of this machine."""
    found: Json = (snapshot or printed("facts"))["facts"]
    return found


def by_test(report: Json) -> dict[str, list[Json]]:
    """Return the results of a report by the name of the self-test."""
    found: dict[str, list[Json]] = {}
    for result in report["selftests"]:
        found.setdefault(result["name"], []).append(result)
    return found


def wrong(result: Json) -> list[str]:
    """Return what is wrong with the result of a self-test that should have passed."""
    place = f"{result['name']} on {result['device']}"
    if result["status"] != "passed":
        words = ("status", "kind", "stage", "detail", "data")
        return [f"{place}: " + "; ".join(str(result[word]) for word in words)]
    found = []
    for measurement in result["measurements"]:
        name, value, bound = (measurement[key] for key in ("name", "value", "bound"))
        if value is None:
            found.append(f"{place}: {name} is not finite")
        elif bound is not None and value > bound:
            found.append(f"{place}: {name} is {value}, over {bound}")
    return found
