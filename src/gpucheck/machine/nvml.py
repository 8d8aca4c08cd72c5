"""Asks NVML everything once and returns raw answers. It may hang or crash: use it in a child only.

A recorded machine keeps the raw form as ``nvml.json``. In place of any value there may be an object
``{"error": CODE}``: NVML's return code (3 not supported, 13 this driver lacks the function, 15 the
GPU is lost), or a text if something other than NVML failed. A missing key was not queried. Sizes
are in bytes, clocks in MHz, temperatures in degrees Celsius, powers in mW::

    {"library_found": true, "init_code": 0, "init_message": "",
     "driver_release": "580.95.05", "cuda_version": 13000,
     "gpus": [{
       "handle": 0, "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-...",
       "pci_bus_id": "00000000:19:00.0", "compute_capability": [9, 0],
       "memory": {"total": 85520809984, "used": 0, "free": 85520809984},
       "compute_processes": [{"pid": 4242, "used": 1073741824, "name": "python3"}],
       "graphics_processes": [],
       "ecc_mode": [1, 1],                            now, after the next reset
       "ecc_corrected": 0, "ecc_uncorrected": 0,      since the driver was loaded
       "ecc_uncorrected_ever": 0,
       "retired_pages_pending": {"error": 3},         0 or 1
       "remapped_rows": [0, 0, 0, 0],                 corrected, uncorrected, pending, failed
       "mig_mode": [1, 1],                            now, after the next reset
       "mig_devices": [{"uuid": "MIG-...", "name": "...", "memory": {...}}],
       "compute_mode": 0, "persistence": 1,
       "sm_clock": 345, "sm_clock_max": 1980, "clocks_event_reasons": 1,
       "temperature": 31, "temperature_slowdown": 87,
       "power": 71000, "power_limit": 700000, "power_limit_default": 700000, "utilization": 0,
       "pcie_generation": 5, "pcie_generation_max": 5, "pcie_width": 16, "pcie_width_max": 16,
       "nvlinks": [1, 1, 0],                          by link: active or not
       "fabric": {"state": 3, "status": 0, "cluster": "9f0c...", "clique": 0, "health": 21},
       "c2c": 1, "vbios": "96.00.74.00.01", "inforom": "G520.0200.00.05",
       "application_clock": 1980, "application_clock_default": 1980}]}

A ``handle`` other than 0 is the error code of the call that should return it; nothing else is then
queried. ``used`` of a process is null if the driver does not report it (Windows). If ``init_code``
is not 0, ``driver_release``, ``cuda_version`` and ``gpus`` are missing. ``init_code`` 12 means that
the library was not found (``library_found`` false) or could not be loaded (true). A machine without
the library has no ``nvml.json``.
"""

import ctypes
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpucheck.facts import Answer
from gpucheck.language import say

if TYPE_CHECKING:
    from gpucheck.machine.base import Host

LIBRARY = "nvml.dll" if os.name == "nt" else "libnvidia-ml.so.1"
WSL_LIBRARY = "/usr/lib/wsl/lib/libnvidia-ml.so.1"

_INVALID_ARGUMENT, _NOT_FOUND, _LIBRARY_NOT_FOUND, _NO_FUNCTION, _LOST = 2, 6, 12, 13, 15
_SM_CLOCK = 1
_GPU_SENSOR, _SLOWDOWN_THRESHOLD = 0, 1
_CORRECTED, _UNCORRECTED = 0, 1
_SINCE_LOAD, _EVER = 0, 1
_MAX_GPUS = 256
_MAX_PROCESSES = 1024


