"""From where the compatibility tables have what they say about the facts of a finding."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from gpucheck.derived.torch_code import TorchCode
from gpucheck.engine.ask import supply, tables_behind
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Evidence, Rule, TableSource
from gpucheck.tables import Row, Table, Tables
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors, Xids
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts
from gpucheck.tables.torch import TorchBuilds, TorchReleases

_MOST = 20
"""Sources of one finding: eight GPUs of one kind have the same ones."""
_PLACE = re.compile(r"\.[0-9]+(?=\.|$)")
_TORCH = ("torch.version", "torch.cuda", "torch.built_for", "torch.arch_list")

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
    "torch.version": (TorchReleases, TorchReleases.release),
    "torch.cuda": (CudaDrivers, CudaDrivers.needed),
    "cuda_driver.init_code": (CudaErrors, CudaErrors.error),
    "nvml.init_code": (NvmlErrors, NvmlErrors.error),
    "kernel_log.xids.xid": (Xids, Xids.xid),
}
"""The table that knows the values of a fact, whose places in lists are left out here."""


def table_sources(
    rule: Rule, evidence: tuple[Evidence, ...], snapshot: Snapshot, tables: Tables
) -> tuple[TableSource, ...]:
    """Return the sources of what the tables of a check say about these facts, each once."""
    found: dict[tuple[str, str], TableSource] = {}
    for quoted in evidence:
        for table, row in _rows(rule, quoted, snapshot, tables):
            for source in (table.sources[key] for key in row.source if key in table.sources):
                found.setdefault(
                    (table.table, source.title),
                    TableSource(
                        fact=quoted.fact, table=table.table,
                        title=source.title, url=source.url, read=source.read,
                    ),
                )  # fmt: skip
    return tuple(found.values())[:_MOST]


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
