"""``nvidia-smi -q -x``: the same values as ``-q``, each in an element of its own.

It is read line by line, not as a document: a paste may begin or end anywhere, and nothing in it is
expanded. A tag such as ``total`` has a meaning only below its parent.
"""

import re
from collections.abc import Iterator, Sequence

from gpucheck.facts.base import Draft
from gpucheck.facts.driver import GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.numbers import whole_number
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers._smi_words import (
    NO_VALUE,
    REASONS,
    add_instance,
    add_process,
    mib,
    state,
    usage_matters,
)
from gpucheck.ticket.readers.base import Machine

NAME = "nvidia-smi -q -x"
MARKS = ("<nvidia_smi_log>", "<gpu id=", "<product_name>", "<attached_gpus>")
RANK = -1  # what nvidia-smi says counts more than what PyTorch repeats of it

_TAG = re.compile(r"<(/?)([a-z]\w{0,60})(?: id=\"([^\"<>]{1,40})\")?\s?(/?)>([^<>]{0,200})")
_GPU, _SLICES, _PROCESS = "gpu", "mig_devices", "process_info"
# Chosen: above any machine; the longest GPU in the tests has 543 lines, and processes add to it.
# The texts are untrusted, so depth needs some limit as well.
_MOST_GPUS, _MOST_LINES, _DEEPEST = 64, 2000, 16
_REASON = re.compile(r"clocks_(?:throttle|event)_reason_(\w{1,40})")


def read(text: Text, machine: Machine) -> None:
    """Read the driver's releases and each GPU's element from its first line on."""
    for index in text.find("<driver_version>", most=1):
        for _path, tag, value, line in _values(text.lines[index : index + _DEEPEST]):
            if tag == "driver_version":
                fields.driver_release(value, line, machine)
            elif tag == "cuda_version" and re.fullmatch(r"\d{1,2}\.\d", value):
                machine.fill(Nvml, "cuda", value, line)
    usage = usage_matters(text)
    for at, index in enumerate(text.find("<gpu id=", "<gpu>", most=_MOST_GPUS)):
        lines = text.lines[index : index + _MOST_LINES]
        _gpu(at, lines, machine.item(Nvml, "gpus", NvmlGpu, at, lines[0]), usage=usage)
        machine.fill(Nvml, "init_code", 0, lines[0])


def _gpu(at: int, lines: Sequence[Line], gpu: Draft, *, usage: bool) -> None:
    gpu.fill("index", at, lines[0].source)
    _instances(lines, gpu)
    uncorrected: dict[str, int] = {}
    process: dict[str, str] = {}
    for path, tag, value, line in _values(lines):
        parent = path[-1] if path else ""
        if _SLICES in path or value.startswith(NO_VALUE):
            continue
        if parent == _PROCESS:
            _process(process, tag, value, line, gpu, usage=usage)
        elif "volatile" in path:
            if (count := _uncorrected(path, tag, value)) is not None:
                uncorrected["/".join((*path, tag))] = count
                gpu.sources.setdefault("ecc_uncorrected", line.source)
        elif (reason := _REASON.fullmatch(tag)) is not None:
            _reason(reason[1], value, line, gpu)
        else:
            field = _FIELDS.get(tag) or _BELOW.get((parent, tag))
            if field is not None:
                state(gpu, field, value, line.source, usage=usage)
    if uncorrected:
        gpu.fields["ecc_uncorrected"] = sum(uncorrected.values())


def _instances(lines: Sequence[Line], gpu: Draft) -> None:
    for path, tag, value, line in _values(lines):
        if _SLICES in path and (path[-1], tag) == ("fb_memory_usage", "total"):
            add_instance(gpu, mib(value), line.source)


def _values(lines: Sequence[Line]) -> Iterator[tuple[tuple[str, ...], str, str, Line]]:
    """Yield each value with its tag and the tags around it, up to the end of the first GPU."""
    path: list[str] = []
    for line in lines:
        for found in _TAG.finditer(line.text):
            closes, tag, name, is_empty, value = found.groups()
            if closes:
                if tag == _GPU:
                    return
                if tag in path:
                    del path[path.index(tag) :]
                continue
            if tag == _GPU:
                if name:
                    yield (), "pci_bus_id", name, line
                continue
            if value.strip():
                yield tuple(path), tag, value.strip(), line
            if not is_empty and len(path) < _DEEPEST:
                path.append(tag)


def _uncorrected(path: tuple[str, ...], tag: str, value: str) -> int | None:
    """Return a count of errors since the driver was loaded; drivers before R450 have totals."""
    if "uncorrectable" in tag or ("double_bit" in path and tag == "total"):
        return whole_number(value)
    return None


def _reason(name: str, value: str, line: Line, gpu: Draft) -> None:
    reasons: list[str] = gpu.fields.setdefault("throttle", [])
    gpu.sources.setdefault("throttle", line.source)
    label = name.replace("_", " ").removeprefix("gpu ").replace("display clocks", "display clock")
    if value == "Active" and label in REASONS:
        reasons.append(REASONS[label])


def _process(
    process: dict[str, str], tag: str, value: str, line: Line, gpu: Draft, *, usage: bool
) -> None:
    """Collect the values of a process; the last of them, its memory, makes it whole."""
    if tag == "pid":
        process.clear()
    process[tag] = value
    if tag != "used_memory" or not usage:
        return
    pid = whole_number(process.get("pid", ""))
    gpu_process = GpuProcess(
        pid=pid,
        kind="graphics" if process.get("type") == "G" else "compute",
        process_name=process.get("process_name"),
        used_bytes=mib(value),
        sources={"*": line.source},
    )
    if pid is not None:
        add_process(gpu, gpu_process, line.source)


_FIELDS: dict[str, str] = {
    "product_name": "device_name", "uuid": "uuid", "pci_bus_id": "pci_address",
    "vbios_version": "vbios", "persistence_mode": "persistence", "compute_mode": "compute_mode",
    "current_mig": "mig_enabled", "pending_mig": "mig_pending", "current_ecc": "ecc_enabled",
    "max_link_gen": "pcie_generation_max", "current_link_gen": "pcie_generation",
    "max_link_width": "pcie_width_max", "current_link_width": "pcie_width",
    "gpu_temp": "temperature_c", "gpu_temp_slow_threshold": "temperature_slowdown_c",
    "power_draw": "power_w", "average_power_draw": "power_w", "power_limit": "power_limit_w",
    "current_power_limit": "power_limit_w", "remapped_row_unc": "rows_remapped_uncorrected",
    "remapped_row_pending": "rows_pending", "remapped_row_failure": "rows_failed",
    "pending_blacklist": "pages_pending", "pending_retirement": "pages_pending",
}  # fmt: skip
_BELOW: dict[tuple[str, str], str] = {
    ("fb_memory_usage", "total"): "memory_total_bytes",
    ("fb_memory_usage", "used"): "memory_used_bytes",
    ("fb_memory_usage", "free"): "memory_free_bytes", ("clocks", "sm_clock"): "sm_clock_mhz",
    ("max_clocks", "sm_clock"): "sm_clock_max_mhz", ("fabric", "state"): "fabric_state",
}  # fmt: skip
