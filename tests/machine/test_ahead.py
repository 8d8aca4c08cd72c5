"""The target that is asked before gpucheck has imported its own modules."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from each import each

from gpucheck import _about
from gpucheck.facts.streams import let_through
from gpucheck.machine import LiveHost, ahead
from gpucheck.machine.candidates import TargetWish, choose, this_process
from gpucheck.machine.target import ask

# ruff: noqa: SLF001

pytestmark = pytest.mark.process

LOG = "GPUCHECK_TEST_STARTS"
NOTES = f"""\
import os

if {LOG!r} in os.environ:
    with open(os.environ[{LOG!r}], "a") as file:
        file.write("x")
"""


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that notes how often its Python is started."""
    made = tmp_path_factory.mktemp("target") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    (site,) = made.glob("lib/python3*/site-packages")
    (site / "notes.py").write_text(NOTES)
    (site / "notes.pth").write_text("import notes\n")
    return made


@pytest.fixture
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (*ahead._UNUSUAL, "GPUCHECK_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ahead, "asked", None)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, f"__{name}__"))
    yield
    let_through()


@each(
    ("line", "named"),
    [
        ("", ""),
        ("check", ""),
        ("--no-selftest --fail-on never", ""),
        ("check --python /x/python --format=json -q", "/x/python"),
        ("--python=/x", "/x"),
        ("--sysroot /x", None),
        ("--tables /x", None),
        ("--gpus 1", None),
        ("-v", None),
        ("--timeout 3", None),
        ("--skip pci", None),
        ("--machine /x", None),
        ("--python", None),
        ("--fix", None),
        ("--help", None),
        ("triage -", None),
        ("--no-selftest=x", None),
    ],
)
def test_only_a_plain_check_is_asked_ahead(line: str, named: str | None) -> None:
    assert ahead._python_of(line.split()) == named


def _guessed(named: str, *, as_module: bool) -> str:
    return ahead._target(named, os.environ, as_module=as_module)


@pytest.mark.usefixtures("nothing_asked")
def test_the_target_is_the_one_that_will_be_chosen(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = LiveHost()

    def chosen(named: str) -> str:
        wish = TargetWish(python=named or None)
        return choose(host, wish, this_process(host, wish))[0].executable

    for named in (
        str(venv / "bin" / "python"),
        str(venv),
        os.path.relpath(venv / "bin" / "python"),
    ):
        assert _guessed(named, as_module=False) == chosen(named)
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    assert _guessed("", as_module=False) == chosen("") == str(venv / "bin" / "python")
    monkeypatch.setenv("GPUCHECK_PYTHON", sys.executable)
    assert _guessed("", as_module=False) == chosen("") == sys.executable
    assert _guessed("python3", as_module=False) == ""  # on PATH: candidates.py looks there


@pytest.mark.usefixtures("nothing_asked")
def test_an_active_environment_of_gpucheck_itself_is_not_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setattr(sys, "path", [])  # without torch: another Python may be meant
    assert _guessed("", as_module=False) == ""
    assert _guessed("", as_module=True) == sys.executable


@pytest.mark.usefixtures("nothing_asked")
def test_nothing_is_started_where_there_is_doubt(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--python", str(venv)]
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert not ahead.ask(["--python", str(script)], as_module=False)
    assert not ahead.ask(["--python", str(tmp_path)], as_module=False)
    with monkeypatch.context() as patch:
        patch.setenv("RANK", "0")
        assert not ahead.ask(words, as_module=False)
    with monkeypatch.context() as patch:
        patch.setattr(_about, "bundle", "/x/gpucheck.pyz")
        assert not ahead.ask(words, as_module=False)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", None)
        assert not ahead.ask(words, as_module=False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 0)
        venv.chmod(0o777)
        assert not ahead.ask(words, as_module=False)
        venv.chmod(0o755)
    assert ahead.asked is None


@pytest.mark.usefixtures("nothing_asked")
def test_the_answer_is_the_one_of_an_ordinary_question(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = str(venv / "bin" / "python")
    ordinary = ask(LiveHost(), python)
    monkeypatch.setenv(LOG, str(tmp_path / "starts"))
    assert ahead.ask(["--python", str(venv)], as_module=False)
    assert ask(LiveHost(), python) == ordinary
    assert (tmp_path / "starts").read_text() == "x"
    assert ask(LiveHost(), python) == ordinary  # what was asked ahead is used up
    assert (tmp_path / "starts").read_text() == "xx"


@pytest.mark.usefixtures("nothing_asked")
def test_a_python_without_an_answer_is_asked_as_usual(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = str(venv / "bin" / "python")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    assert ahead.ask(["--python", python], as_module=False)
    reply = ask(LiveHost(), python)
    assert reply.status == "exit-status"
    assert python in reply.detail


@pytest.mark.usefixtures("nothing_asked")
def test_a_python_that_hangs_is_late_and_killed(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site,) = venv.glob("lib/python3*/site-packages")
    hangs = site / "hangs.pth"
    hangs.write_text("import time; time.sleep(60)\n")
    monkeypatch.setenv(LOG, str(tmp_path / "starts"))
    python = str(venv / "bin" / "python")
    try:
        assert ahead.ask(["--python", python], as_module=False)
        assert ahead.asked is not None
        reply = ask(LiveHost(), python, limit=0.3)
    finally:
        hangs.unlink()
    assert reply.status == "timed-out"
    end = time.monotonic() + 5
    while not _is_gone(ahead.asked._pid):
        assert time.monotonic() < end
        time.sleep(0.01)


def _is_gone(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True


def _run(*words: str, starts: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    kept = {k: v for k, v in os.environ.items() if k not in ("RANK", "VIRTUAL_ENV")}
    return subprocess.run(
        [sys.executable, "-m", "gpucheck", *words],
        env={**kept, LOG: str(starts), **env}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_command_line_is_read_leaves_nothing(
    venv: Path, number: signal.Signals
) -> None:
    """The target hangs, and the signal comes as soon as it has begun."""
    (site,) = venv.glob("lib/python3*/site-packages")
    hangs = site / "hangs.pth"
    begun = venv / "begun"
    hangs.write_text(f"import time; open({str(begun)!r}, 'w').close(); time.sleep(60)\n")
    mark = f"GPUCHECK_TEST_SIGNAL={os.getpid()}-{number}"
    env = {**os.environ, **dict([mark.split("=")])}
    words = [sys.executable, "-m", "gpucheck", "--no-selftest", "--python", str(venv)]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        try:
            while not begun.exists():
                time.sleep(0.001)
            run.send_signal(number)
            run.communicate(timeout=10)
        finally:
            run.kill()
            hangs.unlink()
            begun.unlink()
    assert run.returncode == 128 + number
    assert _have_gone(mark)


def _have_gone(mark: str) -> bool:
    """Wait for the processes with this mark: what was killed is there until the system reaps it."""
    until = time.monotonic() + 5
    while left := _with(mark):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return not left


def _with(mark: str) -> list[Path]:
    """Return the processes whose environment has this mark."""
    every = Path("/proc").glob("[0-9]*/environ")
    return [entry for entry in every if mark.encode() in _content(entry)]


def test_a_plain_check_starts_the_target_once(venv: Path, tmp_path: Path) -> None:
    plain = ("--no-selftest", "--fail-on", "never", "--python", str(venv))
    ahead_of_all = _run(*plain, starts=tmp_path / "ahead")
    usual = _run(*plain, "--timeout", "110", starts=tmp_path / "usual")
    assert ahead_of_all.returncode == usual.returncode == 0
    assert ahead_of_all.stdout.splitlines()[:-4] == usual.stdout.splitlines()[:-4]
    assert (tmp_path / "ahead").read_text() == (tmp_path / "usual").read_text() == "x"


@each("words", [("--fail-on", "nonsense"), ("--level", "nonsense")])
def test_what_was_begun_ends_with_a_refusal(words: tuple[str, ...], venv: Path) -> None:
    mark = f"GPUCHECK_TEST_OF={os.getpid()}"
    done = _run("--python", str(venv), *words, starts=Path(os.devnull), **dict([mark.split("=")]))
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert not _with(mark)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
