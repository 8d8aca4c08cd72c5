"""What the kernel log says about the GPUs."""

from typing import ClassVar

from gpucheck.facts import Facts, Section
from gpucheck.language import say


class XidEvent(Facts, frozen=True, kw_only=True):
    """One Xid message of the driver."""

    xid: int | None = None
    pci_address: str | None = None
    """In the form of ``pci.gpus``: ``0000:01:00.0``."""
    message: str | None = None
    seconds_ago: float | None = None
    """Includes time during which the machine was suspended."""


class OomKill(Facts, frozen=True, kw_only=True):
    """A process that the kernel killed because memory had run out."""

    pid: int | None = None
    process_name: str | None = None
    scope: str | None = None
    """``host`` or ``cgroup``: whose memory was exhausted."""
    in_own_group: bool | None = None
    """Whether it was the limit of this process's control group, or of one around that."""
    seconds_ago: float | None = None
    """Includes time during which the machine was suspended."""


class KernelLog(Section, frozen=True, kw_only=True):
    """Messages since this boot, as far as the log's buffer reaches."""

    name: ClassVar[str] = "kernel_log"
    subject = say("What the kernel log says about the GPUs.")

    xids: list[XidEvent] | None = None
    """Oldest first; the newest 20 of the same Xid on the same GPU."""
    fallen_off_bus: list[str] | None = None
    """PCI addresses of GPUs that have fallen off the bus according to the log."""
    nvrm: list[str] | None = None
    """Other lines of the driver (``NVRM:``, NVSwitch SXids), newest last, 50 at most."""
    oom_kills: list[OomKill] | None = None
