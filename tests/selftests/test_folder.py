"""The shared folder of a step, and what killed runs have left of theirs."""

import fcntl
import os
import time
from pathlib import Path

import pytest

from gpucheck.selftests.job_runner import step_folder, sweep

OLD = time.time() - 3600


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def left(place: Path, name: str = "gpucheck-step-abcd_123", mode: int = 0o700) -> Path:
    folder = place / name
    folder.mkdir()
    (folder / "rank-0").touch()
    folder.chmod(mode)
    os.utime(folder, (OLD, OLD))
    return folder


def test_it_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with step_folder() as folder:
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        (Path(folder) / "rank-0").touch()
    assert list(tmp_path.iterdir()) == []


def test_without_room_for_one_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    with step_folder() as folder:
        assert folder == ""
    sweep()


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    left(tmp_path)
    sweep()
    assert list(tmp_path.iterdir()) == []


def test_one_in_use_stays(tmp_path: Path) -> None:
    folder = left(tmp_path)
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    sweep()
    assert folder.exists()
    os.close(handle)
    with step_folder() as own:
        os.utime(own, (OLD, OLD))
        sweep()
        assert Path(own).exists()


def test_a_young_one_stays(tmp_path: Path) -> None:
    folder = left(tmp_path)
    os.utime(folder)
    sweep()
    assert folder.exists()


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    """Folders of a user's own, ones that others may write to, files and links."""
    kept = [
        left(tmp_path, "gpucheck-results"),
        left(tmp_path, "gpucheck-step-mine"),
        left(tmp_path, "gpucheck-step-abcd_124", mode=0o755),
    ]
    target = left(tmp_path, "data")
    link = tmp_path / "gpucheck-step-abcd_125"
    link.symlink_to(target)
    file = tmp_path / "gpucheck-step-abcd_126"
    file.touch()
    os.utime(file, (OLD, OLD))
    sweep()
    assert all(path.exists() for path in (*kept, target / "rank-0", link, file))
