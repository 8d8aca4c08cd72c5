"""Whether this is a Jetson board, also where only the GPU tells."""

from gpucheck.derived.base import Derived
from gpucheck.derived.gpus import Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.system import System
from gpucheck.tables.gpu_products import GpuProducts

_PROCESSORS = (None, "aarch64", "arm64")


class Board(Derived):
    """Tells a board by what the system says, otherwise by its GPU: a text may have no more."""

    def __init__(self, system: System, gpus: Gpus, products: GpuProducts) -> None:
        self._system = system
        self._gpus = gpus
        self._products = products

    def is_jetson(self) -> bool:
        """Return whether this is a Jetson board."""
        if self._system.jetson is not None or self._system.machine not in _PROCESSORS:
            return bool(self._system.jetson)
        if self._system.os not in (None, "linux"):
            return False
        try:
            gpus = self._gpus.all()
        except UnknownFactError:
            return False
        return any(self._products.is_jetson(gpu.compute_capability or "") for gpu in gpus)

    def facts(self) -> tuple[str, ...]:
        """Return the paths of the facts that tell it, apart from those of the GPU."""
        return ("system.jetson",) if self._system.jetson else ()
