"""Derived facts: what several sections answer together, such as which GPUs and which driver.

A check asks for them by their type, in the same way as for a section. They use the best source that
answered, and raise ``UnknownFactError`` if none did.
"""

from gpucheck.derived.driver_state import DriverState
from gpucheck.derived.gpus import Gpu, Gpus
from gpucheck.facts.base import Derived

__all__ = ["Derived", "DriverState", "Gpu", "Gpus"]
