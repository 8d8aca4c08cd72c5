"""Settings and firmware of nodes: what is read of them, and who differs from the others."""

from pathlib import Path
from typing import Any

import msgspec
from each import each
from preflight_facts import facts, gpus
from support import machine

from gpucheck.cluster.figures import policy
from gpucheck.cluster.figures.drift import NAMES, culprits, differences
from gpucheck.cluster.model import TaskFacts
from gpucheck.cluster.task.node_settings import adapter_settings, gpu_settings
from gpucheck.facts.claims import Severity
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.interface.requirements import parse_lines

FOUR = gpus(4, 2)
H100 = NvmlGpu(
    device_name="NVIDIA H100 80GB HBM3", vbios="96.00.74.00.01", inforom="G520.0200.00.05",
    power_limit_w=700.0, persistence=True, ecc_enabled=True, fabric_faults=[],
    fabric_cluster="c1" * 16, fabric_clique=32766,
)  # fmt: skip
USUAL = gpu_settings(Nvml(gpus=[H100, H100]))


def job(**by_host: dict[str, str] | None) -> dict[int, TaskFacts]:
    found = facts(FOUR, settings=USUAL)
    return {
        task: msgspec.structs.replace(one, settings=by_host.get(one.host, one.settings))
        for task, one in found.items()
    }


def altered(**fields: Any) -> dict[str, str]:  # noqa: ANN401  # fields of a GPU
    return gpu_settings(Nvml(gpus=[H100, msgspec.structs.replace(H100, **fields)]))


def test_what_is_read_of_gpus() -> None:
    assert {
        "gpu": "NVIDIA H100 80GB HBM3", "vbios": "96.00.74.00.01", "inforom": "G520.0200.00.05",
        "power-limit": "700 W", "persistence": "enabled", "ecc": "enabled", "fabric-faults": "none",
        "fabric": USUAL["fabric"],
    } == USUAL  # fmt: skip
    assert USUAL["fabric"].endswith("/32766")
    assert "c1c1" not in USUAL["fabric"]
    assert altered(vbios=None).get("vbios") is None
    assert altered(device_name="NVIDIA H200") == {}
    assert gpu_settings(Nvml()) == {}


def test_what_is_read_of_adapters(tmp_path: Path) -> None:
    root = "/sys/class/infiniband"
    files = {"/sys/module/nvidia_peermem/version": "580.95.05"}
    for at, state in enumerate(("4: ACTIVE", "1: DOWN")):
        files |= {
            f"{root}/mlx5_{at}/hca_type": "MT4129",
            f"{root}/mlx5_{at}/fw_ver": "28.39.1002",
            f"{root}/mlx5_{at}/ports/1/state": state,
            f"{root}/mlx5_{at}/ports/1/rate": "400 Gb/sec (4X NDR)"
            if at == 0
            else "10 Gb/sec (4X SDR)",
        }
    assert adapter_settings(machine(tmp_path, files=files)) == {
        "adapters": "2 x MT4129", "adapter-firmware": "2 x MT4129 28.39.1002",
        "ports": "1 x ACTIVE, 1 x DOWN", "port-rates": "1 x 400 Gb/sec (4X NDR)",
        "peer-memory": "enabled", "gdrcopy": "disabled",
    }  # fmt: skip


def test_a_machine_without_adapters_has_no_settings_of_them(tmp_path: Path) -> None:
    files = {"/sys/class/net/eth0/mtu": "1500", "/sys/module/nvidia/version": "580.95.05"}
    assert adapter_settings(machine(tmp_path, files=files)) == {}


@each(
    ("change", "words"),
    [
        (altered(vbios="96.00.9F.00.02"), "VBIOS of the GPUs: 1 x 96.00.74.00.01 and 1 x 96.00.9F"),
        (altered(power_limit_w=500.0), "limit of the GPUs: 1 x 500 W and 1 x 700 W on node2, 700"),
        (altered(persistence=False), "mode of the GPUs: 1 x disabled and 1 x enabled on node2"),
        (altered(fabric_faults=["route-unhealthy"]), "1 x no fault and 1 x route-unhealthy on"),
        ({**USUAL, "ecc": "disabled"}, "ECC of the GPUs: disabled on node2, enabled on 3 other"),
        ({**USUAL, "peer-memory": "disabled"}, ""),
    ],
)  # fmt: skip
def test_the_host_that_differs_is_named_with_a_warning(change: dict[str, str], words: str) -> None:
    found = culprits(FOUR, job(node2=change))
    if not words:  # nobody else said anything of it
        assert found == []
        return
    (one,) = found
    assert (one.slug, one.severity, one.hosts) == (
        "ranks-heterogeneous",
        Severity.WARNING,
        ("node2",),
    )
    assert words in one.evidence


def test_another_model_may_have_another_firmware() -> None:
    other = gpu_settings(
        Nvml(
            gpus=[msgspec.structs.replace(H100, device_name="NVIDIA H200", vbios="96.00.99.00.00")]
        )
    )
    assert [one.what for one in differences(job(node2=other))] == []


def test_a_job_on_two_nvlink_domains_is_no_fault_unless_one_is_required() -> None:
    there = job(node2=altered(fabric_cluster="d2" * 16), node3=gpu_settings(Nvml(gpus=[H100])))
    assert culprits(FOUR, there) == []
    wanted = parse_lines(["one-fabric=true"])
    (one,) = policy.violations(wanted, FOUR, there)
    assert (one.slug, one.hosts) == ("requirement-not-met", ("node2",))
    assert policy.unknown(wanted, there) == []
    assert policy.violations(wanted, FOUR, job()) == []
    (why,) = policy.unknown(wanted, job(node1={}))
    assert why == "one-fabric cannot be judged on node1: NVML names no NVLink domain"


def test_every_setting_has_a_name() -> None:
    from gpucheck.cluster.task import node_settings  # noqa: PLC0415

    assert set(node_settings._OF_GPUS) - {"fabric"} <= set(NAMES)  # noqa: SLF001
