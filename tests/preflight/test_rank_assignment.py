"""From tasks to ranks."""

import msgspec

from gpucheck.cluster.coordinator import assign_ranks, unfit
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Device, RootCause, TaskFacts
from gpucheck.cluster.task.node_facts import with_snapshot
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.snapshot import ProbeRuns, Snapshot


def _gpus(*indexes: int) -> list[Device]:
    return [
        Device(index=at, name="H100", uuid=f"GPU-{at}", pci=f"0000:{at:02}:00.0") for at in indexes
    ]


def _facts(task: int, host: str, gpus: int, node: int | None = None) -> TaskFacts:
    return TaskFacts(task=task, host=host, node=node, devices=_gpus(*range(gpus)))


def test_a_task_alone_on_its_node_has_a_rank_for_each_gpu() -> None:
    came = {0: _facts(0, "a", 2), 1: _facts(1, "b", 3)}
    roster = assign_ranks(JobPlan(tasks=2, cuda=True), came)
    assert [(r.rank, r.host, r.device, r.local) for r in roster.ranks] == [
        (0, "a", "cuda:0", 0), (1, "a", "cuda:1", 1),
        (2, "b", "cuda:0", 0), (3, "b", "cuda:1", 1), (4, "b", "cuda:2", 2),
    ]  # fmt: skip
    assert roster.ranks[4].uuid == "GPU-2"


def test_a_node_without_a_number_gets_one_that_no_launcher_has_given() -> None:
    came = {0: _facts(0, "a", 1), 1: _facts(1, "b", 1, node=0)}
    roster = assign_ranks(JobPlan(tasks=2, cuda=True), came)
    assert [(r.host, r.node) for r in roster.ranks] == [("a", 1), ("b", 0)]


