"""A file as it is used: Compose merges services of several files, kustomize patches manifests."""

from collections.abc import Sequence

import msgspec

from gpucheck.describe.files.model import Project, Workload


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What is used together with a file, or may be."""

    files: tuple[tuple[str, bytes], ...] = ()
    """The name and content of files that are merged with it."""
    maybe: str = ""
    """The name of a file that is not merged and may ask for GPUs."""
    readable: bool = False
    """Whether ``maybe`` would be merged if it was named."""


def merged(project: Project, others: Sequence[Project], beside: Beside) -> Project:
    """Return the services as they are once the same services of the other files are added.

    A further file may ask for GPUs. One that cannot be read may give shared memory as well.
    """
    found = []
    unread = project.kind == "compose" and bool(beside.maybe) and not beside.readable
    by_name: dict[str, list[Workload]] = {}
    for other in others:
        for workload in other.workloads if other.kind == "compose" else ():
            by_name.setdefault(workload.name, []).append(workload)
    for workload in project.workloads:
        whole = _whole(
            workload, by_name.get(workload.name, []) if project.kind == "compose" else []
        )
        if not whole.complete:
            continue
        if beside.maybe:
            whole = msgspec.structs.replace(
                whole,
                asks_for_gpu=whole.asks_for_gpu or None,
                shared_memory=whole.shared_memory or unread,
            )
        found.append(whole)
    return msgspec.structs.replace(project, workloads=tuple(found))


def _whole(workload: Workload, alike: Sequence[Workload]) -> Workload:
    """Return a service with what the others add; with two images nobody knows which one runs."""
    every = (workload, *alike)
    images = {two.image.reference for two in every if two.image is not None}
    return msgspec.structs.replace(
        workload,
        asks_for_gpu=any(two.asks_for_gpu for two in every),
        gpus=next((two.gpus for two in reversed(every) if two.gpus is not None), None),
        shared_memory=any(two.shared_memory for two in every),
        machine=next((two.machine for two in every if two.machine), ""),
        complete=all(two.complete for two in every) and len(images) < 2,  # noqa: PLR2004
    )
