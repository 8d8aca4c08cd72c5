"""Which package of a Linux system contains a library that PyTorch takes from the system."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Library, Project, Row, Table

Manager = Literal["apt", "dnf", "yum"]


class SystemPackageRow(Row, frozen=True):
    """A package manager, a SONAME, and the package that contains it."""

    manager: Manager
    soname: Library
    package: Project


class SystemPackages(Table, frozen=True):
    """Answers what to install for a missing library."""

    name: ClassVar[str] = "system_packages"
    rows: tuple[SystemPackageRow, ...]

    def package(self, manager: str | None, soname: str) -> str | None:
        """Return the package that contains a library; None if the table does not know it."""
        rows = (row for row in self.rows if (row.manager, row.soname) == (manager, soname))
        return next((row.package for row in rows), None)