def ask(host: "Host") -> Answer[dict[str, Any]]:
    """Load NVML, initialise it and ask it everything; ``missing`` if there is no library."""
    host.stage(f"loading {LIBRARY}")
    library, problem = (None, "") if os.name == "nt" else _load()
    if problem:
        if _is_absent(problem):
            return Answer(None, say("dynamic loader"), problem, missing=True)
        return _not_started(_LIBRARY_NOT_FOUND, problem)
    try:
        import pynvml  # noqa: PLC0415  # large, and needed only if there may be a driver
    except ImportError as error:
        return _not_started(
            {"error": say("the package nvidia-ml-py cannot be imported: {error}", error=error)}, ""
        )
    if library is not None:
        pynvml.nvmlLib = library
    asker = _Asker(host, pynvml)
    started = asker.call("nvmlInit")
    if code := _error(started):
        if code == _LIBRARY_NOT_FOUND:
            return Answer(None, say("dynamic loader"), say("no nvml.dll"), missing=True)
        return _not_started(code, asker.message(code))
    return Answer(asker.everything(), "NVML")


def _load() -> tuple[ctypes.CDLL | None, str]:
    """Load the library that the loader finds, or WSL's; otherwise return the loader's message."""
    try:
        return ctypes.CDLL(LIBRARY), ""
    except OSError as error:
        problem = str(error)
    if not os.path.exists(WSL_LIBRARY):  # noqa: PTH110  # no pathlib for one look
        return None, problem
    try:
        return ctypes.CDLL(WSL_LIBRARY), ""
    except OSError as error:
        return None, str(error)


def _is_absent(problem: str) -> bool:
    """Whether the loader found no file of that name (not a broken file)."""
    return LIBRARY in problem and "no such file" in problem.lower()


def _not_started(code: object, message: str) -> Answer[dict[str, Any]]:
    raw = {"library_found": True, "init_code": code, "init_message": message}
    return Answer(raw, "NVML")


def _error(value: object) -> Any:  # noqa: ANN401  # a code, or words
    return value.get("error") if isinstance(value, dict) else None