def test_several_tasks_of_a_node_have_one_each_by_their_place() -> None:
    came = {task: _facts(task, "ab"[task // 2], 2) for task in range(4)}
    roster = assign_ranks(JobPlan(tasks=4, cuda=True), came)
    assert [(r.rank, r.task, r.host, r.device) for r in roster.ranks] == [
        (0, 0, "a", "cuda:0"), (1, 1, "a", "cuda:1"), (2, 2, "b", "cuda:0"), (3, 3, "b", "cuda:1"),
    ]  # fmt: skip


def test_tasks_of_a_node_that_see_gpus_of_their_own_take_them_all() -> None:
    came = {
        task: TaskFacts(task=task, host="a", devices=_gpus(2 * task, 2 * task + 1))
        for task in range(2)
    }
    roster = assign_ranks(JobPlan(tasks=2, cuda=True), came)
    assert [(r.task, r.device, r.uuid) for r in roster.ranks] == [
        (0, "cuda:0", "GPU-0"), (0, "cuda:1", "GPU-1"),
        (1, "cuda:0", "GPU-2"), (1, "cuda:1", "GPU-3"),
    ]  # fmt: skip


def test_a_task_that_sees_one_device_uses_it() -> None:
    came = {task: _facts(task, "a", 1) for task in range(4)}
    roster = assign_ranks(JobPlan(tasks=4, cuda=True, per_task=1), came)
    assert {r.device for r in roster.ranks} == {"cuda:0"}


def test_a_gpu_has_the_number_of_nvidia_smi_where_one_task_of_the_node_knows_it() -> None:
    """Each task sees one GPU, which torch calls 0."""
    own = {task: [msgspec.structs.replace(_gpus(task)[0], index=0)] for task in range(4)}
    came = {task: TaskFacts(task=task, host="a", devices=own[task]) for task in range(4)}
    job = JobPlan(tasks=4, cuda=True, per_task=1)
    assert [r.gpu for r in assign_ranks(job, came).ranks] == [0, 0, 0, 0]
    numbers = {"GPU-0": 3, "GPU-1": 2, "GPU-2": 1}
    came[0] = msgspec.structs.replace(came[0], gpu_numbers=numbers)
    assert [r.gpu for r in assign_ranks(job, came).ranks] == [3, 2, 1, None]
    came[3] = msgspec.structs.replace(came[3], devices=[Device(uuid="MIG-5", index=0)])
    assert assign_ranks(job, came).ranks[3].gpu == 0


def test_nvml_tells_the_numbers_of_nvidia_smi() -> None:
    gpus = [NvmlGpu(index=1, uuid="GPU-a"), NvmlGpu(index=0, uuid="GPU-b"), NvmlGpu(index=2)]
    empty = Snapshot({}, ProbeRuns(()), tables="0", origin="live")
    facts = with_snapshot(TaskFacts(task=0, host="a"), empty.with_section(Nvml(gpus=gpus)))
    assert facts.gpu_numbers == {"GPU-a": 1, "GPU-b": 0}
    assert with_snapshot(TaskFacts(task=0, host="a"), empty).gpu_numbers is None


def test_tasks_dealt_round_robin_keep_their_numbers_as_ranks() -> None:
    came = {task: _facts(task, "ab"[task % 2], 2, node=task % 2) for task in range(4)}
    roster = assign_ranks(JobPlan(tasks=4, cuda=True, per_task=1), came)
    assert [(r.rank, r.task, r.node, r.device) for r in roster.ranks] == [
        (0, 0, 0, "cuda:0"), (1, 1, 1, "cuda:0"), (2, 2, 0, "cuda:1"), (3, 3, 1, "cuda:1"),
    ]  # fmt: skip


def test_uneven_tasks_are_numbered_by_node() -> None:
    came = {0: _facts(0, "a", 2), 1: _facts(1, "b", 2), 2: _facts(2, "b", 2)}
    roster = assign_ranks(JobPlan(tasks=3, cuda=True), came)
    assert [(r.rank, r.task, r.device) for r in roster.ranks] == [
        (0, 0, "cuda:0"), (1, 0, "cuda:1"), (2, 1, "cuda:0"), (3, 2, "cuda:1"),
    ]  # fmt: skip


def test_who_never_came_has_as_many_ranks_as_the_others_and_a_host_where_it_is_told() -> None:
    came = {0: _facts(0, "a", 4), 2: _facts(2, "c", 4)}
    roster = assign_ranks(JobPlan(tasks=3, cuda=True, hosts={0: "a", 1: "b", 2: "c"}), came)
    assert roster.absent == {4, 5, 6, 7}
    assert {roster.ranks[rank].host for rank in roster.absent} == {"b"}
    assert len({roster.ranks[rank].node for rank in (0, 4, 8)}) == 3
    assert roster.living == [0, 1, 2, 3, 8, 9, 10, 11]


def test_absent_tasks_of_unknown_hosts_are_nodes_of_their_own() -> None:
    roster = assign_ranks(JobPlan(tasks=3, cuda=False), {0: TaskFacts(task=0, host="a")})
    assert len({one.node for one in roster.ranks}) == 3
    assert roster.absent == {1, 2}


def test_ranks_on_the_cpu_are_as_many_as_asked() -> None:
    roster = assign_ranks(
        JobPlan(tasks=1, cuda=False, per_task=8), {0: TaskFacts(task=0, host="a", devices=[])}
    )
    assert [one.device for one in roster.ranks] == ["cpu"] * 8
    assert {one.node for one in roster.ranks} == {0}


def test_what_went_wrong_before_the_first_step_is_known() -> None:
    roots = [RootCause(slug="torch-missing", headline="No torch", confidence=Confidence.LIKELY)]
    came = {
        0: _facts(0, "a", 1),
        1: TaskFacts(
            task=1, host="b", problem="No module named torch", kind="import-failed",
            phase="import", roots=roots,
        ),
        2: TaskFacts(task=2, host="c", devices=[]),
        3: TaskFacts(task=3, host="d", problem="its supervisor stopped responding", kind="silent"),
    }  # fmt: skip
    roster = assign_ranks(JobPlan(tasks=4, cuda=True), came)
    known = unfit(roster, came, cuda=True)
    assert {rank: (one.status, one.kind, one.phase) for rank, one in known.items()} == {
        1: ("failed", "import-failed", "import"),
        2: ("failed", "no-device", "census"),
        3: ("lost", "silent", "start"),
    }
    said = {"headline": "No torch", "confidence": "likely", "fixes": ()}
    assert known[1].data["roots"] == [{"slug": "torch-missing", **said}]
