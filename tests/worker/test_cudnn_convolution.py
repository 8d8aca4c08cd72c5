"""Convolutions and who computes them: each fault below the test turns it red."""
# ruff: noqa: SLF001  # the parts of a self-test are tried one by one

from collections.abc import Callable
from typing import Any

import pytest
from worker_support import as_bf16, as_tf32, bench, failure, flip, is_under_test, torch

from gpucheck.worker import convolution, reference
from gpucheck.worker.bench import Bench, Failed
from gpucheck.worker.selftests import cudnn_convolution

pytestmark = pytest.mark.process

Tensor = Any
Fault = Callable[[Tensor], Tensor]
functional = torch.nn.functional


class ZeroGradient(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """Let a value through, and nothing back."""

    @staticmethod
    def forward(_ctx: Any, value: Tensor) -> Tensor:  # noqa: ANN401
        return value.clone()

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
        return torch.zeros_like(gradient)


def put(
    monkeypatch: pytest.MonkeyPatch,
    name: str = "conv2d",
    after: Fault = lambda result: result,
    before: Fault = lambda data: data,
    weights: Fault = lambda weight: weight,
    *,
    dtype: str = "float32",
) -> None:
    """Let a convolution in this type go wrong."""
    right = getattr(functional, name)

    def wrong(data: Tensor, weight: Tensor, *more: Any) -> Tensor:  # noqa: ANN401
        if not is_under_test(data, dtype):
            return right(data, weight, *more)
        return after(right(before(data), weights(weight), *more))

    monkeypatch.setattr(functional, name, wrong)


class Rounded(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """Round to TF32 on the way there; let the gradient pass as it is."""

    @staticmethod
    def forward(_ctx: Any, value: Tensor) -> Tensor:  # noqa: ANN401
        return as_tf32(value) if value.dtype == torch.float32 else as_bf16(value)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
        return gradient


class Flipped(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """Flip the lowest bit of one value on the way there."""

    @staticmethod
    def forward(_ctx: Any, value: Tensor) -> Tensor:  # noqa: ANN401
        return flip(value, 0)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
        return gradient


@pytest.mark.parametrize("seed", range(3))
def test_without_a_fault_it_is_green(seed: int) -> None:
    workbench = bench(seed, level="standard" if seed else "quick")
    cudnn_convolution.run(workbench)
    for each in workbench.measurements:
        assert each["value"] <= each["bound"]
        if "plain convolution" in each["name"]:
            assert each["value"] < each["bound"] / 10  # room for Winograd's method
    assert "on GPUs only" in workbench.data["not_tested"]["proof that cuDNN ran"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_one_flipped_bit(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    put(monkeypatch, after=Flipped.apply, dtype=dtype)
    found = failure(cudnn_convolution)
    assert found.kind == "wrong-value"
    assert found.data["wrong"] == 1


def put_after_a_convolution(monkeypatch: pytest.MonkeyPatch, name: str, fault: Fault) -> None:
    """Let an activation go wrong on what a convolution has computed, and nowhere else."""
    right = getattr(torch, name)

    def wrong(data: Tensor) -> Tensor:
        of_a_convolution = tuple(data.shape) == convolution.sizes(convolution.STRIDED)[2]
        result = right(data)
        return fault(result) if of_a_convolution and is_under_test(data) else result

    monkeypatch.setattr(torch, name, wrong)


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh"])
def test_the_activation_after_a_convolution(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    put_after_a_convolution(monkeypatch, name, lambda result: result * (1 + 2**-20))
    found = failure(cudnn_convolution)
    assert (found.kind, f"strided convolution and {name}" in found.detail) == ("wrong-value", True)


def test_no_gradient_through_the_activation_after_a_convolution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_after_a_convolution(monkeypatch, "relu", ZeroGradient.apply)
    found = failure(cudnn_convolution)
    assert "convolution and relu: backward data" in found.detail


@pytest.mark.parametrize("shape", [convolution.GROUPED, convolution.DEPTHWISE])
def test_every_shape_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, shape: convolution.LayerShape
) -> None:
    right = functional.conv2d

    def wrong(data: Tensor, weight: Tensor, *more: Any) -> Tensor:  # noqa: ANN401
        result = right(data, weight, *more)
        is_it = is_under_test(data) and more[-1] == shape.groups
        return Flipped.apply(result) if is_it else result

    monkeypatch.setattr(functional, "conv2d", wrong)
    assert f"{shape.name} convolution" in failure(cudnn_convolution).detail


def test_volumes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, "conv3d", after=Flipped.apply)
    assert "3-D" in failure(cudnn_convolution).detail


def test_channels_last_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_there(result: Tensor) -> Tensor:
        last = result.is_contiguous(memory_format=torch.channels_last)
        return result * 1.001 if last and not result.is_contiguous() else result

    put(monkeypatch, after=wrong_there)
    assert "channels_last" in failure(cudnn_convolution).detail


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_computed_in_a_narrower_type(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    put(monkeypatch, before=Rounded.apply, weights=Rounded.apply, dtype=dtype)
    if dtype == "float16":
        put(monkeypatch, after=Rounded.apply, dtype=dtype)
    found = failure(cudnn_convolution)
    assert found.kind == "wrong-value"
    if dtype == "float32":
        assert found.data["bits_kept"] <= 14


@pytest.mark.parametrize("check", ["_integers", "_real"])
@pytest.mark.parametrize("seed", range(3))
def test_either_kind_of_number_tells_tf32_from_fp32(
    monkeypatch: pytest.MonkeyPatch, check: str, seed: int
) -> None:
    put(monkeypatch, before=Rounded.apply, weights=Rounded.apply)
    fp32 = reference.usable(bench(), ("fp32",))[0]
    shape = convolution.STRIDED if check == "_integers" else convolution.PLAIN
    with pytest.raises(Failed, match=f"{shape.name}.*forward"):
        getattr(cudnn_convolution, check)(bench(seed), fp32, shape, "contiguous")


@pytest.mark.parametrize(
    ("part", "where"), [("before", "backward data"), ("weights", "backward weight")]
)
def test_a_gradient_of_zero(monkeypatch: pytest.MonkeyPatch, part: str, where: str) -> None:
    faults: dict[str, Any] = {part: ZeroGradient.apply}
    put(monkeypatch, **faults)
    found = failure(cudnn_convolution)
    assert (found.kind, where in found.detail) == ("wrong-value", True)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (lambda result: result.masked_fill(result > 5, float("nan")), "not-finite"),
        (lambda result: result.double(), "wrong-dtype"),
    ],
)
def test_other_faults(monkeypatch: pytest.MonkeyPatch, fault: Fault, kind: str) -> None:
    put(monkeypatch, after=fault)
    assert failure(cudnn_convolution).kind == kind


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh"])
def test_activations(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = getattr(torch, name)

    def approximate(data: Tensor) -> Tensor:
        result = right(data)
        alone = tuple(data.shape) == convolution._SIZE and is_under_test(data, "float32")
        return result * (1 + 2.0**-20) if alone else result

    monkeypatch.setattr(torch, name, approximate)
    found = failure(cudnn_convolution)
    assert (found.kind, found.data["what"]) == ("wrong-value", f"fp32 {name}")


@pytest.mark.parametrize("which", ["epsilon", "variance"])
def test_batch_norm(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    right = functional.batch_norm

    def wrong(data: Tensor, mean: Tensor, variance: Tensor, *more: Any, **named: Any) -> Tensor:  # noqa: ANN401
        if is_under_test(data) and which == "epsilon":
            named["eps"] = 1e-3
        result = right(data, mean, variance, *more, **named)
        if is_under_test(data) and which == "variance":
            variance.mul_(1.001)
        return result

    monkeypatch.setattr(functional, "batch_norm", wrong)
    assert failure(cudnn_convolution).data["what"].startswith("fp32 batch norm")


def test_no_sum_is_longer_than_integers_allow() -> None:
    for shape in (
        convolution.STRIDED, convolution.GROUPED, convolution.DEPTHWISE, convolution.VOLUME
    ):  # fmt: skip
        assert shape.stride > 1  # neither Winograd's method nor the Fourier transform exists
        assert max(convolution.terms(shape).values()) <= 256


class CudnnBackend:
    """Prints like torch's private enumeration."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"_ConvBackend.{self.name}"


@pytest.fixture
def with_cudnn(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Let the CPU stand for a GPU whose cuDNN works."""

    def by_operator(data: Tensor, weight: Tensor, *more: Any) -> Tensor:  # noqa: ANN401
        padding, stride, dilation, groups = more[:4]
        convolve = functional.conv3d if data.dim() == 5 else functional.conv2d
        return convolve(data, weight, None, stride, padding, dilation, groups)

    monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91900)
    monkeypatch.setattr(torch.ops.aten, "cudnn_convolution", by_operator)
    monkeypatch.setattr(torch._C, "_select_conv_backend", lambda *_all: CudnnBackend("Cudnn"))
    return bench()


def test_cudnn_that_works(with_cudnn: Bench) -> None:
    convolution.require_cudnn(with_cudnn)
    assert with_cudnn.data["cudnn_version"] == 91900
    assert set(with_cudnn.data["conv_backends"].values()) == {"Cudnn"}
    assert "not_tested" not in with_cudnn.data


def unused(workbench: Bench) -> Failed:
    with pytest.raises(Failed) as caught:
        convolution.require_cudnn(workbench)
    assert caught.value.kind == "cudnn-not-used"
    return caught.value


def test_cudnn_not_built_in(with_cudnn: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: False)
    assert unused(with_cudnn).data["reason"] == "not built in"


def test_cudnn_switched_off(with_cudnn: Bench) -> None:
    torch.backends.cudnn.enabled = False
    try:
        assert unused(with_cudnn).data["reason"] == "switched off"
    finally:
        torch.backends.cudnn.enabled = True


def test_cudnn_silently_not_taken(with_cudnn: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch._C, "_select_conv_backend",
        lambda *given: CudnnBackend("Slow3d" if given[0].dim() == 5 else "Cudnn"),
    )  # fmt: skip
    found = unused(with_cudnn)
    assert found.data["backends"]["3-D"] == "Slow3d"
    assert "3-D" in found.detail


def test_cudnn_computes_wrongly(with_cudnn: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.ops.aten.cudnn_convolution
    monkeypatch.setattr(torch.ops.aten, "cudnn_convolution", lambda *all_: flip(right(*all_), 3))
    with pytest.raises(Failed, match="cudnn_convolution, strided"):
        convolution.require_cudnn(with_cudnn)


@pytest.mark.parametrize("how", ["gone", "another signature"])
def test_the_profiler_is_asked_next(
    with_cudnn: Bench, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "gone":
        monkeypatch.delattr(torch._C, "_select_conv_backend")
    else:
        monkeypatch.setattr(torch._C, "_select_conv_backend", lambda _one: None)
    backends = unused(with_cudnn).data["backends"]  # it is the CPU's, and the profiler sees that
    assert all(name.startswith("aten::") for name in backends.values())


def test_nobody_says_who_computes(with_cudnn: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_select_conv_backend")
    monkeypatch.delattr(torch.autograd.profiler, "profile")
    convolution.require_cudnn(with_cudnn)
    assert "does not say" in with_cudnn.data["not_tested"]["proof that cuDNN ran"]


def test_an_amd_build_has_no_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    workbench = bench()
    monkeypatch.setattr(torch.version, "hip", "6.4")
    workbench.device = type("Gpu", (), {"type": "cuda"})()
    convolution.prove_cudnn(workbench)
    assert "MIOpen" in workbench.data["not_tested"]["proof that cuDNN ran"]
