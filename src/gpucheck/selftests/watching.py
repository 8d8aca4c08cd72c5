"""Queries NVML about each GPU while the self-tests put it under load."""

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from gpucheck.facts.nvml import NvmlGpu
from gpucheck.facts.selftests import GpuUnderLoad
from gpucheck.language import plain, say
from gpucheck.machine import Host, LiveHost
from gpucheck.machine.children import Children, Said, Tell
from gpucheck.probes.driver import nvml
from gpucheck.selftests.load import strain

_EVERY = 2.0
"""Seconds between two queries: each costs the driver something."""
_NAME = "nvml"
_SOURCE = say("NVML, during the self-tests")


class Watch:
    """Queries NVML repeatedly in a child process, whose hang does no harm.

    Args:
        host: this machine.
        seconds: for how long at most.
    """

    def __init__(self, host: LiveHost, seconds: float) -> None:
        self._host = host
        self._looks: list[list[NvmlGpu]] = []
        self._children = Children()
        self._children.start(_NAME, self._work, time.monotonic() + seconds)

    def look(self) -> None:
        """Process the samples taken since the last call."""
        for event in self._children.wait(time.monotonic()):
            if isinstance(event, Said):
                raw = msgspec.msgpack.decode(event.data, type=dict[str, Any])
                self._looks.append(nvml.decode(raw).gpus or [])

    def stop(self) -> list[GpuUnderLoad] | None:
        """End the child and return all samples in summary; None if NVML reported nothing."""
        with contextlib.suppress(OSError):
            self.look()
        self._children.stop()
        return summary(self._looks) if any(self._looks) else None

    def _work(self, tell: Tell) -> None:
        host: Host = self._host
        while (answer := host.nvml()).value is not None:
            tell.answer(msgspec.msgpack.encode(answer.value, enc_hook=plain))
            time.sleep(_EVERY)


def summary(looks: Sequence[Sequence[NvmlGpu]]) -> list[GpuUnderLoad]:
    """Return what all queries together say about each GPU, in NVML's order."""
    count = max(map(len, looks), default=0)
    return [_summary([look[at] for look in looks if len(look) > at]) for at in range(count)]


def _summary(seen: Sequence[NvmlGpu]) -> GpuUnderLoad:
    first, last = seen[0], seen[-1]
    found = strain(first, seen, last)
    return GpuUnderLoad(
        index=first.index,
        device_name=first.device_name,
        uuid=first.uuid,
        temperature_max_c=found.hottest,
        power_max_w=found.power_most,
        sm_clock_min_mhz=found.clock_lowest,
        held_down=found.held_down,
        ecc_corrected_added=found.errors_corrected,
        ecc_uncorrected_added=found.errors_uncorrected,
        looks=len(seen),
        sources={"*": _SOURCE},
    )
