"""``nvidia-smi -L``, ``--query-gpu=... --format=csv``, ``topo``, ``dmon``, ``nvlink -s``."""

import re

from gpucheck.facts.base import Draft
from gpucheck.facts.driver import MigDevice, Nvml, NvmlGpu
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers._cleaning import LONGEST_LINE
from gpucheck.ticket.readers._smi_words import (
    state,
    usage_matters,
)
from gpucheck.ticket.readers.base import Machine

NAME = say("nvidia-smi lists")
MARKS = (
    "(uuid: gpu-", "(uuid: mig-", "driver_version", "memory.", "pci.bus_id", "gpu_bus_id",
    "cpu affinity", "topo -p2p", " \tgpu0\tgpu1", "# gpu  ", "#date ",
)  # fmt: skip
RANK = -1  # what nvidia-smi says counts more than what PyTorch repeats of it

_LISTED = re.compile(r"^\W{0,4}GPU (\d{1,3}): (\S.{0,80}?) \(UUID: (GPU-[0-9A-Fa-f*xX-]{4,40})\)?")
_SLICE = re.compile(r"\bMIG (\S{1,24})\s{1,8}Device\s{1,4}\d{1,3}: \(UUID: (MIG-[\w/-]{4,90})\)")
_COLUMN = re.compile(r"[a-z][A-Za-z0-9_.]{1,60}(?: \[[A-Za-z%]{1,5}\])?")
_MOST_ROWS = 64  # chosen: above the GPUs of any machine
_TOPOLOGY = re.compile(
    r"GPU(\d{1,3})\s{1,16}(?:X|NV\d{1,2}|PIX|PXB|PHB|NODE|SYS|SOC|OK|CNS|GNS|TNS|NS|DR|U)\b"
)
"""A row of ``topo -m``, in which older drivers call SYS SOC, or of ``topo -p2p``, which says
whether two GPUs reach each other's memory."""
_LINK = re.compile(r"\s{1,16}Link (\d{1,2}): (<?inactive>?|[\d.]{1,8} GB/s)", re.IGNORECASE)
_NO_LINK = re.compile(r"NVML: Unable to retrieve NVLink information as all links are inActive")
_MOST_LINKS = 32  # chosen: above the links of a GPU (18 of an H100)
_HELD = re.compile(r"\s{1,8}(\d{1,3})\s{1,10}(?:\d{1,9}|-)\s{1,6}(?:C\+G|C|G|M|-)\s")
"""A row of ``pmon``: a process on a GPU."""
_ROUND = re.compile(r"\s{1,8}(\d{1,3})(?:\s{1,8}(?:\d{1,7}|-)){2,32}\s*$")
_WHEN = re.compile(r"\s{0,4}\d{8}\s{1,8}\d\d:\d\d:\d\d(?=\s)")
"""The date and the time that ``dmon -o DT`` puts first."""


def read(text: Text, machine: Machine) -> None:
    """Read each of the forms."""
    _listed(text, machine)
    for index in text.find("# gpu  ", "#date "):
        _rounds(text.lines[index], text.after(index, _MOST_ROWS), machine)
    usage = usage_matters(text)
    for index in text.find("driver_version", "memory.", "pci.bus_id", "gpu_bus_id", "compute_cap"):
        head = text.lines[index].text
        columns = [column.strip() for column in head.split(",")]
        cut = len(head) >= LONGEST_LINE - 1  # within a column
        if cut:
            del columns[-1]
        if len(columns) > 1 and all(_COLUMN.fullmatch(column) for column in columns):
            rows = text.after(index, _MOST_ROWS)
            _table(columns, rows, machine, usage=usage, cut=cut)
    for index in text.find("cpu affinity", "\tgpu0\tgpu1"):
        _topology(text.after(index, _MOST_ROWS), machine)


def _listed(text: Text, machine: Machine) -> None:
    at = -1
    for index in text.find("(uuid: gpu-", "(uuid: mig-"):
        line = text.lines[index]
        found = _LISTED.match(line.text)
        if found is not None:
            at = int(found[1])
            fields.gpu(at, found[2], line, machine)
            machine.items(Nvml, "gpus")[at].fill("uuid", found[3], line.source)
            machine.fill(Nvml, "init_code", 0, line)
            _links(text.after(index, _MOST_LINKS), machine.items(Nvml, "gpus")[at])
        mig = _SLICE.search(line.text)
        if mig is not None and at >= 0:
            _slice(mig, machine.items(Nvml, "gpus")[at], line)


