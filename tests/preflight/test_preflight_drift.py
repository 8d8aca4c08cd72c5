"""Drift: who differs from the majority, with both values; unknown is no difference."""

from collections.abc import Mapping
from typing import Any

import msgspec
from each import each
from preflight_facts import cpus, facts, gpus

from gpucheck.cluster.figures.drift import DifferingValue, culprits, differences
from gpucheck.cluster.model import Device, Roster, TaskFacts
from gpucheck.facts import builtins
from gpucheck.facts.claims import Severity
from gpucheck.facts.preflight import Culprit

FOUR = gpus(4, 2)


def job(
    roster: Roster, changes: Mapping[int, Mapping[str, Any]], **usual: object
) -> dict[int, TaskFacts]:
    found = facts(roster, **usual)
    for task, change in changes.items():
        found[task] = msgspec.structs.replace(found[task], **change)
    return found


def one(roster: Roster, changes: Mapping[int, Mapping[str, Any]], **usual: object) -> Culprit:
    (found,) = culprits(roster, job(roster, changes, **usual))
    return found


def only(changes: Mapping[int, Mapping[str, Any]], **usual: object) -> DifferingValue:
    (found,) = differences(job(FOUR, changes, **usual))
    return found


def test_equal_tasks_do_not_differ() -> None:
    assert culprits(FOUR, facts(FOUR)) == []
    assert culprits(cpus(2, 3), facts(cpus(2, 3))) == []
    assert differences({}) == []


def test_another_torch_is_an_error_with_both_values() -> None:
    found = one(FOUR, {2: {"torch": "2.8.0+cu128"}})
    assert (found.slug, found.severity) == ("ranks-heterogeneous", Severity.ERROR)
    assert (found.host, found.hosts, found.ranks) == ("node2", ("node2",), (4, 5))
    assert "2.8.0+cu128 on node2" in found.evidence
    assert "2.9.1+cu128 on 3 other hosts" in found.evidence


@each(
    ("change", "severity"),
    [
        ({"torch": "2.9.1+cu126"}, Severity.WARNING),  # the same release
        ({"cuda": "12.6"}, Severity.WARNING),
        ({"cuda": "13.0"}, Severity.ERROR),
        ({"cudnn": "9.1.0"}, Severity.WARNING),
        ({"driver": "550.54.15"}, Severity.WARNING),
        ({"python": "3.10.4"}, Severity.WARNING),
        ({"variables": {"NCCL_P2P_DISABLE": "1"}}, Severity.WARNING),
        ({"variables": {"NCCL_SOCKET_IFNAME": "eth0"}}, Severity.WARNING),
    ],
)
def test_what_is_an_error_and_what_a_warning(change: dict[str, Any], severity: Severity) -> None:
    assert only({1: change}).severity is severity


@each(
    "change",
    [
        {"torch": None, "cuda": None, "nccl": None, "variables": None, "devices": None},
        {"python": "3.11.2"},
        {"shm_bytes": 63 << 30},
        {"memlock_bytes": 8 << 20},  # there is no InfiniBand
        {"variables": {"NCCL_DEBUG": "INFO", "UCX_LOG_LEVEL": "info"}},
    ],
)
def test_what_is_no_difference(change: dict[str, Any]) -> None:
    assert differences(job(FOUR, {3: change})) == []


def test_other_nccl_releases_have_their_own_slug_and_stand_in_the_drift_too() -> None:
    found = culprits(FOUR, job(FOUR, {0: {"nccl": "2.21.5"}}))
    assert [entry.slug for entry in found] == ["nccl-version-mismatch", "ranks-heterogeneous"]
    assert all(entry.hosts == ("node0",) and entry.severity is Severity.ERROR for entry in found)


def test_what_differs_on_the_same_hosts_is_one_entry() -> None:
    change = {"torch": "2.8.0+cu126", "cuda": "12.6", "driver": "550.54.15"}
    found = one(FOUR, {3: change})
    assert builtins(found.data)["differs"] == ["torch", "CUDA", "the driver"]
    assert found.evidence.count("on node3") == 3


def test_different_hosts_are_different_entries_the_grave_one_first() -> None:
    found = culprits(FOUR, job(FOUR, {0: {"driver": "550.54.15"}, 1: {"torch": "2.7.0"}}))
    assert [entry.host for entry in found] == ["node1", "node0"]


def test_a_tie_blames_nobody_and_names_both() -> None:
    found = one(gpus(2, 1), {1: {"torch": "2.8.0"}})
    assert builtins(found.data)["tied"] is True
    assert found.hosts == ("node0", "node1")
    assert "none of them is the majority" in found.evidence


def test_every_host_has_one_vote() -> None:
    """One task a rank: the host with most ranks does not outvote two others."""
    roster = cpus(3, 2)
    many = msgspec.structs.replace(
        roster, ranks=(*roster.ranks, *(msgspec.structs.replace(roster.ranks[0], rank=r, task=r)
        for r in range(6, 12)))
    )  # fmt: skip
    said = job(many, {t: {"torch": "2.5.0"} for t in (0, 1, *range(6, 12))})
    (found,) = culprits(many, said)
    assert found.hosts == ("node0",)


