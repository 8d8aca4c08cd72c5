"""NVIDIA's catalogue of Xid errors: the numbers in the kernel's "NVRM: Xid" lines."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table, Words

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
