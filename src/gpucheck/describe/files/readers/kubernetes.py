"""Manifests of Kubernetes: the containers of pods, jobs and deployments."""

import msgspec

from gpucheck.describe.files.images import image_of
from gpucheck.describe.files.machines import machine_of_platform
from gpucheck.describe.files.model import UNKNOWN, Pin, Project, Workload, hides_gpus
from gpucheck.describe.files.readers.yaml import Node
from gpucheck.describe.files.text import number_of

_PLACES = {
    "Pod": ("spec",),
    "Job": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
}
KINDS = (*_PLACES, "List")
_GPU = "nvidia.com/gpu"
_ARCH = ("kubernetes.io/arch", "beta.kubernetes.io/arch")
_REQUIRED = ("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def read(nodes: list[Node]) -> Project:
    """Return the containers; those of other kinds, such as a DaemonSet, are not judged."""
    found: list[Workload] = []
    listed = [
        item
        for node in nodes
        if node.get("kind").text == "List"
        for item in node.get("items").list()
    ]
    for node in [*nodes, *listed]:
        place = _PLACES.get(node.get("kind").text)
        if place is not None:
            found += _containers(node.get(*place))
    return Project(kind="kubernetes", workloads=tuple(found))


def _containers(pod: Node) -> list[Workload]:
    runtime = pod.get("runtimeClassName")
    common = Workload(
        name="",
        line=pod.line,
        image=None,
        asks_for_gpu=_asks_for_all(pod),
        shared_memory=bool(pod.get("hostIPC")),
        machine=_machine(pod),
        runtime_class=Pin(runtime.text, "", runtime.line) if runtime else None,
        by="kubernetes",
    )
    return [_container(container, common) for container in pod.get("containers").list()]


def _container(container: Node, pod: Workload) -> Workload:
    """Return a container with what all of its pod have: that is read once, not for each."""
    image = container.get("image")
    limits = container.get("resources", "limits")
    return msgspec.structs.replace(
        pod,
        name=container.get("name").text,
        line=container.line,
        image=image_of(image.text, image.line) if image.text else None,
        asks_for_gpu=pod.asks_for_gpu or _asks(container),
        gpus=number_of(limits.get(_GPU).text),
        shared_memory=pod.shared_memory or _has_shared_memory(container),
        complete=not hides_gpus(
            (entry.get("name").text, entry.get("value").text)
            for entry in container.get("env").list()
            if not entry.get("valueFrom")
        ),
    )


def _machine(pod: Node) -> str:
    """Return the processor of the nodes that the pod may run on, UNKNOWN if there are several."""
    terms = pod.get("affinity", "nodeAffinity", *_REQUIRED).list()
    architectures = {
        value.text for name in _ARCH if (value := pod.get("nodeSelector").get(name)).text
    }
    architectures |= {
        value.text
        for term in terms
        for expression in term.get("matchExpressions").list()
        if expression.get("key").text in _ARCH and expression.get("operator").text == "In"
        for value in expression.get("values").list()
    }
    if not architectures:
        return ""
    return (
        machine_of_platform(f"linux/{architectures.pop()}") if len(architectures) == 1 else UNKNOWN
    )


def _asks_for_all(pod: Node) -> bool:
    """Whether every container of the pod may get a GPU by what the pod says."""
    return bool(
        pod.get("resourceClaims")
        or pod.get("hostPID")
        or any(volume.get("hostPath") for volume in pod.get("volumes").list())
    )


def _asks(container: Node) -> bool:
    """Whether it gets a GPU in any way, also one of a plug-in that has names of its own."""
    asked = [
        name
        for part in ("limits", "requests")
        for name, _ in container.get("resources", part).items()
    ]
    return bool(
        any("/" in name for name in asked)
        or container.get("resources", "claims")
        or container.get("securityContext", "privileged")
        or container.get("resources", "<<")
        or any(key == "<<" for key, _ in container.items())
        or any(
            entry.get("name").text == "NVIDIA_VISIBLE_DEVICES"
            for entry in container.get("env").list()
        )
    )


def _has_shared_memory(container: Node) -> bool:
    mounts = [
        mount.get("mountPath").text.rstrip("/") for mount in container.get("volumeMounts").list()
    ]
    return "/dev/shm" in mounts  # noqa: S108  # as above
