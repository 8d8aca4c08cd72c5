"""A small model, compiled for TensorRT and run by it; every value is compared with float64.

torch_tensorrt and ONNX Runtime's provider run it. Few programs use them, so the test runs only if
it is named.
"""

from __future__ import annotations

import copy
import ctypes.util
import importlib
import os
import warnings
from typing import Any

from .. import onnx_runtime
from ..bench import Bench, release, synchronize
from ..reference import not_tested
from ..words import say

NAME = "tensorrt"
PER = "gpu"
LEVELS = ()
ABOUT = (
    "a model compiled by torch_tensorrt, and one run by ONNX Runtime's TensorRT (only when named)"
)
# Chosen, as jit.py: TensorRT tries kernels for each layer.
SECONDS = {"quick": 300, "standard": 300, "stress": 300}

Module = Any

_PROVIDER = "TensorrtExecutionProvider"
_WORKSPACE = 1 << 28  # bytes: what the quick level may use of a GPU (docs/selftests/reference.md)
_TORCH, _ONNX = "torch_tensorrt", "ONNX Runtime's TensorRT"


def run(bench: Bench) -> None:
    """Compute a model with each activation in each way that is installed here."""
    if bench.device.type != "cuda":
        bench.skip(say("TensorRT runs on NVIDIA GPUs only"))
    done = [
        way
        for way, compute in ((_TORCH, _by_torch_tensorrt), (_ONNX, _by_onnx_runtime))
        if compute(bench)
    ]
    release(bench)
    if not done:
        reasons = "; ".join(dict.fromkeys(bench.data["not_tested"].values()))
        bench.skip(say("there is no TensorRT to test in this Python ({reasons})", reasons=reasons))
    bench.remark = say("computed by: {ways}", ways=", ".join(done))


def _by_torch_tensorrt(bench: Bench) -> bool:
    if not onnx_runtime.is_installed("torch_tensorrt"):
        not_tested(bench, _TORCH, say("torch_tensorrt is not installed"))
        return False
    bench.stage(say("import torch_tensorrt"))
    compiler = importlib.import_module("torch_tensorrt")
    bench.data["torch_tensorrt"] = str(getattr(compiler, "__version__", ""))
    for activation in onnx_runtime.ACTIVATIONS:
        task = onnx_runtime.task(bench.torch, bench.seed, activation, coarse=True)
        data = task.data.to(bench.device)
        bench.stage(say("compiling for TensorRT: {activation}", activation=activation))
        with warnings.catch_warnings(), bench.torch.no_grad():
            warnings.simplefilter("ignore")
            compiled = compiler.compile(
                copy.deepcopy(task.model).to(bench.device), inputs=[data], min_block_size=1
            )  # a block of fewer layers than five would be left to torch
            bench.stage(say("running the engine: {activation}", activation=activation))
            got = compiled(data)
        synchronize(bench)
        onnx_runtime.judge(bench, task, got, f"by {_TORCH}")
        if not _has_engine(compiled):
            not_tested(
                bench,
                say("{activation}: that TensorRT ran", activation=activation),
                say("its modules do not show it"),
            )
    return True


def _has_engine(compiled: Module) -> bool:
    """Whether part of a compiled module is recognisably a TensorRT engine."""
    graph = str(getattr(compiled, "graph", ""))
    kinds = [type(each).__name__ for each in compiled.modules()]
    return "tensorrt::" in graph or any("TensorRT" in kind for kind in kinds)


def _by_onnx_runtime(bench: Bench) -> bool:
    why = _why_no_provider(bench)
    if why:
        not_tested(bench, _ONNX, why)
        return False
    options = {
        "device_id": str(bench.device.index or 0),
        "trt_max_workspace_size": str(_WORKSPACE),
    }
    runtime = onnx_runtime.require_runtime(bench)
    with bench.own_folder("gpucheck-onnx-") as folder:
        for activation in onnx_runtime.ACTIVATIONS:
            task = onnx_runtime.task(bench.torch, bench.seed, activation, coarse=True)
            path = os.path.join(folder, f"{activation}.onnx")
            exporters = onnx_runtime.exporters(bench.torch)
            if not any(onnx_runtime.export(bench, task, each, path) for each in exporters):
                return False
            session = onnx_runtime.open_session(bench, runtime, path, _PROVIDER, options)
            got = onnx_runtime.computed(bench, session, task.data)
            onnx_runtime.judge(bench, task, got, f"by {_ONNX}")
    return True


def _why_no_provider(bench: Bench) -> str:
    """Return why ONNX Runtime is not expected to support TensorRT here; "" if it is."""
    if not onnx_runtime.is_installed("onnxruntime"):
        return say("ONNX Runtime is not installed")
    runtime = onnx_runtime.require_runtime(bench)
    if _PROVIDER not in runtime.get_available_providers():
        return say("this ONNX Runtime is a build without TensorRT")
    if onnx_runtime.is_installed("tensorrt"):
        bench.stage(say("import tensorrt"))
        importlib.import_module("tensorrt")  # without it nothing finds its libraries
        return ""
    return "" if ctypes.util.find_library("nvinfer") else say("TensorRT itself is not installed")