class _Asker:
    """Calls NVML and turns each answer into plain data."""

    def __init__(self, host: "Host", pynvml: Any) -> None:  # noqa: ANN401  # a module
        self._host = host
        self._nvml = pynvml
        self._subject = ""

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401  # as NVML has it
        """Call one function; return its value or ``{"error": ...}``."""
        function = getattr(self._nvml, name, None)
        if function is None:
            return {"error": _NO_FUNCTION}
        self._host.stage(f"{name}{self._subject}")
        try:
            return function(*arguments)
        except self._nvml.NVMLError as error:
            return {"error": int(error.value)}
        except Exception as error:  # noqa: BLE001  # one field is lost, not all
            return {"error": f"{type(error).__name__}: {error}"}

    def message(self, code: int) -> str:
        """Return the driver's message for a code."""
        words = self.call("nvmlErrorString", code)
        return "" if _error(words) else _text(words)

    def everything(self) -> dict[str, Any]:
        """Ask about the driver, then about each GPU."""
        raw: dict[str, Any] = {
            "library_found": True,
            "init_code": 0,
            "init_message": "",
            "driver_release": _plain(self.call("nvmlSystemGetDriverVersion")),
            "cuda_version": self._first(
                ("nvmlSystemGetCudaDriverVersion_v2",), ("nvmlSystemGetCudaDriverVersion",)
            ),
        }
        count = self.call("nvmlDeviceGetCount")
        raw["gpus"] = (
            count if _error(count) else [self._gpu(at) for at in range(min(count, _MAX_GPUS))]
        )
        # No nvmlShutdown: it can block on a lost GPU, and this process ends now.
        return raw

    def _first(self, *calls: tuple[Any, ...]) -> Any:  # noqa: ANN401  # as NVML has it
        """Try calls until one has a value; else the first error that is not "no such function"."""
        errors = []
        for call in calls:
            value = self.call(*call)
            if not _error(value):
                return value
            errors.append(value)
        return next((error for error in errors if _error(error) != _NO_FUNCTION), errors[0])

    def _gpu(self, at: int) -> dict[str, Any]:
        self._subject = f" of GPU {at}"
        handle = self.call("nvmlDeviceGetHandleByIndex", at)
        if code := _error(handle):
            return {"handle": code}
        raw: dict[str, Any] = {"handle": 0}
        for key, ask_it in self._questions(handle).items():
            raw[key] = ask_it()
            if _error(raw[key]) == _LOST:
                break
        return raw

    def _questions(self, handle: object) -> dict[str, Callable[[], Any]]:
        """Return the questions about a GPU, by key of the raw form."""

        def value(name: str, *arguments: object) -> Callable[[], Any]:
            return lambda: _plain(self.call(name, handle, *arguments))

        def ecc(kind: int, since: int) -> Callable[[], Any]:
            return value("nvmlDeviceGetTotalEccErrors", kind, since)

        return {
            "name": value("nvmlDeviceGetName"),
            "uuid": value("nvmlDeviceGetUUID"),
            "pci_bus_id": lambda: self._part("busId", "nvmlDeviceGetPciInfo", handle),
            "compute_capability": value("nvmlDeviceGetCudaComputeCapability"),
            "memory": lambda: self._memory(handle),
            "compute_processes": lambda: self._processes("Compute", handle),
            "graphics_processes": lambda: self._processes("Graphics", handle),
            "ecc_mode": value("nvmlDeviceGetEccMode"),
            "ecc_corrected": ecc(_CORRECTED, _SINCE_LOAD),
            "ecc_uncorrected": ecc(_UNCORRECTED, _SINCE_LOAD),
            "ecc_uncorrected_ever": ecc(_UNCORRECTED, _EVER),
            "retired_pages_pending": value("nvmlDeviceGetRetiredPagesPendingStatus"),
            "remapped_rows": value("nvmlDeviceGetRemappedRows"),
            "mig_mode": value("nvmlDeviceGetMigMode"),
            "mig_devices": lambda: self._mig_devices(handle),
            "compute_mode": value("nvmlDeviceGetComputeMode"),
            "persistence": value("nvmlDeviceGetPersistenceMode"),
            "sm_clock": value("nvmlDeviceGetClockInfo", _SM_CLOCK),
            "sm_clock_max": value("nvmlDeviceGetMaxClockInfo", _SM_CLOCK),
            "clocks_event_reasons": lambda: self._first(
                ("nvmlDeviceGetCurrentClocksEventReasons", handle),
                ("nvmlDeviceGetCurrentClocksThrottleReasons", handle),
            ),
            "temperature": lambda: self._first(
                ("nvmlDeviceGetTemperatureV", handle, _GPU_SENSOR),
                ("nvmlDeviceGetTemperature", handle, _GPU_SENSOR),
            ),
            "temperature_slowdown": value("nvmlDeviceGetTemperatureThreshold", _SLOWDOWN_THRESHOLD),
            "power": value("nvmlDeviceGetPowerUsage"),
            "power_limit": lambda: self._first(
                ("nvmlDeviceGetEnforcedPowerLimit", handle),
                ("nvmlDeviceGetPowerManagementLimit", handle),
            ),
            "utilization": lambda: self._part("gpu", "nvmlDeviceGetUtilizationRates", handle),
            "pcie_generation": value("nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_generation_max": value("nvmlDeviceGetMaxPcieLinkGeneration"),
            "pcie_width": value("nvmlDeviceGetCurrPcieLinkWidth"),
            "pcie_width_max": value("nvmlDeviceGetMaxPcieLinkWidth"),
            "nvlinks": lambda: self._nvlinks(handle),
            "fabric": lambda: self._fabric(handle),
            "c2c": lambda: self._part("isC2cEnabled", "nvmlDeviceGetC2cModeInfoV", handle),
            "vbios": value("nvmlDeviceGetVbiosVersion"),
            "inforom": value("nvmlDeviceGetInforomImageVersion"),
            "power_limit_default": value("nvmlDeviceGetPowerManagementDefaultLimit"),
            "application_clock": value("nvmlDeviceGetApplicationsClock", _SM_CLOCK),
            "application_clock_default": value("nvmlDeviceGetDefaultApplicationsClock", _SM_CLOCK),
        }

    def _part(self, field: str, name: str, handle: object) -> Any:  # noqa: ANN401  # any field
        answer = self.call(name, handle)
        return answer if _error(answer) else _plain(getattr(answer, field))

    def _memory(self, handle: object) -> dict[str, Any]:
        """Ask for the memory; only the second form separates the driver's own share."""
        version = getattr(self._nvml, "nvmlMemory_v2", None)
        name = "nvmlDeviceGetMemoryInfo"
        memory = self._first((name, handle, version), (name, handle))
        if _error(memory):
            return {"error": _error(memory)}
        return {"total": memory.total, "used": memory.used, "free": memory.free}

    def _processes(self, kind: str, handle: object) -> Any:  # noqa: ANN401  # a list or an error
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        # Without a version in its name the package's function refuses older drivers.
        found = self._first((f"{name}_v3", handle), (f"{name}_v2", handle))
        if _error(found):
            return found
        return [
            {"pid": process.pid, "used": process.usedGpuMemory, "name": self._program(process.pid)}
            for process in found[:_MAX_PROCESSES]
        ]

    def _program(self, pid: int) -> Any:  # noqa: ANN401  # a name or an error
        words = self.call("nvmlSystemGetProcessName", pid)
        return words if _error(words) else program(_text(words), windows=os.name == "nt")

    def _mig_devices(self, handle: object) -> Any:  # noqa: ANN401  # a list or an error
        most = self.call("nvmlDeviceGetMaxMigDeviceCount", handle)
        if _error(most):
            return most
        devices = []
        for at in range(most):
            device = self.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, at)
            if _error(device) in (_NOT_FOUND, _INVALID_ARGUMENT):
                continue
            if _error(device):
                return device
            devices.append(
                {
                    "uuid": _plain(self.call("nvmlDeviceGetUUID", device)),
                    "name": _plain(self.call("nvmlDeviceGetName", device)),
                    "memory": self._memory(device),
                }
            )
        return devices

    def _nvlinks(self, handle: object) -> list[Any]:
        """Ask for each link until NVML answers that there is no such link."""
        states = []
        for link in range(getattr(self._nvml, "NVML_NVLINK_MAX_LINKS", 18)):
            state = self.call("nvmlDeviceGetNvLinkState", handle, link)
            if _error(state) == _INVALID_ARGUMENT:
                break
            states.append(state)
            if _error(state) == _NO_FUNCTION:
                break
        return states

    def _fabric(self, handle: object) -> dict[str, Any]:
        """Ask for the registration with the NVLink fabric, newest form first."""
        answer: dict[str, Any] = {"error": _NO_FUNCTION}
        for shape, name in (
            ("c_nvmlGpuFabricInfo_v3_t", "nvmlDeviceGetGpuFabricInfoV"),
            ("c_nvmlGpuFabricInfo_v2_t", "nvmlDeviceGetGpuFabricInfoV"),
            ("c_nvmlGpuFabricInfo_t", "nvmlDeviceGetGpuFabricInfo"),
        ):
            make = getattr(self._nvml, shape, None)
            if make is None:
                continue
            info = make()
            code = _error(self.call(name, handle, ctypes.byref(info)))
            if not code:
                # NVML writes one byte of state; the package reads the padding after it, too.
                return {
                    "state": info.state & 0xFF,
                    "status": info.status,
                    "cluster": bytes(info.clusterUuid).hex(),
                    "clique": info.cliqueId,
                    "health": getattr(info, "healthMask", None),  # the oldest form has none
                }
            if answer["error"] == _NO_FUNCTION:
                answer = {"error": code}
        return answer


def program(text: str, *, windows: bool) -> str:
    r"""Return the base name of the program in a process name; arguments and folders are private.

    ``/usr/bin/python3 train.py`` gives ``python3``; ``C:\Program Files\a b.exe`` ``a b.exe``.
    """
    if windows:
        return re.split(r"[\\/]", text)[-1].strip()
    words = text.split(maxsplit=1)
    return words[0].rpartition("/")[2] if words else ""


def _plain(value: Any) -> Any:  # noqa: ANN401  # JSON-like data has no narrower type
    if isinstance(value, bytes):
        return _text(value)
    return list(value) if isinstance(value, tuple) else value


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
