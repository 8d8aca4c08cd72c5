"""Why PyTorch does not use the NVIDIA GPUs of a machine, and what to do about it."""

from typing import Final

__version__: Final = "0.1.0"
