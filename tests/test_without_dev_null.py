"""A minimal container may have no ``/dev/null``: that is no missing program, and no fault of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_patient import Patient, by_name

SOURCE = Path(__file__).resolve().parent.parent / "src"
WITHOUT = "import os; os.devnull = '/nowhere/null'\n"
"""For a ``sitecustomize``."""
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="containers of Linux"),
]


def run(folder: Path, *words: str, streams: str = "") -> "subprocess.CompletedProcess[str]":
    (folder / "sitecustomize.py").write_text(WITHOUT)
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-m", "gpucheck", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(SOURCE)))},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_target_interpreter_is_found(tmp_path: Path) -> None:
    ran = run(
        tmp_path, "check", "--no-selftest", "--format", "json", "--fail-on", "never",
        "--python", sys.executable,
    )  # fmt: skip
    facts = json.loads(ran.stdout)["snapshot"]["facts"]
    assert facts["interpreter"]["status"] == "ok"


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault(tmp_path: Path, streams: str) -> None:
    file = tmp_path / "list"
    ran = run(tmp_path, "list", "-o", str(file), streams=streams)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "driver-too-old" in file.read_text()


@pytest.mark.parametrize("forks", [True, False])
def test_a_worker_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool) -> None:  # noqa: FBT001
    body = "assert os.read(0, 1) == b''" if forks else "pass"
    patient = Patient(tmp_path, monkeypatch, tests={"one": body}, sitecustomize=WITHOUT)
    assert by_name(patient.examine(forks=forks), "one").status == "passed"
