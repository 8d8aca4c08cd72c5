"""A healthy node with eight GPUs, and what may be wrong with each of them."""

from typing import Any

from msgspec.structs import replace
from test_machines import reported

from gpucheck.facts.driver import KernelLog, Nvml, XidEvent
from gpucheck.facts.snapshot import Snapshot

NODE = "h100x8-r580-cu130"


def with_gpus(**changes: dict[str, Any]) -> Snapshot:
    """Return the healthy node with some facts changed of the GPUs called g0, g1 ..."""
    taken = reported(NODE).snapshot
    nvml = taken.get(Nvml)
    gpus = [replace(gpu, **changes.get(f"g{at}", {})) for at, gpu in enumerate(nvml.gpus or ())]
    return taken.with_section(replace(nvml, gpus=gpus))


def xid(number: int, at: int, ago: float | None) -> XidEvent:
    address = (reported(NODE).snapshot.get(Nvml).gpus or [])[at].pci_address
    return XidEvent(xid=number, pci_address=address, message=f"Xid {number}", seconds_ago=ago)


def with_xids(*events: XidEvent, taken: Snapshot | None = None) -> Snapshot:
    return (taken or with_gpus()).with_section(KernelLog(xids=list(events), fallen_off_bus=[]))
