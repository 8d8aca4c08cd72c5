"""The manifests of the documents against Kubernetes' schemas, and against one another."""

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import net_hosts
import pytest
import yaml

import gpucheck
from gpucheck.cluster import job_plan, node_command
from gpucheck.cluster.launcher import PlaceRequest, find

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "kubernetes"
VERSIONS = ("1.29", kubernetes_validate.latest_version())


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


CRDS: dict[str, Any] = json.loads(Path(__file__).with_name("crds.json").read_text())
"""The fields of the kinds that Kubernetes does not have itself, from the sources that it names."""


def built_in(one: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what Kubernetes' own schemas cover of a manifest: it, or the templates within it.

    Raises:
        jsonschema.ValidationError: a field of another kind is unknown, missing or of another type.
    """
    crd = CRDS.get(f"{one['apiVersion']} {one['kind']}")
    if crd is None:
        return [one]
    jsonschema.validate(one, crd["schema"])
    found = []
    name = {"metadata": {"name": "a"}}
    for kind, part in templates(one, crd["schema"]):
        if kind == "job":
            found.append({"apiVersion": "batch/v1", "kind": "Job", **name, "spec": part["spec"]})
        else:
            found.append({"apiVersion": "v1", "kind": "Pod", **name, "spec": part["spec"]})
    assert found
    return found


def templates(value: Any, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401
    """Yield every template of pods or jobs, with its kind."""
    if "x-template" in schema:
        yield schema["x-template"], value
    elif isinstance(value, list):
        for one in value:
            yield from templates(one, schema["items"])
    elif isinstance(value, dict):
        named = schema.get("properties", {})
        for key, one in value.items():
            inner = named.get(key) or schema.get("additionalProperties") or {}
            yield from templates(one, inner)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir()))
@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_valid(name: str, version: str) -> None:
    found = manifests(name)
    assert found
    for one in found:
        for part in built_in(one):
            kubernetes_validate.validate(part, version, strict=True)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("jobset.yaml", ("failurePolicy", "maxRetries"), 0),
        ("jobset.yaml", ("network", "enableDNSHostnames"), "yes"),
        ("mpijob.yaml", ("slotsPerWorkers",), 1),
        ("mpijob.yaml", ("runPolicy", "backoffLimit"), "0"),
        ("pytorchjob.yaml", ("pytorchReplicaSpecs", "Launcher"), {}),
        ("pytorchjob.yaml", ("runPolicy", "cleanPodPolicy"), "Never"),
    ],
)
def test_the_fields_of_other_kinds_tell_what_is_wrong(
    name: str, path: tuple[str, ...], value: object
) -> None:
    (one,) = manifests(name)
    inner = one["spec"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        built_in(one)


def test_the_numbers_of_pods_agree() -> None:
    (jobset,) = manifests("jobset.yaml")
    gate, train = (one["template"]["spec"] for one in jobset["spec"]["replicatedJobs"])
    args = gate["template"]["spec"]["containers"][0]["args"]
    assert gate["completions"] == gate["parallelism"] == train["completions"]
    assert args[1] == str(gate["completions"])
    assert args[3] == f"{jobset['metadata']['name']}-gate-0-0.{jobset['metadata']['name']}"
    assert jobset["spec"]["failurePolicy"]["maxRestarts"] == 0
    _service, job = manifests("kueue-job.yaml")
    assert job["spec"]["suspend"] is True
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][1] == "4"
    (mpi,) = manifests("mpijob.yaml")
    replicas = mpi["spec"]["mpiReplicaSpecs"]
    script = replicas["Launcher"]["template"]["spec"]["containers"][0]["args"][0]
    assert f"-np {replicas['Worker']['replicas']} " in script


def test_the_page_says_how_long_the_pods_wait_for_one_another() -> None:
    page = (EXAMPLES.parents[1] / "preflight" / "kubernetes.md").read_text()
    rows = re.findall(r"^ *\| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert len(rows) >= 4
    for timeout, wait in rows:
        assert job_plan.arrival_seconds(float(timeout)) == float(wait)


PROTO = {
    "HealthEvents": {"version", "events"},
    "HealthEvent": {
        "version", "agent", "componentClass", "checkName", "isFatal", "isHealthy", "message",
        "recommendedAction", "errorCode", "entitiesImpacted", "metadata", "generatedTimestamp",
        "nodeName", "quarantineOverrides", "drainOverrides", "processingStrategy",
    },
    "RecommendedAction": {
        "NONE", "COMPONENT_RESET", "CONTACT_SUPPORT", "RUN_FIELDDIAG", "RESTART_VM", "RESTART_BM",
        "REPLACE_VM", "RUN_DCGMEUD", "RESTART_APP", "UNKNOWN",
    },
    "ProcessingStrategy": {"UNSPECIFIED", "EXECUTE_REMEDIATION", "STORE_ONLY"},
}  # fmt: skip
"""NVSentinel, data-models/protobufs/health_event.proto at 264bfab, read on 2026-11-28."""
SENTINEL = EXAMPLES.parent / "nvsentinel"


def health_event(
    folder: Path, status: int, line: str, **more: str
) -> subprocess.CompletedProcess[str]:
    tool = folder / "gpucheck"
    tool.write_text(f"#!/bin/sh\necho '{line}'\nexit {status}\n")
    tool.chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", **more}
    script = SENTINEL / "health_event.sh"
    return subprocess.run([script], env=env, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_a_health_event_has_the_form_of_nvsentinel(tmp_path: Path) -> None:
    lost = node_command.node_line("gpu-fallen-off-bus", 'drain GPU 3: it\'s "lost" {PCI} \\ $HOME')
    fit = node_command.node_line("fit", "8 GPUs without a fault of driver or hardware")
    for status, line, wanted in (
        (1, lost, (True, False, "CONTACT_SUPPORT", ["gpu-fallen-off-bus"])),
        (0, fit, (False, True, "NONE", [])),
    ):
        done = health_event(tmp_path, status, line, NODE_NAME="gate-04.example")
        assert (done.returncode, done.stderr) == (0, "")
        document = json.loads(done.stdout)
        assert {*document} == PROTO["HealthEvents"]
        (event,) = document["events"]
        assert {*event} <= PROTO["HealthEvent"]
        assert event["recommendedAction"] in PROTO["RecommendedAction"]
        assert event["processingStrategy"] == "STORE_ONLY"
        assert (event["message"], event["nodeName"]) == (line, "gate-04.example")
        keys = ("isFatal", "isHealthy", "recommendedAction", "errorCode")
        assert tuple(event[key] for key in keys) == wanted
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", event["generatedTimestamp"])


@pytest.mark.process
def test_a_health_event_may_act_if_asked(tmp_path: Path) -> None:
    done = health_event(tmp_path, 0, "gpucheck: fit: 8 GPUs", STRATEGY="EXECUTE_REMEDIATION")
    (event,) = json.loads(done.stdout)["events"]
    assert event["processingStrategy"] in PROTO["ProcessingStrategy"] - {"STORE_ONLY"}


@pytest.mark.process
@pytest.mark.parametrize(
    ("status", "line", "more"),
    [
        (0, "gpucheck: unknown: NVML", {}),
        (1, "Traceback (most recent call last):", {}),
        (2, "", {}),
        (127, "", {}),
        (0, "gpucheck: fit: 8 GPUs", {"NODE_NAME": 'a", "isFatal": "true'}),
        (0, "gpucheck: fit: 8 GPUs", {"STRATEGY": "a b"}),
    ],
)
def test_nobody_knows_is_no_health_event(
    tmp_path: Path, status: int, line: str, more: dict[str, str]
) -> None:
    done = health_event(tmp_path, status, line, **more)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip()


def test_the_policy_of_nvsentinel_is_about_the_condition_of_the_plugin() -> None:
    values = yaml.safe_load((SENTINEL / "values-gpucheck.yaml").read_text())
    (policy,) = values["kubernetes-object-monitor"]["policies"]
    monitor = json.loads((EXAMPLES.parent / "node-problem-detector" / "gpucheck.json").read_text())
    (rule,) = monitor["rules"]
    compared = re.findall(r'c\.(\w+) == "(\w+)"', policy["predicate"]["expression"])
    assert dict(compared) == {
        "type": rule["condition"], "status": "True", "reason": rule["reason"]
    }  # fmt: skip
    assert {*policy["healthEvent"]} <= PROTO["HealthEvent"]
    assert policy["healthEvent"]["recommendedAction"] in PROTO["RecommendedAction"]
    assert values["global"] == {"kubernetesObjectMonitor": {"enabled": True}}


@pytest.mark.process
@pytest.mark.parametrize(
    ("status", "line", "told"),
    [
        (0, "gpucheck: fit: 8 GPUs", 0),
        (1, "gpucheck: gpu-fallen-off-bus: GPU 3", 1),
        (0, "gpucheck: unknown: NVML", 2),
        (1, "Traceback (most recent call last):", 2),
        (2, "", 2),
        (127, "", 2),
    ],
)
def test_the_plugin_of_node_problem_detector_follows_its_convention(
    tmp_path: Path, status: int, line: str, told: int
) -> None:
    tool = tmp_path / "gpucheck"
    tool.write_text(f"#!/bin/sh\necho '{line}'\nexit {status}\n")
    tool.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    plugin = EXAMPLES.parent / "node-problem-detector" / "gpucheck-npd.sh"
    done = subprocess.run([plugin], env={"PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == told
    assert done.stdout.splitlines()[0]


@pytest.mark.process
@pytest.mark.parametrize(
    ("status", "line", "failed"),
    [
        (0, "gpucheck: fit: 8 GPUs", []),
        (1, "gpucheck: gpu-fallen-off-bus: GPU 3: Xid 79", ["gpu-fallen-off-bus"]),
        (0, "gpucheck: unknown: NVML", []),
        (1, "Traceback (most recent call last):", []),
        (2, 'Error: "x"', []),
        (127, "", []),
    ],
)
def test_the_script_for_nvidias_resiliency_extension_gives_what_ft_launcher_reads(
    tmp_path: Path, status: int, line: str, failed: list[str]
) -> None:
    """``fail_count`` is a number and decides; a status other than 0 would exclude the node, too."""
    tool = tmp_path / "gpucheck"
    tool.write_text(f"#!/bin/sh\necho '{line}'\nexit {status}\n")
    tool.chmod(0o755)
    script = EXAMPLES.parent / "nvidia-resiliency" / "gpucheck-nvhcd.sh"
    sent = ["--no-slurm", "--group", "prolog", "epilog"]
    done = subprocess.run(
        [script, *sent], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert (said["fail_count"], said["failed_checks"]) == (len(failed), failed)
    assert set(said) == {"fail_count", "failed_checks", "message"}


def test_the_monitor_of_node_problem_detector_gives_the_plugin_its_time() -> None:
    """Its documentation: the timeout of a rule must not exceed that of the plugins."""
    folder = EXAMPLES.parent / "node-problem-detector"
    monitor = json.loads((folder / "gpucheck.json").read_text())
    (condition,), (rule,) = monitor["conditions"], monitor["rules"]
    assert monitor["plugin"] == "custom"
    assert rule["condition"] == condition["type"]
    assert Path(rule["path"]).name == "gpucheck-npd.sh"
    inner = float(re.findall(r"timeout -k 2 (\d+)", (folder / "gpucheck-npd.sh").read_text())[0])
    seconds = [float(text.removesuffix("s")) for text in
               (rule["timeout"], monitor["pluginConfig"]["timeout"])]  # fmt: skip
    assert inner + 2 < seconds[0] <= seconds[1]
    assert monitor["pluginConfig"]["max_output_length"] >= node_command.LONGEST


def test_the_condition_of_a_node_finds_its_monitor_and_its_plugin() -> None:
    account, binding, daemon = manifests("node-condition.yaml")
    pod = daemon["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    monitor = Path(container["command"][1].partition("=")[2])
    (rule,) = json.loads((EXAMPLES.parent / "node-problem-detector" / monitor.name).read_text())[
        "rules"
    ]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert mounts["plugin"] == str(monitor.parent) == str(Path(rule["path"]).parent)
    assert mounts.keys() == volumes.keys()
    assert volumes["plugin"]["configMap"]["defaultMode"] & 0o111  # it is a script
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert binding["subjects"][0]["name"] == account["metadata"]["name"]
    assert {one["metadata"].get("namespace") for one in (account, daemon)} == {"kube-system"}
    page = (EXAMPLES.parents[1] / "preflight" / "kubernetes.md").read_text()
    named = re.search(r"create configmap (\S+)(.*?)\n {4}kubectl", page, re.DOTALL)
    assert named is not None
    assert named[1] == volumes["plugin"]["configMap"]["name"]
    files = re.findall(r"--from-file=(\S+)", named[2])
    assert {Path(one).name for one in files} == {monitor.name, Path(rule["path"]).name}
    assert all((EXAMPLES.parent / one).is_file() for one in files)


def test_the_schemas_tell_what_is_wrong() -> None:
    job = manifests("indexed-job.yaml")[1]
    job["spec"]["completionMode"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


@pytest.mark.parametrize("name", ["indexed-job.yaml", "gated-job.yaml"])
def test_the_pods_of_the_job_find_one_another(name: str) -> None:
    service, job = manifests(name)
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod.get("initContainers") or pod["containers"]
    words = container["args"]
    options = dict(zip(words[::2], words[1::2], strict=True))
    name = job["metadata"]["name"]
    assert container["command"] == ["gpucheck", "preflight"]
    assert int(options["--nodes"]) == spec["completions"] == spec["parallelism"]
    assert options["--master"] == f"{name}-0.{service['metadata']['name']}"
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name}
    assert float(options["--timeout"]) < spec.get("activeDeadlineSeconds", 1000)
    request = PlaceRequest(nodes=int(options["--nodes"]), master=options["--master"])
    for index in range(spec["completions"]):
        env = {"JOB_COMPLETION_INDEX": str(index), "HOSTNAME": f"{name}-{index}"}
        place = find(env, request)
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
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
def test_each_pod_names_the_culprit_as_kubernetes_may_remove_the_one_that_reports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as some:
        port = some.getsockname()[1]
    command = [sys.executable, "-m", "gpucheck", "preflight", "--nodes", "2", "--ranks", "1"]
    command += ["--device", "cpu", "--master", f"localhost:{port}", "--timeout", "90"]
    command += ["--python", sys.executable, "--drill", "crash:rank=1"]
    told = {**os.environ, "PYTHONPATH": str(Path(gpucheck.__file__).parents[1])}
    pods = [
        subprocess.Popen(
            command,
            env={**told, "HOSTNAME": f"train-{index}", "JOB_COMPLETION_INDEX": str(index)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    printed = [pod.communicate(timeout=120)[0] for pod in pods]
    assert [pod.returncode for pod in pods] == [1, 1]
    assert "[rank-crashed]" in printed[0]
    assert printed[1].startswith("gpucheck preflight: task 1 on ")
    assert "rank 1" in printed[1]
    assert "[rank-crashed]" in printed[1]
    assert len(printed[1].splitlines()) == 1


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


def test_a_training_that_is_gated_in_its_own_pods_has_the_nodes_of_its_gate() -> None:
    _service, job = manifests("gated-job.yaml")
    pod = job["spec"]["template"]["spec"]
    (gate,), (train,) = pod["initContainers"], pod["containers"]
    assert gate["resources"] == train["resources"]
    assert gate["image"] == train["image"]
    command = train["args"][0]
    assert f"--nnodes {job['spec']['completions']} " in command
    assert f"--nproc-per-node {train['resources']['limits']['nvidia.com/gpu']} " in command
    assert f"--master-addr {gate['args'][3]} " in command
    assert "activeDeadlineSeconds" not in job["spec"]  # it would end the training


def test_the_init_container_has_the_gpus_of_the_training() -> None:
    (pod,) = manifests("init-container.yaml")
    gate, train = pod["spec"]["initContainers"][0], pod["spec"]["containers"][0]
    assert gate["resources"] == train["resources"]
    assert gate["image"] == train["image"]


@pytest.mark.process
def test_a_taint_follows_the_condition_of_a_node(tmp_path: Path) -> None:
    """A stand-in for kubectl lists nodes and repeats what it is told to do."""
    nodes = [
        "unfit True",
        "unfit-already True gpucheck/unfit other",
        "mended False other gpucheck/unfit",
        "fit False gpucheck/culprit",
        "silent Unknown gpucheck/unfit",
        "without-a-condition",
    ]
    listed = "\n".join(nodes)
    fake = tmp_path / "kubectl"
    fake.write_text(f'#!/bin/sh\n[ "$1" != get ] && echo "$@" && exit\ncat <<END\n{listed}\nEND\n')
    fake.chmod(0o755)
    ran = subprocess.run(
        [EXAMPLES.parent / "node-problem-detector" / "taint-unfit.sh"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert ran.stdout.splitlines() == [
        "taint nodes unfit gpucheck/unfit=true:NoSchedule",
        "taint nodes mended gpucheck/unfit-",
    ]
