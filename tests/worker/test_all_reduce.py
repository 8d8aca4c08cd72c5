"""The all-reduce: each fault below it turns it red, and it names the rank."""

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from ranks_support import after, before, crash, hang, impatient, run_ranks
from worker_support import bench, flip, torch

from gpucheck.worker.selftests import all_reduce

pytestmark = pytest.mark.process

Tensor = Any
LARGE = 100


def statuses(answers: list[dict[str, Any]]) -> list[str]:
    return [answer["status"] for answer in answers]


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_without_a_fault_it_is_green(size: int) -> None:
    answers = run_ranks(all_reduce, size)
    assert statuses(answers) == ["passed"] * size, answers
    names = [each["name"] for each in answers[-1]["measurements"]]
    assert "all-reduce of 1 MiB, algbw" in names
    assert ("all-reduce of 1 MiB, busbw" in names) is (size > 1)


def test_the_bus_bandwidth_is_that_of_nccl_tests() -> None:
    found = {
        answer["name"]: answer["value"] for answer in run_ranks(all_reduce, 3)[-1]["measurements"]
    }
    size = "all-reduce of 1 MiB"
    assert found[f"{size}, algbw"] == pytest.approx(2**20 / (found[f"{size}, time"] * 1e-6) / 1e9)
    assert found[f"{size}, busbw"] == pytest.approx(found[f"{size}, algbw"] * 2 * 2 / 3)


def only(dtype: str, act: Callable[[Tensor], None]) -> Callable[..., None]:
    """Act on large tensors of one type, but those that are only timed."""

    def wrong(tensor: Tensor, *_more: Any) -> None:  # noqa: ANN401
        if str(tensor.dtype).endswith(dtype) and tensor.numel() >= LARGE and bool(tensor.any()):
            act(tensor)

    return wrong


class Stale:
    """Sends what it was given the time before."""

    def __init__(self) -> None:
        self.kept: Tensor = None

    def __call__(self, tensor: Tensor) -> None:
        given = tensor.clone()
        if self.kept is not None and self.kept.shape == tensor.shape:
            tensor.copy_(self.kept)
        self.kept = given


