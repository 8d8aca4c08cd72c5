"""Where nothing may be changed."""

import os
from pathlib import Path

import pytest
import report_samples as samples
from msgspec.structs import replace

from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter
from gpucheck.fixing.permitted import Place, RefusedPlaceError, place_of


def target(prefix: Path) -> Interpreter:
    """Return a virtual environment that may be changed."""
    site = prefix / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (prefix / "bin").mkdir()
    return Interpreter(
        status="ok", executable=str(prefix / "bin/python"), prefix=str(prefix), kind="venv",
        site_packages=[str(site)], externally_managed=False, user_site_enabled=False,
    )  # fmt: skip


def place(interpreter: Interpreter) -> Place:
    return place_of(samples.healthy().snapshot.with_sections([interpreter, System(os="linux")]))


def why_not(interpreter: Interpreter) -> str:
    with pytest.raises(RefusedPlaceError) as refused:
        place(interpreter)
    return str(refused.value)


def test_a_virtual_environment(tmp_path: Path) -> None:
    own = target(tmp_path / "env")
    found = place(own)
    assert found.packages == tuple(own.site_packages or ())
    assert found.home == str(tmp_path / "env/.gpucheck")
    assert found.scripts == str(tmp_path / "env/bin")


def test_a_python_that_another_program_manages(tmp_path: Path) -> None:
    own = target(tmp_path / "env")
    for managed in (True, None):
        assert "Another program manages" in why_not(replace(own, externally_managed=managed))


def test_the_python_of_the_system(tmp_path: Path) -> None:
    own = replace(target(tmp_path / "env"), prefix="/usr", kind="system")
    assert "operating system" in why_not(own)


def test_a_python_that_was_not_understood(tmp_path: Path) -> None:
    assert "not known" in why_not(replace(target(tmp_path / "env"), status="no-answer"))


def test_the_environment_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = target(tmp_path / "env")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "belongs to another user" in why_not(own)


def test_an_environment_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = target(tmp_path / "env")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert "cannot be written" in why_not(own)


def test_gpuchecks_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = target(tmp_path / "env")
    inside = (own.site_packages or [""])[0] + "/click/__init__.py"
    assert not place(own).holds_gpucheck
    monkeypatch.setattr("click.__file__", inside)
    assert place(own).holds_gpucheck


def test_a_python_without_rights_has_the_packages_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / ".local/lib/python3.11/site-packages"
    user.mkdir(parents=True)
    own = replace(
        target(tmp_path / "python"), kind="other", user_site=str(user), user_site_enabled=True
    )
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid)
    monkeypatch.setattr(os, "access", lambda path, _mode: ".local" in str(path))
    monkeypatch.setattr("gpucheck.fixing.permitted._is_root", lambda: False)
    found = place(own)
    assert found.packages == (str(user),)
    assert found.home == str(user.parent / ".gpucheck")
    assert found.scripts == ""
