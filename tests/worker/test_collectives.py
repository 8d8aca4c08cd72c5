"""The collectives that move data: each fault below one turns it red and names the sender."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from ranks_support import after, before, crash, hang, impatient, run_ranks
from worker_support import flip

from gpucheck.worker.selftests import (
    all_gather,
    all_to_all,
    broadcast,
    reduce_scatter,
    send_recv,
)

pytestmark = pytest.mark.process

Tensor = Any
LARGE = 100
TESTS = {
    "all_gather": all_gather,
    "broadcast": broadcast,
    "all_to_all_single": all_to_all,
    "batch_isend_irecv": send_recv,
}
SENT: dict[str, Callable[..., Tensor]] = {
    "all_gather": lambda _got, own: own,
    "broadcast": lambda buffer, _root: buffer,
    "all_to_all_single": lambda _got, sent: sent,
    "batch_isend_irecv": lambda pair: pair[0].tensor,
}
"""What a rank sends, among the arguments of the function."""


@pytest.mark.parametrize("test", [*TESTS.values(), reduce_scatter])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_without_a_fault_it_is_green(test: ModuleType, size: int) -> None:
    answers = run_ranks(test, size)
    expected = "skipped" if test is send_recv and size == 1 else "passed"
    assert [answer["status"] for answer in answers] == [expected] * size, answers
    if expected == "passed":
        names = [each["name"] for each in answers[-1]["measurements"]]
        assert names[:2] == [f"{test.NAME} of 1 MiB, time", f"{test.NAME} of 1 MiB, algbw"]
        assert len(names) == (2 if size == 1 else 3)


def wrong(function: str, act: Callable[[Tensor], None]) -> Callable[..., None]:
    """Act on what is sent, where it is under test."""

    def fault(*given: Any) -> None:  # noqa: ANN401
        sent = SENT[function](*given)
        if sent.numel() >= LARGE and bool((sent > 0).any()):
            act(sent)

    return fault


class Stale:
    def __init__(self) -> None:
        self.kept: Tensor = None

    def __call__(self, tensor: Tensor) -> None:
        given = tensor.clone()
        if self.kept is not None and self.kept.shape == tensor.shape:
            tensor.copy_(self.kept)
        self.kept = given


@pytest.mark.parametrize("function", TESTS)
@pytest.mark.parametrize("fault", ["altered", "flipped-bit", "stale"])
def test_what_a_rank_sends_wrongly_names_it(function: str, fault: str) -> None:
    act: dict[str, Callable[[Tensor], Any]] = {
        "altered": lambda tensor: tensor.zero_(),
        "flipped-bit": lambda tensor: tensor.copy_(flip(tensor, 11, at=50)),
        "stale": Stale(),
    }
    answers = run_ranks(
        TESTS[function], 3, faults={1: before(function, wrong(function, act[fault]))}
    )
    red = [answer for answer in answers if answer["status"] == "failed"]
    assert red, answers
    for answer in red:
        assert answer["kind"] == "wrong-value"
        assert (answer["data"]["fault"], answer["data"]["rank"]) == (fault, 1), answer
        assert "from rank 1" in answer["detail"]


def test_parts_that_are_swapped_on_arrival() -> None:
    def swap(got: list[Tensor], _own: Tensor) -> None:
        kept = got[0].clone()
        got[0].copy_(got[2])
        got[2].copy_(kept)

    answers = run_ranks(all_gather, 3, faults={1: after("all_gather", swap)})
    assert [answer["status"] for answer in answers] == ["passed", "failed", "passed"]
    assert answers[1]["data"]["fault"] == "misplaced"
    assert "it is the data of rank 2 for rank 0; every other rank is right" in answers[1]["detail"]


def test_a_part_that_does_not_arrive() -> None:
    lost = after("all_gather", lambda got, _own: got[2].fill_(-1))
    answers = run_ranks(all_gather, 3, faults={0: lost})
    assert "nothing arrived from rank 2" in answers[0]["detail"]


@pytest.mark.parametrize(("fault", "act"), [
    ("missing", lambda tensor: tensor.zero_()), ("doubled", lambda tensor: tensor.mul_(2)),
])  # fmt: skip
def test_a_part_of_a_sum_names_the_rank(fault: str, act: Callable[[Tensor], None]) -> None:
    def one_part(_got: Tensor, parts: list[Tensor]) -> None:
        act(parts[2])

    answers = run_ranks(reduce_scatter, 3, faults={1: before("reduce_scatter", one_part)})
    assert [answer["status"] for answer in answers] == ["passed", "passed", "failed"]
    assert (answers[2]["data"]["fault"], answers[2]["data"]["rank"]) == (fault, 1)


@pytest.mark.parametrize("function", ["batch_isend_irecv", "all_gather"])
def test_a_hang_is_named(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    impatient(monkeypatch)
    monkeypatch.setattr("ranks_support.LIMIT", 4.0)
    answers = run_ranks(TESTS[function], 2, faults={1: before(function, hang)})
    assert [answer["status"] for answer in answers] == ["failed", "timed-out"]
    assert answers[0]["kind"] == "collective-timeout"
    assert answers[0]["data"]["ranks"] == [1], answers[0]


@pytest.mark.parametrize("function", ["batch_isend_irecv", "broadcast"])
def test_a_crash_is_no_fault_of_the_others(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    impatient(monkeypatch)
    answers = run_ranks(TESTS[function], 2, faults={1: before(function, crash)})
    assert answers[1]["status"] == "crashed"
    assert answers[0]["kind"] in ("peer-lost", "collective-timeout"), answers[0]


def test_a_collective_that_this_torch_lacks_over_gloo_is_skipped() -> None:
    def refuse(*_given: Any) -> None:  # noqa: ANN401
        raise RuntimeError("ProcessGroupGloo does not support reduce_scatter")

    answers = run_ranks(
        reduce_scatter, 2, faults=dict.fromkeys(range(2), before("reduce_scatter", refuse))
    )
    assert [answer["status"] for answer in answers] == ["skipped", "skipped"]
    assert "does not support reduce_scatter" in answers[0]["detail"]
