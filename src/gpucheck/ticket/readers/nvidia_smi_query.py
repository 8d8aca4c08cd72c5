"""``nvidia-smi -q``: a block of labelled lines for each GPU.

A label such as "Current" has a meaning only below its heading, which has no colon.
"""

import re
from collections.abc import Iterator

from gpucheck.facts.base import Draft
from gpucheck.facts.driver import GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.numbers import whole_number
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers._smi_words import (
    MIB,
    NO_VALUE,
    REASONS,
    add_instance,
    add_process,
    integer,
    mib,
    pci_address,
    state,
    usage_matters,
)
from gpucheck.ticket.readers.base import Machine

NAME = "nvidia-smi -q"
MARKS = (
    "attached gpus", "product name  ", "nvsmi log", "throttle reasons", "clocks event reasons",
    "fb memory usage", "ecc errors", "remapped rows",
)  # fmt: skip
RANK = -1  # what nvidia-smi says counts more than what PyTorch repeats of it

_BLOCK = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s{0,4}$")
_LABELLED = re.compile(r"^\s{0,40}([A-Za-z][\w /.()-]{0,50}?)\s{0,60}: (.{0,120})$")
_PART = re.compile(r"\s{0,40}(?:(MIG Device)|vGPU ID\s{1,60}: \d{1,12})\s*$")
"""What begins the description of a part of the GPU, whose memory is not that of the GPU."""
# Chosen: the longest block of a GPU in the tests has 249 lines; processes and MIG add to it.
_MOST_LINES = 400
_REASON_HEADINGS = ("clocks throttle reasons", "clocks event reasons")


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
        gpu.fill("index", at, self._first.source)
        gpu.fill("pci_address", address, self._first.source)
        self._machine.fill(Nvml, "init_code", 0, self._first)
        for line in self._without_parts(gpu):
            found = _LABELLED.match(line.text)
            if found is not None:
                self._labelled(found[1].lower(), found[2].strip(), line, gpu)
            elif line.text.strip() and ":" not in line.text:
                self._head(line.text.strip().lower(), line, gpu)
        if self._uncorrected:
            gpu.fill(
                "ecc_uncorrected",
                sum(count for count, _ in self._uncorrected),
                self._uncorrected[0][1].source,
            )

    def _without_parts(self, gpu: Draft) -> Iterator[Line]:
        """Yield the lines about the whole GPU, and note the MIG instances among its parts."""
        is_new = "mig_devices" not in gpu.fields  # not the same GPU, printed again
        part, is_instance, heading = -1, False, ""
        for line in self._lines:
            if _BLOCK.match(line.text):
                return
            indent = len(line.text) - len(line.text.lstrip())
            begins = _PART.match(line.text)
            if begins is not None:
                part, is_instance = indent, is_new and begins[1] is not None
            elif line.text and indent <= part:
                part = -1
            if part < 0:
                yield line
                continue
            found = _LABELLED.match(line.text)
            if found is None:
                heading = line.text.strip()
            elif is_instance and (heading, found[1]) == ("FB Memory Usage", "Total"):
                add_instance(gpu, mib(found[2].strip()), line.source)

    def _head(self, heading: str, line: Line, gpu: Draft) -> None:
        self._heading = heading
        if heading in ("volatile", "aggregate"):
            self._in_volatile = heading == "volatile"
        elif heading in _REASON_HEADINGS and self._reasons is None:
            self._reasons = []
            gpu.fill("throttle", self._reasons, line.source)

    def _labelled(self, label: str, value: str, line: Line, gpu: Draft) -> None:
        if value.startswith(NO_VALUE):
            return
        if self._reasons is not None and label in REASONS and value == "Active":
            self._reasons.append(REASONS[label])
        elif self._in_volatile and self._is_uncorrected(label):
            count = whole_number(value)
            if count is not None:
                self._uncorrected.append((count, line))
        elif label in ("process id", "used gpu memory", "name"):
            self._of_process(label, value, line, gpu)
        else:
            field = _FIELDS.get(label) or _BELOW.get((self._heading, label))
            if field is not None:
                state(gpu, field, value, line.source, usage=self._usage)

    def _is_uncorrected(self, label: str) -> bool:
        """Whether a label counts uncorrected errors; drivers before R450 have totals."""
        return "uncorrectable" in label or (self._heading, label) == ("double bit", "total")

    def _of_process(self, label: str, value: str, line: Line, gpu: Draft) -> None:
        if label == "process id":
            self._process = whole_number(value) or 0
        elif label == "used gpu memory" and self._usage and self._process:
            used = integer(value)
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


_FIELDS: dict[str, str] = {
    "product name": "device_name", "gpu uuid": "uuid", "persistence mode": "persistence",
    "compute mode": "compute_mode", "gpu current temp": "temperature_c",
    "gpu slowdown temp": "temperature_slowdown_c", "remapping failure occurred": "rows_failed",
    "pending page blacklist": "pages_pending",
}  # fmt: skip
_BELOW: dict[tuple[str, str], str] = {
    ("mig mode", "current"): "mig_enabled", ("mig mode", "pending"): "mig_pending",
    ("ecc mode", "current"): "ecc_enabled", ("fb memory usage", "total"): "memory_total_bytes",
    ("fb memory usage", "used"): "memory_used_bytes",
    ("fb memory usage", "free"): "memory_free_bytes",
    ("pcie generation", "max"): "pcie_generation_max",
    ("pcie generation", "current"): "pcie_generation", ("link width", "max"): "pcie_width_max",
    ("link width", "current"): "pcie_width", ("retired pages", "pending"): "pages_pending",
    ("temperature", "gpu"): "temperature_c",
    ("remapped rows", "uncorrectable error"): "rows_remapped_uncorrected",
    ("remapped rows", "pending"): "rows_pending", ("fabric", "state"): "fabric_state",
    ("clocks", "sm"): "sm_clock_mhz", ("max clocks", "sm"): "sm_clock_max_mhz",
    ("power readings", "power draw"): "power_w", ("gpu power readings", "power draw"): "power_w",
    ("gpu power readings", "average power draw"): "power_w",
    ("power readings", "power limit"): "power_limit_w",
    ("gpu power readings", "current power limit"): "power_limit_w",
}  # fmt: skip
