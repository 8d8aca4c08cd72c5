"""Names NVML's GPUs in a sentence."""

import re
from collections.abc import Sequence

from gpucheck.facts.driver import NvmlGpu
from gpucheck.language import Sentence, in_series, say

_SUPERCHIP = r"\bG[BH][0-9]{2,3}\b"  # GH200, GB200, GB10: their GPU shares the system's memory


def is_superchip(product: str) -> bool:
    """Whether NVLink-C2C joins a GPU of this name to its processor: GH200, GB200, GB10."""
    return re.search(_SUPERCHIP, product) is not None


def gpu_index(gpus: Sequence[NvmlGpu], at: int) -> int:
    """Return the index that nvidia-smi uses for the GPU at this place of ``nvml.gpus``."""
    index = gpus[at].index
    return at if index is None else index


def gpu_names(gpus: Sequence[NvmlGpu], places: Sequence[int]) -> str:
    """Return ``GPU 0 (NVIDIA H100), GPU 1 (NVIDIA H100)``."""
    return in_series([_name(gpus, at) for at in places])


def _name(gpus: Sequence[NvmlGpu], at: int) -> str:
    index, name = gpu_index(gpus, at), gpus[at].device_name
    return numbered_gpu(index, name) if name else say("GPU {index} (an NVIDIA GPU)", index=index)


def numbered_gpu(index: int, name: str) -> Sentence:
    """Return ``GPU 0 (NVIDIA H100)``."""
    return say("GPU {index} ({name})", index=index, name=name)


def at_pci(addresses: Sequence[str | None]) -> str:
    """Return ``the GPU at PCI 0000:3b:00.0``; a described GPU has a placeholder, no address."""
    real = [address for address in addresses if address and ":" in address]
    if not real:
        return say("a GPU")
    return say("the GPU at PCI {addresses}", addresses=in_series(real))