FAULTS = {
    "missing": ("missing", lambda tensor: tensor.zero_()),
    "doubled": ("doubled", lambda tensor: tensor.mul_(2)),
    "flipped-bit": ("flipped-bit", lambda tensor: tensor.copy_(flip(tensor, 9, at=33))),
    "half": ("missing", lambda tensor: tensor[len(tensor) // 2 :].zero_()),
}


@pytest.mark.parametrize(
    ("dtype", "fault", "size"),
    [
        *((dtype, fault, 3) for dtype in ("float32", "int64") for fault in FAULTS),
        ("int64", "missing", 2),
        ("float32", "flipped-bit", 2),
    ],
)
def test_a_wrong_contribution_names_its_rank(dtype: str, fault: str, size: int) -> None:
    at, (kind, act) = 1, FAULTS[fault]
    answers = run_ranks(all_reduce, size, faults={at: before("all_reduce", only(dtype, act))})
    for rank, answer in enumerate(answers):
        assert (answer["status"], answer["kind"]) == ("failed", "wrong-value"), answer
        assert answer["data"]["fault"] == kind, answer
        assert answer["data"]["rank"] == at, (rank, answer)
        assert f"rank {at}" in answer["detail"]
        assert answer["detail"].endswith("every rank sees something wrong")


def test_a_stale_buffer_names_its_rank() -> None:
    stale = before("all_reduce", only("float32", Stale()))
    for answer in run_ranks(all_reduce, 3, faults={2: stale}):
        assert (answer["data"]["fault"], answer["data"]["rank"]) == ("stale", 2), answer


def test_a_rank_that_adds_something_to_what_it_sends() -> None:
    """Into its own slots, so that only it can have been."""

    def act(tensor: Tensor) -> None:
        slot = (1 - torch.arange(len(tensor))) % 3
        tensor.add_(8 << (4 * slot))

    for answer in run_ranks(all_reduce, 3, faults={1: before("all_reduce", only("float32", act))}):
        assert (answer["data"]["fault"], answer["data"]["rank"]) == ("altered", 1), answer


def test_a_result_that_flips_on_one_rank_is_that_rank_alone() -> None:
    wrong = after("all_reduce", only("int64", FAULTS["flipped-bit"][1]))
    answers = run_ranks(all_reduce, 3, faults={1: wrong})
    assert statuses(answers) == ["passed", "failed", "passed"]
    assert answers[1]["detail"].endswith("every other rank is right")
    assert answers[1]["data"]["fault"] == "flipped-bit"


def test_a_value_that_is_not_a_number() -> None:
    wrong = after("all_reduce", only("float32", lambda tensor: tensor[7:9].fill_(float("nan"))))
    answers = run_ranks(all_reduce, 2, faults={0: wrong})
    assert statuses(answers) == ["failed", "passed"]
    assert "2 of 1000 values are wrong, the first at 7: nan" in answers[0]["detail"]


def test_nothing_is_reduced_at_all() -> None:
    def fault() -> None:
        class Done:
            def wait(self, *_more: Any) -> None:  # noqa: ANN401
                pass

        torch.distributed.all_reduce = lambda *_given, **_named: Done()

    answers = run_ranks(all_reduce, 3, faults=dict.fromkeys(range(3), fault))
    for rank, answer in enumerate(answers):
        assert (answer["data"]["fault"], answer["data"]["rank"]) == ("not-reduced", rank)


def test_a_sleep_is_no_fault() -> None:
    sleepy = before("all_reduce", lambda *_given: time.sleep(0.05))
    assert statuses(run_ranks(all_reduce, 2, faults={1: sleepy})) == ["passed", "passed"]


def test_a_hang_is_named_by_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    monkeypatch.setattr("ranks_support.LIMIT", 4.0)
    answers = run_ranks(all_reduce, 3, faults={1: before("all_reduce", hang)})
    assert statuses(answers) == ["failed", "timed-out", "failed"]
    for answer in (answers[0], answers[2]):
        assert answer["kind"] == "collective-timeout"
        assert answer["data"]["ranks"] == [1]
        assert "rank 1 did not enter the all-reduce of 1 fp32 values" in answer["detail"]
    assert answers[1]["stage"] == "all-reduce of 1 fp32 values"


def test_a_rank_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    monkeypatch.setattr("ranks_support.LIMIT", 4.0)
    answers = run_ranks(all_reduce, 3, faults={2: hang})
    assert statuses(answers) == ["failed", "failed", "timed-out"]
    assert "rank 2 did not reach the rendezvous of the ranks" in answers[0]["detail"]
    assert answers[0]["data"]["ranks"] == [2]


def test_a_hang_that_nobody_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)

    def fault() -> None:
        class Never:
            def wait(self, limit: Any) -> None:  # noqa: ANN401
                time.sleep(limit.total_seconds())
                raise RuntimeError("Operation timed out!")

        torch.distributed.all_reduce = lambda *_given, **_named: Never()

    for answer in run_ranks(all_reduce, 2, faults=dict.fromkeys(range(2), fault)):
        assert answer["kind"] == "collective-timeout"
        assert "every process began the all-reduce" in answer["detail"]
        assert answer["data"]["ranks"] == []


def test_a_crash_costs_the_others_their_peer_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    answers = run_ranks(all_reduce, 3, faults={1: before("all_reduce", crash)})
    assert answers[1]["status"] == "crashed"
    for answer in (answers[0], answers[2]):
        assert answer["kind"] in ("peer-lost", "collective-timeout"), answer


def test_torch_without_distributed_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    assert run_ranks(all_reduce, 1)[0]["status"] == "skipped"


def test_one_rank_needs_no_folder() -> None:
    child = os.fork()  # a process group is for a whole process
    if child == 0:
        all_reduce.run(bench())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0  # not any child: another test's may end just now
