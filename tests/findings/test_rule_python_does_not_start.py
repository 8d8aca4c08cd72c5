"""python-does-not-start: a variable that leads the Python to the library of another one."""

import os
import sys
from pathlib import Path

import pytest
from rule_facts import LINUX, hit, quiet
from rules_support import ask

from gpucheck.facts.system import Environment
from gpucheck.facts.torch import Interpreter
from gpucheck.machine import LiveHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.machine.target import find

SLUG = "python-does-not-start"


def test_it_names_the_variable() -> None:
    variables = Environment(variables={"PYTHONHOME": "/opt/python3.9"})
    target = Interpreter(
        status="exit-status", executable="/v/bin/python", starts_without="PYTHONHOME"
    )
    found = hit(ask(SLUG, LINUX, target, variables))
    assert "/v/bin/python does not start: PYTHONHOME=/opt/python3.9" in found.headline
    assert found.fixes[0].commands == ("unset PYTHONHOME",)


def test_a_python_that_starts() -> None:
    quiet(ask(SLUG, LINUX, Interpreter(status="ok", executable="/v/bin/python")))


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="env is a program of Unix")
def test_it_is_tried_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    found = find(LiveHost(), TargetWish(python=sys.executable)).value
    assert found is not None
    assert (found.status, found.starts_without) == ("exit-status", "PYTHONHOME")
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\nexit 3\n")
    failing.chmod(0o755)
    found = find(LiveHost(), TargetWish(python=str(failing))).value
    assert found is not None
    assert (found.status, found.starts_without) == ("exit-status", "")
