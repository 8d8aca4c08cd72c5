"""Compose files."""

import re

from gpucheck.describe.files.images import image_of
from gpucheck.describe.files.machines import machine_of_platform
from gpucheck.describe.files.model import Project, Workload, hides_gpus
from gpucheck.describe.files.readers.yaml import Node
from gpucheck.describe.files.text import number_of

_SHM = "/dev/shm"  # noqa: S108  # what the files say
_FOR_CPU = re.compile(r"(?:^|[-_.])cpu(?:[-_.]|$)")


def read(nodes: list[Node]) -> Project:
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
