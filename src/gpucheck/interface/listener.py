"""Whoever waits for a use case hears how far it is; nothing here calls back up."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpucheck.machine import Host
    from gpucheck.machine.candidates import TargetWish
    from gpucheck.selftests.outcome import ProgressGrid


class Listener:
    """Hears how far a run is, and may end it by an exception. This one does nothing."""

    def accepted(self, host: "Host", target: "TargetWish") -> None:
        """The interpreter that the user named can be asked: its programs run next."""

    def waits(self, names: Sequence[str], seconds: float) -> None:
        """Some probes still run after so many seconds; called every quarter of a second."""

    def collected(self) -> None:
        """All probes have ended."""

    def tests(self, grid: "ProgressGrid") -> None:
        """The self-tests are as far as the grid says."""


SILENT = Listener()
