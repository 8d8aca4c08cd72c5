"""The manifests of the documents against Kubernetes' schemas, and against one another."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import net_hosts
import pytest
import yaml

import gpucheck
from gpucheck.preflight.launchers.entrance import Wish, find

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "kubernetes"
VERSIONS = ("1.29", kubernetes_validate.latest_version())


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir()))
@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_valid(name: str, version: str) -> None:
    found = manifests(name)
    assert found
    for one in found:
        kubernetes_validate.validate(one, version, strict=True)


def test_the_schemas_tell_what_is_wrong() -> None:
    job = manifests("indexed-job.yaml")[1]
    job["spec"]["completionMode"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


def test_the_pods_of_the_job_find_one_another() -> None:
    service, job = manifests("indexed-job.yaml")
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    words = container["args"]
    options = dict(zip(words[::2], words[1::2], strict=True))
    name = job["metadata"]["name"]
    assert int(options["--nodes"]) == spec["completions"] == spec["parallelism"]
    assert options["--master"] == f"{name}-0.{service['metadata']['name']}"
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name}
    assert float(options["--timeout"]) < spec["activeDeadlineSeconds"]
    wish = Wish(nodes=int(options["--nodes"]), master=options["--master"])
    for index in range(spec["completions"]):
        env = {"JOB_COMPLETION_INDEX": str(index), "HOSTNAME": f"{name}-{index}"}
        place = find(env, wish)
        assert (place.task, place.tasks) == (index, spec["completions"])
        assert place.hosts[0] == options["--master"].split(".")[0]


@pytest.mark.process
@pytest.mark.netns
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
def test_the_job_runs_on_hosts_that_are_called_like_its_pods() -> None:
    if why := net_hosts.missing():
        pytest.skip(why)
    service, job = manifests("indexed-job.yaml")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    command = [sys.executable, "-m", *container["command"], *container["args"]]
    command += ["--device", "cpu", "--ranks", "1", "--python", sys.executable]
    domain, count = service["metadata"]["name"], job["spec"]["completions"]
    pods = [f"{job['metadata']['name']}-{index}" for index in range(count)]
    told = {"PYTHONPATH": str(Path(gpucheck.__file__).parents[1])}
    with net_hosts.hosts(count, pods, domain) as net:
        running = [
            net.start(
                index,
                [*command, "--format", "json"],
                {**told, "HOSTNAME": pod, "JOB_COMPLETION_INDEX": str(index)},
            )
            for index, pod in enumerate(pods)
        ]
        said = [one.communicate(timeout=320) for one in running]
    assert [one.returncode for one in running] == [0] * count, said
    report = json.loads(said[0][0])
    assert report["launcher"] == "kubernetes"
    assert [one["host"] for one in report["ranks"]] == pods


@pytest.mark.process
@pytest.mark.parametrize(
    ("status", "passed_on"), [(0, 0), (1, 1), (2, 0), (3, 0), (4, 0), (5, 0), (137, 0)]
)
def test_only_a_culprit_keeps_the_pod_from_starting(
    tmp_path: Path, status: int, passed_on: int
) -> None:
    (pod,) = manifests("init-container.yaml")
    gate = pod["spec"]["initContainers"][0]
    tool = tmp_path / "gpucheck"
    tool.write_text(f"#!/bin/sh\nexit {status}\n")
    tool.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run([*gate["command"], *gate["args"]], env={"PATH": path}, check=False)
    assert done.returncode == passed_on


def test_the_init_container_has_the_gpus_of_the_training() -> None:
    (pod,) = manifests("init-container.yaml")
    gate, train = pod["spec"]["initContainers"][0], pod["spec"]["containers"][0]
    assert gate["resources"] == train["resources"]
    assert gate["image"] == train["image"]
