"""Files by a pattern and programs on PATH: the same as the standard library says, only sooner."""

import glob
import os
import shutil
from pathlib import Path

import pytest
from each import each

from gpucheck.machine.paths import matching, which

NAMES = (
    "libcuda.so", "libcuda.so.1", "libcuda.so.535.54.03", "libcudart.so.12", ".hidden.so",
    "nvidia-driver.list", "a[1].txt", "x]y", "[abc", "UPPER.SO",
)  # fmt: skip


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).touch()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "libcuda.so.1").touch()
    (tmp_path / "dangling.so.1").symlink_to("nowhere")
    return tmp_path


@each(
    "pattern",
    [
        "*", ".*", "**", "lib*.so*", "libcuda.so.[0-9]*", "libcuda.so", "*.so.?", "*/libcuda.so.1",
        "inner/*", "nothing/*", "*[cn][uv][di][ad]*.list", "a[[]1].txt", "*]y", "[abc", "*[abc",
        "[!l]*", "[]x]*y", "*.so", "inner/", "in*/", "x?y", "dang*.1", "libcuda.so/*",
    ],
)  # fmt: skip
def test_finds_what_glob_finds(folder: Path, pattern: str) -> None:
    whole = f"{folder}/{pattern}"
    assert sorted(matching(whole)) == sorted(glob.glob(whole))  # noqa: PTH207  # what it is held to


def test_which_takes_the_first_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
    (tmp_path / "first" / "nvcc").touch(mode=0o644)
    (tmp_path / "second" / "nvcc").mkdir()
    (tmp_path / "third" / "nvcc").touch(mode=0o755)
    path = os.pathsep.join(str(tmp_path / name) for name in ("first", "second", "none", "third"))
    monkeypatch.setenv("PATH", path)
    own = str(tmp_path / "third" / "nvcc")
    for asked in ("nvcc", own, "gcc", "", str(tmp_path / "first" / "nvcc")):
        assert which(asked) == shutil.which(asked)
    assert which("nvcc") == own


@each("path", ["", None, ":", "::/bin", ".", "./here:/bin"])
def test_which_takes_nothing_from_the_current_folder(
    path: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    for folder in (tmp_path, tmp_path / "here"):
        (folder / "tool").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)
    assert which("tool") is None
    assert which("./tool") == "./tool"


def test_which_completes_a_name_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own looks into the current folder first there."""
    for name in ("tool.bat", "tool.exe", "tool.txt", "other.exe.txt"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PATHEXT", os.pathsep.join((".EXE", ".exe", ".bat")))
    assert which("tool") == str(tmp_path / "tool.exe")
    assert which("tool.bat") == str(tmp_path / "tool.bat")
    assert which("tool.txt") is None
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert which("tool") is None
