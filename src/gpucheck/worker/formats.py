"""The number formats under test: their significant bits, where they exist, torch's switches."""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import Any, Iterator, NamedTuple, Sequence

from .bench import Bench
from .words import say

Torch = Any  # the module, of any version
Dtype = Any
Tensor = Any


class Format(NamedTuple):
    """A number format, as inputs and results have it.

    Attributes:
        name: ``fp64``, ``fp32``, ``tf32``, ``fp16`` or ``bf16``.
        dtype: of the tensors; TF32 works on float32 tensors.
        bits: significant bits of an input, the hidden one included (IEEE 754; TF32 and bfloat16:
            the CUDA C++ Programming Guide, "Alternate Floating Point").
        factor_bits: the bits of integers whose products can be added up, 256 of them, with every
            partial sum exact in the format of the result.
        result_roundoff: unit roundoff of the result's format.
        sum_roundoff: unit roundoff of the sums. Tensor cores truncate instead of rounding to
            nearest, so the relative error of an addition is up to 2**-23 (Fasi, Higham, Mikaitis,
            Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021).
    """

    name: str
    dtype: Dtype
    bits: int
    factor_bits: tuple[int, int]
    result_roundoff: float
    sum_roundoff: float

    @property
    def factor_roundoff(self) -> float:
        """Unit roundoff of an input."""
        return 2.0**-self.bits


_TENSOR_CORE = 2.0**-23
_FORMATS = (
    Format("fp64", "float64", 53, (30, 14), 2.0**-53, 2.0**-53),
    Format("fp32", "float32", 24, (13, 3), 2.0**-24, 2.0**-24),
    Format("tf32", "float32", 11, (11, 3), 2.0**-24, _TENSOR_CORE),
    Format("fp16", "float16", 11, (3, 1), 2.0**-11, _TENSOR_CORE),
    Format("bf16", "bfloat16", 8, (1, 1), 2.0**-8, _TENSOR_CORE),
)
"""Their ``dtype`` is still a name here: there is no torch before a test is run."""
_SINCE = {"tf32": (8, 0), "bf16": (8, 0)}
FP8_SINCE = (8, 9)


def usable(bench: Bench, names: Sequence[str]) -> list[Format]:
    """Return the named formats that exist here; note why the others do not."""
    found = []
    for fmt in _FORMATS:
        reason = _missing(bench, fmt) if fmt.name in names else None
        if reason:
            not_tested(bench, fmt.name, reason)
        elif reason is not None:
            found.append(fmt._replace(dtype=getattr(bench.torch, fmt.dtype)))
    return found


def obeyed(bench: Bench, names: Sequence[str]) -> list[Format]:
    """Return the usable formats in which NVIDIA's libraries compute if torch asks for them."""
    found = []
    for fmt in usable(bench, names):
        if reason := _overridden(bench, fmt.name):
            not_tested(bench, fmt.name, reason)
        else:
            found.append(fmt)
    return found


def _overridden(bench: Bench, name: str) -> str:
    """Return why another format is used, whatever torch's switches say; "" if it is not.

    With NVIDIA_TF32_OVERRIDE=1, cuBLAS multiplied float32 in TF32 on an H100.
    """
    if bench.device.type != "cuda":
        return ""
    value = os.environ.get("NVIDIA_TF32_OVERRIDE")
    if value == "0" and name == "tf32":
        return say("NVIDIA_TF32_OVERRIDE=0 turns TF32 off")
    if value == "1" and name == "fp32" and not too_old(bench, "tf32", _SINCE["tf32"]):
        return say("NVIDIA_TF32_OVERRIDE=1 lets the GPU compute in TF32 instead")
    return ""


def not_tested(bench: Bench, part: str, reason: str) -> None:
    """Note that a part of the test was left out, and why."""
    bench.data.setdefault("not_tested", {})[part] = reason


def _missing(bench: Bench, fmt: Format) -> str:
    if bench.device.type != "cuda":
        if fmt.name == "tf32":
            return say("TF32 exists on GPUs only")
        if fmt.name == "fp16" and not _multiplies(bench, fmt.dtype):
            return say("this torch does not multiply fp16 on the CPU")
        return ""
    return too_old(bench, fmt.name, _SINCE.get(fmt.name))


def too_old(bench: Bench, name: str, since: tuple[int, int] | None) -> str:
    """Return why this GPU does not have the format; "" if it has."""
    capability = tuple(bench.torch.cuda.get_device_capability(bench.device))
    if since is None or capability >= since:
        return ""
    return say(
        "{format} exists from compute capability {since}; this GPU has {found}",
        format=name,
        since="{}.{}".format(*since),
        found="{}.{}".format(*capability),
    )


def _multiplies(bench: Bench, dtype: str) -> bool:
    square = bench.torch.ones(2, 2, dtype=getattr(bench.torch, dtype))
    try:
        bench.torch.mm(square, square)
        weight = square.reshape(1, 1, 2, 2)
        bench.torch.nn.functional.conv2d(weight, weight)
    except RuntimeError:
        return False
    return True


@contextlib.contextmanager
def switches(
    torch: Torch,
    *,
    tf32: bool = False,
    deterministic: bool = False,
    reduced: bool | None = None,
) -> Iterator[None]:
    """Set torch's switches for the precision and the order of its computations.

    ``reduced`` allows or forbids that partial sums of fp16 and bf16 are rounded to 16 bits; None
    changes nothing. The older names are used, because they also set the newer switches. The newer
    names would leave torch with contradicting settings.
    """
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    wanted = [
        (matmul, "allow_tf32", tf32),
        (cudnn, "allow_tf32", tf32),
        (cudnn, "deterministic", deterministic),
        (cudnn, "benchmark", False),
    ]
    if reduced is not None:
        wanted.append((matmul, "allow_fp16_reduced_precision_reduction", reduced))
        wanted.append((matmul, "allow_bf16_reduced_precision_reduction", reduced))
    before = [(owner, name, _set(owner, name, value)) for owner, name, value in wanted]
    try:
        yield
    finally:
        for owner, name, old in before:
            if old is not None:
                _set(owner, name, old)


def _set(owner: Any, name: str, value: Any) -> Any:  # noqa: ANN401  # modules of torch
    """Set a switch and return its former value; None if this torch does not have it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases call the older names deprecated
        try:
            old = getattr(owner, name)
            setattr(owner, name, value)
        except (AttributeError, AssertionError):
            return None
    return old


def rounded(torch: Torch, fmt: Format, values: Tensor) -> Tensor:
    """Round to the format, so that the device and the reference have exactly the same input."""
    if fmt.name == "tf32":
        values = values.to(torch.float16)  # as many bits, and a range that is wide enough here
    return values.to(fmt.dtype)


def sums_in_16_bits(bench: Bench, fmt: Format) -> bool:
    """Whether partial sums may be rounded to 16 bits, as several releases of torch do on the CPU.

    If so, there is no useful error bound. Products of integers are still exact.
    """
    return bench.device.type == "cpu" and fmt.name in ("fp16", "bf16")
