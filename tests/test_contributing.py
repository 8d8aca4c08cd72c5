"""CONTRIBUTING.md does what it says: each recipe is applied to a copy, and its commands run."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent
COPIED = (
    "src", "tests", "compat_tables", "tools", "docs", "pyproject.toml", "hatch_build.py",
    "README.md", "CHANGELOG.md",
)  # fmt: skip
_BLOCK = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A fenced block; ``file`` is the name that stands before it."""

    file: str
    kind: str
    text: str


def recipes() -> dict[str, list[Block]]:
    """Return the blocks of each recipe, by its heading."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("\n## Recipes\n")[2].partition("\n## ")[0]
    parts = (part.partition("\n") for part in section.split("\n### ")[1:])
    return {
        title: [
            Block(found["file"] or "", found["kind"], found["text"])
            for found in _BLOCK.finditer(body)
        ]
        for title, _, body in parts
    }


RECIPES = recipes()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of what the recipes change and run.

    It has what is compiled of them as well: each command would compile thousands of files anew.
    """
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns(".*_cache")
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(copy: Path, *command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program in the copy, with the copy's gpucheck."""
    env = {
        **os.environ,
        "PYTHONPATH": str(copy / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CEILING_DIRECTORIES": str(copy.parent),  # the copy is no part of a repository
    }
    return subprocess.run(
        command,
        cwd=copy,
        env=env,
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def apply(copy: Path, block: Block) -> None:
    """Write a whole file, or change one as a diff says."""
    if block.kind == "diff":
        patched = run(copy, "git", "apply", "-p1", text=block.text)
        assert patched.returncode == 0, f"{block.file}: {patched.stderr}"
        return
    file = copy / block.file
    assert not file.exists(), f"{block.file} is there already"
    file.write_text(block.text, encoding="utf-8")


def proof(copy: Path, blocks: list[Block]) -> subprocess.CompletedProcess[str] | None:
    """Run the commands of a recipe; return the first that fails, with all that it says."""
    lines = [line for block in blocks if block.kind == "bash" for line in block.text.splitlines()]
    assert lines, "the recipe proves nothing"
    for line in lines:
        program, *arguments = shlex.split(line)
        if "tests/worker/test_sorting.py" in arguments and not _has("torch"):
            continue  # it examines a real one
        more = ["-n0", "-p", "no:cacheprovider"] if program == "pytest" else []
        ran = run(copy, sys.executable, "-m", program, *more, *arguments)
        if ran.returncode:
            return ran
    return None


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def files(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if block.file]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_does_what_it_says(title: str, copy: Path) -> None:
    for block in files(RECIPES[title]):
        apply(copy, block)
    failed = proof(copy, RECIPES[title])
    assert failed is None, f"{failed.args}\n{failed.stdout}\n{failed.stderr}"


@pytest.mark.skipif(not _has("ruff"), reason="ruff is not installed")
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_recipes_together_are_well_formed(copy: Path) -> None:
    blocks = [block for title in RECIPES for block in files(RECIPES[title])]
    for block in blocks:
        apply(copy, block)
    written = [block.file for block in blocks if block.file.endswith(".py")]
    for check in (["check"], ["format", "--check"]):
        ran = run(copy, sys.executable, "-m", "ruff", *check, "--no-cache", *written)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_finding_needs_three_new_files_and_nothing_else() -> None:
    assert [
        (block.kind, Path(block.file).parent.as_posix()) for block in files(RECIPES["A finding"])
    ] == [
        ("python", "src/gpucheck/findings"),
        ("python", "tests/findings"),
        ("toml", "tests/machines"),
    ]


def test_a_finding_is_not_there_without_its_module(copy: Path) -> None:
    module, *others = files(RECIPES["A finding"])
    for block in others:
        apply(copy, block)
    failed = proof(copy, RECIPES["A finding"])
    assert failed is not None
    assert f"no finding called '{Path(module.file).stem.replace('_', '-')}'" in failed.stderr


def test_a_message_is_six_lines() -> None:
    (block,) = files(RECIPES["A message"])
    added = [line[1:] for line in block.text.splitlines() if re.match(r"\+\w", line)]
    assert len(added) == 6


def test_every_recipe_is_there() -> None:
    assert list(RECIPES) == [
        "A finding",
        "A message",
        "A reader of a pasted format",
        "A row of a table",
        "A self-test",
        "A launcher",
        "An output format",
    ]
