"""The check of one machine and the pre-flight of many have the same criteria and fixes."""

from each import each
from preflight_facts import facts, gpus, uuid
from rules_machines import A100, DOCKER, H100, NO_CONTAINER, NO_VARIABLES, UBUNTU, nvml, nvml_of
from rules_support import ask

from gpucheck.advice import nccl_surroundings
from gpucheck.cluster.figures import limits
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.driver import NvmlGpu
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.facts.system import LimitsOfProcess, Pci
from gpucheck.findings import all_rules
from gpucheck.findings.form import Hit
from gpucheck.findings.witnesses.preflight_fixes import fixes_for

MIB = 1 << 20
SIZES = [-1, 0, 64 << 10, 8 * MIB, 64 * MIB - 1, 64 * MIB, 512 * MIB - 1, 512 * MIB, 8 << 30]


@each("size", SIZES)
def test_locked_memory(size: int) -> None:
    local_limits = LimitsOfProcess(memlock_bytes=size, infiniband_devices=["mlx5_0"])
    alone = ask("memlock-too-low", local_limits, UBUNTU, NO_CONTAINER, nvml(H100))
    two = gpus(2, 1)
    node_facts = facts(two, infiniband=["mlx5_0/1 ACTIVE"], memlock_bytes=size)
    together = limits.locked_memory(two, node_facts)
    assert isinstance(alone, Hit) == bool(together)


@each("size", SIZES)
def test_shared_memory(size: int) -> None:
    local_limits = LimitsOfProcess(shm_total_bytes=size)
    alone = ask("shm-too-small", local_limits, UBUNTU, DOCKER, NO_VARIABLES, nvml(A100, A100))
    two = gpus(1, 2)
    together = limits.shared_memory(two, facts(two, shm_bytes=size))
    assert isinstance(alone, Hit) == bool(together)


@each(
    ("links", "lost"),
    [
        ([18, 18, 17], {2}),
        ([18, 17], set()),
        ([18, 18, 12, 12], set()),
        ([12, 12, 0], set()),
        ([17, 17, 18], set()),
        ([18] * 7 + [12], {7}),
    ],
)
def test_nvlinks(links: list[int], lost: set[int]) -> None:
    nvml_gpus = [
        NvmlGpu(index=at, device_name=H100, nvlinks=[link < up for link in range(18)])
        for at, up in enumerate(links)
    ]
    alone = ask("nvlink-down", nvml_of(nvml_gpus), Pci(nvswitches=0))
    roster = gpus(1, len(links))
    node_facts = facts(roster, nvlinks={uuid(at): up for at, up in enumerate(links)})
    together = limits.nvlinks_down(roster, node_facts, Severity.WARNING)
    assert {culprit.rank for culprit in together} == lost
    assert isinstance(alone, Hit) == bool(lost)


@each(
    ("slug", "fix"),
    [
        ("nvlink-down", nccl_surroundings.look_at_nvlinks()),
        ("memlock-too-low", nccl_surroundings.lift_memlock(None, under_slurm=None)),
        ("shm-too-small", nccl_surroundings.enlarge_shared_memory(None)),
    ],
)
def test_a_culprit_has_the_fix_of_its_finding(slug: str, fix: Fix) -> None:
    (*_leave, last) = fixes_for(all_rules()[slug], [Culprit(slug=slug)], Preflight())
    assert (last.text, last.commands) == (fix.text, fix.commands)
    assert last.verify == "gpucheck preflight"
