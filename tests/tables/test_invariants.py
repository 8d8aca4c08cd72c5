"""What holds between the tables."""

import pytest
from each import each
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from slugs import SLUGS
from tables.some import some

from gpucheck.tables import Table, Tables
from gpucheck.tables.check import all_tables
from gpucheck.tables.companions import CompanionRow, ExtensionRow, Extensions, TorchCompanions
from gpucheck.tables.compilers import ToolkitTargets
from gpucheck.tables.cuda import CudaComponents, CudaDrivers, component_of
from gpucheck.tables.cudnn import CudnnSublibraries
from gpucheck.tables.driver import DriverBranches, ForwardCompat, PackageRow
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.jetson import Jetpacks, JetsonWheels
from gpucheck.tables.nccl import Nccl, NcclCodeRow, TorchNcclRow
from gpucheck.tables.packages import Numpy2, Triton
from gpucheck.tables.torch import TorchBuilds, TorchPinRow, TorchPins, TorchReleases, WheelIndexes
from gpucheck.tables.versions import numbers

# nvcc compiles for 8.8 from CUDA 13.0 on; no product with it is known.
NO_PRODUCT = {"8.8"}


@each("cls", all_tables().values(), ids=lambda cls: cls.name)
def test_slugs_are_of_the_contract(tables: Tables, cls: type[Table]) -> None:
    found = {slug for row in tables.get(cls).rows for slug in getattr(row, "slugs", ())}
    assert found <= SLUGS


def _toolkit_pins(tables: Tables) -> list[TorchPinRow]:
    rows = [row for row in tables.get(TorchPins).rows if isinstance(row, TorchPinRow)]
    return [row for row in rows if component_of(row.package) and row.specifier.startswith("==")]


def test_pinned_components_belong_to_the_toolkit_of_the_build(tables: Tables) -> None:
    components, releases = tables.get(CudaComponents), tables.get(TorchReleases)
    known = {".".join(row.cuda.split(".")[:2]) for row in components.rows}
    pins = _toolkit_pins(tables)
    assert len(pins) > 150
    for pin in pins:
        cuda = some(some(releases.release(pin.torch)).cuda)
        if cuda not in known:
            assert cuda == "11.7"  # older than the table of components
            continue
        toolkits = some(components.toolkits_of(pin.package, pin.specifier.removeprefix("==")))
        minors = {".".join(toolkit.split(".")[:2]) for toolkit in toolkits}
        assert cuda in minors, (pin.torch, pin.package, pin.specifier)


def test_pinned_toolkits_are_in_the_table_of_components(tables: Tables) -> None:
    pins = [row for row in tables.get(TorchPins).rows if isinstance(row, TorchPinRow)]
    toolkits = [row for row in pins if row.package == "cuda-toolkit"]
    assert len(toolkits) > 10
    for row in toolkits:
        cuda = row.specifier.removeprefix("==")
        assert tables.get(CudaComponents).version(cuda, "cublas"), row
        release = some(tables.get(TorchReleases).release(row.torch))
        assert cuda.startswith(f"{release.cuda}.")


def test_each_specifier_can_be_read(tables: Tables) -> None:
    pins = [row for row in tables.get(TorchPins).rows if isinstance(row, TorchPinRow)]
    assert all(SpecifierSet(row.specifier) for row in pins)
    releases = [row for row in tables.get(Extensions).rows if isinstance(row, ExtensionRow)]
    assert all(SpecifierSet(row.torch) for row in releases if row.torch)
    assert all(Version(row.version) for row in releases)


def test_each_release_has_pins_or_is_known_to_have_none(tables: Tables) -> None:
    for release in tables.get(TorchReleases).rows:
        for platform, build in release.default_builds.items():
            pins = tables.get(TorchPins).pins(release.torch, platform)
            assert pins is not None
            # Until 1.12 the wheels brought CUDA's libraries themselves.
            assert bool(pins) is (build != "cpu" and numbers(release.torch) >= (1, 13))


@pytest.mark.parametrize(
    ("column", "package"),
    [("cudnn", "nvidia-cudnn-cu"), ("nccl", "nvidia-nccl-cu"), ("triton", "triton")],
)
def test_the_pins_are_those_of_the_table_of_releases(
    tables: Tables, column: str, package: str
) -> None:
    for release in tables.get(TorchReleases).rows:
        pins = some(tables.get(TorchPins).pins(release.torch, "linux_x86_64"))
        found = [pin.specifier for pin in pins if pin.package.startswith(package)]
        expected = getattr(release, column)
        if expected is None:
            assert found == []
        else:
            assert len(found) == 1
            assert found[0] in (f"=={expected}", f"~={expected}")


