"""ONNX Runtime with the requested provider only; a small model for it, and its right result."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import inspect
import os
import sys
import warnings
from typing import Any, NamedTuple

from . import reference
from .bench import Bench, Failed
from .reference import not_tested
from .words import say

# A small convolutional model for runtimes other than torch, and its right result.
#
# Its inputs and the weights of its first convolution are short integers, scaled by powers of two.
# Both convolutions have stride 2, for which Winograd's method does not exist. So the first sum is
# exact in fp32 and in TF32; with ReLU the whole model is exact. ``docs/selftests/reference.md`` has
# the arithmetic.

Torch = Any  # the module, of any version
Tensor = Any
Module = Any

ACTIVATIONS = ("relu", "sigmoid", "tanh")
_LAYERS = {"relu": "ReLU", "sigmoid": "Sigmoid", "tanh": "Tanh"}
# An odd side with stride 2 has an edge; the bits below allow for 18 and 72 products.
_BATCH, _CHANNELS, _INNER, _SIDE, _KERNEL = 2, (2, 4), 8, 17, 3
# 18 products of them stay below 2**11, which TF32 holds exactly, and 72 products of these sums
# below 2**24.
_DATA_BITS, _WEIGHT_BITS = 4, 3
_SCALE = 2.0**-7
"""Makes the sums of the first convolution, which are some hundreds, fit a sigmoid."""
_SMOOTH = 2.0**-20
"""How far a sigmoid or a hyperbolic tangent may be off. It is absolute, because libraries compute a
sigmoid as one half and an odd function."""
_TENSOR_CORE = 2.0**-23  # reference.py has the source
_TF32 = 2.0**-10
"""What a rounding to TF32 costs at most, cut off or not."""


class ModelTask(NamedTuple):
    """A model in float32 on the CPU, its input, and its result in float64 with a bound."""

    activation: str
    model: Module
    data: Tensor
    expected: Tensor
    bound: Tensor
    because: str


def task(torch: Torch, seed: int, activation: str, *, coarse: bool = False) -> ModelTask:
    """Return the model with this activation; ``coarse`` allows TF32."""
    source = reference.generator(torch, seed)
    nn, scale = torch.nn, 1.0 if activation == "relu" else _SCALE
    first = nn.Conv2d(_CHANNELS[0], _INNER, _KERNEL, stride=2, padding=1)
    second = nn.Conv2d(_INNER, _CHANNELS[1], _KERNEL, stride=2, padding=1)
    with torch.no_grad():
        for layer in (first, second):
            for values in layer.parameters():
                drawn = reference.integers(torch, source, values.shape, _WEIGHT_BITS)
                values.copy_(drawn.float() * scale)
    model = nn.Sequential(first, getattr(nn, _LAYERS[activation])(), second).eval()
    size = (_BATCH, _CHANNELS[0], _SIDE, _SIDE)
    data = reference.integers(torch, source, size, _DATA_BITS).float()
    with torch.no_grad():
        return ModelTask(activation, model, data, *_right(torch, model, data, coarse=coarse))


def _right(
    torch: Torch, model: Module, data: Tensor, *, coarse: bool
) -> tuple[Tensor, Tensor, str]:
    """Return the result in float64, the error bound, and the reason for the bound."""
    first, activation, second = model
    inner = activation(_convolved(torch, first, data.double(), first.bias.double()))
    result = _convolved(torch, second, inner, second.bias.double())
    if isinstance(activation, torch.nn.ReLU):
        return (
            result,
            torch.zeros_like(result),
            say("exact, because every partial sum is representable"),
        )
    off = torch.full_like(inner, _TF32 if coarse else _SMOOTH)
    if coarse:
        off = off + _TF32 * inner.abs()
    terms = second.weight[0].numel() + 1
    sums = _absolute(torch, second, inner.abs(), second.bias.double().abs())
    bound = _absolute(torch, second, off, None) + reference.gamma(terms, _TENSOR_CORE) * sums
    if coarse:
        because = say(
            "TF32, the error of the activation, rounding of a sum of {count} products", count=terms
        )
    else:
        because = say("2^-20 of the activation, rounding of a sum of {count} products", count=terms)
    return result, bound, because


def _convolved(torch: Torch, layer: Module, data: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.conv2d(data, layer.weight.double(), bias, 2, 1)


def _absolute(torch: Torch, layer: Module, data: Tensor, bias: Tensor | None) -> Tensor:
    return torch.nn.functional.conv2d(data, layer.weight.double().abs(), bias, 2, 1)


def judge(bench: Bench, model_task: ModelTask, got: Tensor, by: str) -> None:
    """Check each value that a runtime has computed.

    Raises:
        Failed: see ``reference``.
    """
    what = f"convolutions and {model_task.activation}, {by}"
    there = got.to(bench.device)
    reference.require_dtype(what, there, bench.torch.float32)
    reference.within(what, there, model_task.expected, model_task.bound, bench, model_task.because)


# Exports a model by torch, and runs it in ONNX Runtime with the requested provider only.

Runtime = Any  # the module onnxruntime, of any version
Session = Any

_EXPORTER_NEEDS = ("onnx", "onnxscript")
_NOT_MADE_FOR_IT = ("not supported on Python", "not yet supported for", "dynamo=")
_TURNED_OFF = {"CUDAExecutionProvider": {"use_tf32": "0"}}
"""Options that older releases of ONNX Runtime do not have."""


def require_runtime(bench: Bench) -> Runtime:
    """Import ONNX Runtime; skip the test where it is not installed."""
    if not is_installed("onnxruntime"):
        bench.skip(say("ONNX Runtime is not installed in this Python"))
    bench.stage(say("import onnxruntime"))
    runtime = importlib.import_module("onnxruntime")
    bench.data["onnxruntime"] = str(getattr(runtime, "__version__", ""))
    return runtime


def is_installed(name: str) -> bool:
    """Whether a module of this name can be found, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # a module that has replaced itself in sys.modules
        return name in sys.modules


