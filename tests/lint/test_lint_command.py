"""``gpucheck lint``: formats, languages, exit statuses, refusals."""

import json
import os
import sys
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gpucheck.cli import gpucheck
from gpucheck.describe.commands.lint import COMMAND
from gpucheck.programs.schema import schema

PINS = "torch==2.6.0\ntorchvision==0.20.0\n"


def run(*args: object) -> Result:
    return CliRunner().invoke(gpucheck, ["lint", *map(str, args)], env={"GPUCHECK_LANG": "en"})


@pytest.fixture(name="file")
def requirements(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.txt"
    file.write_text(PINS, encoding="utf-8")
    return file


def test_a_fault_is_one_line_with_its_fix_below(file: Path) -> None:
    done = run(file)
    first, fix = done.stdout.splitlines()
    assert first == (
        f"{file}:2: error torch-companion-mismatch: torchvision 0.20.0 was made for torch 2.5.0, "
        "not 2.6.0."
    )
    assert fix.startswith("    Fix: Install torchvision 0.21.0")
    assert done.exit_code == 1


def test_json_has_every_fault_and_holds_its_schema(file: Path) -> None:
    data = json.loads(run("--format", "json", file).stdout)
    jsonschema.validate(data, schema("lint"))
    assert data["files"] == [
        {"file": str(file), "kind": "requirements", "problem": "", "unjudged": []}
    ]
    (found,) = data["findings"]
    assert (found["line"], found["rule"]) == (2, "torch-companion-mismatch")
    assert found["said"]["sentence"]["key"] == "{headline}."


def test_github_gets_annotations_that_no_name_breaks(tmp_path: Path) -> None:
    file = tmp_path / "a,b%:requirements.txt"
    file.write_text(PINS, encoding="utf-8")
    file = file.rename(tmp_path / "a,b%-requirements.txt")
    (line,) = run("--format", "github", file).stdout.splitlines()
    assert line.startswith("::error file=")
    assert "a%2Cb%25-requirements.txt,line=2,title=torch-companion-mismatch::torchvision" in line
    assert "%0AFix: Install" in line


def test_chinese(file: Path) -> None:
    done = run(file, "--lang", "zh")
    assert "torchvision 0.20.0 是为 torch 2.5.0" in done.stdout
    assert "    解决办法" in done.stdout
    assert json.loads(run(file, "--lang", "zh", "--format", "json").stdout)["findings"][0][
        "sentence"
    ].startswith("torchvision 0.20.0 was made")


@pytest.mark.parametrize(
    ("level", "text", "status"),
    [
        ("error", PINS, 1),
        ("never", PINS, 0),
        ("error", "-i https://a.b/x\n-i https://a.b/y\ntorch\n", 0),
        ("warning", "-i https://a.b/x\n-i https://a.b/y\ntorch\n", 1),
        ("warning", "torch==2.6.0\n", 0),
    ],
)
def test_the_exit_status_follows_the_severity(
    file: Path, level: str, text: str, status: int
) -> None:
    file.write_text(text, encoding="utf-8")
    assert run(file, "--fail-on", level).exit_code == status


def test_no_fault_is_said_and_quiet_says_nothing(file: Path) -> None:
    file.write_text("torch==2.6.0\n", encoding="utf-8")
    assert run(file).stderr == "No fault in 1 file.\n"
    assert run(file, "-q").output == ""


def test_a_file_of_another_kind_is_named_and_harms_nothing(tmp_path: Path, file: Path) -> None:
    other = tmp_path / "notes.md"
    other.write_text("torch", encoding="utf-8")
    done = run(other, file)
    assert f"{other} is not a kind of file that lint knows." in done.stderr
    assert done.exit_code == 1
    assert run(other).exit_code == 2  # nothing was judged
    yaml = tmp_path / "workflow.yaml"
    yaml.write_text("on: push\n", encoding="utf-8")
    assert run(yaml).exit_code == 0  # the hook of pre-commit passes every YAML file


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--gpu", "nonsense"), "not a GPU that the tables know"),
        (("--driver", "new"), "driver takes a driver release"),
        (("--python-version", "snake"), "python takes"),
        (("--format", "junit"), "--format"),
    ],
)
def test_values_that_are_none_are_refused(file: Path, args: tuple[str, ...], words: str) -> None:
    done = run(*args, file)
    assert done.exit_code == 2
    assert words in done.output


def test_what_cannot_be_read_is_said_and_the_rest_is_judged(tmp_path: Path, file: Path) -> None:
    done = run(tmp_path / "Dockerfile", tmp_path, file)
    assert "it cannot be read: No such file or directory." in done.stderr
    assert "it is not a regular file." in done.stderr
    assert "torch-companion-mismatch" in done.stdout
    assert done.exit_code == 2


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes")
    os.mkfifo(tmp_path / "Dockerfile")
    assert run(tmp_path / "Dockerfile").exit_code == 2


def test_without_pyyaml_only_yaml_files_are_not_read(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text("kind: Pod\n", encoding="utf-8")
    other = tmp_path / "other.yaml"
    other.write_text("on: push\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "yaml", None)
    done = run(pod, other, file)
    assert f"{pod}: YAML files need the package pyyaml" in done.stderr
    assert f"{other} is not a kind of file" in done.stderr
    assert "torch-companion-mismatch" in done.stdout
    assert done.exit_code == 2


def test_the_hook_of_pre_commit_runs_this_command() -> None:
    yaml = pytest.importorskip("yaml")
    root = Path(__file__).parents[2]
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"] == f"gpucheck {COMMAND.name}"
    assert (hook["id"], hook["language"]) == ("gpucheck-lint", "python")
    assert any(dependency.startswith("pyyaml") for dependency in hook["additional_dependencies"])


def test_a_package_that_a_range_leaves_out_comes_with_one_that_fits(file: Path) -> None:
    file.write_text("torch~=2.6.0\ntorchvision==0.20.0\n", encoding="utf-8")
    first, fix = run(file).stdout.splitlines()
    assert first.endswith("torchvision 0.20.0 requires torch 2.5.0, which ~=2.6.0 leaves out.")
    assert fix.endswith("belong together, such as torch 2.6.0 and torchvision 0.21.0.")


@pytest.mark.parametrize("pins", ["torch<0.3\ntorchvision==0.20.0\n", "torch>2.6\nvllm==0.6.3\n"])
def test_without_a_known_pair_the_fix_names_none(file: Path, pins: str) -> None:
    file.write_text(pins, encoding="utf-8")
    assert run(file).stdout.splitlines()[1].endswith("Choose releases that belong together.")
