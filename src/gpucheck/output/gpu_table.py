"""The GPUs of a machine as a table: a line for each, with what was read and what to do with it.

A column that nobody could read is left out, and a dash stands for a single value that was not read.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpucheck.derived.surroundings import Cluster
from gpucheck.engine import GpuVerdict, Report
from gpucheck.facts.driver import KernelLog, Nvml, NvmlGpu
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.preflight import Preflight
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Container, LimitsOfProcess, Pci, System
from gpucheck.findings.form import GpuWord
from gpucheck.language import in_series, say
from gpucheck.output.words import bracketed, clean, counted, headed, term

STYLES: dict[GpuWord | None, str] = {
    "keep": "green", "watch": "yellow", "drain": "red", "replace": "red", None: "blue",
}  # fmt: skip
WORST_FIRST: tuple[GpuWord, ...] = ("replace", "drain", "watch", "keep")
_NOT_READ = "-"
_NODE, _SEVERAL = 4, 2
"""GPUs. Chosen: from four on a machine is a node, whose operator looks for the one that differs;
with fewer a table is shown only if they do differ."""
_GIB = 1024**3
_MOST_XIDS = 3  # chosen: a cell; the JSON has all
_LONGEST_MODEL = 24  # chosen: the longest name of a data-centre GPU but one with its edition
_BUSY = 50  # percent; chosen: an idle GPU lowers its clock, which is no fault
_PEERS = 2  # a median of fewer others is one of them


class GpuRow(NamedTuple):
    """A GPU; ``why`` is the reason of its word, with the finding that it comes from."""

    cells: Sequence[str]
    verdict: GpuWord | None
    why: str


class GpuTable(NamedTuple):
    """The table; its first column names the GPU, its last has the word."""

    title: str
    heads: Sequence[str]
    rows: Sequence[GpuRow]

    def merged(self) -> "GpuTable":
        """Return the table with one row for all GPUs that are kept, and one for the unknown."""
        kept = [row for row in self.rows if row.verdict == "keep"]
        unknown = [row for row in self.rows if row.verdict is None]
        others = [row for row in self.rows if row not in kept and row not in unknown]
        return self._replace(rows=[*others, *_as_one(unknown), *_as_one(kept)])

    def named(self) -> "GpuTable":
        """Return the table without the GPUs that are kept: its title counts them."""
        rows = [row for row in self.rows if row.verdict != "keep"]
        return self._replace(rows=rows).without_gaps()

    def without_gaps(self) -> "GpuTable":
        """Return the table without the columns that nobody could read."""
        read = [
            at
            for at in range(len(self.heads) - 1)
            if {row.cells[at] for row in self.rows} != {_NOT_READ}
        ]
        shown = (*read, len(self.heads) - 1)
        return self._replace(
            heads=[self.heads[at] for at in shown],
            rows=[row._replace(cells=[row.cells[at] for at in shown]) for row in self.rows],
        )

    def counted(self) -> "GpuTable":
        """Return only the title, which counts the GPUs by their words."""
        return self._replace(rows=[])


def of_node(report: Report) -> GpuTable | None:
    """Return the table where a reader without ``-v`` needs it: GPUs that differ, or a node's."""
    differ = len({gpu.verdict for gpu in report.gpus}) > 1
    return gpu_table(report) if len(report.gpus) >= (_SEVERAL if differ else _NODE) else None


