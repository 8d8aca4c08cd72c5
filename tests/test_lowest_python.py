"""The lowest Python that is supported is the one that the tools of the checkout know."""

import re
from pathlib import Path

PROJECT = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")


def _said(pattern: str) -> str:
    found = re.search(pattern, PROJECT, re.MULTILINE)
    assert found is not None, pattern
    return found[1]


def test_types_and_style_are_checked_for_the_lowest_python_that_is_supported() -> None:
    lowest = _said(r'^requires-python = ">=([\d.]+)"$')
    assert _said(r'^python_version = "([\d.]+)"') == lowest
    assert _said(r'^target-version = "py(\d+)"') == lowest.replace(".", "")