def exporters(torch: Torch) -> dict[str, dict[str, Any]]:
    """Return the exporters of this torch by name, each with the options that choose it."""
    if "dynamo" not in inspect.signature(torch.onnx.export).parameters:
        return {"TorchScript": {}}
    return {"torch.export": {"dynamo": True}, "TorchScript": {"dynamo": False}}


def export(bench: Bench, task: ModelTask, name: str, path: str) -> bool:
    """Export a model; return False and note the reason if this exporter does not work here."""
    torch = bench.torch
    bench.stage(say("export by {name}: {activation}", name=name, activation=task.activation))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the exporter's own age
            torch.onnx.export(task.model, (task.data,), path, **exporters(torch)[name])
    except Exception as error:
        missing = [each for each in _EXPORTER_NEEDS if not is_installed(each)]
        words = f"{type(error).__name__}: {error}"
        if missing:
            not_tested(
                bench,
                say("export by {name}", name=name),
                say("not installed: {names}", names=", ".join(missing)),
            )
        elif any(each in words for each in _NOT_MADE_FOR_IT):
            not_tested(
                bench,
                say("export by {name}", name=name),
                say("torch says: {words}", words=words[:200]),
            )
        else:
            raise
        return False
    return True


def open_session(
    bench: Bench, runtime: Runtime, path: str, provider: str, options: dict[str, str]
) -> Session:
    """Load a model with this provider and no other.

    Raises:
        Failed: with kind ``provider-not-loaded``. ONNX Runtime itself would only print a warning
            and compute on the CPU.
    """
    bench.stage(say("starting the {provider}", provider=provider))
    try:
        session = _without_tf32(bench, runtime, path, provider, options)
    except Exception as error:
        failed = not_loaded(runtime, provider)
        if failed.data["loader"]:
            raise failed from error
        raise
    if provider not in session.get_providers():
        raise not_loaded(runtime, provider)
    return session


def _without_tf32(
    bench: Bench, runtime: Runtime, path: str, provider: str, options: dict[str, str]
) -> Session:
    """Start a session with TF32 off, or note that this release cannot turn it off."""
    off = _TURNED_OFF.get(provider, {})
    try:
        return _session(runtime, path, provider, {**options, **off})
    except Exception as error:
        if not any(each in str(error) for each in off):
            raise
    bench.data["tf32"] = "this ONNX Runtime cannot turn it off"
    return _session(runtime, path, provider, options)


def _session(runtime: Runtime, path: str, provider: str, options: dict[str, str]) -> Session:
    wanted = runtime.SessionOptions()
    wanted.intra_op_num_threads = 1
    return runtime.InferenceSession(
        path, wanted, providers=[provider], provider_options=[options], enable_fallback=0
    )


def not_loaded(runtime: Runtime, provider: str) -> Failed:
    """Return why a provider was not loaded, in the words of the dynamic loader."""
    error = _loader_says(runtime, provider)
    detail = say(
        "ONNX Runtime did not load its {provider}, and what it printed says why", provider=provider
    )
    if error:
        detail = say(
            "ONNX Runtime did not load its {provider}: {error}", provider=provider, error=error
        )
    return Failed("provider-not-loaded", detail, {"provider": provider, "loader": error})


def _loader_says(runtime: Runtime, provider: str) -> str:
    """Return why the provider's library cannot be loaded, "" when it can or is not there."""
    short = provider.replace("ExecutionProvider", "").lower()
    place = os.path.join(os.path.dirname(runtime.__file__ or ""), "capi")
    shape = "onnxruntime_providers_{}.dll" if os.name == "nt" else "libonnxruntime_providers_{}.so"
    try:
        for name, mode in (("shared", ctypes.RTLD_GLOBAL), (short, ctypes.RTLD_LOCAL)):
            path = os.path.join(place, shape.format(name))
            if os.path.isfile(path):
                ctypes.CDLL(path, mode)
    except OSError as error:
        return str(error)[:400]
    return ""


def computed(bench: Bench, session: Session, data: Tensor) -> Tensor:
    """Run the model once and return lists, because torch and NumPy may be incompatible."""
    numpy = importlib.import_module("numpy")
    bench.stage(say("running the model"))
    given = numpy.array(data.tolist(), dtype=numpy.float32)
    (result,) = session.run(None, {session.get_inputs()[0].name: given})
    if str(result.dtype) != "float32":
        raise Failed("wrong-dtype", say("the result is {got} instead of float32", got=result.dtype))
    return bench.torch.tensor(result.tolist(), dtype=bench.torch.float32)
