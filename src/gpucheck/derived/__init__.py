"""Derived facts: what several sections answer together, such as which GPUs and which driver.

A check asks for them by their type, in the same way as for a section. They use the best source that
answered, and raise ``UnknownFactError`` if none did. Each name is imported when it is first used:
two probes use small modules of this package, and do not need these.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpucheck.derived.driver_state import DriverState as DriverState
    from gpucheck.derived.gpus import Gpu as Gpu
    from gpucheck.derived.gpus import Gpus as Gpus
    from gpucheck.facts.base import Derived as Derived

_MODULES = {
    "Derived": "gpucheck.facts.base", "DriverState": "gpucheck.derived.driver_state",
    "Gpu": "gpucheck.derived.gpus", "Gpus": "gpucheck.derived.gpus",
}  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401  # one of these
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_MODULES[name]), name)
