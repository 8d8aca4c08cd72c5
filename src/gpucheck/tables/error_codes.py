"""Numbers of errors: of CUDA, its libraries, NVML, the driver (Xid), an NVSwitch (SXid)."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table, VersionText, Words
from gpucheck.tables.versions import at_least, numbers, parse

# Numbers of errors: of CUDA, of NVML, of its libraries, of the driver (Xid).

# Error codes of the CUDA runtime and driver interfaces.


class CudaErrorRow(Row, frozen=True):
    """A code with its names in the runtime and the driver interface, and a short explanation.

    `before_10_1` is the number of this error in the runtime before CUDA 10.1, if it was different.
    `message` is the text of cudaGetErrorString. `slugs` are the findings it usually indicates, the
    most usual first; none of them is a conclusion.
    """

    code: int
    runtime: Words | None = None
    driver: Words | None = None
    before_10_1: int | None = None
    message: Words | None = None
    meaning: Words | None = None
    slugs: tuple[Words, ...] = ()


class CudaErrors(Table, frozen=True):
    """Answers what a CUDA error code means."""

    name: ClassVar[str] = "cuda_errors"
    rows: tuple[CudaErrorRow, ...]

    def error(self, code: int) -> CudaErrorRow | None:
        """Return the row of a code such as 803."""
        return next((row for row in self.rows if row.code == code), None)

    def error_before_10_1(self, code: int) -> CudaErrorRow | None:
        """Return the row of the error that had this number, and not its own, before CUDA 10.1."""
        return next((row for row in self.rows if row.before_10_1 == code), None)

    def named(self, name: str) -> CudaErrorRow | None:
        """Return the row of a name such as cudaErrorNoDevice or CUDA_ERROR_NO_DEVICE."""
        return next((row for row in self.rows if name in (row.runtime, row.driver)), None)


# Return codes of NVML, the library behind nvidia-smi.


class NvmlErrorRow(Row, frozen=True):
    """A code (`error` is NVIDIA's name), a short explanation, and the findings it indicates."""

    code: int
    error: Words
    meaning: Words
    slugs: tuple[Words, ...] = ()


class NvmlErrors(Table, frozen=True):
    """Answers what an NVML return code means."""

    name: ClassVar[str] = "nvml_errors"
    rows: tuple[NvmlErrorRow, ...]

    def error(self, code: int) -> NvmlErrorRow | None:
        """Return the row of a code such as 18."""
        return next((row for row in self.rows if row.code == code), None)


# Result codes of cuDNN, cuBLAS and NCCL.

Library = Literal["cudnn", "cublas", "nccl"]


class LibraryErrorRow(Row, frozen=True):
    """A code (`error` is the name in the header), a short explanation, its findings.

    `also` are older names of the same code. `slugs` are what it usually indicates; none of them is
    a conclusion.
    """

    library: Library
    code: int
    error: Words
    meaning: Words
    also: tuple[Words, ...] = ()
    slugs: tuple[Words, ...] = ()


class LibraryErrors(Table, frozen=True):
    """Answers what a result code of a CUDA library means."""

    name: ClassVar[str] = "library_errors"
    rows: tuple[LibraryErrorRow, ...]

    def error(self, library: Library, code: int) -> LibraryErrorRow | None:
        """Return the row of a code; for cuDNN, 1 to 14 are codes of version 8, the others of 9."""
        found = (row for row in self.rows if (row.library, row.code) == (library, code))
        return next(found, None)

    def named(self, name: str) -> LibraryErrorRow | None:
        """Return the row of a name such as CUDNN_STATUS_EXECUTION_FAILED."""
        return next((row for row in self.rows if name == row.error or name in row.also), None)


# NVIDIA's catalogue of Xid errors: the numbers in the kernel's "NVRM: Xid" lines.

# A reset of the GPU or a restart of the machine. Every path of workflow 48 (a double-bit ECC error)
# ends in a reset.
_FATAL = frozenset({"RESET_GPU", "RESTART_BM", "WORKFLOW_XID_48"})
# For these, the catalogue depends on the sub-code or on other Xids at the same moment.
_DEPENDS = frozenset(
    {"", "WORKFLOW_NVLINK_ERR", "WORKFLOW_NVLINK5_ERR", "WORKFLOW_XID_45", "XID_154"},
)


class XidRow(Row, frozen=True):
    """An Xid: its number, NVIDIA's mnemonic and short name, and the actions NVIDIA advises."""

    xid: int
    mnemonic: Words
    short_name: Words
    immediate_action: str = ""
    investigatory_action: str = ""

    @property
    def is_fatal(self) -> bool | None:
        """Return whether this is a hardware fault: the immediate action is a reset or a restart.

        False for CONTACT_SUPPORT alone, which the catalogue lists for unused and reserved numbers.
        None if the catalogue has no action, or if the action depends on a sub-code or another Xid.
        """
        if self.immediate_action in _FATAL:
            return True
        return None if self.immediate_action in _DEPENDS else False

    @property
    def is_of_memory(self) -> bool:
        """Return whether the catalogue lists it as the companion of a memory error.

        It ends the program that used the memory, which has not caused it.
        """
        return "(sympathetic)" in self.investigatory_action


class Xids(Table, frozen=True):
    """Answers what an Xid means."""

    name: ClassVar[str] = "xid"
    rows: tuple[XidRow, ...]

    def xid(self, number: int) -> XidRow | None:
        """Return the row of an Xid."""
        return next((row for row in self.rows if row.xid == number), None)


# The errors of an NVSwitch: the numbers in the kernel's "SXid" lines.

Kind = Literal["non-fatal", "fatal", "always-fatal"]
"""As NVIDIA's Fabric Manager User Guide divides them (appendix D), and as the driver's code does.

``fatal`` concerns one port: it needs a reset, and the GPU behind it loses its NVLinks.
``always-fatal`` concerns the switch, and so the whole fabric.
"""
Impact = Literal["", "none", "slower-link", "gpu-stalls", "with-fatal", "broken-link", "heat"]
"""What happens besides, in one word.

- ``none``: nothing; the switch has corrected it, or it only informs.
- ``slower-link``: packets are sent again, or the link saves power.
- ``gpu-stalls``: the NVLink traffic of one GPU stops, and its programs end with Xid 45.
- ``with-fatal``: it comes with a fatal one.
- ``broken-link``: a bad contact, or the other end was reset or switched off.
- ``heat``: the switch or a module of it is too hot.
"""
Recovery = Literal[
    "", "none", "routing", "guest", "reset", "reset-all", "contacts", "cooling", "restart"
]
"""What the guide advises.

- ``routing``: look at the partitions that the Fabric Manager was given.
- ``guest``: restart the virtual machine.
- ``reset``: reset the GPU behind the port and those that work with it; behind a port that joins two
  NVSwitches all GPUs and NVSwitches.
- ``reset-all``: reset all GPUs and NVSwitches together.
- ``contacts``: look at the contacts of the link, unless its other end was reset.
- ``restart``: restart the machine.
"""


class SxidRow(Row, frozen=True):
    """An SXid: its number and name in the driver's code, its kind, impact and recovery.

    A number that changed its meaning has several rows: from driver branch `since` on, and before
    branch `before`.
    """

    sxid: int
    mnemonic: Words
    kind: Kind | None = None
    impact: Impact = ""
    recovery: Recovery = ""
    since: VersionText | None = None
    before: VersionText | None = None

    def is_of(self, driver: tuple[int, ...]) -> bool:
        """Return whether the number has this meaning in a driver."""
        if self.before is not None and at_least(driver, numbers(self.before)):
            return False
        return self.since is None or at_least(driver, numbers(self.since))


class Sxids(Table, frozen=True):
    """Answers what an SXid means."""

    name: ClassVar[str] = "sxid"
    rows: tuple[SxidRow, ...]

    def sxid(self, number: int, driver: str = "") -> SxidRow | None:
        """Return what an SXid means in a driver.

        If the driver is unknown and the number has several meanings, the answer has the names of
        all of them, and else only what they share.
        """
        release = parse(driver)
        rows = [
            row
            for row in self.rows
            if row.sxid == number and (release is None or row.is_of(release))
        ]
        if len(rows) <= 1:
            return next(iter(rows), None)
        kinds, impacts, recoveries = (
            {getattr(row, column) for row in rows} for column in ("kind", "impact", "recovery")
        )
        return SxidRow(
            sxid=number,
            mnemonic=" / ".join(row.mnemonic for row in rows),
            kind=kinds.pop() if len(kinds) == 1 else None,
            impact=impacts.pop() if len(impacts) == 1 else "",
            recovery=recoveries.pop() if len(recoveries) == 1 else "",
            source=tuple(dict.fromkeys(source for row in rows for source in row.source)),
        )
