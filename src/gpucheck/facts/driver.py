"""The NVIDIA driver as files and kernel modules."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say


class DriverLibrary(Facts, frozen=True, kw_only=True):
    """One copy of a user-space driver library (``libcuda.so.1``, ``libnvidia-ml.so.1``)."""

    path: Annotated[str | None, Private("path")] = None
    real_path: Annotated[str | None, Private("path")] = None
    release: str | None = None
    """Driver release from the file name, such as ``535.54.03``; None if the name has none."""
    kind: Literal["driver", "stub", "compat", "wsl"] | None = None
    found_via: str | None = None
    """How the loader finds it: ``LD_LIBRARY_PATH``, ``ld.so.cache``, ``default folder``;
    ``not searched``: a folder of the driver that this process's loader does not search."""
    size_bytes: int | None = None


class Driver(Section, frozen=True, kw_only=True):
    """The kernel side and the user-space side of the driver."""

    name: ClassVar[str] = "driver"
    subject = say("The NVIDIA driver as files and kernel modules.")

    module_loaded: bool | None = None
    """The ``nvidia`` kernel module is loaded (on WSL ``/dev/dxg``, on a Jetson ``nvgpu``)."""
    module_release: str | None = None
    """Release of the loaded kernel module; "" if none is loaded."""
    module_flavour: Literal["open", "proprietary", ""] | None = None
    uvm_loaded: bool | None = None
    modeset_loaded: bool | None = None
    drm_loaded: bool | None = None
    nouveau_loaded: bool | None = None
    module_files: Annotated[list[str] | None, Private("paths")] = None
    """``nvidia.ko`` files of the *running* kernel."""
    modules_folder: bool | None = None
    """Whether ``/lib/modules/<running kernel>`` exists (it does not in a container)."""
    other_kernels_with_module: list[str] | None = None
    """Installed kernels, other than the running one, that have an ``nvidia.ko``."""
    dkms: list[str] | None = None
    """``<release> <kernel>`` for each nvidia module that DKMS has built."""
    dkms_sources: list[str] | None = None
    """Driver releases whose module sources are in ``/usr/src`` or registered with DKMS."""
    blacklist: list[str] | None = None
    """Lines of modprobe.d that prevent ``nvidia`` or ``nouveau`` from loading, such as ``blacklist
    nvidia``, and parameters of the kernel's command line, such as ``module_blacklist=nvidia``. The
    source names the files."""
    secure_boot: bool | None = None
    libcuda: list[DriverLibrary] | None = None
    """Every ``libcuda.so.1`` in the order of the loader. The loader takes the first one, unless its
    ``found_via`` is ``not searched``."""
    libnvidia_ml: list[DriverLibrary] | None = None
    packages: list[str] | None = None
    """Installed packages of the distribution that contain a driver."""
    compat_packages: list[str] | None = None
    """``cuda-compat`` folders and packages found, with their release if known."""
    nvidia_smi: Annotated[str | None, Private("path")] = None
    """"" if there is none."""
    nvidia_modprobe: bool | None = None
    fabric_manager_installed: bool | None = None
    fabric_manager_running: bool | None = None
    fabric_manager_release: str | None = None
    """The release of the package; "" if none is installed."""
