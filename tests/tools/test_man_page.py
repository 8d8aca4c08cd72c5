"""The manual pages: every command and option, the same bytes each time, nothing roff acts on."""

import shutil
import subprocess
from pathlib import Path

import click
import man_page
import pytest

from gpucheck import cli


def test_every_command_has_a_page_with_its_options() -> None:
    pages = man_page.pages()
    top = click.Context(cli.gpucheck, info_name="gpucheck")
    for name in cli.gpucheck.list_commands(top):
        command = cli.gpucheck.get_command(top, name)
        assert command is not None
        page = pages[f"gpucheck-{name}.1"].replace("\\-", "-")
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert all(opt in page for opt in param.opts), (name, param.opts)
    assert "gpucheck-tables-show.1" in pages
    assert ".SH ENVIRONMENT" in pages["gpucheck.1"]


def test_they_are_the_same_each_time() -> None:
    assert man_page.pages() == man_page.pages()


def test_roff_acts_on_no_character_of_a_text() -> None:
    assert man_page.text(".x \\n -a 'b' `c`") == "\\&.x \\en \\-a \\(aqb\\(aq \\(gac\\(ga"


@pytest.mark.process
def test_groff_warns_of_nothing(tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    for name, text in man_page.pages().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", str(tmp_path / name)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""
