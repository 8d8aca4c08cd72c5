"""What the pages show as printed is what gpucheck prints today."""

import re
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner
from test_machines import reported

from gpucheck.cli import gpucheck
from gpucheck.language import speaking
from gpucheck.output import terminal

ROOT = Path(__file__).parents[1]
_TEXT = re.compile(r"```text\n(.*?)```\n", re.DOTALL)
_REPLY = re.compile(r"````markdown\n(.*?)````\n", re.DOTALL)


def printed(*words: str, text: str | None = None) -> str:
    return CliRunner().invoke(gpucheck, words, input=text).stdout


def test_the_report_of_the_chinese_readme() -> None:
    page = (ROOT / "docs/zh/README.md").read_text(encoding="utf-8")
    shown = _TEXT.search(page)
    assert shown is not None
    lines = [line for line in shown[1].splitlines() if line]
    now = printed("demo", "cpu-build", "--lang", "zh").splitlines()
    assert len(lines) > 5
    assert [line for line in lines if line not in now] == []


@pytest.mark.parametrize(
    ("page", "language"), [("docs/install.md", "en"), ("docs/zh/install.md", "zh")]
)
def test_the_report_of_windows(page: str, language: Literal["en", "zh"]) -> None:
    shown = _TEXT.search((ROOT / page).read_text(encoding="utf-8"))
    assert shown is not None
    with speaking(language):
        now = terminal.render(reported("windows-rtx5070ti-cu126")).splitlines()
    assert len(shown[1].splitlines()) > 5
    assert [line for line in shown[1].splitlines() if line not in now] == []


@pytest.mark.parametrize("page", ["docs/triage/triage.md", "docs/zh/triage/triage.md"])
def test_the_replies_of_the_guide(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    issue = _TEXT.search(text)
    assert issue is not None
    whole, beginning = _REPLY.findall(text)  # in the language of the page, and in the other one
    own, other = ("en", "zh") if page.startswith("docs/triage") else ("zh", "en")
    assert whole == printed("triage", "--reply", "--lang", own, "-", text=issue[1])
    said = printed("triage", "--reply", "--lang", other, "-", text=issue[1])
    assert said.startswith(beginning.rstrip())
