"""Limits of minor-version compatibility, and forward compatibility."""

from each import each
from tables.some import some

from gpucheck.tables import Tables
from gpucheck.tables.cuda import MinorCompatLimits
from gpucheck.tables.driver import ForwardCompat, GpuKind


def test_limits(tables: Tables) -> None:
    table = tables.get(MinorCompatLimits)
    assert {row.limit for row in table.behind_error(222)} == {
        "ptx-of-newer-toolkit",
        "ptx-only-build",
    }
    assert table.behind_error(1) == ()
    assert some(table.limit("newer-driver-api")).errors == (36,)
    assert table.limit("no such limit") is None


@each(
    ("cuda", "branch", "expected"),
    [
        ("13.0", "535", "compatible"),
        ("13.2.1", "595", "not-applicable"),
        ("13.5", "620", "not-applicable"),
        ("13.5", "615", None),
        ("13.2", "610", "not-compatible"),
        ("12.4", "570", "not-compatible"),
        ("12.4", "550", "not-applicable"),
        ("12.3", "550", "not-compatible"),
        ("13.0", "550", "compatible"),
        ("13.2", "550", None),
        ("12.8", "550", "compatible"),
        ("12.8", "525", None),
        ("12.4", "470", "compatible"),
        ("11.8", "450", "compatible"),
        ("12.4", "450", None),
        ("99.0", "535", None),
        ("junk", "535", None),
    ],
)
def test_packages_on_branches(tables: Tables, cuda: str, branch: str, expected: str | None) -> None:
    assert tables.get(ForwardCompat).state(cuda, branch) == expected


def test_the_package_for_a_cuda(tables: Tables) -> None:
    table = tables.get(ForwardCompat)
    assert table.newest_cuda("535") == "13.4"
    assert table.newest_cuda("550") == "13.1"
    assert table.newest_cuda("450") == "12.1"
    assert table.newest_cuda("530") is None
    assert table.package_for("12.1", "470") == "cuda-compat-12-1"
    assert table.package_for("12.8", "535") == "cuda-compat-12-8"
    assert table.package_for("13.3", "580") == "cuda-compat-13-3"
    assert table.package_for("12.8", "580") is None
    assert table.package_for("13.5", "535") is None
    assert table.package_for("99.0", "535") is None
    assert table.package_for("junk", "535") is None


@each(
    ("kind", "expected"),
    [("data-center", True), ("jetson", True), ("geforce", False), ("workstation", None)],
)
def test_kinds_of_gpus(tables: Tables, kind: GpuKind, expected: object) -> None:
    assert tables.get(ForwardCompat).allowed_on(kind) is expected


def test_rules(tables: Tables) -> None:
    table = tables.get(ForwardCompat)
    assert some(table.rule("gpu-not-allowed")).errors == (804,)
    assert table.rule("no such rule") is None
