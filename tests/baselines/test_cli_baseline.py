"""``gpucheck baseline`` and ``gpucheck env lock`` as a user runs them, with this Python."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpucheck.programs.schema import schema

pytestmark = pytest.mark.process

HERE = ("--python", sys.executable, "--no-selftest")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401  # a function
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("GPUCHECK_LANG", "en")

    def started(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gpucheck", *words],
            capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
        )  # fmt: skip

    return started


def test_save_list_and_compare(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    assert "gpucheck baseline save" in run("baseline", "compare", *HERE).stderr
    saved = run("baseline", "save", *HERE, "--anyway", "--note", "good")
    assert saved.returncode == 0, saved.stderr
    assert Path(saved.stdout.strip()).is_file()
    listed = run("baseline", "list", "--python", sys.executable)
    assert "good" in listed.stdout
    same = run("baseline", "compare", *HERE, "--fail-on", "never")
    assert "Compared with the state of" in same.stdout
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    text = run("baseline", "compare", *HERE, "--format", "json", "--fail-on", "never").stdout
    document = json.loads(text)
    jsonschema.validate(document, schema("baseline-comparison"))
    changed = [change["fact"] for change in document["changes"]]
    assert "environment.variables.CUDA_VISIBLE_DEVICES" in changed
    states = json.loads(
        run("baseline", "list", "--python", sys.executable, "--format", "json").stdout
    )
    jsonschema.validate(states, schema("baselines"))
    assert [state["note"] for state in states["states"]] == ["good"]


def test_a_state_that_does_not_work_is_not_kept(run: Any, tmp_path: Path) -> None:  # noqa: ANN401
    empty = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(empty)], check=True)
    done = run("baseline", "save", "--python", str(empty), "--no-selftest")
    assert done.returncode in (1, 3)
    assert "Nothing was kept" in done.stderr
    assert not list(tmp_path.glob("state/**/*.json"))


def test_a_fleet(run: Any, tmp_path: Path) -> None:  # noqa: ANN401
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    assert run("baseline", "save", *HERE, "--anyway", "--fleet", str(fleet)).returncode == 0
    (mine,) = fleet.glob("*.json")
    for name in ("a", "b"):
        other = json.loads(mine.read_text())
        other["known_good"]["host"] = name
        (fleet / f"{name}.json").write_text(json.dumps(other))
    done = run("baseline", "compare", "--fleet", str(fleet), "--format", "json")
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema("fleet-comparison"))
    assert (done.returncode, document["hosts"], document["differences"]) == (0, 3, [])
    other["snapshot"]["facts"]["system"]["kernel"] = "9.9.9"
    (fleet / "c.json").write_text(json.dumps({**other, "known_good": {"host": "c", "note": ""}}))
    done = run("baseline", "compare", "--fleet", str(fleet))
    assert done.returncode == 1
    assert "system.kernel" in done.stdout
    assert "c: 9.9.9" in done.stdout


def test_a_lock_and_its_way_back(run: Any, tmp_path: Path) -> None:  # noqa: ANN401
    pytest.importorskip("torch")
    file = tmp_path / "lock.txt"
    assert run("env", "lock", "--python", sys.executable, "-o", str(file)).returncode == 0
    assert "torch==" in file.read_text()
    done = run("recommend", "--like", str(file), "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    assert f"install -r {file}" in done.stdout
    both = run("recommend", "--like", str(file), "--torch", "2.6")
    assert (both.returncode, both.stdout) == (2, "")
    assert "--like names a PyTorch" in both.stderr


def test_a_fleet_of_which_no_host_is_compared_is_not_healthy(run: Any, tmp_path: Path) -> None:  # noqa: ANN401
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    empty = run("baseline", "compare", "--fleet", str(fleet))
    assert (empty.returncode, empty.stdout) == (2, "")
    assert "has no file of a host: gpucheck baseline save --fleet" in empty.stderr
    (fleet / "a.json").write_text("{")
    damaged = run("baseline", "compare", "--fleet", str(fleet))
    assert damaged.returncode == 3
    assert damaged.stdout.startswith("No host was compared.\n")
    assert "Not compared:" in damaged.stdout
