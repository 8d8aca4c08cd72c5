"""The GPUs of NVML's list that a CUDA program sees."""

from gpucheck.derived import Derived, Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.driver import CudaDriver, Nvml
from gpucheck.language import say


class GpuPlaces(Derived):
    """Places in ``nvml.gpus``: NVML counts by the bus, CUDA by speed and behind a mask."""

    def __init__(self, nvml: Nvml, cuda_driver: CudaDriver, gpus: Gpus) -> None:
        self._nvml = nvml
        self._cuda = cuda_driver
        self._gpus = gpus

    def visible(self) -> list[int]:
        """Return the places of the GPUs that a CUDA program started here would see.

        Raises:
            UnknownFactError: they cannot be determined.
        """
        gpus = known(self._nvml.gpus, "nvml.gpus")
        uuids = [gpu.uuid for gpu in gpus]
        devices = self._cuda.devices
        if self._cuda.init_code == 0 and devices is not None:
            if len(devices) == len(gpus):
                return list(range(len(gpus)))
            found = [uuids.index(d.uuid) for d in devices if d.uuid and d.uuid in uuids]
            if len(found) == len(devices):
                return sorted(found)
            raise UnknownFactError("cuda_driver.devices", say("not matched with NVML's GPUs"))
        mask = self._gpus.mask()
        alike = len({gpu.device_name for gpu in gpus}) <= 1 and mask.kind == "indices"
        if mask.kind in ("unset", "uuids", "empty") or alike:
            return sorted(mask.chosen)
        raise UnknownFactError(
            "cuda_driver.devices", say("an index does not show which GPU is meant")
        )
