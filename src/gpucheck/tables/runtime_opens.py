"""Libraries that a library opens by name while a program runs, which no NEEDED entry tells."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table

Need = Literal["required", "feature", "optional"]
Kind = Literal["driver", "cuda", "cudnn", "nccl", "torch", "system", "plugin"]


class OpenRow(Row, frozen=True):
    """`opener` (a SONAME) opens `opened`.

    `need`: "required", without it the opener does not work at all; "feature", `purpose` fails;
    "optional", all goes on. `kind` is what the opened library belongs to: "driver" comes with the
    driver, never with a toolkit. `seen_in` are the releases of the opener in which it was seen;
    `{version}` in a name stands for the opener's own release ("12.8").
    """

    opener: str
    opened: str
    need: Need
    kind: Kind
    seen_in: tuple[str, ...]
    purpose: str = ""


class RuntimeOpens(Table, frozen=True):
    """Answers what a library opens while a program runs, and what opens a library."""

    name: ClassVar[str] = "runtime_opens"
    rows: tuple[OpenRow, ...]

    def opened_by(self, soname: str) -> tuple[OpenRow, ...] | None:
        """Return what the library of this SONAME opens; None: the table does not know it."""
        return tuple(row for row in self.rows if row.opener == soname) or None

    def openers_of(self, soname: str) -> tuple[OpenRow, ...]:
        """Return the rows of the libraries that open this one."""
        return tuple(row for row in self.rows if row.opened == soname)

    def needed_by(self, soname: str) -> tuple[str, ...]:
        """Return the SONAMEs without which this library does not work at all."""
        return tuple(row.opened for row in self.opened_by(soname) or () if row.need == "required")
