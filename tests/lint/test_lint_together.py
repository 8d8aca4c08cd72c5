"""Files that are used together: Compose's override files, and files that lint does not see."""

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gpucheck.cli import gpucheck
from gpucheck.programs.schema import schema

IMAGE = "    image: pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime\n"
BASE = f"services:\n  a:\n{IMAGE}"
GPU = "services:\n  a:\n    gpus: all\n"
FOUR = (
    "services:\n  a:\n    deploy: {resources: {reservations: {devices: "
    "[{driver: nvidia, count: 4, capabilities: [gpu]}]}}}\n"
)
NO_GPU, SHM = "container-no-gpu", "shm-too-small"


def run(*files: Path, form: str = "terminal") -> Result:
    args = ["lint", "--fail-on", "never", "--format", form, *map(str, files)]
    return CliRunner().invoke(gpucheck, args, env={"GPUCHECK_LANG": "en"})


def rules(*files: Path) -> list[str]:
    return [finding["rule"] for finding in json.loads(run(*files, form="json").stdout)["findings"]]


@pytest.fixture(name="project")
def a_project(tmp_path: Path) -> Path:
    (tmp_path / "compose.yaml").write_text(BASE, encoding="utf-8")
    return tmp_path


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_alone_it_has_no_gpu(project: Path) -> None:
    assert rules(project / "compose.yaml") == [NO_GPU]


@pytest.mark.parametrize(
    "name",
    ["compose.override.yaml", "compose.override.yml", "docker-compose.override.yml"],
)
def test_the_override_beside_it_gives_the_gpu(project: Path, name: str) -> None:
    override = write(project, name, GPU)
    assert rules(project / "compose.yaml") == []
    assert rules(override) == []
    assert rules(project / "compose.yaml", override) == []
    assert "may" not in run(project / "compose.yaml").stderr


def test_an_override_for_another_service_changes_nothing(project: Path) -> None:
    write(project, "compose.override.yaml", GPU.replace("  a:", "  b:"))
    assert rules(project / "compose.yaml") == [NO_GPU]


def test_docker_takes_only_the_first_override(project: Path) -> None:
    write(project, "docker-compose.override.yml", GPU)
    write(project, "compose.override.yml", GPU.replace("  a:", "  b:"))
    assert rules(project / "compose.yaml") == [NO_GPU]


def test_an_override_belongs_to_no_file_of_another_name(project: Path) -> None:
    write(project, "compose.override.yaml", GPU)
    assert rules(write(project, "compose.test.yaml", BASE)) == [NO_GPU]


def test_the_override_of_another_folder_is_not_read(project: Path, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    assert rules(project / "compose.yaml", write(tmp_path / "b", "compose.gpu.yml", GPU)) == [
        NO_GPU
    ]


def test_files_that_are_named_together_are_merged(project: Path) -> None:
    files = project / "compose.yaml", write(project, "docker-compose.dev.yml", GPU)
    assert rules(*files) == []
    assert rules(*reversed(files)) == []
    assert rules(files[0]) == [NO_GPU]


def test_what_is_wrong_only_together_is_found(project: Path) -> None:
    write(project, "compose.override.yaml", FOUR)
    assert rules(project / "compose.yaml") == [SHM]
    write(project, "compose.override.yaml", FOUR + "    ipc: host\n")
    assert rules(project / "compose.yaml") == []


def test_with_two_images_nobody_knows_which_one_runs(project: Path) -> None:
    write(project, "compose.override.yaml", BASE.replace("-runtime", "-devel"))
    assert rules(project / "compose.yaml") == []


def test_a_file_for_gpus_that_was_not_named_is_mentioned(project: Path) -> None:
    other = write(project, "docker-compose.gpu.yml", GPU)
    done = run(project / "compose.yaml")
    assert done.stdout == ""
    assert f"{project / 'compose.yaml'}: docker-compose.gpu.yml may give" in done.stderr
    assert rules(project / "compose.yaml", other) == []
    args = ["lint", "-q", str(project / "compose.yaml")]
    assert CliRunner().invoke(gpucheck, args).output == ""


def test_a_named_file_for_gpus_that_gives_none_helps_nobody(project: Path) -> None:
    other = write(project, "docker-compose.nvidia.yml", GPU.replace("  a:", "  b:"))
    assert rules(project / "compose.yaml", other) == [NO_GPU]


def test_a_file_for_gpus_itself_has_to_ask_for_them(project: Path) -> None:
    write(project, "compose.cuda.yaml", GPU)
    assert rules(write(project, "compose.gpu.yaml", BASE)) == [NO_GPU]


@pytest.mark.parametrize("text", ["services: [", "services:\n  a: {{ gpu }}\n", "a\0b"])
def test_an_override_that_cannot_be_read_may_say_anything(project: Path, text: str) -> None:
    write(project, "compose.override.yaml", text)
    done = run(project / "compose.yaml")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "compose.override.yaml may add the GPUs" in done.stderr


def test_an_override_that_cannot_be_read_may_give_memory(project: Path) -> None:
    base = write(project, "compose.yaml", FOUR + IMAGE)
    assert rules(base) == [SHM]
    write(project, "compose.override.yaml", "services: [")
    assert rules(base) == []


def test_an_override_that_is_no_file_is_not_read(project: Path) -> None:
    (project / "compose.override.yaml").symlink_to("/dev/zero")
    done = run(project / "compose.yaml")
    assert "compose.override.yaml may add the GPUs" in done.stderr


def test_a_manifest_that_kustomize_may_patch_is_not_judged(tmp_path: Path) -> None:
    text = f"kind: Pod\nspec:\n  containers:\n  - name: a\n{IMAGE}"
    pod = write(tmp_path, "pod.yaml", text)
    assert rules(pod) == [NO_GPU]
    write(tmp_path, "kustomization.yaml", "resources: [pod.yaml]\n")
    assert rules(pod) == []
    assert "kustomization.yaml may add" in run(pod).stderr


def test_json_says_what_is_not_judged(project: Path) -> None:
    write(project, "docker-compose.gpu.yml", GPU)
    data = json.loads(run(project / "compose.yaml", form="json").stdout)
    jsonschema.validate(data, schema("lint"))
    (file,) = data["files"]
    assert file["unjudged"][0].startswith("docker-compose.gpu.yml may give")
    assert file["said"]["unjudged"][0]["params"] == {"file": "docker-compose.gpu.yml"}


def test_a_name_with_control_characters_breaks_no_line(project: Path) -> None:
    write(project, "compose-\x1b[31m.gpu.yaml", GPU)
    assert "\x1b" not in run(project / "compose.yaml").stderr


def test_many_files_are_not_read_for_each_other(project: Path) -> None:
    files = [write(project, f"compose.{at}.yaml", BASE) for at in range(11)]
    done = run(*files, project / "compose.yaml")
    assert "may add the GPUs" in done.stderr
    assert done.stdout == ""
