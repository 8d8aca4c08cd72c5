"""Which driver branches drive a GPU."""

import msgspec
import pytest
from each import each

from gpucheck.tables import Tables
from gpucheck.tables.driver import DriverBranches, DriverSupport, Drives
from gpucheck.tables.gpus import GpuArchitectures

BOUNDED = ("7.5", "8.9", "12.1")
"""Capabilities whose first branch these tests take for unsourced, whatever the tables have."""


@pytest.fixture
def support(tables: Tables) -> DriverSupport:
    table = tables.get(GpuArchitectures)
    rows = tuple(
        msgspec.structs.replace(row, first_driver_branch=None)
        if row.compute_capability in BOUNDED
        else row
        for row in table.rows
    )
    return DriverSupport(msgspec.structs.replace(table, rows=rows), tables.get(DriverBranches))


@each(
    ("capability", "release", "cuda", "drives"),
    [
        ("3.7", "470.256.02", None, "drives"),
        ("3.7", "495.46", None, "dropped"),
        ("6.1", "580.142", None, "drives"),
        ("6.1", "581.15", None, "drives"),  # Windows numbers up to four above the branch
        ("6.1", "590.48.01", None, "dropped"),
        ("6.1", None, "13.0", "drives"),
        ("6.1", None, "13.1", "dropped"),
        ("6.1", "580.142", "13.4", "drives"),  # the release counts: cuda-compat speaks more
        ("12.0", "570.86.15", None, "drives"),
        ("12.0", "565.77", None, "too-old"),
        ("12.0", None, "12.4", "too-old"),
        ("8.9", "525.60.13", None, "drives"),
        ("8.9", "520.61.05", None, "drives"),
        ("8.9", "515.105.01", None, "not-known"),
        ("8.9", "390.157", None, "not-known"),
        ("8.9", None, "11.4", "not-known"),
        ("8.9", None, "11.8", "drives"),
        ("7.5", "410.48", None, "drives"),  # no row of its own, and newer than the last too old
        ("7.5", "390.157", None, "not-known"),
        ("12.1", "570.211.01", None, "not-known"),
        ("5.2", "390.157", None, "drives"),
        ("8.9", "999.10", None, "drives"),
        ("8.9", None, None, None),
        ("8.9", "junk", None, None),
        ("99.9", "580.142", None, None),
    ],
)
def test_drives(
    support: DriverSupport,
    capability: str,
    release: str | None,
    cuda: str | None,
    drives: Drives | None,
) -> None:
    assert support.drives(capability, release=release, cuda=cuda) == drives


def test_what_drives_all(support: DriverSupport) -> None:
    assert support.driving_all({"3.7", "8.9"}) == []
    assert support.driving_all({"3.7"})[-1] == 470
    assert support.driving_all({"6.1", "12.0"}) == [570, 575, 580]
    assert support.driving_all({"99.9"}) == []


def test_bounds(support: DriverSupport) -> None:
    assert support.first("12.0") == 570
    assert support.first("8.9") == 520
    assert support.first("3.7") is None
    assert support.last({"3.7", "8.9"}) == 470
    assert support.last({"8.9"}) is None
