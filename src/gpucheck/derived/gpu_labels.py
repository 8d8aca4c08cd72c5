"""Names NVML's GPUs in a sentence."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

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


# Which GPUs have lost NVLinks: those with fewer up than most others of their model.

K = TypeVar("K")


class LostLinks(msgspec.Struct, frozen=True):
    """The links that a GPU has up, and how many of its model have how many."""

    links: int
    usual: int
    votes: int


def lost_links(active: Mapping[K, int], *, switched: bool | None) -> dict[K, LostLinks]:
    """Return what each GPU of one model has lost, by its key.

    GPUs that come with different numbers of links by design have no majority, and nothing is said
    of them. Bridges may join some of the GPUs only, so having none at all is a loss only where
    switches are known to join all of them; there no majority is needed.

    Args:
        active: how many NVLinks each GPU of the model has up.
        switched: whether NVSwitches join the GPUs; None where nobody knows.
    """
    if not active:
        return {}
    usual, votes = Counter(active.values()).most_common(1)[0]
    if 2 * votes <= len(active):
        usual, votes = 0, 0
    most = max(active.values())
    lost = {key: LostLinks(up, usual, votes) for key, up in active.items() if 0 < up < usual}
    if switched and most:
        peers = sum(up == most for up in active.values())
        lost |= {key: LostLinks(0, most, peers) for key, up in active.items() if not up}
    return {key: lost[key] for key in active if key in lost}


_BOARD = re.compile(r"\b(?:PG|P)[0-9]{3}-[0-9]{3}\b")


def products_of(product: str) -> list[str]:
    """Return the products that share an id of the PCI bus; numbers of boards only if none is left.

    ``NVIDIA PG509-210`` is a board of the A100 that its driver names so; nobody knows it by that.
    """
    names = product.split(" / ")
    return [name for name in names if not _BOARD.search(name)] or names