def _links(rows: list[Line], gpu: Draft) -> None:
    """Note which links are active: ``nvlink -s`` lists them below each GPU."""
    links: dict[int, bool] = {}
    for line in rows:
        found = _LINK.match(line.text)
        if found is None:
            if _NO_LINK.match(line.text):
                links[0] = False
            break
        links[int(found[1])] = "inactive" not in found[2].lower()
    if links:
        gpu.fill("nvlinks", [links[at] for at in sorted(links)], rows[0].source)


def _rounds(head: Line, rows: list[Line], machine: Machine) -> None:
    """Read the first round of ``dmon``: its columns differ from driver to driver."""
    columns = head.text.lstrip("# ").split()
    dated = columns[:2] == ["Date", "Time"]
    if dated:
        del columns[:2]
    for line in rows:
        if line.text.startswith("#"):
            continue
        values = _WHEN.sub("", line.text, count=1) if dated else line.text
        found = _ROUND.match(values) or _HELD.match(values)
        if found is None or int(found[1]) in machine.items(Nvml, "gpus"):
            return
        gpu = machine.item(Nvml, "gpus", NvmlGpu, int(found[1]), line)
        gpu.fill("index", int(found[1]), line.source)
        machine.fill(Nvml, "init_code", 0, line)
        row = dict(zip(columns, values.split(), strict=False))
        for name, field in _OF_ROUND.items():
            value = whole_number(row.get(name, ""))
            if value is not None:
                gpu.fill(field, value, line.source)


def _slice(found: re.Match[str], gpu: Draft, line: Line) -> None:
    gpu.fill("mig_enabled", value=True, source=line.source)
    devices = gpu.fields.setdefault("mig_devices", [])
    gpu.sources.setdefault("mig_devices", line.source)
    device = MigDevice(device_name=f"MIG {found[1]}", uuid=found[2], sources={"*": line.source})
    if all(device.uuid != known.uuid for known in devices):
        devices.append(device)


def _table(
    columns: list[str], rows: list[Line], machine: Machine, *, usage: bool, cut: bool
) -> None:
    names = [column.partition(" [")[0] for column in columns]
    known: dict[str, int] = {}
    for line in rows:
        cells = [cell.strip() for cell in line.text.split(",")]
        if len(cells) < len(names) or (len(cells) > len(names) and not cut):
            return
        row = dict(zip(names, cells, strict=False))
        index = whole_number(row.get("index", ""))
        address = row.get("pci.bus_id") or row.get("gpu_bus_id") or line.source
        at = known.setdefault(address, len(known)) if index is None else index
        machine.fill(Nvml, "init_code", 0, line)
        gpu = machine.item(Nvml, "gpus", NvmlGpu, at, line)
        gpu.fill("index", at, line.source)
        if "driver_version" in row:
            fields.driver_release(row["driver_version"], line, machine)
        for name, field in _CELLS.items():
            if name in row:
                state(gpu, field, row[name], line.source, usage=usage)


def _topology(rows: list[Line], machine: Machine) -> None:
    """The matrix has no products; it shows that the driver answers, and how many GPUs it has."""
    for line in rows:
        found = _TOPOLOGY.match(line.text.strip())
        if found is None:
            return
        machine.fill(Nvml, "init_code", 0, line)
        fields.gpu(int(found[1]), "", line, machine)


_CELLS: dict[str, str] = {
    "name": "device_name", "gpu_name": "device_name", "uuid": "uuid", "gpu_uuid": "uuid",
    "pci.bus_id": "pci_address", "gpu_bus_id": "pci_address", "compute_cap": "compute_capability",
    "compute_mode": "compute_mode", "memory.total": "memory_total_bytes",
    "memory.used": "memory_used_bytes", "memory.free": "memory_free_bytes",
    "temperature.gpu": "temperature_c", "persistence_mode": "persistence",
    "mig.mode.current": "mig_enabled", "mig.mode.pending": "mig_pending",
    "ecc.mode.current": "ecc_enabled", "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
    "retired_pages.pending": "pages_pending", "pcie.link.gen.current": "pcie_generation",
    "pcie.link.gen.max": "pcie_generation_max", "pcie.link.width.current": "pcie_width",
    "pcie.link.width.max": "pcie_width_max", "power.draw": "power_w",
    "power.limit": "power_limit_w", "clocks.sm": "sm_clock_mhz",
    "clocks.max.sm": "sm_clock_max_mhz", "utilization.gpu": "utilization_percent",
}  # fmt: skip
_OF_ROUND = {"pwr": "power_w", "gtemp": "temperature_c", "temp": "temperature_c"}
