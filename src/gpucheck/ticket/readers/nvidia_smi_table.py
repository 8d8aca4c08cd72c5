"""The table that ``nvidia-smi`` prints: the releases in its header, a block of rows per GPU.

Newer drivers (R610 on) and ``nvidia-smi --version`` list the release of the kernel module and the
"CUDA UMD Version" separately; drivers before R410 do not name CUDA.
"""

import re

from gpucheck.facts.base import Draft
from gpucheck.facts.driver import GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.numbers import whole_number
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers._smi_words import (
    MIB,
    add_instance,
    add_process,
    compute_mode,
    pci_address,
    usage_matters,
)
from gpucheck.ticket.readers.base import Machine

NAME = "nvidia-smi"
MARKS = ("driver version", "nvidia-smi ", "kmd version", "mib /", "cuda umd version")
RANK = -1  # what nvidia-smi says counts more than what PyTorch repeats of it
"""The driver's own output is more reliable than what others report."""

_DRIVER = re.compile(
    r"(?:Driver|KMD) Version\s{0,60}:\s{0,8}(\d{2,4}\.[\d.]{1,12}\d)", re.IGNORECASE
)
_CUDA = re.compile(r"CUDA(?: UMD)? Version\s{0,60}:\s{0,8}(\d{1,2}\.\d)", re.IGNORECASE)
# The name ends before the column of persistence mode or of the driver model, because it may itself
# hold blanks; a long one is cut with three points.
_GPU = re.compile(
    r"^\W{0,3}\s{0,6}(\d{1,3})\s{1,6}((?:NVIDIA|GeForce|Tesla|Quadro|TITAN|GRID|RTX|A\d\d|H\d\d|[A-Z])"
    r"[\w .()/+-]{1,44}?)\s{1,24}(On|Off|TCC|WDDM|MCDM|N/A|\.{3})\s{0,4}(?:\||\s)"
)
_MEMORY = re.compile(r"(\d{1,9})\s?MiB\s{0,4}/\s{0,4}(\d{1,9})\s?MiB")
_NO_MEMORY = "not supported"
"""In place of the memory: a Jetson shares that of the machine."""
_JETSON = "(nvgpu)"
_INSTANCE = re.compile(
    r"\|\s{1,6}(\d{1,3})(?:\s{1,8}(?:\d{1,3}|N/A)){2}\s{1,8}\d{1,3}\s{1,4}\|"
    r"\s{1,30}\d{1,9}\s?MiB\s{0,4}/\s{0,4}(\d{1,9})\s?MiB"
)
_NO_INSTANCE = "no mig devices found"
_MOST_INSTANCES = 400
"""Rows below the heading of the MIG devices: eight GPUs of seven have 176."""
_HEAT = re.compile(r"\s(\d{1,3})C\s{1,4}P\d{1,2}\s{1,16}(?:(\d{1,4})W\s{0,4}/\s{0,4}(\d{1,4})W)?")
_MODE = re.compile(r"\s(Default|E\. ?Process|E\. ?Thread|Prohibited)\s{0,6}\|")
_MIG = re.compile(r"\|\s{1,24}(Enabled|Disabled)\*?\s{0,6}\|\s{0,4}$")
_ECC = re.compile(r"\s(?:On|Off|N/A)\s{0,4}\|\s{1,24}(\d{1,6}|Off)\s{0,8}\|\s{0,4}$")
_PROCESS = re.compile(
    r"^\W{0,3}\s{0,6}(\d{1,3})\s{1,8}(?:(?:N/A|\d{1,3})\s{1,4}(?:N/A|\d{1,3})\s{1,16})?(\d{1,9})"
    r"\s{1,8}(C\+G|C|G)\s{1,6}(\S.{0,70}?)\s{1,60}(\d{1,9}\s?MiB|N/A)"
)


def read(text: Text, machine: Machine) -> None:
    """Read headers, GPUs with the rows below them, and processes if memory ran out."""
    for index in text.find("driver version", "kmd version"):
        _head(text, index, machine)
    usage = usage_matters(text)
    rows = {index - 1 for index in text.find("mib", _NO_MEMORY)} | set(text.find(":00.0", ":00."))
    for index in sorted(rows):
        if index >= 0:
            _row(text, index, machine, usage=usage)
    for index in text.find("mig devices:"):
        _instances(text.after(index, _MOST_INSTANCES), machine)
    if usage:
        _processes(text, machine)


