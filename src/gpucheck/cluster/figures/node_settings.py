"""Settings and firmware in which the nodes of a job differ (``task/node_settings.py``)."""

from collections.abc import Mapping

from gpucheck.cluster.model import Facts
from gpucheck.language import listed, say

NAMES: dict[str, str] = {
    "vbios": say("the VBIOS of the GPUs"),
    "inforom": say("the InfoROM of the GPUs"),
    "power-limit": say("the power limit of the GPUs"),
    "application-clock": say("the application clock of the GPUs"),
    "persistence": say("the persistence mode of the GPUs"),
    "ecc": say("ECC of the GPUs"),
    "ecc-after-reset": say("ECC of the GPUs after the next reset"),
    "mig": say("the MIG mode of the GPUs"),
    "mig-after-reset": say("the MIG mode of the GPUs after the next reset"),
    "repairs": say("repairs of GPU memory that wait for a reset"),
    "gpu-pcie": say("the PCIe links of the GPUs"),
    "gpu-payload": say("the PCIe maximum payload of the GPUs"),
    "gpu-read-request": say("the PCIe maximum read request of the GPUs"),
    "gpu-relaxed-ordering": say("PCIe relaxed ordering of the GPUs"),
    "module": say("the kernel module of the driver"),
    "nvswitches": say("the number of NVSwitches"),
    "c2c": say("NVLink-C2C"),
    "fabric-faults": say("the health of the NVLink fabric"),
    "adapters": say("the RDMA adapters"),
    "adapter-firmware": say("the firmware of the RDMA adapters"),
    "ports": say("the states of the RDMA ports"),
    "port-rates": say("the rates of the active RDMA ports"),
    "port-layers": say("the link layers of the RDMA ports"),
    "adapter-pcie": say("the PCIe links of the RDMA adapters"),
    "adapter-payload": say("the PCIe maximum payload of the RDMA adapters"),
    "adapter-read-request": say("the PCIe maximum read request of the RDMA adapters"),
    "adapter-relaxed-ordering": say("PCIe relaxed ordering of the RDMA adapters"),
    "acs": say("redirection by PCIe ACS above the GPUs and adapters"),
    "peer-memory": say("the module nvidia_peermem"),
    "gdrcopy": say("the module gdrdrv of GDRCopy"),
}
"""What is compared. ``fabric`` is not: a job may lie on several NVLink domains."""
_OF_THE_MODEL = frozenset(
    [
        "vbios", "inforom", "power-limit", "application-clock", "ecc", "ecc-after-reset", "c2c",
        "gpu-pcie", "gpu-payload", "gpu-read-request", "gpu-relaxed-ordering",
    ]
)  # fmt: skip
_WORDS: Mapping[str, str] = {
    "enabled": say("enabled"), "disabled": say("disabled"), "none": say("no fault"),
    "pending": say("pending"), "nothing": say("none"), "open": say("open"),
    "proprietary": say("proprietary"),
}  # fmt: skip


def by_setting(facts: Facts) -> list[tuple[str, dict[int, str]]]:
    """Return the values of each setting by task, for tasks whose values may be compared.

    What depends on the model of the GPU is compared between nodes of one model only.
    """
    found = []
    for key, name in NAMES.items():
        groups: dict[str, dict[int, str]] = {}
        for task, one in sorted(facts.items()):
            said = (one.settings or {}).get(key)
            if said is not None:
                model = (one.settings or {}).get("gpu", "") if key in _OF_THE_MODEL else ""
                groups.setdefault(model, {})[task] = _words(said)
        found += [(name, values) for values in groups.values()]
    return found


def _words(value: str) -> str:
    """Return a value for people; a node may have several, each with the number of its GPUs."""
    parts = [part.rpartition(" x ") for part in value.split(", ")]
    if not all(count for count, _, _ in parts):
        return _WORDS.get(value, value)
    return listed(
        [
            say("{count} x {value}", count=count, value=_WORDS.get(one, one))
            for count, _, one in parts
        ]
    )


def fabrics(facts: Facts) -> dict[int, str | None]:
    """Return the NVLink domain of each task that has reported its settings."""
    return {
        task: one.settings.get("fabric") for task, one in facts.items() if one.settings is not None
    }
