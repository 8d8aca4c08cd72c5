"""How the command is called."""

from pathlib import Path

from click.testing import CliRunner
from each import each

from gpucheck.cli import gpucheck


@each("words", [["--fix"], ["check", "--fix"], ["--no-selftest", "--fix"], ["fix"]])
def test_fix_is_an_option_of_check_too(words: list[str]) -> None:
    help_text = CliRunner().invoke(gpucheck, [*words, "--help"]).output
    assert help_text.startswith("Usage: gpucheck fix")


def test_the_help_of_check_names_it() -> None:
    assert "--fix" in CliRunner().invoke(gpucheck, ["check", "--help"]).output


@each("words", [["--undo", "--dry-run"], ["--undo", "--continue"]])
def test_options_that_contradict_each_other(words: list[str]) -> None:
    ran = CliRunner().invoke(gpucheck, ["fix", *words])
    assert ran.exit_code == 2
    assert "Give one of" in ran.output


def test_files_of_another_machine_are_not_changed(tmp_path: Path) -> None:
    ran = CliRunner().invoke(gpucheck, ["fix", "--sysroot", str(tmp_path)])
    assert ran.exit_code == 2
    assert "--sysroot" in ran.output
