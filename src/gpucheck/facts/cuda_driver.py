"""What the CUDA driver itself reports: ``cuInit``, its version, its devices."""

from typing import Annotated, ClassVar

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say


class CudaDevice(Facts, frozen=True, kw_only=True):
    """One device, numbered as by the CUDA driver (after CUDA_VISIBLE_DEVICES)."""

    device_name: str | None = None
    compute_capability: str | None = None
    uuid: Annotated[str | None, Private("uuid")] = None


class CudaDriver(Section, frozen=True, kw_only=True):
    """The facts that the driver itself reports."""

    name: ClassVar[str] = "cuda_driver"
    subject = say("What the CUDA driver itself reports: ``cuInit``, its version, its devices.")

    library: Annotated[str | None, Private("path")] = None
    """The libcuda that was loaded; "" if none can be loaded."""
    load_error: str | None = None
    """The error of the loader; "" if the library was loaded."""
    init_code: int | None = None
    """Result of ``cuInit(0)``; 0 is success."""
    program_code: int | None = None
    """The error of CUDA that a running program got; known only of a described machine."""
    cuda: str | None = None
    """CUDA version that this driver supports (``cuDriverGetVersion``), such as ``12.2``."""
    device_count: int | None = None
    devices: list[CudaDevice] | None = None
