"""Every command line that gpucheck's pages and its help show, and what a test can do with it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import click

from gpucheck.cli import gpucheck

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
RECIPES = sorted((ROOT / "docs" / "examples").rglob("*.*"))

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_OF_A_SHELL = ("sh", "bash", "shell", "console")
_INLINE = re.compile(r"`((?:\w+ )?gpucheck [^`]+)`")
_OUTPUT = re.compile(r"gpucheck( \w+)?:")
_OPERATOR = re.compile(r"[|&;()<>]+")
_NAMES = ("gpucheck", ".venv/bin/gpucheck")
_NOT_A_CALL = ("-t", "-C", "cd")
"""Words before a "gpucheck" that is the name of an image or a folder."""
_PROGRAMS = frozenset(
    [
        "gpucheck",
        ".venv/bin/gpucheck",
        "python",
        "python3",
        "python3.11",
        "pip",
        "pytest",
        "git",
        "man",
        "eval",
        "export",
        "srun",
        "sbatch",
        "scontrol",
        "torchrun",
        "mpirun",
        "kubectl",
        "docker",
        "apptainer",
        "curl",
        "gh",
        "jq",
        "pbpaste",
        "ls",
        "cat",
        "nvidia-smi",
        "nvidia-bug-report.sh",
        "journalctl",
        "./gate.sh",
    ]
)
"""What a line of an indented block begins with if it is a command; other lines are output."""
HERE = frozenset(
    [
        "gpucheck",
        ".venv/bin/gpucheck",
        "python",
        "grep",
        "jq",
        "head",
        "ls",
        "cat",
        "export",
        "eval",
        "pbpaste",
    ]
)
"""The programs of lines that are run; ``pbpaste`` is a stand-in."""
NOT_RUN = {
    "gpucheck tables check --against-index": "it asks the package index",
    "gpucheck tables update https://example.org/gpucheck-tables.zip --sha256 HASH": "the network",
}
"""Lines that could run here, and why they are only parsed."""


class Line(NamedTuple):
    """A command line."""

    where: str
    text: str

    @property
    def calls(self) -> list[list[str]]:
        """The words behind each "gpucheck" that the line runs, whoever starts it."""
        return [words for words in map(_behind_gpucheck, _commands(self.text)) if words is not None]

    @property
    def runs_here(self) -> bool:
        """Whether every program of the line is here."""
        programs = {_program(command) for command in _commands(self.text)} - {""}
        return bool(self.calls) and programs <= HERE and self.text not in NOT_RUN


def in_blocks() -> Iterator[Line]:
    """Yield the lines in the blocks of all pages."""
    for page in PAGES:
        where, text = page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")
        for kind, block in _FENCE.findall(text):
            if kind in _OF_A_SHELL:
                shown = [line for line in _joined(block) if kind != "console" or line[:2] == "$ "]
                yield from (Line(where, line.removeprefix("$ ")) for line in shown)
        plain = _FENCE.sub("", text)
        indented = "\n".join(line for line in plain.splitlines() if line.startswith("    "))
        for line in _joined(indented):
            command = line.removeprefix("$ ")
            if _program(_words(command)) in _PROGRAMS and not _OUTPUT.match(command):
                yield Line(where, command)


def in_help() -> Iterator[Line]:
    """Yield the examples in the help of every command."""
    for path, command in commands():
        for line in (command.epilog or "").splitlines():
            if "gpucheck" in line:
                yield Line(f"gpucheck {' '.join(path)}".rstrip() + " --help", _plain(line))


def in_recipes() -> Iterator[Line]:
    """Yield the lines of the scripts and manifests of the examples that call gpucheck."""
    for file in RECIPES:
        if file.suffix in (".sh", ".sbatch", ".yaml", ".yml"):
            for line in _joined(file.read_text(encoding="utf-8")):
                if call := re.search(r"(?<![\w./-])gpucheck (?:preflight|node|check) .*", line):
                    yield Line(file.relative_to(ROOT).as_posix(), call[0])


def in_sentences() -> Iterator[Line]:
    """Yield what stands between backticks in a sentence: a command, often without its values."""
    for page in PAGES:
        text = _FENCE.sub("", page.read_text(encoding="utf-8"))
        for words in _INLINE.findall(" ".join(text.split())):
            yield Line(page.relative_to(ROOT).as_posix(), words)


def commands(
    group: click.Group = gpucheck, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every listed command with its words."""
    yield path, group
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif command is not None:
            yield (*path, name), command


def parse(words: list[str]) -> None:
    """Let gpucheck's own parser read the words behind "gpucheck"; no command is run.

    Raises:
        click.UsageError: it refuses them.
    """
    with mock.patch.object(click.Command, "invoke", return_value=None):
        gpucheck.main(args=[*words], prog_name="gpucheck", standalone_mode=False)


def _joined(text: str) -> Iterator[str]:
    """Yield the lines of a shell without comments, continued ones as one line."""
    for line in re.sub(r"\\\n\s*|(?<=\|)\n\s*", " ", text).splitlines():
        if plain := _plain(line):
            yield plain


def _plain(line: str) -> str:
    return re.sub(r"(?:^|\s+)# .*$", "", line).strip()


def _words(text: str) -> list[str]:
    # What is substituted is a value; a command in it is a command as well.
    text = re.sub(r'"?\$\((.*?)\)"?', r" ; \1 ; ", text)
    text = re.sub(r"\$\{[^}]*\}|\$\w+", "8", text)
    text = re.sub(r"(?<=\s)\d(?=[<>])", "", text)  # of a stream
    reader = shlex.shlex(text, posix=True, punctuation_chars=True)
    reader.commenters, reader.whitespace_split = "", True
    try:
        return list(reader)
    except ValueError:  # a quotation that goes on in the next line
        return text.split()


def _commands(text: str) -> list[list[str]]:
    """Return the words of each simple command of a line."""
    found: list[list[str]] = [[]]
    words = iter(_words(text))
    for word in words:
        if not _OPERATOR.fullmatch(word):
            found[-1].append(word)
        elif set(word) & set("<>") and "(" not in word:
            next(words, "")  # the file
        else:
            found.append([])
    return found


def _program(words: list[str]) -> str:
    return next((word for word in words if not re.fullmatch(r"\w+=.*", word)), "")


def _behind_gpucheck(words: list[str]) -> list[str] | None:
    for at, word in enumerate(words):
        if word in _NAMES and (at == 0 or words[at - 1] not in _NOT_A_CALL):
            return words[at + 1 :]
    return None
