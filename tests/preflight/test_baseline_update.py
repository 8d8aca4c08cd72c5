"""Tasks that save what their GPUs reach in the same file at the same moment."""

import errno
import fcntl
import threading
import time
from pathlib import Path

import pytest

from gpucheck.cluster.figures import baseline
from gpucheck.cluster.figures.baseline import (
    Baseline,
    RateBaselineError,
    load,
    measured,
    save,
    update,
)

TASKS = 8


def of(number: int, rate: float = 50.0) -> Baseline:
    return measured([(f"GPU-{number}", "H100", {"fp32 TFLOP/s": rate})], [], "2026-11-23")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "_PAUSE", 0.01)


def test_tasks_of_a_node_do_not_overwrite_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gpucheck" / "baseline.json"
    reads: list[int] = []

    def slowly(path: Path) -> Baseline:
        found = load(path)
        reads.append(len(found.gpus))
        time.sleep(0.02)
        return found

    monkeypatch.setattr(baseline, "load", slowly)
    tasks = [threading.Thread(target=update, args=(file, of(one))) for one in range(TASKS)]
    for one in tasks:
        one.start()
    for one in tasks:
        one.join(30)
    assert sorted(load(file).gpus) == [f"GPU-{one}" for one in range(TASKS)]
    assert len(reads) == 2 * TASKS, "a task had to add its GPU twice"


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a network file system without locks."""

    def refused(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)


def replaced_by_another(monkeypatch: pytest.MonkeyPatch, others: list[Baseline]) -> None:
    """Have another node replace the file after each write, as long as there are others."""

    def written(path: Path, content: Baseline) -> None:
        save(path, content)
        if others:
            save(path, others.pop(0))

    monkeypatch.setattr(baseline, "save", written)


@pytest.mark.usefixtures("no_locks")
def test_what_another_node_has_overwritten_is_added_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "baseline.json"
    save(file, of(1, 40.0))
    replaced_by_another(monkeypatch, [of(2), Baseline(gpus={**of(1, 40.0).gpus, **of(3).gpus})])
    update(file, of(1))
    assert sorted(load(file).gpus) == ["GPU-1", "GPU-3"]
    assert load(file).gpus["GPU-1"].rates == {"fp32 TFLOP/s": 50.0}


@pytest.mark.usefixtures("no_locks")
def test_a_newer_measurement_of_the_same_gpu_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced_by_another(monkeypatch, [of(1, 60.0)])
    update(tmp_path / "baseline.json", of(1))
    assert load(tmp_path / "baseline.json").gpus["GPU-1"].rates == {"fp32 TFLOP/s": 60.0}


@pytest.mark.usefixtures("no_locks")
def test_what_others_overwrite_again_and_again_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "_SECONDS", 0.1)
    replaced_by_another(monkeypatch, [of(2)] * 1000)
    with pytest.raises(RateBaselineError, match="lacks what this task has measured"):
        update(tmp_path / "baseline.json", of(1))


def test_a_task_that_has_stopped_with_the_lock_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "_FOR_LOCK", 0.2)
    update(tmp_path / "baseline.json", of(1))
    with (tmp_path / ".baseline.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        begun = time.monotonic()
        update(tmp_path / "baseline.json", of(2))
        assert 0.2 <= time.monotonic() - begun < 5
    assert sorted(load(tmp_path / "baseline.json").gpus) == ["GPU-1", "GPU-2"]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RateBaselineError, match="cannot be"):
        update(tmp_path / "file" / "baseline.json", of(1))
