"""``nvidia-smi -L``, ``--query-gpu=... --format=csv`` and ``topo -m``: one line per GPU."""

import re
from collections.abc import Callable

from gpucheck.facts.drafts import Draft
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.nvml import MigDevice, Nvml, NvmlGpu
from gpucheck.language import say
from gpucheck.messages.text import Line, Text
from gpucheck.ticket.readers import _said as said
from gpucheck.ticket.readers._smi_words import MIB, compute_mode, pci_address, usage_matters
from gpucheck.ticket.readers.base import Machine

NAME = say("nvidia-smi lists")
MARKS = ("(uuid: gpu-", "(uuid: mig-", "driver_version", "memory.", "pci.bus_id", "cpu affinity")
RANK = -1

_LISTED = re.compile(r"^\W{0,4}GPU (\d{1,3}): (\S.{0,80}?) \(UUID: (GPU-[0-9A-Fa-f*xX-]{4,40})\)?")
_SLICE = re.compile(r"\bMIG (\S{1,24})\s{1,8}Device\s{1,4}\d{1,3}: \(UUID: (MIG-[\w/-]{4,90})\)")
_COLUMN = re.compile(r"[a-z][a-z_.]{1,60}(?: \[[A-Za-z%]{1,5}\])?")
_MOST_ROWS = 64
_TOPOLOGY = re.compile(r"^GPU(\d{1,3})\s{1,16}(?:X|NV\d{1,2}|PIX|PXB|PHB|NODE|SYS)\b")


def read(text: Text, machine: Machine) -> None:
    """Read the three forms."""
    _listed(text, machine)
    usage = usage_matters(text)
    for index in text.find("driver_version", "memory.", "pci.bus_id", "compute_cap"):
        columns = [column.strip() for column in text.lines[index].text.split(",")]
        if len(columns) > 1 and all(_COLUMN.fullmatch(column) for column in columns):
            _table(columns, text.after(index, _MOST_ROWS), machine, usage=usage)
    for index in text.find("cpu affinity"):
        _topology(text.after(index, _MOST_ROWS), machine)


def _listed(text: Text, machine: Machine) -> None:
    at = -1
    for index in text.find("(uuid: gpu-", "(uuid: mig-"):
        line = text.lines[index]
        found = _LISTED.match(line.text)
        if found is not None:
            at = int(found[1])
            said.gpu(at, found[2], line, machine)
            machine.items(Nvml, "gpus")[at].said("uuid", found[3], line.source)
            machine.said(Nvml, "init_code", 0, line)
        mig = _SLICE.search(line.text)
        if mig is not None and at >= 0:
            _slice(mig, machine.items(Nvml, "gpus")[at], line)


def _slice(found: re.Match[str], gpu: Draft, line: Line) -> None:
    gpu.said("mig_enabled", value=True, source=line.source)
    devices = gpu.fields.setdefault("mig_devices", [])
    gpu.sources.setdefault("mig_devices", line.source)
    device = MigDevice(device_name=f"MIG {found[1]}", uuid=found[2], sources={"*": line.source})
    if all(device.uuid != known.uuid for known in devices):
        devices.append(device)


def _table(columns: list[str], rows: list[Line], machine: Machine, *, usage: bool) -> None:
    names = [column.partition(" [")[0] for column in columns]
    for number, line in enumerate(rows):
        cells = [cell.strip() for cell in line.text.split(",")]
        if len(cells) != len(names):
            return
        row = dict(zip(names, cells, strict=True))
        index = whole_number(row.get("index", ""))
        at = number if index is None else index
        gpu = machine.item(Nvml, "gpus", NvmlGpu, at, line)
        gpu.said("index", at, line.source)
        if "driver_version" in row:
            said.driver_release(row["driver_version"], line, machine)
        for name, (field, convert) in _CELLS.items():
            value = convert(row[name]) if name in row else None
            if value is not None and (usage or field != "memory_used_bytes"):
                gpu.said(field, value, line.source)


def _topology(rows: list[Line], machine: Machine) -> None:
    """The matrix has no products; it shows that the driver answers, and how many GPUs it has."""
    for line in rows:
        found = _TOPOLOGY.match(line.text.strip())
        if found is None:
            return
        machine.said(Nvml, "init_code", 0, line)
        said.gpu(int(found[1]), "", line, machine)


def _text(value: str) -> str | None:
    return None if not value or value.startswith(("[", "N/A")) else value


def _mib(value: str) -> int | None:
    number = whole_number(value.removesuffix("MiB").strip())
    return None if number is None else number * MIB


def _number(value: str) -> int | None:
    return whole_number(value.rstrip("%WCMHz ").strip())


def _capability(value: str) -> str | None:
    return value if re.fullmatch(r"\d{1,2}\.\d", value) else None


_CELLS: dict[str, tuple[str, Callable[[str], object]]] = {
    "name": ("device_name", _text),
    "gpu_name": ("device_name", _text),
    "uuid": ("uuid", _text),
    "gpu_uuid": ("uuid", _text),
    "pci.bus_id": ("pci_address", pci_address),
    "gpu_bus_id": ("pci_address", pci_address),
    "compute_cap": ("compute_capability", _capability),
    "compute_mode": ("compute_mode", compute_mode),
    "memory.total": ("memory_total_bytes", _mib),
    "memory.used": ("memory_used_bytes", _mib),
    "temperature.gpu": ("temperature_c", _number),
}
