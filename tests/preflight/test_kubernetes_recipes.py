"""The manifests of the documents against Kubernetes' schemas, and against one another."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gpucheck.preflight.entrance import Wish, find

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


def test_the_init_container_has_the_gpus_of_the_training() -> None:
    (pod,) = manifests("init-container.yaml")
    gate, train = pod["spec"]["initContainers"][0], pod["spec"]["containers"][0]
    assert gate["resources"] == train["resources"]
    assert gate["image"] == train["image"]
