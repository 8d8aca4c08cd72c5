"""What cannot come to a good end is refused in one sentence, before the work; no report is lost."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from each import each

from gpucheck.cli import gpucheck
from gpucheck.interface.text import NotWrittenError, refuse_unwritable, write_out
from gpucheck.machine import LiveHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.machine.target import refusal

PYENV = (
    "#!/usr/bin/env bash\n# pyenv\necho \"pyenv: version '3.9.9' is not installed\" >&2\nexit 1\n"
)


def run(*args: str) -> Result:
    return CliRunner().invoke(gpucheck, args)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise AssertionError

    monkeypatch.setattr("gpucheck.doctor.collector.Collector.collect", fail)


@pytest.mark.parametrize(
    "args",
    [
        ("check",),
        ("collect",),
        ("selftest",),
        ("recommend",),
        pytest.param(("preflight",), marks=pytest.mark.process),  # whose guard starts first
        ("list",),
        ("compat", "driver=535"),
    ],
)
@pytest.mark.parametrize("file", ["missing/report.txt", "."])
@pytest.mark.usefixtures("no_work")
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    args: tuple[str, ...], file: str, tmp_path: Path
) -> None:
    done = run(*args, "-o", str(tmp_path / file))
    assert done.exit_code == 2
    assert "cannot be written: " in done.stderr


def test_looking_whether_a_file_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    refuse_unwritable(str(file))
    assert not file.exists()
    file.write_text("old", encoding="utf-8")
    refuse_unwritable(str(file))
    assert file.read_text(encoding="utf-8") == "old"


def test_a_pipe_is_not_opened_to_look(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refuse_unwritable(str(pipe))  # would wait for a reader


def test_a_report_that_cannot_be_written_in_the_end_is_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(NotWrittenError, match="It was printed instead") as refused:
        write_out("HEALTHY\n", str(tmp_path))
    assert refused.value.exit_code == 2
    assert capsys.readouterr().out == "HEALTHY\n"


def test_a_disk_that_is_full_in_the_middle_loses_neither_the_old_report_nor_the_new(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report"
    file.write_text("old", encoding="utf-8")
    right = os.fdopen

    def full(handle: int, mode: str) -> Any:  # noqa: ANN401  # an open file
        right(handle, mode).close()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fdopen", full)
    with pytest.raises(NotWrittenError, match="No space left"):
        write_out("HEALTHY\n", str(file))
    assert file.read_text(encoding="utf-8") == "old"
    assert capsys.readouterr().out == "HEALTHY\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_keeps_its_mode_and_a_link_its_file(tmp_path: Path) -> None:
    file, link = tmp_path / "report", tmp_path / "link"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    write_out("new", str(link))
    assert (file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) == ("new", 0o640)
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, file]


@each("command", ["schema", "explain", "list"])
def test_a_dash_is_stdout(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = (command, "gpu-slow") if command == "explain" else (command,)
    assert run(*words, "-o", "-").output == run(*words).output != ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_a_full_disk_loses_no_report() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    args = ("-m", "gpucheck", "list", "-o", "/dev/full")
    done = subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "driver-too-old" in done.stdout
    assert "No space left on device. It was printed instead" in done.stderr


@each("command", ["check", "collect", "recommend", "selftest", "diff"])
@pytest.mark.usefixtures("no_work")
def test_a_wrong_python_is_one_sentence(command: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}", encoding="utf-8")
    done = run(command, *((str(file),) if command == "diff" else ()), "--python", "/no/python")
    assert done.exit_code == 2
    if command != "diff":  # which reads its file first
        assert done.stderr == "Error: --python: /no/python does not exist\n"


@pytest.mark.process
@pytest.mark.parametrize("folder", ["shims", "bin"])
def test_a_shim_of_pyenv_is_named_as_such(folder: str, tmp_path: Path) -> None:
    shim = tmp_path / folder / "python"
    shim.parent.mkdir()
    shim.write_text(PYENV, encoding="utf-8")
    shim.chmod(0o755)
    why = refusal(LiveHost(""), TargetWish(python=str(shim)))
    assert why.startswith(
        f"--python: {shim} is a shim of pyenv, not an interpreter (pyenv: version"
    )
    assert "name the interpreter itself" in why


@pytest.mark.process
@pytest.mark.parametrize("command", ["check", "preflight"])
def test_no_command_blames_the_machine_for_a_shim(command: str, tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text(PYENV, encoding="utf-8")
    shim.chmod(0o755)
    done = run(command, "--python", str(shim))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"Error: --python: {shim} is a shim of pyenv")
    assert not done.stdout


@pytest.mark.process
def test_the_watchdog_of_a_preflight_ends_with_its_run(tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text(PYENV, encoding="utf-8")
    shim.chmod(0o755)
    run("preflight", "--python", str(shim))
    for thread in threading.enumerate():
        if thread.name == "watchdog":  # it would end this process when the time limit is over
            thread.join(timeout=5)
            assert not thread.is_alive()


@pytest.mark.process
def test_a_shim_that_finds_a_python_is_taken(tmp_path: Path) -> None:
    shim = tmp_path / "shims" / "python"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\n# pyenv\nexec {sys.executable} "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    assert refusal(LiveHost(""), TargetWish(python=str(shim))) == ""


def test_a_python_that_nobody_named_is_never_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUCHECK_PYTHON", raising=False)
    assert refusal(LiveHost(""), TargetWish()) == ""
    monkeypatch.setenv("GPUCHECK_PYTHON", "/no/python")
    assert refusal(LiveHost(""), TargetWish()) == "$GPUCHECK_PYTHON: /no/python does not exist"


@each("command", ["check", "recommend", "selftest", "preflight"])
@each("limit", ["nan", "inf", "1e300", "-1"])
@pytest.mark.usefixtures("no_work")
def test_a_time_limit_that_is_no_time_is_refused(command: str, limit: str) -> None:
    done = run(command, "--timeout", limit)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Invalid value for '--timeout'" in done.stderr


@each(
    "words",
    [
        ("selftest", "--seed"),
        ("selftest", "--ranks"),
        ("check", "--gpus"),
        ("preflight", "--ranks"),
        ("preflight", "--nodes"),
        ("preflight", "--port"),
        ("triage", "--jobs"),
    ],
)
@each("number", [10**30, -1])
@pytest.mark.usefixtures("no_work")
def test_a_number_out_of_every_range_is_refused(words: tuple[str, ...], number: int) -> None:
    done = run(*words, str(number))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{number} is not in the range" in done.stderr
