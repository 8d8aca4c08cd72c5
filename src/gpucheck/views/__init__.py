"""Views: facts that several sections provide together, such as which GPUs and which driver.

A rule asks for a view by its type, in the same way as for a section. A view uses the best source
that answered, and raises ``UnknownFactError`` if none did.
"""

from gpucheck.views.base import View
from gpucheck.views.driver_state import DriverState
from gpucheck.views.gpus import Gpu, Gpus

__all__ = ["DriverState", "Gpu", "Gpus", "View"]
