"""What a build of PyTorch requires of a machine: code for its GPUs, and a driver for its CUDA."""

from msgspec import Struct

from gpucheck.tables import OperatingSystem, Tables
from gpucheck.tables.compilers import Compilers, CubinRules, Runs, ToolkitTargets
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.cudnn import CudnnSupport
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.torch import BuildRow
from gpucheck.tables.versions import at_least, numbers, parse


class MachineLimits(Struct, frozen=True):
    """The properties that a build must fit; None or an empty sequence means unknown.

    `unified`: code for servers counts on Jetson boards too, as torch's own rule says. `driver_os`
    is the system of the driver, if it differs from the platform: inside WSL the driver is that of
    Windows.
    """

    platform: str
    capabilities: tuple[str, ...] = ()
    driver: str | None = None
    driver_cuda: str | None = None
    driver_os: OperatingSystem | None = None
    unified: bool = False


def fits_driver(tables: Tables, cuda: str, machine: MachineLimits) -> bool | None:
    """Return whether the machine's driver runs builds of CUDA `cuda`; None if unknown."""
    return tables.get(CudaDrivers).driver_runs(
        cuda,
        machine.driver_os or operating_system(machine.platform),
        driver=machine.driver,
        driver_cuda=_driver_cuda(tables, machine),
    )


def fits_gpus(tables: Tables, row: BuildRow, machine: MachineLimits) -> Runs | None:
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
    return "windows" if platform.startswith("windows") else "linux"


def _driver_cuda(tables: Tables, machine: MachineLimits) -> str | None:
    """Return the CUDA version that the driver reports.

    If the driver is given only as a branch ("580"), it is that of the branch.
    """
    if machine.driver_cuda is None and machine.driver and "." not in machine.driver:
        return tables.get(DriverBranches).cuda_of(machine.driver)
    return machine.driver_cuda


def _fits_gpu(
    tables: Tables, row: BuildRow, capability: str, machine: MachineLimits
) -> Runs | None:
    if row.cudnn is not None:
        major = row.cuda.partition(".")[0]
        if tables.get(CudnnSupport).supports(row.cudnn, major, capability) is False:
            return Runs.NO
    rules = tables.get(CubinRules)
    covers = rules.covers if machine.unified else rules.surely_covers
    runs = covers(row.arch_list + row.ptx, capability, row.cuda)
    if runs is None and not row.arch_list and _beyond_compiler(tables, row.cuda, capability):
        return Runs.NO
    if runs is Runs.PTX and not _driver_knows_ptx(tables, row, machine):
        return Runs.NO
    return runs


def _beyond_compiler(tables: Tables, cuda: str, capability: str) -> bool:
    compilers = Compilers(
        tables.get(ToolkitTargets), tables.get(CubinRules), tables.get(GpuArchitectures)
    )
    return compilers.beyond(cuda, capability) is not None


def _driver_knows_ptx(tables: Tables, row: BuildRow, machine: MachineLimits) -> bool:
    reported = machine.driver_cuda
    if reported is None and machine.driver is not None:
        reported = tables.get(DriverBranches).cuda_of(machine.driver)
    parsed = parse(reported)
    return parsed is None or at_least(parsed, numbers(row.cuda))
