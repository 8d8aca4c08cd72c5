"""What holds for each table."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from each import each

from gpucheck.tables import Table, Tables, serialise, tables_dir
from gpucheck.tables.check import all_tables, problems
from gpucheck.tables.cuda import CudaDrivers, ToolkitRow
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.gpus import GpuArchitectures, PciDevices
from gpucheck.tables.torch import TorchBuilds, TorchReleases
from gpucheck.tables.versions import at_least, numbers

each_table = each("cls", all_tables().values(), ids=lambda cls: cls.name)


@each_table
def test_each_row_has_a_source_that_resolves(tables: Tables, cls: type[Table]) -> None:
    table = tables.get(cls)
    for row in table.rows:
        assert row.source
        assert len(table.titles(row)) == len(row.source), row


@each_table
def test_each_file_is_its_own_serialisation(tables: Tables, cls: type[Table]) -> None:
    text = (tables.directory / f"{cls.name}.json").read_text(encoding="utf-8")
    assert text == serialise(tables.get(cls))


@each_table
def test_one_row_a_line_and_no_row_twice(tables: Tables, cls: type[Table]) -> None:
    lines = (tables.directory / f"{cls.name}.json").read_text(encoding="utf-8").splitlines()
    rows = lines[lines.index(' "rows": [') + 1 : -1]
    assert len(rows) == len(tables.get(cls).rows)
    assert len(set(rows)) == len(rows)


@each_table
def test_sources_are_dated_and_public(tables: Tables, cls: type[Table]) -> None:
    for source in tables.get(cls).sources.values():
        assert re.fullmatch(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]", source.read)
        assert not re.search(r"/work|shared/|\.csv|\(copy\)|\bsame\b", source.title)


@each_table
def test_an_unconfirmed_row_says_why(tables: Tables, cls: type[Table]) -> None:
    assert all(row.note for row in tables.get(cls).rows if not row.confirmed)


def test_the_index_lists_exactly_the_files(tables: Tables) -> None:
    index = json.loads((tables.directory / "index.json").read_text(encoding="utf-8"))
    files = {path.stem for path in tables.directory.iterdir()} - {"index", "checks"}
    assert set(index["tables"]) == files == set(all_tables())
    assert index["schema"] == "gpucheck.tables/1"
    assert tables.version == "2026.11.17"
    assert tables.date == "2026-11-28"


def test_check_finds_nothing_in_this_checkout(tables: Tables) -> None:
    assert problems(tables) == ()


@each(
    ("file", "old", "new", "expected"),
    [
        ("chips", '"source": ["chips-matched"]', '"source": ["nobody"]', "row 1 has no source"),
        ("chips", '"source": ["chips-matched"]', '"source": []', "row 1 has no source"),
        ("chips", '{"table": "chips",', '{"table":"chips",', "not written in the form"),
        ("index", '"chips",', "", "does not list chips.json"),
        ("index", '"chips",', '"chips", "ghost",', "lists ghost.json, which is not there"),
    ],
)
def test_check_finds_what_is_wrong(
    tmp_path: Path, file: str, old: str, new: str, expected: str
) -> None:
    for path in tables_dir().iterdir():
        text = path.read_text(encoding="utf-8")
        if path.stem == file:
            assert old in text
            text = text.replace(old, new, 1)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    assert any(expected in sentence for sentence in problems(Tables(tmp_path)))


def test_arch_lists_hold_known_architectures(tables: Tables) -> None:
    architectures = tables.get(GpuArchitectures)
    for row in tables.get(TorchBuilds).rows:
        for code in row.arch_list + row.ptx:
            digits = code.removeprefix("sm_").removeprefix("compute_")
            assert architectures.knows(f"{digits[:-1]}.{digits[-1]}"), code


def test_builds_name_themselves_after_their_cuda(tables: Tables) -> None:
    releases = {".".join(row.torch.split(".")[:2]) for row in tables.get(TorchReleases).rows}
    for row in tables.get(TorchBuilds).rows:
        assert row.build == "cu" + row.cuda.replace(".", "")
        assert row.platform in {"linux_x86_64", "linux_aarch64", "windows", "windows_aarch64"}
        assert row.torch in releases


def test_default_builds_are_in_the_table_of_builds(tables: Tables) -> None:
    builds = tables.get(TorchBuilds)
    for release in tables.get(TorchReleases).rows:
        for platform, build in release.default_builds.items():
            if build != "cpu":
                assert builds.available(release.torch, build, platform) is True
                row = builds.build(release.torch, build, platform)
                assert row is not None
                assert row.cudnn in (release.cudnn, None)


def test_each_published_build_has_an_oldest_driver(tables: Tables) -> None:
    drivers = tables.get(CudaDrivers)
    published = [row for row in tables.get(TorchBuilds).rows if row.available]
    assert published
    for row in published:
        assert drivers.oldest_driver(row.cuda, "linux")
        assert drivers.least_driver_cuda(row.cuda)


@pytest.mark.parametrize("os", ["linux", "windows"])
def test_a_newer_cuda_never_needs_an_older_driver(
    tables: Tables, os: Literal["linux", "windows"]
) -> None:
    drivers = tables.get(CudaDrivers)
    toolkits = {row.cuda for row in drivers.rows if isinstance(row, ToolkitRow)}
    minors = sorted({numbers(cuda)[:2] for cuda in toolkits})
    needed = [drivers.oldest_driver(f"{major}.{minor}", os) for major, minor in minors]
    for older, newer in pairwise(needed):
        assert older
        assert newer
        assert at_least(numbers(newer), numbers(older))


@pytest.mark.parametrize("os", ["linux", "windows"])
def test_a_newer_toolkit_never_ships_an_older_driver(
    tables: Tables, os: Literal["linux", "windows"]
) -> None:
    drivers = tables.get(CudaDrivers)
    toolkits = [row for row in drivers.rows if isinstance(row, ToolkitRow)]
    toolkits.sort(key=lambda row: numbers(row.cuda))
    shipped = [numbers(driver) for row in toolkits if (driver := getattr(row, os))]
    assert len(shipped) > 40
    assert all(at_least(newer, older) for older, newer in pairwise(shipped))


def test_the_driver_of_each_toolkit_is_of_the_branch_it_names(tables: Tables) -> None:
    branches = tables.get(DriverBranches)
    known = {row.branch for row in branches.rows}
    for row in tables.get(CudaDrivers).rows:
        if not isinstance(row, ToolkitRow) or row.branch not in known:
            continue
        for driver in (row.linux, row.windows):
            if driver and driver != "418.96":
                branch = branches.branch_of(driver)
                assert branch is not None
                assert branch.branch == row.branch, driver


def test_a_branch_reports_the_cuda_of_the_toolkit_it_shipped_with(tables: Tables) -> None:
    branches = tables.get(DriverBranches)
    for row in tables.get(CudaDrivers).rows:
        if isinstance(row, ToolkitRow) and row.branch:
            cuda = branches.cuda_of(row.branch)
            assert cuda in (None, ".".join(row.cuda.split(".")[:2]))


def test_device_ids_are_four_lower_case_hexadecimal_digits(tables: Tables) -> None:
    ids = [row.device_id for row in tables.get(PciDevices).rows]
    assert all(re.fullmatch(r"[0-9a-f]{4}", device_id) for device_id in ids)
    assert len(ids) == len(set(ids))


def test_capabilities_of_devices_are_known(tables: Tables) -> None:
    architectures = tables.get(GpuArchitectures)
    for row in tables.get(PciDevices).rows:
        assert row.compute_capability is None or architectures.knows(row.compute_capability)
