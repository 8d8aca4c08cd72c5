"""Root is told before it runs an environment that another user can change."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpucheck.cli import gpucheck
from gpucheck.machine import LiveHost
from gpucheck.machine.owners import foreign_owner
from gpucheck.machine.target import TargetWish

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
    found = foreign_owner(LiveHost(""), TargetWish(python=str(python)))
    assert found is None or found[0] == str(python)
    return found and found[1]


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
    assert foreign_owner(LiveHost(str(tmp_path)), wish) is None


@pytest.mark.process
@pytest.mark.parametrize(("more", "told"), [((), True), (("--quiet",), False)])
def test_it_is_said_before_the_report(python: Path, more: tuple[str, ...], *, told: bool) -> None:
    os.chown(python, 4242, 4242)  # a number without a name
    done = CliRunner().invoke(gpucheck, ("collect", "--python", str(python), *more))
    words = f"gpucheck now runs {python} as root, although user 4242 can change it."
    assert done.stderr.startswith(words) == told
    assert words not in done.stdout
