"""Whether this machine belongs to a cluster, whose nodes are drained before they are repaired."""

from typing import Literal

from gpucheck.derived.base import Derived
from gpucheck.facts.preflight import Preflight
from gpucheck.facts.system import Container, LimitsOfProcess, Pci, System

Scheduler = Literal["slurm", "kubernetes", "either", ""]


class Cluster(Derived):
    """Who gives this machine its jobs, as far as that shows.

    Outside a job nothing says that a machine belongs to a cluster. Only NVSwitches, InfiniBand or a
    pre-flight make it likely: a workstation's user has never heard of draining.
    """

    def __init__(
        self,
        system: System,
        container: Container,
        preflight: Preflight,
        pci: Pci,
        limits: LimitsOfProcess,
    ) -> None:
        self.scheduler: Scheduler = ""
        if system.os == "windows":
            return
        if system.under_slurm:
            self.scheduler = "slurm"
        elif container.runtime == "kubernetes":
            self.scheduler = "kubernetes"
        elif pci.nvswitches or limits.infiniband_devices or (preflight.nodes or 1) > 1:
            self.scheduler = "either"
