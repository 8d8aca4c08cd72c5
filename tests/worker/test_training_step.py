"""A few steps of training: each fault below them turns the test red."""
# ruff: noqa: SLF001  # the parts of a self-test are tried one by one

from collections.abc import Callable
from typing import Any

import pytest
from worker_support import as_tf32, bench, failure, is_under_test, torch

from gpucheck.worker import networks
from gpucheck.worker.selftests import training_step

pytestmark = pytest.mark.process

Tensor = Any
functional = torch.nn.functional


class Zeroed(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """Let a weight through, and no gradient back."""

    @staticmethod
    def forward(_ctx: Any, value: Tensor) -> Tensor:  # noqa: ANN401
        return value.clone()

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
        return torch.zeros_like(gradient)


class Tf32(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """Round to TF32 on the way there and on the way back."""

    @staticmethod
    def forward(_ctx: Any, value: Tensor) -> Tensor:  # noqa: ANN401
        return as_tf32(value)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
        return as_tf32(gradient)


def put(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[[Tensor, Tensor], tuple[Any, Any]]
) -> None:
    right = getattr(functional, name)

    def wrong(data: Tensor, weight: Tensor, *more: Any) -> Tensor:  # noqa: ANN401
        if is_under_test(data):
            data, weight = fault(data, weight)
        return right(data, weight, *more)

    monkeypatch.setattr(functional, name, wrong)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_fault_it_is_green(seed: int) -> None:
    workbench = bench(seed, level="standard")
    training_step.run(workbench)
    held = [each for each in workbench.measurements if each["bound"] is not None]
    assert len(held) == 2 * 8  # loss and seven weights, in fp32 and with autocast to bf16
    assert all(each["value"] < each["bound"] / 2 for each in held)
    assert workbench.measurements[-1]["name"] == "training step"


@pytest.mark.parametrize("name", ["conv2d", "linear"])
def test_tf32_instead_of_fp32(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    put(monkeypatch, name, lambda data, weight: (Tf32.apply(data), Tf32.apply(weight)))
    found = failure(training_step)
    assert found.kind == "wrong-value"
    assert found.data["error"] > 2 * found.data["bound"]
    assert "training in fp32" in found.detail


@pytest.mark.parametrize("name", ["conv2d", "linear"])
def test_no_gradient(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    put(monkeypatch, name, lambda data, weight: (data, Zeroed.apply(weight)))
    assert failure(training_step).kind == "wrong-value"


def test_no_gradient_with_autocast_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def zeroed(data: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        return data, Zeroed.apply(weight) if torch.is_autocast_enabled("cpu") else weight

    put(monkeypatch, "linear", zeroed)
    found = failure(training_step)
    assert (found.kind, "autocast to bf16" in found.detail) == ("wrong-value", True)


def test_a_step_that_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.optim.SGD.step

    def step(self: Any, *more: Any) -> Any:  # noqa: ANN401
        weights = self.param_groups[0]["params"]
        return right(self, *more) if weights[0].dtype == torch.float64 else None

    monkeypatch.setattr(torch.optim.SGD, "step", step)
    assert failure(training_step).kind == "wrong-value"


def test_a_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, "linear", lambda data, weight: (data * float("nan"), weight))
    assert failure(training_step).kind == "not-finite"


def test_not_the_same_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = torch.Generator()
    put(
        monkeypatch, "conv2d",
        lambda data, weight: (data * (1 + 1e-7 * torch.randn((), generator=noise)), weight),
    )  # fmt: skip
    assert failure(training_step).kind == "not-deterministic"


def test_a_disturbed_training_leaves_the_weights_of_its_steps_alone() -> None:
    model = networks.training_network(torch, 1).double()
    images, labels = networks.training_batch(torch, 2)
    calm = networks.train(
        torch, networks.training_network(torch, 1).double(), images.double(), labels, 3
    )
    disturb = networks.disturber(torch, 2.0**-24, 3)
    course = networks.train(torch, model, images.double(), labels, 3, disturb=disturb)
    moved = networks.distances(course, calm)
    assert 0 < max(moved) < 1e-5
    assert max(moved) < 1000 * 2.0**-24


def test_a_scaler_of_every_release(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(torch.amp, "GradScaler", lambda *given, **_more: made.append(given))
    training_step._scaler(torch)
    monkeypatch.delattr(torch.amp, "GradScaler")
    monkeypatch.setattr(torch.cuda.amp, "GradScaler", lambda **more: made.append(more))
    training_step._scaler(torch)
    assert made == [("cuda",), {"init_scale": 1024.0}]
