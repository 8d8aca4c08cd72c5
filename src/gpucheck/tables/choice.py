"""The join of the tables that everyone needs: the newest PyTorch build that fits a machine."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gpucheck.tables.base import OperatingSystem
from gpucheck.tables.cubin_rules import CubinRules, Runs
from gpucheck.tables.cuda_drivers import CudaDrivers
from gpucheck.tables.cudnn_support import CudnnSupport
from gpucheck.tables.driver_branches import DriverBranches
from gpucheck.tables.store import Tables
from gpucheck.tables.torch_builds import BuildRow, TorchBuilds
from gpucheck.tables.torch_releases import ReleaseRow, TorchReleases
from gpucheck.tables.versions import at_least, compare, numbers, parse, released


class Choice(Struct, frozen=True):
    """A build that fits: torch release, build (also the name of its index), CUDA, platform.

    `is_default`: a plain `pip install torch` gets this build. `confirmed` false: the list of GPU
    code is not fully confirmed, `row.note` says why. `by_ptx`: some GPU is served only by PTX,
    which the driver has to compile.
    """

    torch: str
    build: str
    cuda: str
    platform: str
    is_default: bool
    confirmed: bool
    by_ptx: bool
    row: BuildRow


class Machine(Struct, frozen=True):
    """What a build has to fit; None and an empty sequence leave the question open."""

    platform: str
    python: str | None = None
    capabilities: tuple[str, ...] = ()
    driver: str | None = None
    driver_cuda: str | None = None


def newest_fitting(
    tables: Tables,
    *,
    platform: str,
    python: str | None,
    capabilities: Sequence[str],
    driver: str | None,
    driver_cuda: str | None,
    not_newer_than: str | None = None,
    confirmed_only: bool = False,
) -> Choice | None:
    """Return the newest published torch build with code for every GPU, which the driver runs.

    `platform` is linux_x86_64, linux_aarch64 or windows, `python` such as "3.12" or "3.13t",
    `driver_cuda` the CUDA version that the driver reports and `driver` its release. Of one torch
    release a confirmed row wins, then the newest CUDA. Builds that PyTorch announced come before
    those it only published, and builds with code for every GPU before those that need PTX.
    `not_newer_than` "2.6" admits all 2.6 releases. None: nothing is known to fit.
    """
    machine = Machine(platform, python, tuple(capabilities), driver, driver_cuda)
    fitting = [
        choice
        for release in tables.get(TorchReleases).newest_first()
        if _is_admitted(release, not_newer_than) and fits_python(release, machine) is not False
        for choice in _choices(tables, release, machine)
        if choice.confirmed or not confirmed_only
    ]
    return min(fitting, key=_preference, default=None)


def fits_python(release: ReleaseRow, machine: Machine) -> bool | None:
    """Say whether a release has wheels for the machine's Python; None when that is unknown."""
    pythons = release.pythons.get(machine.platform)
    if machine.python is None or pythons is None:
        return None
    free_threaded = "t" if machine.python.endswith("t") else ""
    version = parse(machine.python.removesuffix("t"))
    if version is None or len(version) == 1:
        return None
    return f"{version[0]}.{version[1]}{free_threaded}" in pythons


def fits_driver(tables: Tables, cuda: str, machine: Machine) -> bool | None:
    """Say whether the machine's driver runs builds of CUDA `cuda`; None when that is unknown."""
    return tables.get(CudaDrivers).driver_runs(
        cuda,
        operating_system(machine.platform),
        driver=machine.driver,
        driver_cuda=_driver_cuda(tables, machine),
    )


def fits_gpus(tables: Tables, row: BuildRow, machine: Machine) -> Runs | None:
    """Return how a build runs on all GPUs of the machine: the worst answer of all.

    A GPU that the build's cuDNN is known not to support counts as NO, and so does PTX of a CUDA
    newer than the driver's, which the driver refuses (error 222).
    """
    answers = {_fits_gpu(tables, row, capability, machine) for capability in machine.capabilities}
    for worst in (Runs.NO, None, Runs.PTX):
        if worst in answers:
            return worst
    return Runs.CUBIN


def operating_system(platform: str) -> OperatingSystem:
    """Return the operating system of a platform such as linux_aarch64."""
    return "windows" if platform == "windows" else "linux"


def _choices(tables: Tables, release: ReleaseRow, machine: Machine) -> Iterator[Choice]:
    driver_is_known = machine.driver is not None or machine.driver_cuda is not None
    for row in tables.get(TorchBuilds).of_release(release.torch, machine.platform):
        if not row.available or (row.releases and release.torch not in row.releases):
            continue
        if driver_is_known and not fits_driver(tables, row.cuda, machine):
            continue
        runs = fits_gpus(tables, row, machine)
        if runs in (Runs.CUBIN, Runs.PTX):
            yield _choice(release, row, runs)


def _choice(release: ReleaseRow, row: BuildRow, runs: Runs | None) -> Choice:
    return Choice(
        torch=release.torch,
        build=row.build,
        cuda=row.cuda,
        platform=row.platform,
        is_default=release.default_builds.get(row.platform) == row.build,
        confirmed=row.confirmed and runs is Runs.CUBIN,
        by_ptx=runs is Runs.PTX,
        row=row,
    )


def _preference(choice: Choice) -> tuple[object, ...]:
    newest_torch = tuple(-number for number in numbers(choice.torch))
    newest_cuda = tuple(-number for number in numbers(choice.cuda))
    unannounced = choice.row.announced is False
    return (choice.by_ptx, unannounced, newest_torch, not choice.confirmed, newest_cuda)


def _is_admitted(release: ReleaseRow, not_newer_than: str | None) -> bool:
    limit = released(not_newer_than)
    if limit is None:
        return not_newer_than is None
    return compare(numbers(release.torch)[: len(limit)], limit) <= 0


def _driver_cuda(tables: Tables, machine: Machine) -> str | None:
    """Return the CUDA version that the driver reports.

    Of a driver given only as a branch ("580") it is the branch's: the release number says nothing.
    """
    if machine.driver_cuda is None and machine.driver and "." not in machine.driver:
        return tables.get(DriverBranches).cuda_of(machine.driver)
    return machine.driver_cuda


def _fits_gpu(tables: Tables, row: BuildRow, capability: str, machine: Machine) -> Runs | None:
    if row.cudnn is not None:
        major = row.cuda.partition(".")[0]
        if tables.get(CudnnSupport).supports(row.cudnn, major, capability) is False:
            return Runs.NO
    runs = tables.get(CubinRules).covers(row.arch_list + row.ptx, capability, row.cuda)
    if runs is Runs.PTX and not _driver_knows_ptx(tables, row, machine):
        return Runs.NO
    return runs


def _driver_knows_ptx(tables: Tables, row: BuildRow, machine: Machine) -> bool:
    reported = machine.driver_cuda
    if reported is None and machine.driver is not None:
        reported = tables.get(DriverBranches).cuda_of(machine.driver)
    parsed = parse(reported)
    return parsed is None or at_least(parsed, numbers(row.cuda))
