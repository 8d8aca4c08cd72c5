"""Values in the outputs of nvidia-smi, in the form of the fields of a GPU."""

import re
from collections.abc import Callable

from gpucheck.facts.base import Draft
from gpucheck.facts.driver import GpuProcess, MigDevice
from gpucheck.facts.numbers import whole_number
from gpucheck.log_patterns.text import Text

MIB = 1024 * 1024  # bytes
_ADDRESS = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
# Words first that are in no other: "Exclusive_Process" and "E. Process" of all releases.
_MODES = (
    ("process", "exclusive-process"), ("thread", "exclusive-thread"), ("default", "default"),
    ("prohibited", "prohibited"),
)  # fmt: skip
# Not the beginning of a longer number: nvidia-smi prints none of so many digits.
_NUMBER = re.compile(r"(\d{1,9}(?!\d)(?:\.\d{1,3})?)")
NO_VALUE = (
    "N/A", "Unknown Error", "Not Found", "[N/A]", "GPU is lost", "ERR!", "Requested functionality",
    "Insufficient Permissions",
)  # fmt: skip
"""What nvidia-smi prints in place of a value that it could not read."""
_OF_USAGE = ("memory_used_bytes", "memory_free_bytes")
REASONS = {
    "idle": "gpu-idle",
    "applications clocks setting": "applications-clocks-setting",
    "sw power cap": "sw-power-cap",
    "hw slowdown": "hw-slowdown",
    "sync boost": "sync-boost",
    "sw thermal slowdown": "sw-thermal-slowdown",
    "hw thermal slowdown": "hw-thermal-slowdown",
    "hw power brake slowdown": "hw-power-brake-slowdown",
    "display clock setting": "display-clock-setting",
}
"""Why the clocks are reduced, by the labels of ``nvidia-smi -q``."""
_ON, _OFF = (
    ("enabled", "on", "yes", "active", "true"),
    ("disabled", "off", "no", "not active", "false"),
)
_FABRIC = {
    "Completed": "completed", "In Progress": "in-progress", "Not Started": "not-started",
    "Not Supported": "not-supported",
}  # fmt: skip
_RAN_OUT = ("out of memory", "out_of_memory", "outofmemory", "alloc_failed", "内存不足", "显存不足")


def pci_address(value: str) -> str | None:
    """Return ``0000:01:00.0`` for ``00000000:01:00.0``; None for anything else."""
    found = _ADDRESS.search(value)
    return f"{int(found[1], 16):04x}:{found[2].lower()}" if found is not None else None


def compute_mode(value: str) -> str | None:
    """Return the mode as a fact: ``E. Process`` and ``Exclusive_Process`` are the same."""
    low = value.lower()
    return next((mode for word, mode in _MODES if word in low), None)


def integer(value: str) -> int | None:
    """Return the number that a value begins with, without its unit."""
    found = _NUMBER.match(value)
    return int(float(found[1])) if found is not None else None


def decimal(value: str) -> float | None:
    """Return the number that a value begins with, without its unit."""
    found = _NUMBER.match(value)
    return float(found[1]) if found is not None else None


def mib(value: str) -> int | None:
    """Return a size in MiB as bytes; ``nounits`` leaves the unit out. None in another unit."""
    number = integer(value)
    has_unit = value.endswith("MiB") or value.isdecimal()
    return number * MIB if number is not None and has_unit else None


def flag(value: str) -> bool | None:
    """Return what a mode or a yes or no says."""
    low = value.lower()
    return True if low in _ON else False if low in _OFF else None


def fabric_state(value: str) -> str | None:
    """Return the state of the registration with the NVLink fabric as a fact."""
    return _FABRIC.get(value)


def _words(value: str) -> str | None:
    return None if not value or value.startswith(("[", "N/A")) else value


def _capability(value: str) -> str | None:
    return value if re.fullmatch(r"\d{1,2}\.\d", value) else None


_READ_BY: dict[Callable[[str], object], tuple[str, ...]] = {
    _words: ("device_name", "uuid", "vbios"),
    _capability: ("compute_capability",),
    pci_address: ("pci_address",),
    compute_mode: ("compute_mode",),
    fabric_state: ("fabric_state",),
    mib: ("memory_total_bytes", *_OF_USAGE),
    decimal: ("power_w", "power_limit_w"),
    flag: (
        "persistence", "mig_enabled", "mig_pending", "ecc_enabled", "rows_failed", "rows_pending",
        "pages_pending",
    ),
    # Strictly: a count of errors accuses a GPU.
    whole_number: ("ecc_uncorrected",),
    integer: (
        "temperature_c", "temperature_slowdown_c", "pcie_generation", "pcie_generation_max",
        "pcie_width", "pcie_width_max", "rows_remapped_uncorrected", "sm_clock_mhz",
        "sm_clock_max_mhz", "utilization_percent",
    ),
}  # fmt: skip
_READERS = {field: read for read, names in _READ_BY.items() for field in names}
"""How the value of a field is read, whichever output of nvidia-smi has it."""


def state(gpu: Draft, field: str, value: str, source: str, *, usage: bool) -> None:
    """Fill a field of a GPU with a value as nvidia-smi prints it, unless it says nothing.

    ``usage``: whether the memory in use is relevant (:func:`usage_matters`).
    """
    if not usage and field in _OF_USAGE:
        return
    found = _READERS[field](value)
    if found is not None:
        gpu.fill(field, found, source)


def usage_matters(text: Text) -> bool:
    """Whether the memory in use is relevant: only if memory ran out.

    Otherwise the table may show the program that the text is about while it runs.
    """
    return any(words in text.lower for words in _RAN_OUT)


def add_instance(gpu: Draft, memory: int | None, source: str) -> None:
    """Note a MIG instance of which only the size in bytes is shown."""
    gpu.fields.setdefault("mig_devices", []).append(
        MigDevice(memory_total_bytes=memory, sources={"*": source})
    )
    gpu.sources.setdefault("mig_devices", source)


def add_process(gpu: Draft, process: GpuProcess, source: str) -> None:
    """Note a process of a GPU, each once."""
    processes = gpu.fields.setdefault("processes", [])
    gpu.sources.setdefault("processes", source)
    if all(process.pid != known.pid for known in processes):
        processes.append(process)
