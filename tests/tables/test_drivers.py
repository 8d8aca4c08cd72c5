"""Drivers: what CUDA needs, what a branch is."""

from datetime import date

import pytest
from each import each
from tables.some import some

from gpucheck.tables import Tables
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import DriverBranches


@pytest.fixture
def drivers(tables: Tables) -> CudaDrivers:
    return tables.get(CudaDrivers)


@pytest.fixture
def branches(tables: Tables) -> DriverBranches:
    return tables.get(DriverBranches)


@each(
    ("cuda", "linux", "windows", "least"),
    [
        ("12.4", "525.60.13", "527.41", "12.0"),
        ("12.4.131", "525.60.13", "527.41", "12.0"),
        ("11.8", "450.80.02", "452.39", "11.0"),
        ("11.0", "450.36.06", "451.22", "11.0"),
        ("13.0", "580.65.06", "580", "13.0"),
        ("13.9", "580.65.06", "580", "13.0"),
        ("10.2", "440.33", "441.22", "10.2"),
        ("10.1", "418.39", "418.96", "10.1"),
        ("9.2", "396.26", "397.44", "9.2"),
        ("14.0", None, None, None),
        ("7.5", None, None, None),
        ("10.3", None, None, None),
        ("junk", None, None, None),
    ],
)
def test_what_cuda_needs(
    drivers: CudaDrivers, cuda: str, linux: str | None, windows: str | None, least: str | None
) -> None:
    assert drivers.oldest_driver(cuda, "linux") == linux
    assert drivers.oldest_driver(cuda, "windows") == windows
    assert drivers.least_driver_cuda(cuda) == least
    assert bool(drivers.needed(cuda)) is (linux is not None)


@each(
    ("cuda", "driver", "driver_cuda", "expected"),
    [
        ("12.4", "525.60.13", None, True),
        ("12.4", "525.60.11", None, False),
        ("12.4", "515.105.01", None, False),
        ("12.4", "525", None, None),
        ("12.4", "580", None, True),
        ("12.4", "515.105.01", "12.0", True),
        ("12.4", "535.104.05", "11.8", False),
        ("12.9", None, "12.0", True),
        ("12.9", None, "13.4", True),
        ("11.8", None, "11.0", True),
        ("13.0", None, "12.9", False),
        ("10.2", None, "10.1", False),
        ("10.2", None, "11.0", True),
        ("14.0", None, "14.2", True),
        ("14.2", None, "14.0", None),
        ("14.0", "900.10", None, None),
        ("12.4", None, None, None),
        ("12.4", "unknown", None, None),
    ],
)
def test_what_a_driver_runs(
    drivers: CudaDrivers, cuda: str, driver: str | None, driver_cuda: str | None, expected: object
) -> None:
    runs = drivers.driver_runs(cuda, "linux", driver=driver, driver_cuda=driver_cuda)
    assert runs is expected


def test_the_driver_of_a_toolkit_is_another_question(drivers: CudaDrivers) -> None:
    assert drivers.toolkit_driver("12.4.1", "linux") == "550.54.15"
    assert drivers.toolkit_driver("12.4", "linux") == "550.54.14"
    assert drivers.toolkit_driver("12.4", "windows") == "551.61"
    assert drivers.toolkit_driver("13.0", "windows") is None
    assert drivers.toolkit_driver("12", "linux") is None
    assert some(drivers.toolkit("13.4")).branch == "615"
    assert some(drivers.toolkit("13.5")).branch == "620"


@pytest.mark.parametrize(
    ("driver", "branch", "cuda"),
    [
        ("535.104.05", "535", "12.2"),
        ("418.39", "418", "10.1"),
        ("528.33", "525", "12.0"),
        ("472.50", "470", "11.4"),
        ("390.46", "390", None),
        ("565.77", "565", "12.7"),
        ("620.70.06", "620", "13.5"),
        ("616.02", "615", "13.4"),
        ("621.12", "620", "13.5"),
        ("430.40", None, None),
        ("700.10", None, None),
        ("", None, None),
    ],
)
def test_branch(
    branches: DriverBranches, driver: str, branch: str | None, cuda: str | None
) -> None:
    row = branches.branch_of(driver)
    assert (row.branch if row else None) == branch
    assert branches.cuda_of(driver) == cuda


def test_end_of_life_is_after_the_month_named(branches: DriverBranches) -> None:
    assert branches.is_end_of_life("535.288.01", date(2026, 6, 30)) is False
    assert branches.is_end_of_life("535.288.01", date(2026, 7, 1)) is True
    assert branches.is_end_of_life("580.95.05", date(2026, 11, 21)) is False
    assert branches.is_end_of_life("525.60.13", date(2026, 11, 21)) is True
    assert branches.is_end_of_life("525.60.13", date(2024, 7, 31)) is None
    assert branches.is_end_of_life("470.256.02", date(2024, 7, 31)) is False
    assert branches.is_end_of_life("470.256.02", date(2024, 8, 1)) is True
    assert branches.is_end_of_life("550.163.01", date(2025, 7, 1)) is True
    assert branches.is_end_of_life("590.48.01", date(2026, 11, 21)) is True
    assert branches.is_end_of_life("590.48.01", date(2026, 1, 31)) is None
    assert branches.is_end_of_life("615.71.09", date(2026, 11, 21)) is None
    assert branches.is_end_of_life("610.57.04", date(2026, 11, 21)) is None
    assert branches.is_end_of_life("620.70.06", date(2029, 9, 30)) is False
    assert branches.is_end_of_life("620.70.06", date(2029, 10, 1)) is True
    assert branches.is_end_of_life("999.1", date(2026, 11, 21)) is None


def test_from_615_on_the_packages_have_the_open_kernel_modules_alone(
    branches: DriverBranches,
) -> None:
    assert not branches.is_open_only("610.57.04")
    assert branches.is_open_only("615.71.09")
    assert branches.is_open_only("620.70.06")
    assert branches.is_open_only("640.10")
    assert not branches.is_open_only("580.95.05")
    assert not branches.is_open_only("junk")


def test_what_is_newer_than_the_table(branches: DriverBranches) -> None:
    assert branches.newest() == "620"
    assert branches.knows("615.12")
    assert branches.knows("616.02")
    assert branches.knows("430.40")
    assert branches.knows("620.70.06")
    assert not branches.knows("625.10")
    assert not branches.knows("1000.1")
    assert not branches.knows("junk")
