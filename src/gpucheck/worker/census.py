"""Describes torch and its GPUs in this process; a pre-flight compares the answers of all nodes."""

from __future__ import annotations

import ctypes
import platform
from typing import Any, Callable, Dict, Iterator

from .errors import explain

Message = Dict[str, Any]
Torch = Any  # the module, of any version
Send = Callable[[Message], None]

_MOST_DEVICES = 256  # chosen: above any machine; a broken torch may answer any count
_LONGEST = 200  # chosen: names and versions have some dozens; another task reads them
_DRIVERS = ("libcuda.so.1", "nvcuda.dll")
_UUID_BYTES, _PCI_BYTES = 16, 32  # CUuuid, and DDDD:BB:DD.F with room for a longer domain
_CUDNN_9 = 90000
"""From this version on cuDNN counts major * 10000 + minor * 100 + patch, before it major * 1000."""


def run(torch: Torch, order: Message, _notes: Message, send: Send) -> None:
    """Describe the order's ``device``; for ``cpu``, neither CUDA nor cuDNN is touched.

    The keys of the answer are ``python``, ``torch``, ``cuda``, ``cudnn``, ``nccl`` and ``devices``.
    A value that is unknown is None, and ``problems`` has the reason under the same key.
    """
    answer: Message = {"event": "census", "python": platform.python_version(), "problems": {}}
    is_cuda = str(order.get("device") or "cpu").startswith("cuda")
    questions: dict[str, Callable[[], Any]] = {
        "torch": lambda: str(torch.__version__),
        "cuda": lambda: torch.version.cuda,
        "nccl": lambda: _nccl(torch),
        "cudnn": lambda: _cudnn(torch) if is_cuda else None,
        "devices": lambda: list(_devices(torch, answer["problems"])) if is_cuda else [],
    }
    for name, question in questions.items():
        send({"event": "stage", "text": f"census: {name}"})
        try:
            value = question()
            answer[name] = value[:_LONGEST] if isinstance(value, str) else value
        except Exception as error:  # noqa: BLE001  # whatever a broken torch raises is the reason
            answer[name] = None
            answer["problems"][name] = explain(error)["detail"]
    send(answer)


def _nccl(torch: Torch) -> str | None:
    """Return the version of the loaded NCCL; None when this torch has none."""
    if not getattr(torch.version, "cuda", None) or not hasattr(torch._C, "_nccl_version"):  # noqa: SLF001  # torch has no public one
        return None
    version = torch.cuda.nccl.version()
    parts = version if isinstance(version, tuple) else (version,)
    return ".".join(str(part) for part in parts)


def _cudnn(torch: Torch) -> str | None:
    """Return the version of the loaded cuDNN; None when this torch has none."""
    number = torch.backends.cudnn.version()
    if number is None:
        return None
    thousand = 10000 if number >= _CUDNN_9 else 1000
    return f"{number // thousand}.{number % thousand // 100}.{number % 100}"


def _devices(torch: Torch, problems: Message) -> Iterator[Message]:
    count = torch.cuda.device_count()
    if count == 0:
        torch.cuda.init()  # the error says why there is none
    driver = _driver()
    for index in range(min(count, _MOST_DEVICES)):
        device: Message = {"index": index, "name": None, "memory": None, "capability": None}
        device.update(uuid=None, pci=None)
        try:
            seen = torch.cuda.get_device_properties(index)
            device["name"] = str(seen.name)[:_LONGEST]
            device["memory"] = int(seen.total_memory)
            device["capability"] = f"{seen.major}.{seen.minor}"
            if driver is not None:
                device.update(_place(driver, index))
        except Exception as error:  # noqa: BLE001  # one broken GPU hides no other
            problems[f"device {index}"] = explain(error)["detail"]
        yield device


def _driver() -> Any:  # noqa: ANN401  # a loaded library
    """Return the CUDA driver's library, which torch has already initialised."""
    for name in _DRIVERS:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _place(driver: Any, index: int) -> Message:  # noqa: ANN401  # a loaded library
    """Return UUID and PCI address of a device, as nvidia-smi and sysfs write them.

    The first function knows the UUID of the GPU, the second one that of the MIG instance.
    """
    handle = ctypes.c_int()
    if driver.cuDeviceGet(ctypes.byref(handle), index):
        return {}
    found: Message = {}
    whole, own = (
        _uuid(getattr(driver, name, None), handle)
        for name in ("cuDeviceGetUuid", "cuDeviceGetUuid_v2")
    )
    if whole or own:
        is_part = bool(whole and own and whole != own)
        found["uuid"] = ("MIG-" if is_part else "GPU-") + (own or whole or "")
    text = ctypes.create_string_buffer(_PCI_BYTES)
    if not driver.cuDeviceGetPCIBusId(text, _PCI_BYTES, handle):
        found["pci"] = text.value.decode("ascii", "replace").lower()
    return found


def _uuid(question: Any, handle: ctypes.c_int) -> str | None:  # noqa: ANN401  # a C function
    octets = (ctypes.c_ubyte * _UUID_BYTES)()
    if question is None or question(ctypes.byref(octets), handle):
        return None
    text = bytes(octets).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
