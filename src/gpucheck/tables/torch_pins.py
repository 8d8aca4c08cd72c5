"""What a PyTorch wheel of PyPI requires: its nvidia-* packages, cuda-toolkit, Triton."""

import re
from typing import ClassVar

from gpucheck.tables.base import Platform, Row, Specifier, Table, VersionText, Words
from gpucheck.tables.versions import compare, numbers, released

_SEPARATORS = re.compile(r"[-_.]+")


class TorchPinRow(Row, frozen=True, tag_field="kind", tag="pin"):
    """A direct requirement of a release on a platform.

    `specifier` is as in the metadata ("==9.1.0.70"), `python` the Pythons it applies to, if not all
    ("<3.15"), `extras` the requested extras of the package.
    """

    torch: VersionText
    platform: Platform
    package: Words
    specifier: Specifier
    extras: tuple[Words, ...] = ()
    python: Words | None = None


class NoPinsRow(Row, frozen=True, tag_field="kind", tag="no-pins"):
    """A release that is known to require none of these packages on a platform."""

    torch: VersionText
    platform: Platform


class TorchPins(Table, frozen=True):
    """Answers what a release pins. `platform` is linux_x86_64, linux_aarch64 or windows."""

    name: ClassVar[str] = "torch_pins"
    rows: tuple[TorchPinRow | NoPinsRow, ...]

    def pins(self, torch: str, platform: str) -> tuple[TorchPinRow, ...] | None:
        """Return the pins of PyPI's wheel; empty if it is known to have none."""
        wanted = released(torch)
        if wanted is None:
            return None
        rows = [
            row
            for row in self.rows
            if row.platform == platform and compare(numbers(row.torch), wanted) == 0
        ]
        return tuple(row for row in rows if isinstance(row, TorchPinRow)) if rows else None

    def pin(self, torch: str, platform: str, package: str) -> TorchPinRow | None:
        """Return the requirement of a package such as nvidia-cudnn-cu12; None also without pin."""
        wanted = _SEPARATORS.sub("-", package).lower()
        pins = self.pins(torch, platform) or ()
        return next((row for row in pins if row.package == wanted), None)

    def admits(self, torch: str, platform: str, package: str, version: str) -> bool | None:
        """Return whether a version of a package meets the pin; None if there is no known pin."""
        row = self.pin(torch, platform, package)
        if row is None or released(version) is None:
            return None
        # Imported late: packaging takes milliseconds to import, and few questions need it.
        from packaging.specifiers import SpecifierSet  # noqa: PLC0415

        return SpecifierSet(row.specifier).contains(version)