def test_interfaces_may_have_other_names_on_other_hosts() -> None:
    names = {t: {"variables": {"NCCL_SOCKET_IFNAME": f"ens{t}"}} for t in range(4)}
    assert differences(job(FOUR, names)) == []


def test_a_missing_gpu_and_another_model_are_told() -> None:
    said = facts(FOUR)
    fewer = msgspec.structs.replace(said[1], devices=(said[1].devices or [])[:1])
    (found,) = differences({**said, 1: fewer})
    assert (found.what, found.usual, dict(found.odd)) == ("the number of GPUs", "2", {"1": (1,)})
    other = [
        msgspec.structs.replace(device, name="NVIDIA H100 80GB HBM3")
        for device in said[1].devices or []
    ]
    (found,) = differences({**said, 1: msgspec.structs.replace(said[1], devices=other)})
    assert found.what == "the GPU model"


def test_two_models_in_one_machine_are_no_drift() -> None:
    roster = gpus(1, 2)
    said = facts(roster)
    mixed = [Device(name="RTX 4090", uuid="a"), Device(name="RTX 3090", uuid="b")]
    assert differences({0: msgspec.structs.replace(said[0], devices=mixed)}) == []


def test_an_uneven_number_of_tasks_is_the_launchers_business() -> None:
    roster = cpus(3, 1)
    said = facts(roster)
    ranks = (*roster.ranks, msgspec.structs.replace(roster.ranks[0], rank=3, task=3))
    said[3] = msgspec.structs.replace(said[0], task=3, devices=[Device(name="H", uuid="x3")])
    for task in range(3):
        said[task] = msgspec.structs.replace(
            said[task], devices=[Device(name="H", uuid=f"x{task}")]
        )
    assert culprits(Roster(ranks=ranks), said) == []


def test_little_memory_counts_where_it_is_less_than_half() -> None:
    assert only({2: {"shm_bytes": 64 << 20}}).what == "shared memory"
    found = only({2: {"memlock_bytes": 8 << 20}}, infiniband=["mlx5_0/1 ACTIVE"])
    assert (found.what, found.usual) == ("the limit of locked memory", "unlimited")


@each("name", [
    "NCCL_ANY_FUTURE_NAME", "FI_PROVIDER", "OMP_NUM_THREADS", "UCX_TLS", "GLOO_ANYTHING",
    "LD_LIBRARY_PATH", "LD_PRELOAD",
])  # fmt: skip
def test_every_variable_of_collectives_is_compared(name: str) -> None:
    found = one(FOUR, {3: {"variables": {name: "#1a2b3c4d"}}})
    assert (found.host, found.severity) == ("node3", Severity.WARNING)
    assert f"{name}: #1a2b3c4d on node3, not set on 3 other hosts" in found.evidence


@each("name", ["NCCL_DEBUG", "NCCL_HOSTID", "TORCH_ANYTHING"])
def test_what_a_rank_may_have_for_itself_is_not_compared(name: str) -> None:
    assert differences(job(FOUR, {3: {"variables": {name: "x"}}})) == []


def test_an_adapter_of_another_name_is_no_difference() -> None:
    own = {task: {"variables": {"FI_TCP_IFACE": f"eth{task}"}} for task in range(4)}
    assert differences(job(FOUR, own)) == []
    assert only({2: own[2]}).odd == {"set": (2,)}


def test_how_gpus_are_made_visible_is_compared_and_not_which_ones() -> None:
    def seen(*values: str | None) -> list[DifferingValue]:
        chosen: dict[int, dict[str, Any]] = {
            task: {"variables": {} if one is None else {"CUDA_VISIBLE_DEVICES": one}}
            for task, one in enumerate(values)
        }
        return differences(job(FOUR, chosen))

    assert seen("0", "1", "2,3", "7") == []
    assert seen("GPU-1", "GPU-2", "MIG-3", "GPU-4") == []
    assert seen(None, None, None, None) == []
    (found,) = seen("0", "1", "GPU-5", "3")
    assert (found.usual, found.odd) == ("set to numbers", {"set to UUIDs": (2,)})
    (found,) = seen("0", "1", "2", "-1")
    assert found.odd == {"set to no GPU": (3,)}
    (found,) = seen(None, None, None, "0")
    assert found.odd == {"set to numbers": (3,)}


def test_names_that_one_task_invents_do_not_hide_those_of_the_others() -> None:
    roster = cpus(4, 1)
    usual = {"UCX_ZZ": "1"}
    invented = {f"UCX_A{number}": "1" for number in range(900)}
    found = differences(
        {
            at: TaskFacts(task=at, host=f"n{at}", variables=invented if at == 3 else usual)
            for at in range(len(roster.ranks))
        }
    )
    assert len(found) == 256
    assert "UCX_ZZ" in {one.what for one in found}
