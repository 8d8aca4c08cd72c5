"""Questions that several sections answer together: which GPUs, which driver, does it work.

A rule asks for a view by its type as it asks for a section. A view answers from the best source
that spoke and raises ``UnknownFactError`` when none did.
"""

from gpucheck.views.base import View
from gpucheck.views.driver_state import DriverState
from gpucheck.views.gpus import Gpu, Gpus

__all__ = ["DriverState", "Gpu", "Gpus", "View"]
