"""GPUs of a node that no task takes."""

import time
from collections.abc import Mapping

import msgspec

from gpucheck.cluster.coordinator import assign_ranks
from gpucheck.cluster.figures.limits import notices
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Device, TaskFacts


def _said(tasks: Mapping[int, tuple[str, list[Device] | None]]) -> list[str]:
    came = {
        task: TaskFacts(task=task, host=host, devices=gpus) for task, (host, gpus) in tasks.items()
    }
    return notices(assign_ranks(JobPlan(tasks=len(tasks), cuda=True), came), came)


def _gpus(host: str, *indexes: int) -> list[Device]:
    return [Device(index=at, uuid=f"GPU-{host}-{at}", name="H100") for at in indexes]


def test_tasks_that_see_the_same_gpus_and_are_fewer_leave_some_over() -> None:
    [said] = _said({task: ("a", _gpus("a", *range(8))) for task in range(2)})
    assert said == (
        "a: 6 of its 8 GPUs have no rank and got no test (GPU 2, 3, 4, 5, 6, 7), since 2 tasks saw "
        "them all and each took one"
    )


def test_nothing_is_said_where_all_are_taken_or_kept_apart() -> None:
    assert _said({0: ("a", _gpus("a", *range(8)))}) == []
    assert _said({task: ("a", _gpus("a", 0, 1)) for task in range(2)}) == []
    assert _said({task: ("a", _gpus("a", task)) for task in range(4)}) == []
    own = {task: ("a", _gpus("a", 2 * task, 2 * task + 1)) for task in range(2)}
    assert _said(own) == []


def test_of_a_node_that_does_not_tell_its_gpus_nothing_is_said() -> None:
    eight = _gpus("a", *range(8))
    assert _said({0: ("a", eight), 1: ("a", None)}) == []
    assert _said({0: ("a", eight), 1: ("a", [])}) == []
    nameless = [msgspec.structs.replace(one, uuid=None) for one in eight]
    assert _said(dict.fromkeys(range(2), ("a", nameless))) == []


def test_many_hosts_are_a_few_sentences() -> None:
    found = _said({task: (f"n{task // 2}", _gpus(f"n{task // 2}", 0, 1, 2)) for task in range(200)})
    assert len(found) == 5
    assert found[0].startswith("n0: 1 of its 3 GPUs has no rank and got no test (GPU 2)")
    assert found[-1] == "96 more hosts with GPUs that have no rank: n4, n5, n6, n7 and 92 more"


def test_thousands_of_gpus_are_looked_up_once() -> None:
    came = {
        task: TaskFacts(task=task, host="a", devices=_gpus("a", *range(4000))) for task in (0, 1)
    }
    job = assign_ranks(JobPlan(tasks=2, cuda=True), came)
    many = msgspec.structs.replace(job, ranks=job.ranks * 40_000)
    begun = time.process_time()
    (said,) = notices(many, came)
    assert time.process_time() - begun < 2
    assert "3998 of its 4000 GPUs" in said