def test_each_pinned_triton_is_known(tables: Tables) -> None:
    for release in tables.get(TorchReleases).rows:
        assert release.triton is None or tables.get(Triton).release(release.triton)


def test_nccl_of_a_build_is_that_of_the_table_of_builds(tables: Tables) -> None:
    builds = tables.get(TorchBuilds)
    for row in tables.get(Nccl).rows:
        if isinstance(row, TorchNcclRow):
            build = some(builds.build(row.torch, row.build, "linux_x86_64"))
            assert build.nccl in (row.nccl, None), row


def test_code_of_libraries_and_toolkits_is_of_known_architectures(tables: Tables) -> None:
    architectures = tables.get(GpuArchitectures)
    codes = {
        code
        for row in tables.get(Nccl).rows
        if isinstance(row, NcclCodeRow)
        for code in row.cubins + row.ptx
    }
    for target in tables.get(ToolkitTargets).rows:
        codes.update(target.targets + target.specific_targets)
    for code in codes:
        digits = code.removeprefix("sm_").removeprefix("compute_").rstrip("af")
        capability = f"{digits[:-1]}.{digits[-1]}"
        assert architectures.knows(capability) is (capability not in NO_PRODUCT), code


def test_targets_of_nvcc_are_those_of_the_table_of_architectures(tables: Tables) -> None:
    targets = tables.get(ToolkitTargets)
    for cuda in {row.cuda for row in targets.rows}:
        for row in tables.get(GpuArchitectures).rows:
            capability = row.compute_capability
            if targets.compiles_for(cuda, capability):
                assert not row.first_toolkit or numbers(row.first_toolkit) <= numbers(cuda)
                assert not row.last_toolkit or numbers(cuda) <= numbers(row.last_toolkit)


def test_each_published_build_has_a_wheel_index(tables: Tables) -> None:
    indexes = tables.get(WheelIndexes)
    for row in tables.get(TorchBuilds).rows:
        index = indexes.index(row.build, row.platform)
        if row.available and (index is None or index.platform is None):
            assert some(index).address.endswith(f"/{row.build}")


def test_numpy_rules_are_those_of_the_table_of_releases(tables: Tables) -> None:
    releases, rules = tables.get(TorchReleases), tables.get(Numpy2)
    for row in releases.rows:
        assert rules.works(row.torch, "linux") is row.numpy2_linux
        assert rules.works(row.torch, "windows") is row.numpy2_windows


def test_packages_of_forward_compatibility_are_of_known_branches(tables: Tables) -> None:
    known = {row.branch for row in tables.get(DriverBranches).rows}
    for row in tables.get(ForwardCompat).rows:
        if isinstance(row, PackageRow):
            assert row.branch in known
            assert tables.get(CudaDrivers).toolkit(row.cuda), row.cuda


def test_a_newer_package_never_stops_working_where_an_older_one_works(tables: Tables) -> None:
    table = tables.get(ForwardCompat)
    packages = [row for row in table.rows if isinstance(row, PackageRow)]
    for branch in {row.branch for row in packages}:
        of_branch = sorted(
            (r for r in packages if r.branch == branch), key=lambda r: numbers(r.cuda)
        )
        works = [row.state == "compatible" for row in of_branch]
        assert works == sorted(works), branch


def test_wheels_of_jetson_are_for_known_jetpacks(tables: Tables) -> None:
    known = {row.jetpack.split()[0] for row in tables.get(Jetpacks).rows}
    for row in tables.get(JetsonWheels).rows:
        assert {jetpack.split()[0] for jetpack in row.jetpack} <= known, row


def test_companions_of_a_release_are_pinned_to_it(tables: Tables) -> None:
    table = tables.get(TorchCompanions)
    for row in table.rows:
        if isinstance(row, CompanionRow) and row.torchtext:
            assert table.agrees("torchtext", row.torchtext, row.torch) is True


def test_the_cudnn_of_each_release_is_of_a_known_major(tables: Tables) -> None:
    table = tables.get(CudnnSublibraries)
    for row in tables.get(TorchReleases).rows:
        assert row.cudnn is None or table.expected(row.cudnn)
