"""Files that start containers and jobs: of Compose, Kubernetes and Slurm."""

import re

import msgspec

from gpucheck.describe.files.builds import image_of
from gpucheck.describe.files.model import (
    UNKNOWN,
    BatchJob,
    FileCommand,
    Pin,
    Project,
    Workload,
    hides_gpus,
    machine_of_platform,
)
from gpucheck.describe.files.shell import Lines, commands_of
from gpucheck.describe.files.text import Node, number_of

# Compose files.

_SHM = "/dev/shm"  # noqa: S108  # what the files say
_FOR_CPU = re.compile(r"(?:^|[-_.])cpu(?:[-_.]|$)")


def read_compose(nodes: list[Node]) -> Project:
    """Return the services; those of which a part stands elsewhere are not complete."""
    services = nodes[0].get("services")
    found = [_service(name, service, services.key_line(name)) for name, service in services.items()]
    return Project(kind="compose", workloads=tuple(found))


def _is_complete(name: str, service: Node) -> bool:
    words = [name, *(profile.text for profile in service.get("profiles").list())]
    variables = service.get("environment")
    given = [(key, value.text) for key, value in variables.items()]
    given += [
        (key, value)
        for key, equals, value in (variable.text.partition("=") for variable in variables.list())
        if equals
    ]
    return not hides_gpus(given) and (
        not any(service.get(key) for key in ("extends", "<<", "privileged", "build"))
        and not service.get("deploy", "<<")
        and not any(_FOR_CPU.search(word[:200]) for word in words)
    )


def _service(name: str, service: Node, line: int) -> Workload:
    image = service.get("image")
    devices = service.get("deploy", "resources", "reservations", "devices").list()
    return Workload(
        name=name,
        line=line,
        image=image_of(image.text, image.line) if image.text else None,
        asks_for_gpu=_asks(service, devices),
        gpus=_count(service, devices),
        shared_memory=_has_shared_memory(service),
        machine=machine_of_platform(service.get("platform").text),
        complete=_is_complete(name, service),
    )


def _asks(service: Node, devices: list[Node]) -> bool:
    variables = service.get("environment")
    names = [key for key, _ in variables.items()] + [variable.text for variable in variables.list()]
    return bool(
        devices
        or service.get("gpus")
        or service.get("runtime")
        or service.get("devices")
        or service.get("device_cgroup_rules")
        or service.get("deploy", "resources", "reservations", "generic_resources")
        or service.get("env_file")
        or any(name.startswith("NVIDIA_VISIBLE_DEVICES") for name in names)
    )


def _count(service: Node, devices: list[Node]) -> int | None:
    for reservation in (*devices, *service.get("gpus").list()):
        if reservation.get("device_ids"):
            return len(reservation.get("device_ids").list())
        if reservation.get("count"):
            return number_of(reservation.get("count").text)
    return None


def _has_shared_memory(service: Node) -> bool:
    mounts = service.get("volumes").list() + service.get("tmpfs").list()
    places = [mount.words() + mount.get("target").text for mount in mounts]
    return bool(
        service.get("shm_size")
        or service.get("ipc")
        or _SHM in service.get("tmpfs").text
        or any(_SHM in place for place in places)
    )


# Manifests of Kubernetes: the containers of pods, jobs and deployments.

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


def read_kubernetes(nodes: list[Node]) -> Project:
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
        asks_for_gpu=pod.asks_for_gpu or _kubernetes_asks(container),
        gpus=number_of(limits.get(_GPU).text),
        shared_memory=pod.shared_memory or _kubernetes_has_shared_memory(container),
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


def _kubernetes_asks(container: Node) -> bool:
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


def _kubernetes_has_shared_memory(container: Node) -> bool:
    mounts = [
        mount.get("mountPath").text.rstrip("/") for mount in container.get("volumeMounts").list()
    ]
    return "/dev/shm" in mounts  # noqa: S108  # as above


# Batch scripts of Slurm.

_DIRECTIVE = re.compile(r"#SBATCH[ \t]{1,40}(.{0,500})")
_ASKS = re.compile(
    r"(?:^|[ \t])(?:-G(?=[ \t0-9=])|--gres[= ]|--gpus|--tres|--exclusive|--gpu-"
    r"|-C[ \t]|--constraint|--nodelist|-w[ \t]|-[pq]|--partition|--qos)"
)
"""What asks for GPUs, or may: all of a node, a node by its name or features, or a partition, whose
nodes may come with all of their GPUs."""
_WITHOUT_GPUS = re.compile(r"(?:^|[^a-z])(?:cpu|gloo)(?:[^a-z]|$)")
_STARTERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_MANY = re.compile(r"--nproc[-_]per[-_]node[= ]([0-9]{1,3}|gpu)(?![0-9A-Za-z])")


def is_batch_script(text: str) -> bool:
    """Whether a script has directives of sbatch."""
    return any(line.startswith("#SBATCH") for line in text.split("\n"))


def read_sbatch(text: str) -> Project:
    """Return what the script asks for, and the first command that needs GPUs."""
    script, directives, first = Lines(), [], 0
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        found = _DIRECTIVE.fullmatch(line.rstrip())
        if found is not None:
            first = first or number
            directives.append(found[1].split("#")[0])
        joined = line[:-1] + " " if line.endswith("\\") else line + "\n"
        script.add(joined, number)
    commands = commands_of(script)
    asks = any(_ASKS.search(directive) for directive in directives) or any(
        _ASKS.search(" " + " ".join(command.words)) for command in commands if _starts_step(command)
    )
    asks = asks or "SBATCH_G" in text or "--gres" in text
    uses = next((pin for command in commands if (pin := _use(command)) is not None), None)
    return Project(kind="sbatch", batches=(BatchJob(line=first, asks_for_gpu=asks, uses=uses),))


def _starts_step(command: FileCommand) -> bool:
    return command.words[0] in ("srun", "salloc", "sbatch")


def _use(command: FileCommand) -> Pin | None:
    if command.conditional:
        return None
    words = command.words
    if "srun" in words[:1]:
        words = tuple(word for word in words[1:] if not word.startswith("-"))
    if words and words[0] in ("nvidia-smi", "gpucheck"):
        return Pin(words[0], "", command.line)
    text = " ".join(command.words)
    many = _MANY.search(text)
    if _WITHOUT_GPUS.search(text):
        return None
    starter = next((name for name in _STARTERS if name in text), None)
    if many is not None and starter is not None and many[1] not in ("0", "1"):
        return Pin(f"{starter} --nproc-per-node={many[1]}", "", command.line)
    return None
