"""The help of every command: examples that can be copied, and no sentence that is everywhere."""

import errno
import json
from collections import Counter
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from command_lines import commands
from each import each

from gpucheck.cli import gpucheck
from gpucheck.ticket import given

_MOST_WORDS = 12
"""A help text of this many words or more stands in a few commands only."""


ALL = dict(commands())


@each("path", ALL, ids=" ".join)
def test_every_command_shows_examples(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(gpucheck, [*path, "--help"]).stdout
    first, *more = shown.partition("Examples:\n")[2].splitlines()
    assert first.startswith("  ")
    assert "gpucheck" in first
    assert all(len(line) <= 80 for line in (first, *more))


def test_no_long_sentence_stands_in_the_help_of_every_command() -> None:
    counter = Counter(
        option.help
        for command in ALL.values()
        for option in command.params
        if isinstance(option, click.Option) and option.help and not option.hidden
    )
    everywhere = [words for words, times in counter.items() if times > len(ALL) // 2]
    assert all(len(words.split()) < _MOST_WORDS for words in everywhere), everywhere


def test_v_says_what_it_adds_or_is_not_shown() -> None:
    for path, command in ALL.items():
        shown = CliRunner().invoke(gpucheck, [*path, "--help"]).stdout
        verbose = next(
            (parameter for parameter in command.params if parameter.name == "verbose"), None
        )
        assert ("--verbose" in shown) == (verbose is not None and not getattr(verbose, "hidden", 0))


def test_help_has_what_most_people_need_first() -> None:
    text = CliRunner().invoke(gpucheck, ["--help"], env={"GPUCHECK_LANG": "en"}).stdout
    first, more = text.partition("\nCommands:\n")[2].split("\nMore commands:\n")
    names = [line.split()[0] for line in first.splitlines() if line.strip()]
    assert names == [
        "check", "selftest", "preflight", "triage", "recommend", "lint", "fix", "explain",
    ]  # fmt: skip
    listed = {*names, *(line.split()[0] for line in more.splitlines() if line.startswith("  "))}
    context = click.Context(gpucheck, info_name="gpucheck")
    assert listed >= set(gpucheck.list_commands(context))


def test_format_is_understood_as_other_programs_call_it() -> None:
    for words in (["list", "--json"], ["list", "-f", "json"]):
        done = CliRunner().invoke(gpucheck, words)
        assert "findings" in json.loads(done.stdout)
    refused = CliRunner().invoke(gpucheck, ["explain", "--json", "torch-cpu-only"])
    assert (refused.exit_code, "No such option" in refused.stderr) == (2, True)
    file = CliRunner().invoke(gpucheck, ["triage", "--", "--json"])  # a name, after --
    assert "--json cannot be read" in file.stderr


def test_a_text_or_a_folder_for_triage_says_what_to_type(tmp_path: Path) -> None:
    words = CliRunner().invoke(gpucheck, ["triage", "CUDA out of memory"]).stderr
    assert 'echo "..." | gpucheck triage -' in words
    folder = CliRunner().invoke(gpucheck, ["triage", str(tmp_path)]).stderr
    assert f"gpucheck triage --batch {tmp_path}" in folder
    long = CliRunner().invoke(gpucheck, ["triage", "RuntimeError: CUDA error " * 20]).stderr
    assert 'echo "..." | gpucheck triage -' in long


def test_what_windows_says_of_a_folder_and_of_a_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As seen under Wine: a folder is denied, and a text with a colon is no name."""

    def refused(path: Path) -> None:
        denied = path.is_dir()
        raise OSError(errno.EACCES if denied else errno.EINVAL, "Permission denied")

    monkeypatch.setattr(given, "reading", refused)
    folder = CliRunner().invoke(gpucheck, ["triage", str(tmp_path)]).stderr
    assert "Is a directory" in folder
    assert f"gpucheck triage --batch {tmp_path}" in folder
    words = CliRunner().invoke(gpucheck, ["triage", "RuntimeError: CUDA error"]).stderr
    assert 'echo "..." | gpucheck triage -' in words