def _head(text: Text, index: int, machine: Machine) -> None:
    line = text.lines[index]
    driver = _DRIVER.search(line.text)
    if driver is None or not _is_of_nvidia(line):
        return
    machine.fill(Nvml, "driver_release", driver[1], line)
    machine.fill(Nvml, "init_code", 0, line)
    for near in (line, *text.after(index, 2)):  # --version and -q have it on the following lines
        cuda = _CUDA.search(near.text)
        if cuda is not None:
            machine.fill(Nvml, "cuda", cuda[1], near)
            return


def _is_of_nvidia(line: Line) -> bool:
    if "NVIDIA" in line.text or "CUDA" in line.text or "KMD" in line.text:
        return True
    return line.text.lower().lstrip(" |-*").startswith("driver v")


def _row(text: Text, index: int, machine: Machine, *, usage: bool) -> None:
    line = text.lines[index]
    name = _GPU.match(line.text)
    if name is None:
        return
    below = text.after(index, 2)
    second = below[0] if below else None
    memory = _MEMORY.search(second.text) if second is not None else None
    address = pci_address(line.text)
    if memory is None and address is None and _JETSON not in name[2]:
        return
    at = int(name[1])
    gpu = machine.item(Nvml, "gpus", NvmlGpu, at, line)
    gpu.fill("index", at, line.source)
    machine.fill(Nvml, "init_code", 0, line)
    if not name[2].endswith(".."):
        gpu.fill("device_name", name[2].strip(), line.source)
    if address is not None:
        gpu.fill("pci_address", address, line.source)
    _ecc(line, gpu)
    if second is not None:
        _second(second, memory, gpu, usage=usage)
    _mig(below, gpu)


def _second(line: Line, memory: re.Match[str] | None, gpu: Draft, *, usage: bool) -> None:
    if memory is not None:
        gpu.fill("memory_total_bytes", int(memory[2]) * MIB, line.source)
        if usage:
            gpu.fill("memory_used_bytes", int(memory[1]) * MIB, line.source)
    heat = _HEAT.search(line.text)
    if heat is not None:
        gpu.fill("temperature_c", int(heat[1]), line.source)
        if heat[2]:
            gpu.fill("power_w", float(heat[2]), line.source)
            gpu.fill("power_limit_w", float(heat[3]), line.source)
    mode = _MODE.search(line.text)
    if mode is not None:
        gpu.fill("compute_mode", compute_mode(mode[1]), line.source)


def _ecc(line: Line, gpu: Draft) -> None:
    """The last column of the first row counts uncorrectable errors since the driver was loaded."""
    found = _ECC.search(line.text)
    if found is not None:
        gpu.fill("ecc_enabled", found[1] != "Off", line.source)
        if found[1] != "Off":
            gpu.fill("ecc_uncorrected", int(found[1]), line.source)


def _mig(below: list[Line], gpu: Draft) -> None:
    for line in below[1:]:
        found = _MIG.search(line.text)
        if found is not None:
            gpu.fill("mig_enabled", found[1] == "Enabled", line.source)


def _instances(rows: list[Line], machine: Machine) -> None:
    """Read the MIG devices; a table that was printed twice adds none."""
    gpus = machine.items(Nvml, "gpus")
    first = {at: gpu for at, gpu in gpus.items() if "mig_devices" not in gpu.fields}
    for line in rows:
        if _NO_INSTANCE in line.text.lower():
            for gpu in first.values():
                if gpu.fields.get("mig_enabled"):
                    gpu.fill("mig_devices", [], line.source)
            return
        found = _INSTANCE.match(line.text)
        if found is not None and int(found[1]) in first:
            add_instance(first[int(found[1])], int(found[2]) * MIB, line.source)
        elif not line.text:
            return


def _processes(text: Text, machine: Machine) -> None:
    known = machine.items(Nvml, "gpus")
    for index in text.find("mib", " n/a "):
        line = text.lines[index]
        found = _PROCESS.match(line.text)
        if found is None or int(found[1]) not in known:
            continue
        used = whole_number(found[5].partition("MiB")[0].strip())
        process = GpuProcess(
            pid=int(found[2]),
            kind="graphics" if found[3] == "G" else "compute",
            process_name=found[4],
            used_bytes=None if used is None else used * MIB,
            sources={"*": line.source},
        )
        add_process(known[int(found[1])], process, line.source)
