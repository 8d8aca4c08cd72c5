"""``import torch``: how long it takes, which devices it sees, and why it sees no GPU."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Dict

from ..bench import Bench, Failed
from ..errors import explain
from ..loaded import mapped_libraries
from ..words import say

NAME = "import-torch"
PER = "machine"
LEVELS = ("quick", "standard", "stress")
ABOUT = "import torch: its time, the devices it sees, why it sees no GPU"

Message = Dict[str, Any]

_DRIVER = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"


def run(bench: Bench) -> None:
    """Note torch's build and the CUDA devices that it sees; fail if it sees none but should."""
    torch = bench.torch
    if "import_seconds" in bench.notes:
        bench.measure("import", bench.notes["import_seconds"], "s")
    bench.data.update(torch=str(torch.__version__), cuda=_built_for(torch), devices=[])
    bench.stage(say("a tensor on the CPU"))
    two = torch.ones(2)
    bench.require(float((two + two).sum()) == 4.0, "wrong-value", say("1 + 1 is not 2 on the CPU"))  # noqa: PLR2004
    if bench.data["cuda"]:
        note_cudnn(bench)
    note_libraries(bench)
    if not bench.data["cuda"]:
        return
    bench.stage("torch.cuda.is_available()")
    if not torch.cuda.is_available():
        data = why_not(bench)
        bench.data.update(data)
        if bench.expect_gpu:
            raise Failed("cuda-unavailable", _sentence(data), data)
        return
    bench.stage("torch.cuda.get_device_properties()")
    bench.data["devices"] = devices(torch)


def note_cudnn(bench: Bench) -> None:
    """Note the cuDNN that torch loads; the test of cuDNN judges whether it must load one."""
    bench.stage("torch.backends.cudnn.version()")
    try:
        bench.data["cudnn"] = bench.torch.backends.cudnn.version()
    except Exception as error:  # noqa: BLE001  # whatever it raises is told
        bench.data["cudnn_error"] = explain(error)["detail"]


def note_libraries(bench: Bench) -> None:
    """Note which files are loaded by now (Linux); the parent compares them with the prediction."""
    with contextlib.suppress(OSError):
        bench.data["libraries"] = mapped_libraries()


def devices(torch: Any) -> list[Message]:  # noqa: ANN401  # the module
    """Return torch's description of each CUDA device."""
    found = []
    for at in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(at)
        found.append(
            {
                "device": f"cuda:{at}",
                "name": properties.name,
                "compute_capability": f"{properties.major}.{properties.minor}",
                "memory_total": properties.total_memory,
            }
        )
    return found


def why_not(bench: Bench) -> Message:
    """Return the error of initialising CUDA, by torch and by the driver's library directly."""
    data: Message = {}
    bench.stage("torch.cuda.init()")
    try:
        bench.torch.cuda.init()
    except Exception as error:  # noqa: BLE001  # whatever it raises is the reason
        data.update(explain(error)["data"])
    bench.stage("cuInit")
    data["init_code"], data["load_error"] = cu_init()
    if data["init_code"]:
        data.setdefault("cuda_code", data["init_code"])
    return data


def cu_init() -> tuple[int | None, str]:
    """Return the result of ``cuInit(0)``, or why the driver's library cannot be loaded."""
    # On Windows the driver's functions have their own calling convention.
    kind = getattr(ctypes, "WinDLL", ctypes.CDLL)
    try:
        return int(kind(_DRIVER).cuInit(0)), ""
    except (OSError, AttributeError) as error:
        return None, str(error)[:300]


def _built_for(torch: Any) -> str:  # noqa: ANN401  # the module
    return str(getattr(getattr(torch, "version", None), "cuda", None) or "")


def _sentence(data: Message) -> str:
    if data.get("load_error"):
        return say("torch.cuda.is_available() is False: {error}", error=data["load_error"])
    if data.get("message"):
        first = str(data["message"]).splitlines()[0][:300]
        return say("torch.cuda.is_available() is False: {error}", error=first)
    return say("torch.cuda.is_available() is False")
