"""The errors of an NVSwitch: the numbers in the kernel's "SXid" lines."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table, Words

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
Recovery = Literal["", "none", "routing", "jobs", "reset-all", "contacts", "cooling", "restart"]
"""What the guide advises.

- ``routing``: look at the partitions that the Fabric Manager was given.
- ``jobs``: start the programs, or the guest, again.
- ``reset-all``: reset all GPUs and NVSwitches together.
- ``contacts``: look at the contacts of the link, unless its other end was reset.
- ``restart``: restart the machine.
"""


class SxidRow(Row, frozen=True):
    """An SXid: its number and name in the driver's code, its kind, impact and recovery."""

    sxid: int
    mnemonic: Words
    kind: Kind | None = None
    impact: Impact = ""
    recovery: Recovery = ""


class Sxids(Table, frozen=True):
    """Answers what an SXid means."""

    name: ClassVar[str] = "sxid"
    rows: tuple[SxidRow, ...]

    def sxid(self, number: int) -> SxidRow | None:
        """Return the row of an SXid."""
        return next((row for row in self.rows if row.sxid == number), None)
