"""A small model, exported by torch and run by ONNX Runtime; every value is compared with float64.

Only programs that export a model need this, so the test runs only if it is named.
"""

from __future__ import annotations

import os

from .. import onnx_runtime
from ..bench import Bench
from ..words import say

NAME = "onnx-export"
PER = "gpu"
LEVELS = ()
ABOUT = "a model exported to ONNX and run by ONNX Runtime on this device (only when named)"
# Chosen, as jit.py: exporters compile, and ONNX Runtime loads CUDA's libraries.
SECONDS = {"quick": 300, "standard": 300, "stress": 300}

_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def run(bench: Bench) -> None:
    """Export a model with each activation by each exporter, run it, and compare every value."""
    runtime = onnx_runtime.require_runtime(bench)
    provider = _CUDA if bench.device.type == "cuda" else _CPU
    if provider not in runtime.get_available_providers():
        bench.skip(
            say(
                "this ONNX Runtime is a build without the {provider}; the package onnxruntime-gpu "
                "has it",
                provider=provider,
            )
        )
    options = {} if provider == _CPU else {"device_id": str(bench.device.index or 0)}
    with bench.own_folder("gpucheck-onnx-") as folder:
        done = [
            exporter
            for exporter in onnx_runtime.exporters(bench.torch)
            if _is_right(bench, runtime, exporter, folder, provider, options)
        ]
    if not done:
        reasons = "; ".join(dict.fromkeys(bench.data["not_tested"].values()))
        bench.skip(
            say("this torch cannot export a model to ONNX here ({reasons})", reasons=reasons)
        )
    bench.data["exporters"] = done
    bench.remark = say(
        "ONNX Runtime {version} computed it with its {provider}",
        version=bench.data["onnxruntime"],
        provider=provider,
    )


def _is_right(  # where, by what, into what
    bench: Bench,
    runtime: onnx_runtime.Runtime,
    exporter: str,
    folder: str,
    provider: str,
    options: dict[str, str],
) -> bool:
    """Test one exporter; return False if it does not work here."""
    for activation in onnx_runtime.ACTIVATIONS:
        path = os.path.join(folder, f"{exporter}-{activation}.onnx")
        task = onnx_runtime.task(bench.torch, bench.seed, activation)
        if not onnx_runtime.export(bench, task, exporter, path):
            return False
        session = onnx_runtime.open_session(bench, runtime, path, provider, options)
        if "tf32" in bench.data:
            task = onnx_runtime.task(bench.torch, bench.seed, activation, coarse=True)
        got = onnx_runtime.computed(bench, session, task.data)
        onnx_runtime.judge(bench, task, got, f"exported by {exporter}")
    return True
