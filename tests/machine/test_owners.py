"""Root is told before it runs an environment that another user can change."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpucheck.cli import gpucheck
from gpucheck.doctor.collector import Collector
from gpucheck.facts.request import Request
from gpucheck.machine import LiveHost, RecordingHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.machine.owners import PROGRAMS, folder_of_others, foreign_programs
from gpucheck.tables import Tables

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may change owners"
)
NOBODY = 65534


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An environment as venv makes it, all of root's."""
    program = tmp_path / "venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    (tmp_path / "venv" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def owner(python: Path) -> int | None:
    found = next(foreign_programs(LiveHost(""), TargetWish(python=str(python))), None)
    return found.uid if found is not None and found.program == str(python) else None


@pytest.mark.parametrize("part", ["bin/python", ".", "lib/python3.11/site-packages"])
def test_an_environment_of_another_user_is_noticed(python: Path, part: str) -> None:
    assert owner(python) is None
    os.chown(python.parent.parent / part, NOBODY, NOBODY)
    assert owner(python) == NOBODY


def test_nobody_else_is_told(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(python, NOBODY, NOBODY)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert owner(python) is None


def test_nothing_is_run_below_a_sysroot(python: Path, tmp_path: Path) -> None:
    os.chown(python, NOBODY, NOBODY)
    wish = TargetWish(python=f"/{python.relative_to(tmp_path)}")
    assert list(foreign_programs(LiveHost(str(tmp_path)), wish)) == []


@pytest.mark.process
@pytest.mark.parametrize(("more", "reported"), [((), True), (("--quiet",), False)])
def test_it_is_said_before_the_report(
    python: Path, more: tuple[str, ...], *, reported: bool
) -> None:
    os.chown(python, 4242, 4242)  # a number without a name
    done = CliRunner().invoke(gpucheck, ("collect", "--python", str(python), *more))
    words = f"gpucheck now runs {python} as root, although user 4242 can change it."
    assert done.stderr.startswith(words) == reported
    assert words not in done.stdout


@pytest.mark.parametrize(("owner", "mode"), [(NOBODY, 0o755), (0, 0o777)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_path_is_as_foreign_as_a_python(
    python: Path, monkeypatch: pytest.MonkeyPatch, name: str, owner: int, mode: int
) -> None:
    folder = python.parents[2] / "bin"
    folder.mkdir()
    (folder / name).write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    wish = TargetWish(python=str(python))

    def foreign_here() -> list[tuple[str, int | None]]:
        found = foreign_programs(LiveHost(""), wish)
        return [
            (foreign.program, foreign.uid)
            for foreign in found
            if foreign.program.startswith(str(folder))
        ]

    assert foreign_here() == []
    os.chown(folder, owner, owner)
    folder.chmod(mode)
    assert foreign_here() == [(str(folder / name), owner or None)]


@pytest.mark.process
def test_every_program_that_probes_look_for_is_known() -> None:
    host = RecordingHost(LiveHost(""))
    collected = Collector(host, Tables(), wish=TargetWish(), request=Request()).collect()
    asked = {
        word.rpartition("/")[2].split()[0]
        for entry in collected.log
        for kind in ("which", "commands")
        for word in entry.get(kind, {})
    }
    python = {program for program in asked if program.startswith("python")}
    assert asked - python <= set(PROGRAMS)


def test_root_writes_into_no_folder_that_another_user_can_exchange(tmp_path: Path) -> None:
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    own.mkdir()
    theirs.mkdir()
    assert folder_of_others(str(own / "not" / "there")) == ""
    os.chown(theirs, NOBODY, NOBODY)
    assert folder_of_others(str(theirs / "state")) == str(theirs)
    (own / "link").symlink_to(theirs)
    os.chown(own / "link", NOBODY, NOBODY, follow_symlinks=False)
    assert folder_of_others(str(own / "link")) == str(own / "link")
    own.chmod(0o777)
    assert folder_of_others(str(own / "x")) == str(own)


@pytest.mark.process
def test_a_state_of_root_follows_no_link_of_another_user(tmp_path: Path) -> None:
    state, aim = tmp_path / "state", tmp_path / "aim"
    (state / "gpucheck").mkdir(parents=True)
    aim.mkdir()
    (state / "gpucheck" / "known-good").symlink_to(aim)
    os.chown(state, NOBODY, NOBODY)
    done = CliRunner().invoke(
        gpucheck, ("baseline", "save", "--anyway", "--no-selftest"),
        env={"XDG_STATE_HOME": str(state)},
    )  # fmt: skip
    assert done.exit_code == 2
    assert "can be changed by another user" in done.stderr
    assert list(aim.iterdir()) == []
