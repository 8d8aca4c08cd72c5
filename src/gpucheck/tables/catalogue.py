"""All tables by name, for what has to go through each of them."""

from gpucheck.tables.base import Table
from gpucheck.tables.chips import Chips
from gpucheck.tables.cubin_rules import CubinRules
from gpucheck.tables.cuda_drivers import CudaDrivers
from gpucheck.tables.cuda_errors import CudaErrors
from gpucheck.tables.cudnn_support import CudnnSupport
from gpucheck.tables.driver_branches import DriverBranches
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.gpu_products import GpuProducts
from gpucheck.tables.jetpack import Jetpacks
from gpucheck.tables.nvml_errors import NvmlErrors
from gpucheck.tables.pci_devices import PciDevices
from gpucheck.tables.torch_builds import TorchBuilds
from gpucheck.tables.torch_companions import TorchCompanions
from gpucheck.tables.torch_releases import TorchReleases
from gpucheck.tables.xids import Xids

ALL: tuple[type[Table], ...] = (
    Chips,
    CubinRules,
    CudaDrivers,
    CudaErrors,
    CudnnSupport,
    DriverBranches,
    GpuArchitectures,
    GpuProducts,
    Jetpacks,
    NvmlErrors,
    PciDevices,
    TorchBuilds,
    TorchCompanions,
    TorchReleases,
    Xids,
)
BY_NAME: dict[str, type[Table]] = {table.name: table for table in ALL}
