"""Names of GPUs as people write them, and the facts that the tables have about each."""

import re
from collections.abc import Iterator

from gpucheck.tables import Tables
from gpucheck.tables.gpu_products import GpuProducts
from gpucheck.tables.pci_devices import PciDevices

_FAMILIES = ("", "GeForce ", "Tesla ", "Quadro ")
_VARIANT = r"[0-9]{1,3}GB|PCIE|NVL|SXM[0-9]?|HBM[0-9]E?"
"""The last words of a product name that describe its memory or its form, not its chip."""


_VGPU = r"(?:GRID |NVIDIA )?(.+?)-(?:[0-9]-)?[0-9]{1,3}[ABCQ](?: ?ME)?"
"""A virtual GPU: its GPU, then a profile of gigabytes and kind (``A100-40C``, ``A100-1-5C``)."""
_MAX_Q = " WITH MAX-Q DESIGN"
_MOBILE = (" Mobile / Max-Q", " Mobile")
"""What pci.ids calls the GPU of a laptop. Max-Q is the same GPU with a lower limit of power."""
_BOARD = r"([AHV][12]00)[A-Z]{1,3}"
"""The boards of one GPU as names of virtual GPUs tell them apart: ``A100DX``, ``V100D``."""


def spellings(name: str) -> Iterator[str]:
    """Return the names under which the tables may have a product: first as it is, then completed.

    The name of a MIG instance follows that of its GPU: ``NVIDIA A100-SXM4-40GB MIG 3g.20gb``. A
    virtual GPU runs the code of its GPU.
    """
    name = name.partition(" MIG ")[0]
    yield from _completed(name)
    if name.upper().endswith(_MAX_Q):
        plain = name[: -len(_MAX_Q)]
        yield from _completed(plain)
        yield from (f"{plain}{mobile}" for mobile in _MOBILE)
    if virtual := re.fullmatch(_VGPU, name):
        board = re.fullmatch(_BOARD, virtual[1])
        yield from _completed(board[1] if board else re.sub(r"RTX(?=[0-9A])", "RTX ", virtual[1]))


def _completed(name: str) -> Iterator[str]:
    for family in _FAMILIES:
        yield family + name
    words = name.replace("-", " ").split()
    while len(words) > 1 and re.fullmatch(_VARIANT, words[-1].upper()):
        words.pop()
    plain = " ".join(words)
    for family in _FAMILIES:
        yield family + plain
    yield plain.removeprefix("Tesla ")


def capability_of(name: str, tables: Tables) -> str | None:
    """Return the compute capability on which the table's entries of a name agree."""
    products = tables.get(GpuProducts).capability(name)
    return products or tables.get(PciDevices).capability_named(name)
