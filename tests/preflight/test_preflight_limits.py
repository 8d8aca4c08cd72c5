"""Limits, links, ports and shared devices: named where they matter, silent where they do not."""

import msgspec
from preflight_facts import cpus, facts, gpus, uuid

from gpucheck.cluster.figures import limits, network_errors
from gpucheck.cluster.model import Roster, TaskFacts
from gpucheck.facts.claims import Severity


def with_links(roster: Roster, links: dict[int, int]) -> dict[int, TaskFacts]:
    said = facts(roster)
    for task, one in said.items():
        mine = {
            uuid(rank.rank): links.get(rank.rank, 18) for rank in roster.ranks if rank.task == task
        }
        said[task] = msgspec.structs.replace(one, nvlinks=mine)
    return said


def test_a_healthy_job_says_nothing() -> None:
    roster = gpus(3, 8)
    ports = ["mlx5_0/1 ACTIVE", "mlx5_1/1 ACTIVE"]
    said = facts(roster, infiniband=ports, nvlinks={uuid(r): 18 for r in range(24)})
    assert limits.culprits(roster, said, collective_failed=True) == []


def test_two_ranks_on_one_gpu() -> None:
    roster = gpus(1, 3)
    twin = msgspec.structs.replace(roster.ranks[2], uuid=uuid(0))
    (found,) = limits.shared_gpus(Roster(ranks=(*roster.ranks[:2], twin)))
    assert (found.slug, found.ranks) == ("nccl-duplicate-gpu", (0, 2))
    assert uuid(0) in found.evidence
    assert limits.shared_gpus(cpus(1, 4)) == []


def test_a_gpu_with_fewer_links_than_its_peers_of_the_whole_job() -> None:
    roster = gpus(2, 2)
    (found,) = limits.nvlinks_down(roster, with_links(roster, {3: 17}), Severity.ERROR)
    assert (found.slug, found.rank, found.host, found.gpu) == ("nvlink-down", 3, "node1", 1)
    assert (found.uuid, found.pci) == (uuid(3), "0000:02:00.0")
    assert "17 NVLinks up, 18 on 3 others" in found.evidence


def test_links_are_not_judged_without_a_majority_or_by_bridges() -> None:
    roster = gpus(2, 2)
    half = with_links(roster, {2: 12, 3: 12})
    assert limits.nvlinks_down(roster, half, Severity.WARNING) == []
    bridged = with_links(roster, {3: 0})
    assert limits.nvlinks_down(roster, bridged, Severity.WARNING) == []
    assert limits.nvlinks_down(roster, facts(roster), Severity.WARNING) == []


def test_a_port_that_is_down_where_others_have_it_up() -> None:
    roster = gpus(3, 2)
    said = facts(roster, infiniband=["mlx5_0/1 ACTIVE", "mlx5_1/1 ACTIVE"])
    said[1] = msgspec.structs.replace(said[1], infiniband=["mlx5_0/1 ACTIVE", "mlx5_1/1 DOWN"])
    (found,) = network_errors.culprits(roster, said, collective_failed=False)
    assert (found.slug, found.severity) == ("nccl-infiniband", Severity.WARNING)
    assert (found.hosts, found.ranks) == (("node1",), (2, 3))
    assert "mlx5_1/1 is DOWN" in found.evidence
    assert "2 others" in found.evidence
    (graver,) = network_errors.culprits(roster, said, collective_failed=True)
    assert graver.severity is Severity.ERROR


def test_ports_that_are_mostly_down_or_only_on_one_host_are_as_they_should_be() -> None:
    roster = gpus(3, 1)
    said = facts(roster, infiniband=["mlx5_0/1 DOWN"])
    said[0] = msgspec.structs.replace(said[0], infiniband=["mlx5_0/1 ACTIVE", "mlx5_9/1 DOWN"])
    assert network_errors.ports_down(roster, said, Severity.ERROR) == []


def test_locked_memory_matters_between_nodes_with_infiniband_only() -> None:
    two, one = gpus(2, 1), gpus(1, 2)
    low = {"memlock_bytes": 64 << 10}
    (found,) = limits.locked_memory(two, facts(two, infiniband=["mlx5_0/1 ACTIVE"], **low))
    assert (found.slug, found.severity) == ("memlock-too-low", Severity.WARNING)
    assert "64 KiB" in found.evidence
    assert limits.locked_memory(two, facts(two, infiniband=["mlx5_0/1 DOWN"], **low)) == []
    assert limits.locked_memory(two, facts(two, **low)) == []
    assert limits.locked_memory(one, facts(one, infiniband=["mlx5_0/1 ACTIVE"], **low)) == []
    assert limits.locked_memory(two, facts(two, infiniband=["mlx5_0/1 ACTIVE"])) == []


def test_shared_memory_matters_where_several_ranks_share_it() -> None:
    several, single, cpu = gpus(1, 2), gpus(2, 1), cpus(1, 4)
    (found,) = limits.shared_memory(several, facts(several, shm_bytes=64 << 20))
    assert (found.slug, found.hosts) == ("shm-too-small", ("node0",))
    assert "64 MiB" in found.evidence
    assert limits.shared_memory(single, facts(single, shm_bytes=64 << 20)) == []
    assert limits.shared_memory(cpu, facts(cpu, shm_bytes=64 << 20)) == []
    without = facts(several, shm_bytes=64 << 20, variables={"NCCL_SHM_DISABLE": "1"})
    assert limits.shared_memory(several, without) == []
    assert limits.shared_memory(several, facts(several, shm_bytes=None)) == []
