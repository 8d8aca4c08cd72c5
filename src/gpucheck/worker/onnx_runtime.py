"""Exports a model by torch, and runs it in ONNX Runtime with the requested provider only."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import inspect
import os
import sys
import warnings
from typing import Any

from .bench import Bench, Failed
from .formats import not_tested
from .small_model import Task
from .words import say

Torch = Any  # the module, of any version
Tensor = Any
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


def export(bench: Bench, task: Task, name: str, path: str) -> bool:
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
