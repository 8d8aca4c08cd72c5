"""Matrix products: a fault below the test turns it red, and without one it stays green."""
# ruff: noqa: SLF001  # the parts of a self-test are tried one by one

from collections.abc import Callable
from typing import Any

import pytest
from worker_support import (
    as_bf16,
    as_fp8,
    as_fp32,
    as_tf32,
    bench,
    failure,
    flip,
    is_under_test,
    torch,
)

from gpucheck.worker import reference
from gpucheck.worker.bench import Bench, Failed
from gpucheck.worker.selftests import cublas_matmul

pytestmark = pytest.mark.process

Tensor = Any
Left = dict[str, str]
Fault = Callable[[Tensor], Tensor]
BITS = {
    "float64": (0, 51, 52),
    "float32": (0, 22, 23),
    "float16": (0, 9, 10),
    "bfloat16": (0, 6, 7),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time a product that takes no time."""
    monkeypatch.setattr(cublas_matmul, "_ON_CPU", 64)


def put(monkeypatch: pytest.MonkeyPatch, name: str, dtype: str, fault: Fault) -> None:
    """Let a product of this type go wrong."""
    right = getattr(torch, name)

    def wrong(left: Tensor, *others: Tensor, **more: Any) -> Tensor:  # noqa: ANN401
        result = right(left, *others, **more)
        return fault(result) if is_under_test(left, dtype) else result

    monkeypatch.setattr(torch, name, wrong)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_fault_it_is_green(seed: int) -> None:
    workbench = bench(seed)
    cublas_matmul.run(workbench)
    measured = {each["name"]: each for each in workbench.measurements}
    for name in ("fp64", "fp32"):
        error = measured[f"{name} product: largest error"]
        assert error["value"] < error["bound"] / 10
        assert measured[f"{name} rate"]["value"] > 0
    assert measured["bf16 rate"]["unit"] == "TFLOP/s"
    assert workbench.data["not_tested"]["tf32"] == "TF32 exists on GPUs only"


@pytest.mark.parametrize(
    ("name", "dtype", "bit"),
    [("mm", dtype, bit) for dtype, bits in BITS.items() for bit in bits] + [("bmm", "float32", 0)],
)
def test_one_flipped_bit(monkeypatch: pytest.MonkeyPatch, name: str, dtype: str, bit: int) -> None:
    put(monkeypatch, name, dtype, lambda result: flip(result, bit))
    found = failure(cublas_matmul)
    assert found.kind in ("wrong-value", "not-finite")
    assert found.data["wrong"] == 1
    assert found.data["index"][-1] == 5


NARROWER: list[tuple[str, Fault]] = [
    ("float64", as_fp32), ("float32", as_tf32), ("float16", as_bf16), ("bfloat16", as_fp8),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "narrow"), NARROWER, ids=[dtype for dtype, _ in NARROWER])
def test_computed_in_a_narrower_type(
    monkeypatch: pytest.MonkeyPatch, dtype: str, narrow: Fault
) -> None:
    right = torch.mm

    def narrower(left: Tensor, other: Tensor, **more: Any) -> Tensor:  # noqa: ANN401
        if is_under_test(left, dtype):
            left, other = narrow(left), narrow(other)
        return right(left, other, **more)

    monkeypatch.setattr(torch, "mm", narrower)
    found = failure(cublas_matmul)
    assert found.kind == "wrong-value"
    assert found.data["bits_kept"] < {"float64": 30, "float32": 14, "float16": 11}.get(dtype, 8)
    assert "significant bits" in found.detail


@pytest.mark.parametrize("check", ["_exact", "_bounded"])
def test_either_kind_of_number_tells_tf32_from_fp32(
    monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    right = torch.mm

    def narrower(left: Tensor, other: Tensor) -> Tensor:
        if is_under_test(left):
            left, other = as_tf32(left), as_tf32(other)
        return right(left, other)

    monkeypatch.setattr(torch, "mm", narrower)
    workbench = bench()
    fp32 = reference.usable(workbench, ("fp32",))[0]
    with pytest.raises(Failed) as caught:
        getattr(cublas_matmul, check)(workbench, fp32)
    assert caught.value.kind == "wrong-value"


FAULTS: dict[str, tuple[Fault, str]] = {
    "a NaN": (
        lambda result: result.masked_fill(result == result.max(), float("nan")),
        "not-finite",
    ),
    "an infinity": (lambda result: result / 0, "not-finite"),
    "zeros": (torch.zeros_like, "wrong-value"),
    "a row less": (lambda result: result[1:], "wrong-shape"),
    "transposed": (lambda result: result.t(), "wrong-shape"),
    "another type": (lambda result: result.double(), "wrong-dtype"),
    "two rows swapped": (lambda result: result.roll(1, 0), "wrong-value"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_other_faults(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    break_it, kind = FAULTS[fault]
    put(monkeypatch, "mm", "float32", break_it)
    assert failure(cublas_matmul).kind == kind


def test_a_linear_layer_without_its_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch.nn.functional, "linear", lambda data, weight, _bias: data @ weight.t()
    )
    assert "linear layer" in failure(cublas_matmul).detail


def test_the_large_product_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.mm

    def wrong(left: Tensor, other: Tensor, **more: Any) -> Tensor:  # noqa: ANN401
        result = right(left, other, **more)
        if "out" in more and is_under_test(left, "float32"):
            result.mul_(1.01)
        return result

    monkeypatch.setattr(torch, "mm", wrong)
    assert "of size 64" in failure(cublas_matmul).detail


def test_every_partial_sum_is_representable() -> None:
    """The claim that makes integer products exact, for every format."""
    for fmt in reference._FORMATS:
        most = reference.LONGEST_SUM * (2 ** fmt.factor_bits[0] - 1) * (2 ** fmt.factor_bits[1] - 1)
        kept = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}[fmt.dtype]
        assert most <= 2**kept
        if fmt.sum_roundoff == 2.0**-23:
            assert most <= 2**23  # what tensor cores add up exactly


def test_odd_integers_need_every_bit() -> None:
    values = reference.integers(torch, reference.generator(torch, 1), (1000,), 11)
    assert bool((values % 2 != 0).all())
    assert int(values.abs().min()) > 1024
    assert int(values.abs().max()) < 2048
    assert 0 < int((values < 0).sum()) < 500
    assert not bool((as_bf16(values.float()) == values).any())


class Gpu:
    """Stands for a CUDA device where only its capability is asked for."""

    type = "cuda"
    index = 0


def on_gpu(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int]) -> Bench:
    workbench = bench()
    workbench.device = Gpu()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    return workbench


@pytest.mark.parametrize(
    ("capability", "names", "fp8"),
    [
        (
            (7, 5),
            ["fp64", "fp32", "fp16"],
            "fp8 exists from compute capability 8.9; this GPU has 7.5",
        ),
        ((8, 0), ["fp64", "fp32", "tf32", "fp16", "bf16"], "8.0"),
        ((8, 9), ["fp64", "fp32", "tf32", "fp16", "bf16"], ""),
        ((12, 0), ["fp64", "fp32", "tf32", "fp16", "bf16"], ""),
    ],
)
def test_formats_by_compute_capability(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], names: list[str], fp8: str
) -> None:
    workbench = on_gpu(monkeypatch, capability)
    found = reference.usable(workbench, ("fp64", "fp32", "tf32", "fp16", "bf16"))
    assert [fmt.name for fmt in found] == names
    assert all(reason for reason in workbench.data.get("not_tested", {}).values())
    reason = cublas_matmul._no_fp8(workbench)
    assert fp8 in reason
    assert bool(reason) == bool(fp8)


@pytest.mark.parametrize("as_pair", [True, False])
def test_fp8_of_early_and_late_releases(monkeypatch: pytest.MonkeyPatch, as_pair: bool) -> None:  # noqa: FBT001
    given: dict[str, Any] = {}

    def scaled(left: Tensor, right: Tensor, **more: Any) -> Any:  # noqa: ANN401
        given.update(more, by_columns=right.t().is_contiguous())
        product = (left.float() @ right.float()).to(more["out_dtype"])
        return (product, torch.zeros(1)) if as_pair else product

    monkeypatch.setattr(torch, "_scaled_mm", scaled)
    monkeypatch.setattr(cublas_matmul, "_no_fp8", lambda _bench: "")
    cublas_matmul._fp8(bench())
    assert given["by_columns"]
    assert float(given["scale_a"]) == float(given["scale_b"]) == 1.0
    monkeypatch.setattr(torch, "_scaled_mm", lambda *two, **more: scaled(*two, **more)[0] * 2)
    if as_pair:
        assert failure(cublas_matmul).kind == "wrong-value"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("torch._scaled_mm is only supported on compute capability >= 9.0"),
        RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling cublasLtMatmul"),
        TypeError("_scaled_mm() got an unexpected keyword argument"),
    ],
)
def test_fp8_that_is_not_had_for_this_gpu(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_two: Tensor, **_more: Any) -> None:  # noqa: ANN401
        raise error

    monkeypatch.setattr(torch, "_scaled_mm", refuse)
    monkeypatch.setattr(cublas_matmul, "_no_fp8", lambda _bench: "")
    workbench = bench()
    cublas_matmul._fp8(workbench)
    assert str(error)[:20] in workbench.data["not_tested"]["fp8"]


def test_an_fp8_fault_of_cublas_is_not_taken_for_an_old_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_two: Tensor, **_more: Any) -> None:  # noqa: ANN401
        message = "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasLtMatmul`"
        raise RuntimeError(message)

    monkeypatch.setattr(torch, "_scaled_mm", fail)
    monkeypatch.setattr(cublas_matmul, "_no_fp8", lambda _bench: "")
    with pytest.raises(RuntimeError, match="CUBLAS_STATUS"):
        cublas_matmul._fp8(bench())


@pytest.mark.parametrize("level", ["quick", "standard", "stress"])
@pytest.mark.parametrize(("name", "width"), [("fp64", 8), ("fp32", 4), ("fp16", 2)])
def test_large_products_stay_within_the_memory_limit(level: str, name: str, width: int) -> None:
    workbench = bench(level=level, memory_limit=256 << 20)
    workbench.device = Gpu()
    size = cublas_matmul._size(workbench, name, width)
    assert 256 <= size <= 8192
    assert 3 * size * size * width <= 128 << 20


def test_switches_are_put_back() -> None:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.deterministic)
    with reference.switches(torch, tf32=True, deterministic=True, reduced=False):
        assert (matmul.allow_tf32, cudnn.allow_tf32, cudnn.deterministic) == (True, True, True)
        assert matmul.allow_fp16_reduced_precision_reduction is False
    assert (matmul.allow_tf32, cudnn.allow_tf32, cudnn.deterministic) == before
    assert matmul.allow_fp16_reduced_precision_reduction is True


@pytest.mark.parametrize(
    ("capability", "value", "left_out"),
    [
        ((9, 0), "1", {"fp32": "NVIDIA_TF32_OVERRIDE=1 lets the GPU compute in TF32 instead"}),
        ((9, 0), "0", {"tf32": "NVIDIA_TF32_OVERRIDE=0 turns TF32 off"}),
        ((9, 0), "", {}),
        ((7, 5), "1", {"tf32": "TF32 exists from compute capability 8.0; this GPU has 7.5"}),
    ],
)
def test_a_variable_that_is_stronger_than_torchs_switches(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], value: str, left_out: Left
) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", value)
    workbench = on_gpu(monkeypatch, capability)
    names = ("fp64", "fp32", "tf32", "fp16")
    found = reference.obeyed(workbench, names)
    assert workbench.data.get("not_tested", {}).keys() == left_out.keys()
    assert {fmt.name for fmt in found} == set(names) - left_out.keys()
    if value:
        assert [words.lower() for words in workbench.data["not_tested"].values()] == [
            words.lower() for words in left_out.values()
        ]
    here = bench()
    assert {fmt.name for fmt in reference.obeyed(here, names)} == {"fp64", "fp32", "fp16"}
