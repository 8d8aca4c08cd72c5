"""Boards of Jetson: releases of JetPack, and the PyTorch wheels that are made for them."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from gpucheck.tables.base import (
    Address,
    CapabilityText,
    Library,
    Line,
    Project,
    Requirement,
    Row,
    Table,
    VersionText,
    Words,
)
from gpucheck.tables.versions import compare, parse

# JetPack releases: Linux for Tegra and its CUDA version.

L4t = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}(?:\.x)?\Z")]
"""A Linux for Tegra release, or with ``.x`` all of them: ``36.4.3``, ``35.x``."""


_FIRST_BRANCH = 100
"""Chosen: above every release of Linux for Tegra, and below every branch of drivers."""


class JetpackRow(Row, frozen=True):
    """A Linux for Tegra release (`l4t`, "36.4.3"; "35.x" is all of 35) and its JetPack.

    `driver` is the release of the driver that its nvidia-smi prints ("540.4.0").
    """

    l4t: L4t
    jetpack: Words
    devices: Words
    cuda: Line | None = None
    driver: VersionText | None = None


class Jetpacks(Table, frozen=True):
    """Answers which JetPack a board runs."""

    name: ClassVar[str] = "jetpack"
    rows: tuple[JetpackRow, ...]

    def of_l4t(self, l4t: str) -> JetpackRow | None:
        """Return the JetPack of a Linux for Tegra release such as "36.4.3"."""
        wanted = parse(l4t)
        if wanted is None:
            return None
        return next((row for row in self.rows if is_l4t(row.l4t, wanted)), None)

    def of_jetpack(self, jetpack: str) -> JetpackRow | None:
        """Return the newest Linux for Tegra of a JetPack release such as "6.2" or "7.2 GA"."""
        same = (row for row in self.rows if row.jetpack.partition(" ")[0] == jetpack)
        exact = (row for row in self.rows if row.jetpack == jetpack)
        return next(exact, None) or next(same, None)

    def of_driver(self, release: str) -> JetpackRow | None:
        """Return the oldest Linux for Tegra with a driver of this release, None if unknown.

        Up to JetPack 5 the driver has the number of Linux for Tegra itself ("35.4.1").
        """
        wanted = parse(release)
        if wanted is None or wanted[0] < _FIRST_BRANCH:
            return self.of_l4t(release)
        with_it = [row for row in self.rows if row.driver and parse(row.driver) == wanted]
        return min(with_it, key=lambda row: parse(row.l4t) or (), default=None)

    def cuda_of_driver(self, release: str) -> str | None:
        """Return the CUDA of a board's driver; for an unknown release, the oldest of its branch.

        A board's driver is not one of the desktop releases with the same first number.
        """
        row = self.of_driver(release)
        if row is not None:
            return row.cuda
        wanted = parse(release) or ()
        found = [
            row.cuda
            for row in self.rows
            if row.cuda and (parse(row.driver) or ())[:1] == wanted[:1]
        ]
        return min(found, key=lambda cuda: parse(cuda) or (), default=None)

    def first_with(self, cuda: str) -> JetpackRow | None:
        """Return the oldest JetPack known to have this CUDA or a newer one."""
        wanted = parse(cuda) or ()
        new_enough = [row for row in self.rows if (have := parse(row.cuda)) and have >= wanted]
        return min(new_enough, key=lambda row: parse(row.l4t) or (), default=None)


def is_l4t(row: str, wanted: tuple[int, ...]) -> bool:
    """Return whether a release is that of a row, or one of all that the row means."""
    if row.endswith(".x"):
        return row[:-2] == str(wanted[0])
    release = parse(row)
    return release is not None and compare(release, wanted) == 0


# PyTorch wheels made for Jetson boards: which torch for which JetPack.


class JetsonWheelRow(Row, frozen=True):
    """A wheel for Jetson: the torch release, the JetPack and Linux for Tegra releases it is for.

    `python` is missing if the source does not name it. A wheel that pip can install has the address
    of its `index` or of the `wheel` itself, its `cuda` and the compute capabilities that it has
    code for. `wheel_name` is the name of the file if the address does not end in it: pip needs it.
    `lacking` are the libraries that it needs and that no JetPack brings, `requires` what pip has to
    install with it.
    """

    torch: VersionText
    jetpack: tuple[Words, ...]
    l4t: tuple[L4t, ...]
    python: Words | None = None
    cuda: Line | None = None
    compute_capabilities: tuple[CapabilityText, ...] = ()
    index: Address | None = None
    wheel: Address | None = None
    wheel_name: Words | None = None
    lacking: tuple[Library, ...] = ()
    requires: dict[Project, Requirement] = msgspec.field(default_factory=dict)


class JetsonWheels(Table, frozen=True):
    """Answers which torch was made for a JetPack."""

    name: ClassVar[str] = "jetson_wheels"
    rows: tuple[JetsonWheelRow, ...]

    def for_l4t(self, l4t: str) -> tuple[JetsonWheelRow, ...]:
        """Return the wheels of a Linux for Tegra release; empty if the table has none."""
        wanted = parse(l4t)
        return tuple(
            row
            for row in self.rows
            if l4t in row.l4t or (wanted and any(is_l4t(name, wanted) for name in row.l4t))
        )
