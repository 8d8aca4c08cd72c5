"""Asks the CUDA driver itself through ctypes. It may hang or crash: use it in a child only.

No context is created, because that takes seconds and GPU memory. A recorded machine keeps the raw
form as ``cuinit.json``. In place of any value after ``load_error`` there may be ``{"error":
CODE}``: the driver's code, or a text if something other than the driver failed::

    {"library": "/usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03", "load_error": "",
     "init_code": 0, "cuda_version": 12020, "device_count": 1,
     "devices": [{"name": "NVIDIA H100 80GB HBM3", "compute_capability": [9, 0],
                  "uuid": "8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a90"}]}

If the library cannot be loaded, ``library`` is "", ``load_error`` has the loader's message, and the
other keys are missing. If ``init_code`` is not 0 (100 no device, 34 a stub library, 803 a mismatch
...), ``device_count`` and ``devices`` are missing.
"""

import ctypes
import os
import uuid
from typing import TYPE_CHECKING, Any

from gpucheck.facts import Answer

if TYPE_CHECKING:
    from gpucheck.machine.base import Host

LIBRARY = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
WSL_LIBRARY = "/usr/lib/wsl/lib/libcuda.so.1"

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of cuda.h
_NAME_SIZE = 256  # as in cudaDeviceProp
_MAX_DEVICES = 256  # chosen: above any machine; a broken library may answer any count


def ask(host: "Host") -> Answer[dict[str, Any]]:
    """Load libcuda, call ``cuInit(0)`` and ask for the version and the devices."""
    host.stage(f"loading {LIBRARY}")
    library, problem = _load()
    if library is None:
        return Answer({"library": "", "load_error": problem}, LIBRARY)
    asker = _Asker(host, library)
    version = ctypes.c_int()
    raw: dict[str, Any] = {
        "library": _path_of(library),
        "load_error": "",
        "cuda_version": asker.value("cuDriverGetVersion", version),
        "init_code": asker.code("cuInit", ctypes.c_uint(0)),
    }
    if raw["init_code"] == 0:
        count = asker.value("cuDeviceGetCount", ctypes.c_int())
        raw["device_count"] = count
        if isinstance(count, int):
            raw["devices"] = [asker.device(at) for at in range(min(count, _MAX_DEVICES))]
    return Answer(raw, "libcuda")


def _load() -> tuple[ctypes.CDLL | None, str]:
    """Load the library that the loader finds, or WSL's; otherwise return the loader's message."""
    problem = ""
    for name in (LIBRARY, WSL_LIBRARY):
        if name == WSL_LIBRARY and not os.path.exists(name):  # noqa: PTH110  # no pathlib for it
            continue
        try:
            return _dll(name), ""
        except OSError as error:
            problem = problem or str(error)
    return None, problem


def _dll(name: str) -> ctypes.CDLL:
    """Load a library; on Windows the driver's functions have their own calling convention."""
    kind: type[ctypes.CDLL] = getattr(ctypes, "WinDLL", ctypes.CDLL)
    return kind(name)


def _path_of(library: ctypes.CDLL) -> str:
    """Return the path of the loaded file according to the kernel, or else the requested name."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
            for line in maps:
                path = line.rstrip("\n").partition("/")
                if path[2].rpartition("/")[2].startswith("libcuda.so"):
                    return f"/{path[2]}"
    except OSError:
        pass
    return str(getattr(library, "_name", LIBRARY))


class _Asker:
    """Calls the CUDA driver and turns each answer into plain data."""

    def __init__(self, host: "Host", library: ctypes.CDLL) -> None:
        self._host = host
        self._library = library
        self._subject = ""

    def code(self, name: str, *arguments: object) -> Any:  # noqa: ANN401  # a code or an error
        """Call a function and return its code."""
        function = getattr(self._library, name, None)
        if function is None:
            return {"error": f"the library has no {name}"}
        self._host.stage(f"{name}{self._subject}")
        return int(function(*arguments))

    def value(self, name: str, into: Any, *arguments: object) -> Any:  # noqa: ANN401  # ctypes
        """Call a function that fills its first argument; return the value or ``{"error": ...}``."""
        code = self.code(name, ctypes.byref(into), *arguments)
        if code == 0:
            return into.value
        return code if isinstance(code, dict) else {"error": code}

    def device(self, at: int) -> dict[str, Any]:
        """Ask for one device."""
        self._subject = f" of device {at}"
        handle = self.value("cuDeviceGet", ctypes.c_int(), ctypes.c_int(at))
        if not isinstance(handle, int):
            return {"name": handle, "compute_capability": handle, "uuid": handle}
        device = ctypes.c_int(handle)
        return {
            "name": self._name(device),
            "compute_capability": self._capability(device),
            "uuid": self._uuid(device),
        }

    def _name(self, device: ctypes.c_int) -> Any:  # noqa: ANN401  # a text or an error
        buffer = ctypes.create_string_buffer(_NAME_SIZE)
        value = self.value("cuDeviceGetName", buffer, ctypes.c_int(_NAME_SIZE), device)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def _capability(self, device: ctypes.c_int) -> Any:  # noqa: ANN401  # a pair or an error
        numbers = []
        for attribute in (_MAJOR, _MINOR):
            number = self.value(
                "cuDeviceGetAttribute", ctypes.c_int(), ctypes.c_int(attribute), device
            )
            if not isinstance(number, int):
                return number
            numbers.append(number)
        return numbers

    def _uuid(self, device: ctypes.c_int) -> Any:  # noqa: ANN401  # a text or an error
        """Ask for the UUID; only the second form (CUDA 11.4) returns that of a MIG instance."""
        buffer = (ctypes.c_ubyte * 16)()
        code: Any = None
        for name in ("cuDeviceGetUuid_v2", "cuDeviceGetUuid"):
            code = self.code(name, ctypes.byref(buffer), device)
            if code == 0:
                return str(uuid.UUID(bytes=bytes(buffer)))
        return code if isinstance(code, dict) else {"error": code}
