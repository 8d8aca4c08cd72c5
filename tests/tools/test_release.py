"""The workflow that makes a release, and the recipes that other tools build."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from workflow_support import actionlint, complaints, spoiled, tool

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
if not WORKFLOW.is_file():
    pytest.skip(".github/ is in the repository alone", allow_module_level=True)


@pytest.mark.process
def test_it_is_clean_for_linters(tmp_path: Path) -> None:
    zizmor = (tool("zizmor"), "--offline", "--pedantic", "--no-progress")
    schema = (tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows")
    assert complaints(*zizmor, WORKFLOW) == ""
    assert complaints(*schema, WORKFLOW) == ""
    assert complaints(
        *zizmor, spoiled(tmp_path, WORKFLOW, "permissions: {}", "permissions: write-all")
    )
    assert complaints(*schema, spoiled(tmp_path, WORKFLOW, "runs-on:", "run_on:"))


@pytest.mark.process
def test_it_is_clean_for_actionlint(tmp_path: Path) -> None:
    assert complaints(*actionlint(), WORKFLOW) == ""
    assert complaints(*actionlint(), spoiled(tmp_path, WORKFLOW, "needs: build", "needs: nothing"))


def _jobs() -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    return jobs


def test_no_step_with_a_token_runs_a_package_and_only_one_job_can_sign() -> None:
    for job in _jobs().values():
        for step in job["steps"]:
            assert "uses" not in step
            assert "${{" not in step["run"]
            with_token = "GH_TOKEN" in step.get("env", {})
            assert not (with_token and ("venv" in step["run"] or "python" in step["run"]))
    assert [name for name, job in _jobs().items() if "id-token" in job["permissions"]] == [
        "publish"
    ]
    assert _jobs()["publish"]["environment"] == "release"


def test_every_tool_is_pinned_by_hashes() -> None:
    for job in _jobs().values():
        installs = [
            line
            for step in job["steps"]
            for line in step["run"].splitlines()
            if "pip install" in line
        ]
        assert installs
        assert all("--require-hashes" in line for line in installs)
    for file in ("build", "publish"):
        text = (ROOT / "packaging" / "release" / f"{file}.txt").read_text()
        entries = re.split(r"(?m)^(?=\w)", text)[1:]
        assert len(entries) > 10
        assert all(re.match(r"[\w.\[\]-]+==\S+.*\\\n +--hash=sha256:", entry) for entry in entries)


def test_the_conda_recipe_needs_what_pyproject_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text())
    own = project["project"]
    assert recipe["package"]["name"] == own["name"]
    assert recipe["context"]["version"] == own["version"]
    needed = {
        requirement.replace(" ", "")
        for requirement in recipe["requirements"]["run"]
        if not requirement.startswith("python ")
    }
    assert needed == {
        dependency for dependency in own["dependencies"] if "python_version" not in dependency
    }
    script = f"gpucheck = {own['scripts']['gpucheck']}"
    assert recipe["build"]["python"]["entry_points"] == [script]


def test_an_image_is_sent_what_it_copies_and_nothing_else() -> None:
    dockerfile = (ROOT / "packaging" / "image" / "Dockerfile").read_text()
    copied = re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", dockerfile)
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules[1:]} == {
        path for paths in copied for path in paths.split()
    }
    assert all(rule.startswith("!") for rule in rules[1:])
