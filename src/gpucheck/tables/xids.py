"""NVIDIA's catalogue of Xid errors, the numbers in the kernel's "NVRM: Xid" lines."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table

# Reset of the GPU or restart of the machine. Workflow 48 (a double-bit ECC error) ends in a reset
# on each of its paths.
_FATAL = frozenset({"RESET_GPU", "RESTART_BM", "WORKFLOW_XID_48"})
# The catalogue leaves these to the sub-code or to other Xids of the same moment.
_DEPENDS = frozenset(
    {"", "WORKFLOW_NVLINK_ERR", "WORKFLOW_NVLINK5_ERR", "WORKFLOW_XID_45", "XID_154"},
)


class XidRow(Row, frozen=True):
    """An Xid: its number, NVIDIA's mnemonic and short name, and the actions NVIDIA advises."""

    xid: int
    mnemonic: str
    short_name: str
    immediate_action: str = ""
    investigatory_action: str = ""

    @property
    def is_fatal(self) -> bool | None:
        """Say whether this is a hardware fault: the immediate action is a reset or a restart.

        False for CONTACT_SUPPORT alone: the catalogue says so of numbers that are unused or
        reserved. None where the catalogue has no action or leaves it to a sub-code or another Xid.
        """
        if self.immediate_action in _FATAL:
            return True
        return None if self.immediate_action in _DEPENDS else False


class Xids(Table, frozen=True):
    """Answers what an Xid means."""

    name: ClassVar[str] = "xid"
    rows: tuple[XidRow, ...]

    def xid(self, number: int) -> XidRow | None:
        """Return the row of an Xid."""
        return next((row for row in self.rows if row.xid == number), None)
