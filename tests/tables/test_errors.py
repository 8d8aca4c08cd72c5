"""Xids and error codes."""

from each import each
from tables.some import some

from gpucheck.tables import Tables
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors, Sxids, Xids
from gpucheck.tables.versions import numbers


@each(
    ("number", "fatal"),
    [
        (79, True),
        (48, True),
        (64, True),
        (95, True),
        (119, True),
        (13, False),
        (31, False),
        (63, False),
        (94, False),
        (1, False),
        (16, False),
        (142, False),
        (45, None),
        (74, None),
        (145, None),
        (154, None),
        (162, None),
    ],
)
def test_fatal_xids(tables: Tables, number: int, fatal: object) -> None:
    assert some(tables.get(Xids).xid(number)).is_fatal is fatal


def test_no_unused_xid_is_fatal(tables: Tables) -> None:
    unused = [row for row in tables.get(Xids).rows if row.short_name in {"Unused", "Reserved"}]
    assert len(unused) > 30
    assert not any(row.is_fatal for row in unused)
    assert tables.get(Xids).xid(9999) is None


def test_an_sxid_that_changed_its_meaning(tables: Tables) -> None:
    sxid = tables.get(Sxids).sxid
    assert some(sxid(28004, "535.288.01")).kind == "fatal"
    assert some(sxid(28004, "550.40.07")).kind is None
    both = some(sxid(28004))
    assert both.kind is None  # they share none
    assert both.mnemonic.split(" / ") == [
        some(sxid(28004, "545.29.06")).mnemonic,
        some(sxid(28004, "595.45.04")).mnemonic,
    ]
    assert some(sxid(29002)).kind == "fatal"  # of both meanings
    assert some(sxid(28006)).mnemonic.endswith("_MCTO_ERR")
    assert sxid(28006, "580.142") is None


def test_the_meanings_of_a_number_do_not_overlap(tables: Tables) -> None:
    drivers = ("515.65.01", "535.43.02", "545.29.06", "550.40.07", "595.45.04")
    rows = tables.get(Sxids).rows
    for driver in drivers:
        there = [row.sxid for row in rows if row.is_of(numbers(driver))]
        assert len(set(there)) == len(there)


def test_cuda_errors(tables: Tables) -> None:
    table = tables.get(CudaErrors)
    assert some(table.error(803)).driver == "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
    assert some(table.error(803)).slugs == ("driver-library-mismatch",)
    assert some(table.named("cudaErrorNoDevice")).code == 100
    assert some(table.named("CUDA_ERROR_NO_DEVICE")).code == 100
    assert table.named("cudaErrorNothing") is None
    assert table.error(12345) is None


def test_cuda_errors_before_10_1(tables: Tables) -> None:
    table = tables.get(CudaErrors)
    old = {38: 100, 8: 98, 30: 999, 48: 209, 59: 710, 77: 700, 10: 101, 4: 719, 71: 801}
    for number, code in old.items():
        assert some(table.error_before_10_1(number)).code == code
    assert table.error_before_10_1(35) is None  # the same in both
    assert table.error_before_10_1(2) is None
    numbers = [row.before_10_1 for row in table.rows if row.before_10_1 is not None]
    assert len(numbers) == len(set(numbers))


def test_messages_of_cuda(tables: Tables) -> None:
    """Every error of the runtime that a user can meet has the words that CUDA prints."""
    table = tables.get(CudaErrors)
    assert some(table.error(35)).message == (
        "CUDA driver version is insufficient for CUDA runtime version"
    )
    assert all(row.message for row in table.rows if row.slugs and row.runtime)


def test_nvml_errors(tables: Tables) -> None:
    table = tables.get(NvmlErrors)
    assert some(table.error(18)).error == "NVML_ERROR_LIB_RM_VERSION_MISMATCH"
    assert some(table.error(18)).slugs == ("driver-library-mismatch",)
    assert table.error(500) is None
