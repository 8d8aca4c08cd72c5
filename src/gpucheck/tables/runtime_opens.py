"""Libraries that a library opens by name at run time, without a NEEDED entry."""

from functools import cached_property
from typing import ClassVar, Literal

from gpucheck.tables.base import Library, Major, Row, Table, VersionText, Words
from gpucheck.tables.versions import at_least, numbers, parse

Need = Literal["required", "feature", "optional"]
Kind = Literal["driver", "cuda", "cudnn", "nccl", "torch", "system", "plugin"]

_RELEASE = 3
"""Numbers of a release; fewer, such as the 11.2 of libnvrtc.so.11.2, belong to a SONAME."""


class OpenRow(Row, frozen=True):
    """`opener` (a SONAME) opens `opened`.

    `need`: with "required", the opener does not work at all without it; with "feature", `purpose`,
    which PyTorch uses, fails; with "optional", the opener continues and at most `purpose` is left
    out. `kind` is what the opened library belongs to: "driver" comes with the driver, never with a
    toolkit. `seen_in` are the releases of the opener in which it was seen. The row applies from the
    release `since` of the opener on and before the release `before`, if given, and for the CUDA
    major `cuda`, if the opener's SONAME is the same for several. The release of one of torch's own
    libraries is torch's. `{version}` in a name is replaced by the opener's own release ("12.8").
    With `by_release` the names with the opener's release are tried first (libcudnn_ops.so.9.10.2,
    then .so.9.10, then .so.9).
    """

    opener: Library
    opened: Library
    need: Need
    kind: Kind
    seen_in: tuple[Words, ...]
    since: VersionText | None = None
    before: VersionText | None = None
    cuda: Major | None = None
    by_release: bool = False
    purpose: str = ""

    def applies(self, release: str, cuda: str) -> bool:
        """Return whether the opener of this release opens it when used with a CUDA major."""
        version = parse(release)
        if self.cuda is not None and self.cuda != cuda:
            return False
        if version is None:
            return self.since is None and self.before is None
        older = self.before is None or not at_least(version, numbers(self.before))
        return older and (self.since is None or at_least(version, numbers(self.since)))

    def names(self, release: str) -> tuple[str, ...]:
        """Return the names that are tried, in order; none if the release must be known and is not.

        `release` is that of the opener, such as "9.10.2", "" if unknown.
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
    """Answers what a library opens at run time."""

    name: ClassVar[str] = "runtime_opens"
    rows: tuple[OpenRow, ...]

    def opened_by(self, soname: str, release: str, cuda: str) -> tuple[OpenRow, ...]:
        """Return what the library with this SONAME opens, each name once.

        `release` is its own release ("9.26.0"), `cuda` the CUDA major it is used with ("13"). Both
        are "" if unknown, and rows that depend on them then do not apply. If several rows have the
        same name, that of the newest release counts.
        """
        rows = (row for row in self._by_opener.get(soname, ()) if row.applies(release, cuda))
        return tuple({row.opened: row for row in rows}.values())

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
