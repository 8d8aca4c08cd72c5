"""``nvidia-smi -q``: a block of labelled lines for each GPU.

A label such as "Current" has a meaning only below its heading, which has no colon.
"""

import re
from collections.abc import Callable

from gpucheck.facts.drafts import Draft
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.nvml import GpuProcess, Nvml, NvmlGpu
from gpucheck.messages.text import Line, Text
from gpucheck.ticket.readers._smi_words import (
    MIB,
    add_process,
    compute_mode,
    pci_address,
    usage_matters,
)
from gpucheck.ticket.readers.base import Machine

NAME = "nvidia-smi -q"
MARKS = (
    "attached gpus", "product name  ", "nvsmi log", "throttle reasons", "clocks event reasons",
    "fb memory usage", "ecc errors", "remapped rows",
)  # fmt: skip
RANK = -1

_BLOCK = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s{0,4}$")
_LABELLED = re.compile(r"^\s{0,40}([A-Za-z][\w /.()-]{0,50}?)\s{0,50}: (.{0,120})$")
_NUMBER = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)")
_MOST_LINES = 400
_NEVER = (
    "N/A",
    "Unknown Error",
    "Not Found",
    "[N/A]",
    "GPU is lost",
    "ERR!",
    "Requested functionality",
)
_ON, _OFF = (
    ("enabled", "on", "yes", "active", "true"),
    ("disabled", "off", "no", "not active", "false"),
)
_REASON_HEADINGS = ("clocks throttle reasons", "clocks event reasons")
_REASONS = {
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


def read(text: Text, machine: Machine) -> None:
    """Read each block from its first line on."""
    usage = usage_matters(text)
    begins = [
        (index, found)
        for index in text.find("gpu 0")
        if (found := _BLOCK.match(text.lines[index].text)) is not None
    ]
    known: dict[str, int] = {}
    for index, found in begins:
        address = pci_address(found[1]) or found[1]
        at = known.setdefault(address, len(known))
        _Block(text, index, machine, usage=usage).read(at, address)


class _Block:
    """The lines of one GPU while they are read."""

    def __init__(self, text: Text, index: int, machine: Machine, *, usage: bool) -> None:
        self._machine = machine
        self._first = text.lines[index]
        self._lines = _near(text, index)
        self._usage = usage
        self._heading = ""
        self._in_volatile = False
        self._uncorrected: list[tuple[int, Line]] = []
        self._reasons: list[str] | None = None
        self._process = 0

    def read(self, at: int, address: str) -> None:
        """Fill the GPU's entry."""
        gpu = self._machine.item(Nvml, "gpus", NvmlGpu, at, self._first)
        gpu.said("index", at, self._first.source)
        gpu.said("pci_address", address, self._first.source)
        for line in self._lines:
            if _BLOCK.match(line.text):
                break
            found = _LABELLED.match(line.text)
            if found is not None:
                self._labelled(found[1].lower(), found[2].strip(), line, gpu)
            elif line.text.strip() and ":" not in line.text:
                self._head(line.text.strip().lower(), line, gpu)
        if self._uncorrected:
            gpu.said(
                "ecc_uncorrected",
                sum(count for count, _ in self._uncorrected),
                self._uncorrected[0][1].source,
            )

    def _head(self, heading: str, line: Line, gpu: Draft) -> None:
        self._heading = heading
        if heading in ("volatile", "aggregate"):
            self._in_volatile = heading == "volatile"
        elif heading in _REASON_HEADINGS and self._reasons is None:
            self._reasons = []
            gpu.said("throttle", self._reasons, line.source)

    def _labelled(self, label: str, value: str, line: Line, gpu: Draft) -> None:
        if value.startswith(_NEVER):
            return
        if self._reasons is not None and label in _REASONS and value == "Active":
            self._reasons.append(_REASONS[label])
        elif (
            self._in_volatile
            and "uncorrectable" in label
            and (count := whole_number(value)) is not None
        ):
            self._uncorrected.append((count, line))
        elif label in ("process id", "used gpu memory", "name"):
            self._of_process(label, value, line, gpu)
        else:
            field = _FIELDS.get(label) or _BELOW.get((self._heading, label))
            if field is not None and (self._usage or field[0] not in _OF_USAGE):
                found = field[1](value)
                if found is not None:
                    gpu.said(field[0], found, line.source)

    def _of_process(self, label: str, value: str, line: Line, gpu: Draft) -> None:
        if label == "process id":
            self._process = whole_number(value) or 0
        elif label == "used gpu memory" and self._usage and self._process:
            used = _integer(value)
            process = GpuProcess(
                pid=self._process,
                kind="compute",
                used_bytes=used * MIB if used is not None else None,
                sources={"*": line.source},
            )
            add_process(gpu, process, line.source)


def _near(text: Text, index: int) -> list[Line]:
    """Return the following lines; in a long log some of them may have been dropped."""
    first = text.lines[index]
    return [
        line
        for line in text.lines[index + 1 : index + 1 + _MOST_LINES]
        if line.file == first.file and 0 < line.number - first.number <= _MOST_LINES
    ]


def _integer(value: str) -> int | None:
    found = _NUMBER.match(value)
    return int(float(found[1])) if found is not None else None


def _decimal(value: str) -> float | None:
    found = _NUMBER.match(value)
    return float(found[1]) if found is not None else None


def _mib(value: str) -> int | None:
    number = _integer(value)
    return number * MIB if number is not None and value.endswith("MiB") else None


def _flag(value: str) -> bool | None:
    low = value.lower()
    return True if low in _ON else False if low in _OFF else None


def _fabric(value: str) -> str | None:
    states = {"Completed": "completed", "In Progress": "in-progress", "Not Started": "not-started"}
    return states.get(value)


_OF_USAGE = ("memory_used_bytes", "memory_free_bytes")
_FIELDS: dict[str, tuple[str, Callable[[str], object]]] = {
    "product name": ("device_name", str),
    "gpu uuid": ("uuid", str),
    "persistence mode": ("persistence", _flag),
    "compute mode": ("compute_mode", compute_mode),
    "gpu current temp": ("temperature_c", _integer),
    "gpu slowdown temp": ("temperature_slowdown_c", _integer),
    "remapping failure occurred": ("rows_failed", _flag),
    "pending page blacklist": ("pages_pending", _flag),
}
_BELOW: dict[tuple[str, str], tuple[str, Callable[[str], object]]] = {
    ("mig mode", "current"): ("mig_enabled", _flag),
    ("mig mode", "pending"): ("mig_pending", _flag),
    ("ecc mode", "current"): ("ecc_enabled", _flag),
    ("fb memory usage", "total"): ("memory_total_bytes", _mib),
    ("fb memory usage", "used"): ("memory_used_bytes", _mib),
    ("fb memory usage", "free"): ("memory_free_bytes", _mib),
    ("pcie generation", "max"): ("pcie_generation_max", _integer),
    ("pcie generation", "current"): ("pcie_generation", _integer),
    ("link width", "max"): ("pcie_width_max", _integer),
    ("link width", "current"): ("pcie_width", _integer),
    ("remapped rows", "uncorrectable error"): ("rows_remapped_uncorrected", _integer),
    ("remapped rows", "pending"): ("rows_pending", _flag),
    ("fabric", "state"): ("fabric_state", _fabric),
    ("clocks", "sm"): ("sm_clock_mhz", _integer),
    ("max clocks", "sm"): ("sm_clock_max_mhz", _integer),
    ("power readings", "power draw"): ("power_w", _decimal),
    ("gpu power readings", "power draw"): ("power_w", _decimal),
    ("gpu power readings", "average power draw"): ("power_w", _decimal),
    ("power readings", "power limit"): ("power_limit_w", _decimal),
    ("gpu power readings", "current power limit"): ("power_limit_w", _decimal),
}
