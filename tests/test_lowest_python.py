"""The lowest Python and the lowest releases that are supported are those that are tested."""

import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def _said(pattern: str) -> str:
    found = re.search(pattern, PROJECT, re.MULTILINE)
    assert found is not None, pattern
    return found[1]


def test_types_and_style_are_checked_for_the_lowest_python_that_is_supported() -> None:
    lowest = _said(r'^requires-python = ">=([\d.]+)"$')
    assert _said(r'^python_version = "([\d.]+)"') == lowest
    assert _said(r'^target-version = "py(\d+)"') == lowest.replace(".", "")


def _required() -> dict[str, Requirement]:
    block = _said(r"(?s)^dependencies = \[(.*?)^\]")
    found = [Requirement(line) for line in re.findall(r'"(.+?)",', block)]
    return {requirement.name: requirement for requirement in found}


def _pinned(file: str) -> dict[str, Version]:
    """Return the releases in a file of requirements."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return {name: Version(it) for name, it in re.findall(r"(?m)^([a-z-]+)==([\w.]+)", text)}


def test_the_lowest_releases_are_the_lower_bounds() -> None:
    lowest = _pinned("tests/lowest.txt")
    assert lowest.keys() == _required().keys()
    for name, requirement in _required().items():
        (bound,) = (
            Version(each.version) for each in requirement.specifier if each.operator == ">="
        )
        assert lowest[name].release[: len(bound.release)] == bound.release


def test_every_requirement_has_an_upper_bound_and_a_release_with_hashes() -> None:
    tried = _pinned("requirements.txt")
    assert tried.keys() == _required().keys()
    for name, requirement in _required().items():
        assert any(each.operator == "<" for each in requirement.specifier)
        assert tried[name] in requirement.specifier
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert all("--hash=sha256:" in part for part in re.split(r"(?m)^[a-z-]+==", text)[1:])