def gpu_table(report: Report) -> GpuTable | None:
    """Return the table of a machine with several GPUs, if the driver has told about them."""
    snapshot = report.snapshot
    listed = snapshot.get(Nvml).gpus
    gpus = report.gpus
    if not listed or len(gpus) < _SEVERAL or report.about != "machine":
        return None
    read: list[NvmlGpu | None] = [*listed, *[None] * (len(gpus) - len(listed))]
    columns = {
        say("Model"): _models(gpus),
        "°C": _numbers(read, lambda gpu: gpu.temperature_c),
        "W": _numbers(read, lambda gpu: gpu.power_w),
        "MHz": _clocks(read),
        "GiB": [_memory(gpu) for gpu in read],
        "ECC": _numbers(read, lambda gpu: gpu.ecc_uncorrected),
        say("Remap"): [_rows(gpu) for gpu in read],
        say("NVLinks"): _links(read),
        "Xid": _xids(snapshot, gpus),
    }
    is_node = in_cluster(snapshot)
    rows = [
        GpuRow(
            (_name(gpu), *cells, word(gpu.verdict, is_node=is_node)),
            gpu.verdict,
            "" if gpu.verdict == "keep" else bracketed(gpu.reason, in_series(gpu.findings)),
        )
        for gpu, *cells in zip(gpus, *columns.values(), strict=True)
    ]
    names = [clean(gpu.device_name or say("NVIDIA GPU")) for gpu in gpus]
    title = headed(counted(names), counts(gpus, is_node=is_node))
    return GpuTable(title, ("GPU", *columns, say("Verdict")), rows).without_gaps()


def counts(gpus: Sequence[GpuVerdict], *, is_node: bool) -> str:
    """Return how many GPUs have each word, the worst first: ``1 drain, 7 keep``."""
    found = [gpu.verdict for gpu in gpus]
    words = {each: word(each, is_node=is_node) for each in WORST_FIRST} | {None: term("unknown")}
    return in_series(
        [
            say("{count} {word}", count=found.count(each), word=shown)
            for each, shown in words.items()
            if each in found
        ]
    )


def word(verdict: GpuWord | None, *, is_node: bool) -> str:
    """Return what to do with a GPU; who has no cluster resets a GPU that others would drain."""
    if verdict is None:
        return _NOT_READ
    return term("reset" if verdict == "drain" and not is_node else verdict)


def in_cluster(snapshot: Snapshot) -> bool:
    """Whether the machine seems to be a node of a cluster."""
    cluster = Cluster(
        snapshot.get(System), snapshot.get(Container), snapshot.get(Preflight),
        snapshot.get(Pci), snapshot.get(LimitsOfProcess),
    )  # fmt: skip
    return bool(cluster.scheduler)


def _as_one(rows: Sequence[GpuRow]) -> list[GpuRow]:
    """Return one row for all of these, whose cells are ranges; none without any."""
    if not rows:
        return []
    names, *columns = zip(*(row.cells for row in rows), strict=True)
    return [GpuRow((_spans(names), *map(_range, columns)), rows[0].verdict, "")]


def _spans(names: Sequence[str]) -> str:
    """Return ``0-2,4``; the address of a GPU without a number stands for itself."""
    groups: list[list[str]] = []
    before: int | None = None
    for name in names:
        number = whole_number(name)
        if number is not None and before is not None and number == before + 1:
            groups[-1].append(name)
        else:
            groups.append([name])
        before = number
    return ",".join("-".join(dict.fromkeys((group[0], group[-1]))) for group in groups)


def _range(cells: Sequence[str]) -> str:
    """Return the cell that all have, the range of numbers, or nothing: ``1-3/80``."""
    parts = [cell.partition("/") for cell in cells]
    numbers = [number for first, _, _ in parts if (number := whole_number(first)) is not None]
    ends = {f"{stroke}{last}" for _, stroke, last in parts}
    if len(set(cells)) == 1:
        return cells[0]
    if len(ends) > 1 or len(numbers) < len(cells):
        return ""
    return f"{min(numbers)}-{max(numbers)}{ends.pop()}"


def _name(gpu: GpuVerdict) -> str:
    """Return its number, or where on the bus it is if the driver does not list it."""
    if gpu.index is not None:
        return str(gpu.index)
    return clean(gpu.pci_address or "").removeprefix("0000:")


