"""Limits of this process and of shared memory that GPU jobs run into."""

from typing import ClassVar

from gpucheck.facts import Section
from gpucheck.language import say


class LimitsOfProcess(Section, frozen=True, kw_only=True):
    """Sizes in bytes; -1 is unlimited."""

    name: ClassVar[str] = "limits"
    subject = say("Limits of this process and of shared memory that GPU jobs run into.")

    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    memlock_bytes: int | None = None
    may_exceed_memlock: bool | None = None
    """Whether the kernel lets this process register more memory than that: it has CAP_IPC_LOCK, in
    the first user namespace."""
    open_files: int | None = None
    address_space_bytes: int | None = None
    """Of virtual memory (``ulimit -v``): a library takes its size of it, used or not."""
    infiniband_devices: list[str] | None = None
    """RDMA devices of this machine (``/sys/class/infiniband``), except those whose ports are
    Ethernet, like those of every recent network card."""
