"""A step of DistributedDataParallel: each fault below it turns the test red."""

import importlib
from typing import Any

import pytest
from ranks_support import run_ranks
from worker_support import torch

from gpucheck.worker.selftests import ddp_step

pytestmark = pytest.mark.process

Parallel = torch.nn.parallel.DistributedDataParallel


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    """Import it once: it takes seconds, which the ranks forked from here do not need."""
    importlib.import_module("torch._dynamo")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_without_a_fault_it_is_green(size: int) -> None:
    answers = run_ranks(ddp_step, size)
    assert [answer["status"] for answer in answers] == ["passed"] * size, answers
    for each in answers[0]["measurements"]:
        assert each["value"] <= each["bound"]
        assert (each["bound"] == 0.0) is (size != 3)


def put(wrapper: Any) -> Any:  # noqa: ANN401
    def fault() -> None:
        torch.nn.parallel.DistributedDataParallel = wrapper

    return dict.fromkeys(range(3), fault)


def test_gradients_that_are_not_averaged() -> None:
    def apart(model: Any, **more: Any) -> Any:  # noqa: ANN401
        wrapped = Parallel(model, **more)
        wrapped.require_backward_grad_sync = False
        return wrapped

    for rank, answer in enumerate(run_ranks(ddp_step, 3, faults=put(apart))):
        assert (answer["status"], answer["kind"]) == ("failed", "wrong-value")
        assert "the gradient of 0.weight" in answer["detail"]
        assert (
            f"it is the value of rank {rank} alone: the ranks were not averaged" in answer["detail"]
        )


def test_gradients_that_are_added_instead_of_averaged() -> None:
    def summed(model: Any, **more: Any) -> Any:  # noqa: ANN401
        wrapped = Parallel(model, **more)
        for weight in model.parameters():
            weight.register_post_accumulate_grad_hook(lambda each: each.grad.mul_(3))
        return wrapped

    assert {answer["status"] for answer in run_ranks(ddp_step, 3, faults=put(summed))} == {"failed"}


def test_weights_that_are_not_those_of_rank_0() -> None:
    def kept(model: Any, **more: Any) -> Any:  # noqa: ANN401
        before = [weight.detach().clone() for weight in model.parameters()]
        wrapped = Parallel(model, **more)
        with torch.no_grad():
            for weight, own in zip(model.parameters(), before, strict=True):
                weight.copy_(own)
        return wrapped

    answers = run_ranks(ddp_step, 2, faults=put(kept))
    assert "failed" in {answer["status"] for answer in answers}


def test_one_rank_whose_gradient_is_wrong() -> None:
    def wrong(model: Any, **more: Any) -> Any:  # noqa: ANN401
        model[0].weight.register_hook(lambda gradient: gradient + 1)
        return Parallel(model, **more)

    def fault() -> None:
        torch.nn.parallel.DistributedDataParallel = wrong

    answers = run_ranks(ddp_step, 2, faults={1: fault})
    assert {answer["kind"] for answer in answers} == {"wrong-value"}
    assert all("the gradient of 0.weight" in answer["detail"] for answer in answers)
