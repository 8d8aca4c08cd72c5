"""The workflow for GitHub and the job for GitLab: their form, and their steps as they are written.

The steps run in bash as a runner does it, with one difference: ``python3 -m venv`` makes an
environment whose pip installs nothing and whose gpucheck is the one of this tree.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_tracker import TOKEN, FakeTracker, fake_tracker
from tracker_support import BOT, EXAMPLES, GITHUB, GITLAB, put_gpucheck, put_script
from workflow_support import actionlint, complaints, spoiled, tool

pytestmark = pytest.mark.process

WORKFLOW = EXAMPLES / "github" / "gpucheck-triage.yml"
JOB = EXAMPLES / "gitlab" / ".gitlab-ci.yml"
UNTRUSTED = ("github.event.issue.title", "github.event.issue.body")


def test_the_workflow_is_clean_for_actionlint(tmp_path: Path) -> None:
    command = actionlint()
    assert complaints(*command, WORKFLOW) == ""
    evil = spoiled(tmp_path, WORKFLOW, "python3 -m venv", "echo ${{ github.event.issue.title }}; :")
    assert "potentially untrusted" in complaints(*command, evil)


def test_the_workflow_is_clean_for_zizmor(tmp_path: Path) -> None:
    command = (tool("zizmor"), "--offline", "--pedantic", "--no-progress")
    assert complaints(*command, WORKFLOW) == ""
    evil = spoiled(tmp_path, WORKFLOW, "python3 -m venv", "echo ${{ github.event.issue.title }}; :")
    assert "template-injection" in complaints(*command, evil)


@pytest.mark.parametrize(
    ("schema", "file", "key"),
    [("github-workflows", WORKFLOW, "runs-on"), ("gitlab-ci", JOB, "rules")],
)
def test_the_files_fit_their_schemas(schema: str, file: Path, key: str, tmp_path: Path) -> None:
    command = (tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}")
    assert complaints(*command, file) == ""
    assert complaints(*command, spoiled(tmp_path, file, f" {key}:", " run_on:"))


def test_no_part_of_a_ticket_and_no_foreign_action_is_in_the_workflow() -> None:
    text = WORKFLOW.read_text()
    assert not any(source in text for source in UNTRUSTED)
    assert "uses:" not in text
    workflow = yaml.safe_load(text)
    assert workflow[True] == {"issues": {"types": ["opened"]}}  # YAML reads "on" as true
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["answer"]["permissions"] == {"issues": "write"}


def test_neither_installs_the_package_of_that_name() -> None:
    for file in (WORKFLOW, JOB):
        assert "pip install --quiet ./gpucheck\n" in file.read_text()
        assert file.read_text().count("pip install") == 1


@pytest.fixture
def tracker() -> Iterator[FakeTracker]:
    with fake_tracker() as serving:
        yield serving


@pytest.fixture
def repository(tmp_path: Path) -> tuple[str, str]:
    """Make a repository with the bot in it; return its address and its commit."""
    folder = tmp_path / "origin"
    (folder / "docs" / "examples").mkdir(parents=True)
    shutil.copy(BOT, folder / "docs" / "examples")
    (folder / "pyproject.toml").touch()
    git = [tool("git"), "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True, timeout=60)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, timeout=60)
    return f"file://{folder}", done.stdout.decode().strip()


def path_with_pip(folder: Path) -> str:
    """Return a PATH on which ``python3 -m venv`` makes what the module's docstring says."""
    made, real, tools = put_gpucheck(folder), sys.executable, folder / "tools"
    pip = put_script(
        folder / "pip.sh", f'env >{folder}/pip-environ\necho "$@" | tee {folder}/pip-said\n'
    )
    tools.mkdir()
    put_script(
        tools / "python3",
        f'[ "$*" = "-m venv venv" ] || exec {real} "$@"\n'
        f"mkdir -p venv/bin && cp {pip} venv/bin/python && cp {made} venv/bin/gpucheck\n",
    )
    return f"{tools}{os.pathsep}{os.environ['PATH']}"


def bash(script: str, folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub's and GitLab's runners do: it ends with its first failure."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def workflow_steps(environ: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each step of the workflow with its environment, as Actions makes it."""
    workflow: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())
    token = environ.pop("GITHUB_TOKEN")
    for step in workflow["jobs"]["answer"]["steps"]:
        own = {name: value.replace("${{ github.token }}", token) for name, value in
               step.get("env", {}).items()}  # fmt: skip
        yield step["run"], {**workflow["env"], **environ, **own}


def test_the_steps_of_the_workflow_answer(
    repository: tuple[str, str], tracker: FakeTracker, tmp_path: Path
) -> None:
    environ = GITHUB.environ(tmp_path, tracker) | {"PATH": path_with_pip(tmp_path)}
    del environ["GPUCHECK"]  # the workflow says where it is
    environ |= {"GPUCHECK_REPOSITORY": repository[0], "GPUCHECK_COMMIT": repository[1]}
    work = tmp_path / "work"
    work.mkdir()
    for script, own in workflow_steps(environ):
        done = bash(script, work, own)
        assert done.returncode == 0, done
    assert done.stdout == "Answered 12: driver-library-mismatch (certain).\n"
    assert len(tracker.comments) == 1
    assert (tmp_path / "pip-said").read_text() == "-m pip install --quiet ./gpucheck\n"
    assert TOKEN not in (tmp_path / "pip-environ").read_text()


def test_the_script_of_the_job_answers(
    repository: tuple[str, str], tracker: FakeTracker, tmp_path: Path
) -> None:
    job = yaml.safe_load(JOB.read_text())["gpucheck-triage"]
    environ = {**job["variables"], **GITLAB.environ(tmp_path, tracker)}
    environ |= {"PATH": path_with_pip(tmp_path), "GPUCHECK": job["variables"]["GPUCHECK"]}
    environ |= {"GPUCHECK_REPOSITORY": repository[0], "GPUCHECK_COMMIT": repository[1]}
    work = tmp_path / "work"
    work.mkdir()
    done = bash("\n".join(job["script"]), work, environ)
    assert done.returncode == 0, done
    assert "Answered 12: driver-library-mismatch (certain).\n" in done.stdout
    assert len(tracker.comments) == 1
    assert (tmp_path / "pip-said").read_text() == "-m pip install --quiet ./gpucheck\n"
    assert TOKEN not in (tmp_path / "pip-environ").read_text()


@pytest.mark.parametrize("commit", ["main", "0" * 40])
def test_only_a_commit_is_installed(
    commit: str, repository: tuple[str, str], tracker: FakeTracker, tmp_path: Path
) -> None:
    environ = GITHUB.environ(tmp_path, tracker)
    environ |= {"GPUCHECK_REPOSITORY": repository[0], "GPUCHECK_COMMIT": commit}
    script, own = next(workflow_steps(environ))
    assert bash(script, tmp_path, own).returncode != 0
    assert not (tmp_path / "gpucheck" / "pyproject.toml").exists()
