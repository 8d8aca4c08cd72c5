"""Somebody pastes every command of a report, one after the other: no fix undoes another.

What the commands install, remove and set is followed in a small model of an environment: packages
that lie in two folders at most, of which Python takes the first, and variables.
"""

import re
import shlex
from collections.abc import Iterator

import pytest
from test_machines import EACH, reported

from gpucheck.facts.claims import Fix
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Finding

pytestmark = pytest.mark.every_finding

_SEQUELS = ("Or ", "Or, ", "And ", "And, ", "If ", "Until ", "So that ", "To repair it, ")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_CONDA_NAMES = {"pytorch": "torch"}
_HIDES_USER_SITE = "PYTHONNOUSERSITE"


class Place:
    """The environment of a machine, as far as fixes change it."""

    def __init__(self, machine: Snapshot) -> None:
        python, torch = machine.get(Interpreter), machine.get(TorchBuild)
        user = python.user_site or ""
        self.packages: list[tuple[str, str]] = [
            ("user" if user and (install.path or "").startswith(user) else "env", "torch")
            for install in torch.installs or ()
            if install.kind == "package"
        ]
        self.variables: dict[str, str] = {}

    def run(self, command: str) -> None:
        """Follow one command; what changes neither a package nor a variable is passed over."""
        words = shlex.split(command, comments=False)
        hidden = self.variables.get(_HIDES_USER_SITE)
        if words[:3] == ["env", "-u", _HIDES_USER_SITE]:
            words, hidden = words[3:], None
        if words[0] == "export":
            self.variables.update(
                {word.partition("=")[0]: word.partition("=")[2] for word in words[1:]}
            )
        elif words[0] == "unset":
            for name in words[1:]:
                self.variables.pop(name, None)
        elif "uninstall" in words or words[:2] == ["conda", "remove"]:
            verb = "uninstall" if "uninstall" in words else "remove"
            for name in _named(words[words.index(verb) + 1 :]):
                self._remove(name, hidden)
        elif "install" in words and "gpu-env" not in command and words[0] != "sudo":
            for name in _named(words[words.index("install") + 1 :]):
                self._remove(name, hidden)
                self.packages.append(("env", name))

    def found(self) -> set[str]:
        """Return what Python would find."""
        hidden = self.variables.get(_HIDES_USER_SITE)
        return {name for folder, name in self.packages if folder == "env" or not hidden}

    def _remove(self, name: str, hidden: str | None) -> None:
        for folder in ("env",) if hidden else ("user", "env"):
            if (folder, name) in self.packages:
                self.packages.remove((folder, name))
                return


def _named(words: list[str]) -> Iterator[str]:
    """Return the packages among arguments of pip or conda."""
    options = iter(words)
    for word in options:
        if word in ("--index-url", "--find-links", "--no-binary", "--python", "-p", "-c", "-n"):
            next(options, None)
        elif not word.startswith("-") and (found := _NAME.match(word)):
            yield _CONDA_NAMES.get(found[0], found[0])


def fixes(findings: tuple[Finding, ...]) -> list[Fix]:
    return [fix for finding in findings for fix in finding.fixes]


@EACH
def test_pasted_in_sequence_no_fix_undoes_another(name: str) -> None:
    report = reported(name)
    place = Place(report.snapshot)
    had_torch, made = "torch" in place.found(), dict[str, str]()
    for fix in fixes(report.standing):
        before = place.found()
        for command in fix.commands:
            if not command.startswith("printf"):
                place.run(command)
        lost = {change for change in made if change not in place.variables} if made else set()
        gone = {project for project in before & {"torch"} if project not in place.found()}
        assert not lost, (fix, lost)
        assert not gone, (fix, gone)
        made.update(place.variables)
    assert "torch" in place.found() or not had_torch


def test_the_model_sees_a_fix_that_undoes_another() -> None:
    place = Place(reported("user-site-hides-conda-torch").snapshot)
    place.run("export PYTHONNOUSERSITE=1")
    place.run("env -u PYTHONNOUSERSITE python -m pip uninstall -y torch")
    assert place.found() == {"torch"}
    place.run("python -m pip uninstall -y torch")
    assert place.found() == set()


@EACH
def test_a_later_fix_says_whether_it_is_an_alternative(name: str) -> None:
    for finding in reported(name).findings:
        for fix in finding.fixes[1:]:
            assert fix.text.startswith(_SEQUELS), (finding.slug, fix.text)
