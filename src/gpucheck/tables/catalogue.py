"""All tables by name, for code that must go through every one of them."""

from gpucheck.tables.base import Table
from gpucheck.tables.bus_bandwidth import BusBandwidths
from gpucheck.tables.chips import Chips
from gpucheck.tables.cubin_rules import CubinRules
from gpucheck.tables.cuda_components import CudaComponents
from gpucheck.tables.cuda_drivers import CudaDrivers
from gpucheck.tables.cuda_errors import CudaErrors
from gpucheck.tables.cuda_sonames import CudaSonames
from gpucheck.tables.cudnn_rules import CudnnRules
from gpucheck.tables.cudnn_sublibraries import CudnnSublibraries
from gpucheck.tables.cudnn_support import CudnnSupport
from gpucheck.tables.driver_branches import DriverBranches
from gpucheck.tables.extensions import Extensions
from gpucheck.tables.forward_compat import ForwardCompat
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.gpu_products import GpuProducts
from gpucheck.tables.gpu_rates import GpuRates
from gpucheck.tables.host_compilers import HostCompilers
from gpucheck.tables.jetpack import Jetpacks
from gpucheck.tables.jetson_wheels import JetsonWheels
from gpucheck.tables.known_packages import KnownPackages
from gpucheck.tables.library_errors import LibraryErrors
from gpucheck.tables.minor_compat_limits import MinorCompatLimits
from gpucheck.tables.nccl import Nccl
from gpucheck.tables.numpy2 import Numpy2
from gpucheck.tables.nvml_errors import NvmlErrors
from gpucheck.tables.pci_devices import PciDevices
from gpucheck.tables.runtime_opens import RuntimeOpens
from gpucheck.tables.system_packages import SystemPackages
from gpucheck.tables.toolkit_targets import ToolkitTargets
from gpucheck.tables.torch_builds import TorchBuilds
from gpucheck.tables.torch_companions import TorchCompanions
from gpucheck.tables.torch_old_defaults import TorchOldDefaults
from gpucheck.tables.torch_pins import TorchPins
from gpucheck.tables.torch_releases import TorchReleases
from gpucheck.tables.triton import Triton
from gpucheck.tables.wheel_indexes import WheelIndexes
from gpucheck.tables.xids import Xids

ALL: tuple[type[Table], ...] = (
    BusBandwidths,
    Chips,
    CubinRules,
    CudaComponents,
    CudaDrivers,
    CudaErrors,
    CudaSonames,
    CudnnRules,
    CudnnSublibraries,
    CudnnSupport,
    DriverBranches,
    Extensions,
    ForwardCompat,
    GpuArchitectures,
    GpuProducts,
    GpuRates,
    HostCompilers,
    Jetpacks,
    JetsonWheels,
    KnownPackages,
    LibraryErrors,
    MinorCompatLimits,
    Nccl,
    Numpy2,
    NvmlErrors,
    PciDevices,
    RuntimeOpens,
    SystemPackages,
    ToolkitTargets,
    TorchBuilds,
    TorchCompanions,
    TorchOldDefaults,
    TorchPins,
    TorchReleases,
    Triton,
    WheelIndexes,
    Xids,
)
BY_NAME: dict[str, type[Table]] = {table.name: table for table in ALL}
