"""From where the compatibility tables have what they say about the facts of a finding."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from gpucheck.derived.torch_code import TorchCode
from gpucheck.engine.ask import supply, tables_behind
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Evidence, Rule, TableSource
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.tables import Row, Table, Tables
from gpucheck.tables.compilers import CubinRules, ToolkitTargets
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors, Xids
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts
from gpucheck.tables.sxids import Sxids
from gpucheck.tables.torch import TorchBuilds, TorchReleases

_MOST = 20
"""Sources of one finding: eight GPUs of one kind have the same ones."""
_PLACE = re.compile(r"\.[0-9]+(?=\.|$)")
_TORCH = ("torch.version", "torch.cuda", "torch.built_for", "torch.arch_list")
_OF_SELFTEST = re.compile(r"(selftests\.results\.[0-9]{1,6})\.detail")

_ROW_OF: dict[str, tuple[type[Table], Callable[[Any, Any], Row | None]]] = {
    "nvml.driver_release": (DriverBranches, DriverBranches.branch_of),
    "driver.module_release": (DriverBranches, DriverBranches.branch_of),
    "driver.libcuda.release": (DriverBranches, DriverBranches.branch_of),
    "pci.gpus.compute_capability": (GpuArchitectures, GpuArchitectures.row),
    "nvml.gpus.compute_capability": (GpuArchitectures, GpuArchitectures.row),
    "cuda_driver.devices.compute_capability": (GpuArchitectures, GpuArchitectures.row),
    "pci.gpus.product": (GpuProducts, GpuProducts.row),
    "nvml.gpus.device_name": (GpuProducts, GpuProducts.row),
    "cuda_driver.devices.device_name": (GpuProducts, GpuProducts.row),
    "toolkits.selected_version": (ToolkitTargets, ToolkitTargets.row),
    "torch.version": (TorchReleases, TorchReleases.release),
    "torch.cuda": (CudaDrivers, CudaDrivers.needed),
    "cuda_driver.init_code": (CudaErrors, CudaErrors.error),
    "cuda_driver.program_code": (CudaErrors, CudaErrors.error),
    "nvml.init_code": (NvmlErrors, NvmlErrors.error),
    "nvml.gpus.handle_code": (NvmlErrors, NvmlErrors.error),
    "kernel_log.xids.xid": (Xids, Xids.xid),
    "kernel_log.sxids.sxid": (Sxids, Sxids.sxid),
}
"""The table that knows the values of a fact, whose places in lists are left out here."""
_CODES = ("torch.arch_list", "extensions.extensions.codes")


def table_sources(
    rule: Rule,
    evidence: tuple[Evidence, ...],
    rows: Sequence[tuple[str, Row]],
    snapshot: Snapshot,
    tables: Tables,
) -> tuple[TableSource, ...]:
    """Return the sources of what the tables of a check say about these facts, each once.

    Args:
        rule: the rule, whose tables count.
        evidence: the facts.
        rows: the rows that its check named, each with the fact that it judges.
        snapshot: what is known of the machine.
        tables: the compatibility tables.
    """
    found: dict[tuple[str, str], TableSource] = {}
    by_check = (
        (fact, *of_check) for fact, row in rows for of_check in _tables_of(row, rule, tables)
    )
    by_value = (
        (quoted.fact, table, row)
        for quoted in evidence
        for table, row in _rows(rule, quoted, snapshot, tables)
    )
    for fact, table, row in (*by_check, *by_value):
        for source in (table.sources[key] for key in row.source if key in table.sources):
            found.setdefault(
                (table.table, source.title),
                TableSource(
                    fact=fact, table=table.table,
                    title=source.title, url=source.url, read=source.read,
                ),
            )  # fmt: skip
    return tuple(found.values())[:_MOST]


def _tables_of(row: Row, rule: Rule, tables: Tables) -> Iterator[tuple[Table, Row]]:
    """Yield the table that has a row, with the row."""
    for kind in tables_behind(rule):
        table = tables.get(kind)
        if any(own is row for own in table.rows):
            yield table, row


def _rows(
    rule: Rule, quoted: Evidence, snapshot: Snapshot, tables: Tables
) -> Iterator[tuple[Table, Row]]:
    fact = _PLACE.sub("", quoted.fact)
    behind = tables_behind(rule)
    known = _ROW_OF.get(fact)
    if known is not None and known[0] in behind and quoted.value is not None:
        kind, row_of = known
        table = tables.get(kind)
        row = row_of(table, quoted.value)
        if row is not None:
            yield table, row
    if fact in _TORCH and TorchBuilds in behind:
        installed: TorchCode = supply(TorchCode, snapshot, tables)
        build = installed.build()
        if build is not None:
            yield tables.get(TorchBuilds), build
    if fact in _CODES and CubinRules in behind:
        codes: Iterable[str] = quoted.value or ()
        rules = tables.get(CubinRules)
        yield from ((rules, row) for row in rules.of(codes))
    of_selftest = _OF_SELFTEST.fullmatch(quoted.fact)
    if of_selftest is not None and CudaErrors in behind:
        says: SelfTestSays = supply(SelfTestSays, snapshot, tables)
        row = says.row(of_selftest[1])
        if row is not None:
            yield from _tables_of(row, rule, tables)
