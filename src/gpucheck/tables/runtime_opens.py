"""Libraries that a library opens by name while a program runs, which no NEEDED entry tells."""

from functools import cached_property
from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table
from gpucheck.tables.versions import at_least, numbers, parse

Need = Literal["required", "feature", "optional"]
Kind = Literal["driver", "cuda", "cudnn", "nccl", "torch", "system", "plugin"]

_RELEASE = 3
"""Numbers of a release: fewer, such as the 11.2 of libnvrtc.so.11.2, are a SONAME's."""


class OpenRow(Row, frozen=True):
    """`opener` (a SONAME) opens `opened`.

    `need`: "required", without it the opener does not work at all; "feature", `purpose`, which
    PyTorch asks for, fails; "optional", the opener goes on, and at most `purpose` is left out.
    `kind` is what the opened library belongs to: "driver" comes with the driver, never with a
    toolkit. `seen_in` are the releases of the opener in which it was seen. The row holds from the
    release `since` of the opener on, where there is one, and for the CUDA major `cuda`, where the
    opener's SONAME is the same for several. `{version}` in a name stands for the opener's own
    release ("12.8"); with `by_release` the name is asked for with the opener's release first
    (libcudnn_ops.so.9.10.2, then .so.9.10, then .so.9).
    """

    opener: str
    opened: str
    need: Need
    kind: Kind
    seen_in: tuple[str, ...]
    since: str | None = None
    cuda: str | None = None
    by_release: bool = False
    purpose: str = ""

    def names(self, release: str) -> tuple[str, ...]:
        """Return the names that are tried, in their order; none where the release has to be known.

        `release` is the opener's, such as "9.10.2", "" when it is unknown.
        """
        known = (parse(release) or ())[:_RELEASE]
        parts = [str(number) for number in known] if len(known) == _RELEASE else []
        if "{version}" in self.opened:
            return (self.opened.replace("{version}", ".".join(parts[:2])),) if parts else ()
        if not self.by_release or not parts:
            return (self.opened,)
        stem = self.opened.partition(".so")[0]
        return f"{stem}.so.{'.'.join(parts)}", f"{stem}.so.{'.'.join(parts[:2])}", self.opened


class RuntimeOpens(Table, frozen=True):
    """Answers what a library opens while a program runs."""

    name: ClassVar[str] = "runtime_opens"
    rows: tuple[OpenRow, ...]

    def opened_by(self, soname: str, release: str, cuda: str) -> tuple[OpenRow, ...]:
        """Return what the library of this SONAME opens, each name once.

        `release` is its own ("9.26.0"), `cuda` the CUDA major it is used with ("13"); both are ""
        when unknown, and rows that depend on them do not hold then. Where several rows tell of one
        name, that of the newest release counts.
        """
        version = parse(release)
        found: dict[str, OpenRow] = {}
        for row in self._by_opener.get(soname, ()):
            if row.cuda is not None and row.cuda != cuda:
                continue
            if row.since is None or (version and at_least(version, numbers(row.since))):
                found[row.opened] = row
        return tuple(found.values())

    @cached_property
    def of_driver(self) -> frozenset[str]:
        """The names of libraries that come with the driver."""
        return frozenset(row.opened for row in self.rows if row.kind == "driver")

    @cached_property
    def _by_opener(self) -> dict[str, list[OpenRow]]:
        openers: dict[str, list[OpenRow]] = {}
        for row in self.rows:
            openers.setdefault(row.opener, []).append(row)
        return openers
