"""The weekly workflow: its form, and its last step as it is written, with a gh of ours."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from workflow_support import actionlint, complaints, spoiled, tool

pytestmark = pytest.mark.process

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "refresh-tables.yml"
if not WORKFLOW.is_file():
    pytest.skip(".github/ is in the repository alone", allow_module_level=True)
TITLE = "Tables: what the package index has"


def test_it_is_clean_for_actionlint(tmp_path: Path) -> None:
    command = actionlint()
    assert complaints(*command, WORKFLOW) == ""
    assert complaints(*command, spoiled(tmp_path, WORKFLOW, "runs-on:", "run_on:"))


def test_it_is_clean_for_zizmor(tmp_path: Path) -> None:
    command = (tool("zizmor"), "--offline", "--pedantic", "--no-progress")
    assert complaints(*command, WORKFLOW) == ""
    wide = spoiled(tmp_path, WORKFLOW, "permissions: {}", "permissions: write-all")
    assert "excessive-permissions" in complaints(*command, wide)


def test_it_fits_its_schema(tmp_path: Path) -> None:
    command = (tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows")
    assert complaints(*command, WORKFLOW) == ""
    assert complaints(*command, spoiled(tmp_path, WORKFLOW, "runs-on:", "run_on:"))


def test_it_is_weekly_and_no_step_with_a_token_runs_a_package() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert list(workflow[True]) == ["schedule", "workflow_dispatch"]  # YAML reads "on" as true
    assert workflow["permissions"] == {}
    for step in workflow["jobs"]["propose"]["steps"]:
        assert "uses" not in step
        with_token = "GH_TOKEN" in step.get("env", {})
        assert not (with_token and "venv/" in step["run"])
        assert "${{" not in step["run"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a repository and its clone, in which the tables lie; beside it the text."""
    (tmp_path / "origin").mkdir()
    origin, folder = tmp_path / "origin", tmp_path / "repository"
    (origin / "compat_tables").mkdir()
    (origin / "compat_tables" / "a.json").write_text("old\n")
    (origin / "docs" / "images").mkdir(parents=True)
    (origin / "docs" / "images" / "check.svg").write_text("old\n")
    _git(origin, "init", "-q", "-b", "main")
    _git(origin, "add", ".")
    _git(origin, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "first")
    _git(tmp_path, "clone", "-q", str(origin), str(folder))
    (tmp_path / "body.md").write_text("the text\n")
    return folder


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [tool("git"), "-C", str(folder), *words], check=True, capture_output=True, timeout=60
    )
    return done.stdout.decode().strip()


@pytest.fixture
def open_pull_request(tmp_path: Path, clone: Path) -> Callable[..., list[list[str]]]:
    """Return a function that runs the last step and returns what gh was asked."""
    tools, path = tmp_path / "tools", tmp_path / "said"
    tools.mkdir()
    record = "import json, sys; print(json.dumps(sys.argv[1:]))"
    gh = tools / "gh"

    def run(number: str = "") -> list[list[str]]:
        gh.write_text(
            f"#!/bin/sh\npython3 -c '{record}' \"$@\" >>{path}\n"
            f'if [ "$2" = list ]; then echo "{number}"; fi\n'
        )
        gh.chmod(0o755)
        steps: list[dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text())["jobs"]["propose"][
            "steps"
        ]
        script = next(step["run"] for step in steps if step["name"] == "Open a pull request")
        environ = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=clone.parent,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return run


def test_nothing_new_opens_nothing(
    clone: Path, open_pull_request: Callable[..., list[list[str]]]
) -> None:
    (clone / "other").write_text("x")
    assert open_pull_request() == []
    assert "refresh-tables" not in _git(clone.parent / "origin", "branch", "--list")


def test_a_difference_opens_one_pull_request(
    clone: Path, open_pull_request: Callable[..., list[list[str]]]
) -> None:
    (clone / "compat_tables" / "a.json").write_text("new\n")
    (clone / "docs" / "images" / "check.svg").write_text("new\n")
    listed, created = open_pull_request()
    assert listed[:4] == ["pr", "list", "--head", "refresh-tables"]
    assert created == [
        "pr", "create", "--head", "refresh-tables", "--title", TITLE, "--body-file", "../body.md",
    ]  # fmt: skip
    origin = clone.parent / "origin"
    assert _git(origin, "show", "refresh-tables:compat_tables/a.json") == "new"
    assert _git(origin, "show", "refresh-tables:docs/images/check.svg") == "new"
    assert _git(origin, "log", "-1", "--format=%s", "refresh-tables") == TITLE
    assert _git(origin, "show", "main:compat_tables/a.json") == "old"


def test_an_open_pull_request_is_updated(
    clone: Path, open_pull_request: Callable[..., list[list[str]]]
) -> None:
    (clone / "compat_tables" / "a.json").write_text("new\n")
    _listed, edited = open_pull_request("7")
    assert edited == ["pr", "edit", "7", "--body-file", "../body.md"]
