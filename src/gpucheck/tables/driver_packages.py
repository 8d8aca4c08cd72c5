"""Which packages of a distribution install the NVIDIA driver, and what they need beside them."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from gpucheck.tables.base import Row, Table, VersionText, Words
from gpucheck.tables.versions import at_least, parse

Way = Literal["apt", "apt-pinned", "dnf-module", "dnf", "zypper", "pacman"]
"""How the packages are installed; ``apt-pinned``: a package holds the branch of the others."""
_Packages = Annotated[
    str,
    Meta(pattern=r"\A(?=[A-Za-z0-9{])(?:[A-Za-z0-9._+ -]|\{branch\}|\$\(uname -r\)){1,150}\Z"),
]
"""Words of a command: nothing else may be in them for the shell to run."""
# It becomes part of a command that people paste, so a shell must find nothing to carry out in it
# but Fedora's number.
_Address = Annotated[
    str, Meta(pattern=r"\Ahttps://(?:[A-Za-z0-9._/+-]|\$\(rpm -E %fedora\)){1,200}\Z")
]
_EVERY_MACHINE = frozenset(("x86_64", "aarch64"))


class DriverPackageRow(Row, frozen=True):
    """The packages for some releases of a distribution; ``{branch}`` in a name is the branch.

    Without ``branch`` in any name there is only the newest branch. ``open_`` and
    ``proprietary_`` are for the kinds of kernel modules; a kind without a name has no package.
    """

    distribution: Words
    """``ID`` of ``/etc/os-release``."""
    way: Way
    release: VersionText | None = None
    """The major release; with neither it nor ``since``, every release."""
    since: VersionText | None = None
    """The first release."""
    kernel: Words | None = None
    """What the release of the running kernel contains; the packages are for this kernel alone."""
    machines: tuple[Words, ...] = ("x86_64",)
    repository: _Packages | None = None
    """The name of NVIDIA's repository for it; without, the distribution has the packages."""
    keyring: _Packages | None = None
    """The file in that repository that installs its key and its entry."""
    open_packages: _Packages | None = None
    proprietary_packages: _Packages | None = None
    pinning: _Packages | None = None
    """The package that holds a branch."""
    stream_open: _Packages | None = None
    stream_proprietary: _Packages | None = None
    """The streams of the module ``nvidia-driver``."""
    headers: _Packages | None = None
    """The packages with the headers of the kernel, for which the modules are built."""
    needs: _Packages | None = None
    """A package that these depend on and that the repositories of a new system lack."""
    component: _Packages | None = None
    """The component of the distribution's repository that has it."""
    addresses: tuple[_Address, ...] = ()
    """The packages that add the repositories which have it, or which have the driver."""

    @property
    def has_branches(self) -> bool:
        """Whether a branch can be chosen."""
        names = (self.open_packages, self.pinning, self.stream_open)
        return any("{branch}" in name for name in names if name)


class DriverPackages(Table, frozen=True):
    """Answers which packages install a driver."""

    name: ClassVar[str] = "driver_packages"
    rows: tuple[DriverPackageRow, ...]

    def row(
        self, distribution: str, release: str | None, machine: str | None, kernel: str | None
    ) -> DriverPackageRow | None:
        """Return the packages for a system; None if the table does not know it."""
        return next(
            (
                row
                for row in self.rows
                if row.distribution == distribution
                and _is_release(row, release)
                and _is_machine(row, machine)
                and (row.kernel is None or row.kernel in (kernel or ""))
            ),
            None,
        )


def _is_release(row: DriverPackageRow, release: str | None) -> bool:
    """Whether a release is among those of a row; an unknown one may be among the newer ones."""
    if row.release is not None:
        return (release or "").partition(".")[0] == row.release
    first, this = parse(row.since), parse(release)
    return first is None or this is None or at_least(this, first)


def _is_machine(row: DriverPackageRow, machine: str | None) -> bool:
    return machine in row.machines if machine else set(row.machines) >= _EVERY_MACHINE