def _models(gpus: Sequence[GpuVerdict]) -> list[str]:
    """Return the models where they differ; the title has the one of all."""
    names = [gpu.device_name for gpu in gpus]
    if len({name for gpu, name in zip(gpus, names, strict=True) if gpu.index is not None}) < 2:  # noqa: PLR2004  # all alike
        return [_NOT_READ] * len(gpus)
    return [clean((name or _NOT_READ).removeprefix("NVIDIA "), _LONGEST_MODEL) for name in names]


def _numbers(gpus: Sequence[NvmlGpu | None], read: Callable[[NvmlGpu], float | None]) -> list[str]:
    values = [None if gpu is None else read(gpu) for gpu in gpus]
    return [_NOT_READ if value is None else f"{value:.0f}" for value in values]


def _clocks(gpus: Sequence[NvmlGpu | None]) -> list[str]:
    """Return the clock of the SMs; beside it the share of the median, if both are at work."""
    return [_NOT_READ if gpu is None else _clock(gpu, gpus) for gpu in gpus]


def _clock(gpu: NvmlGpu, gpus: Sequence[NvmlGpu | None]) -> str:
    if gpu.sm_clock_mhz is None:
        return _NOT_READ
    clocks = [
        peer.sm_clock_mhz
        for peer in gpus
        if peer is not None and peer is not gpu and peer.device_name == gpu.device_name
        and peer.sm_clock_mhz and _is_busy(peer)
    ]  # fmt: skip
    if len(clocks) < _PEERS or not _is_busy(gpu):
        return str(gpu.sm_clock_mhz)
    import statistics  # noqa: PLC0415  # most machines have one GPU

    share = f"{gpu.sm_clock_mhz / statistics.median(clocks):.0%}"
    return str(gpu.sm_clock_mhz) if share == "100%" else f"{gpu.sm_clock_mhz} ({share})"


def _is_busy(gpu: NvmlGpu) -> bool:
    return gpu.utilization_percent is not None and gpu.utilization_percent >= _BUSY


def _memory(gpu: NvmlGpu | None) -> str:
    if gpu is None or gpu.memory_total_bytes is None:
        return _NOT_READ
    used = gpu.memory_used_bytes
    first = _NOT_READ if used is None else f"{used / _GIB:.0f}"
    return f"{first}/{gpu.memory_total_bytes / _GIB:.0f}"


def _rows(gpu: NvmlGpu | None) -> str:
    """Return what became of defective rows, or pages, of its memory."""
    if gpu is None:
        return _NOT_READ
    if gpu.rows_failed:
        return term("failed")
    if gpu.rows_pending or gpu.pages_pending:
        return say("pending")
    return (
        _NOT_READ if gpu.rows_remapped_uncorrected is None else str(gpu.rows_remapped_uncorrected)
    )


def _links(gpus: Sequence[NvmlGpu | None]) -> list[str]:
    """Return the active NVLinks, and the most that a GPU of that model has here."""
    most: dict[str | None, int] = {}
    for gpu in gpus:
        if gpu is not None and gpu.nvlinks is not None:
            most[gpu.device_name] = max(sum(gpu.nvlinks), most.get(gpu.device_name, 0))
    if not any(most.values()):
        return [_NOT_READ] * len(gpus)
    return [
        _NOT_READ
        if gpu is None or gpu.nvlinks is None
        else f"{sum(gpu.nvlinks)}/{most[gpu.device_name]}"
        for gpu in gpus
    ]


def _xids(snapshot: Snapshot, gpus: Sequence[GpuVerdict]) -> list[str]:
    """Return the Xids of each GPU that the kernel's log still has, the newest first."""
    events = snapshot.get(KernelLog).xids
    if events is None:
        return [_NOT_READ] * len(gpus)
    found = []
    for gpu in gpus:
        at = gpu.pci_address
        mine = [str(event.xid) for event in events if at is not None and event.pci_address == at]
        each = list(dict.fromkeys(reversed(mine)))
        more = [f"+{len(each) - _MOST_XIDS}"] if len(each) > _MOST_XIDS else []
        found.append(" ".join((*each[:_MOST_XIDS], *more)) or term("none"))
    return found
