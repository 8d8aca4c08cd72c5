"""Compiles the fake driver libraries and asks a probe about them, in a process of its own."""

import json
import os
import shutil
import subprocess  # tests start the compiler and a fresh interpreter
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

import gpucheck

_SOURCES = Path(__file__).with_name("fakes")
_NAMES = {"nvml": "libnvidia-ml.so.1", "cuda": "libcuda.so.1"}

# Asks one probe as the collector does: a child with a deadline, a live host that tells its stages.
_ASK = """
import json, sys, time
import msgspec

from gpucheck.language import plain
from gpucheck.machine import LiveHost
from gpucheck.machine.children import Children, Said

from gpucheck.probes import all_probes

probe = next(probe for probe in all_probes() if probe.name == sys.argv[1])
host = LiveHost()

def work(tell):
    host.speak_to(tell)
    tell.answer(msgspec.json.encode(probe.collect(host), enc_hook=plain))

children = Children()
children.start(sys.argv[1], work, time.monotonic() + float(sys.argv[2]))
heard = []
while children.names():
    heard += children.wait(time.monotonic() + 60)
said = [event.data.decode() for event in heard if isinstance(event, Said)]
end = msgspec.to_builtins(heard[-1], enc_hook=plain)
print(json.dumps({**end, "result": said[0] if said else "null"}))
"""


def build_fake(which: Literal["nvml", "cuda"], folder: Path, *, old: bool = False) -> Path:
    """Compile a fake library into the folder; skip the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler")
    library = folder / _NAMES[which]
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", *(["-DFAKE_OLD"] * old)]
    subprocess.run(
        [compiler, *flags, "-o", str(library), str(_SOURCES / f"fake_{which}.c")], check=True
    )
    return library


def _environment() -> dict[str, str]:
    return dict(os.environ)  # what a fresh interpreter needs is in there


def ask_fake(
    probe: str, folder: Path, env: Mapping[str, str] | None = None, *, deadline: float = 20.0
) -> dict[str, Any]:
    """Run a probe with the folder's libraries; how it ended, ``result`` is its section."""
    source = str(Path(gpucheck.__file__).parent.parent)
    answer = subprocess.run(
        [sys.executable, "-c", _ASK, probe, str(deadline)],
        env={**_environment(), "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": source, **(env or {})},
        stdout=subprocess.PIPE,
        timeout=90,
        check=True,
    )
    done: dict[str, Any] = json.loads(answer.stdout)
    return {**done, "result": json.loads(done["result"])}
