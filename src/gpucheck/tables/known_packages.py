"""Public packages: the location of their source, and what they compile."""

import re
from functools import cached_property
from typing import ClassVar, Literal

from gpucheck.tables.base import Project, Row, Table, Words

_SEPARATORS = r"[-_.]+"

Form = Literal["source", "wheel"]
Code = Literal["cuda", "triton", "c++"]


class KnownPackageRow(Row, frozen=True):
    """A distribution by its name on PyPI, and the public repository of its source.

    `pypi` is the form in which PyPI has it, missing if nobody has looked. If PyPI has only the
    source, pip compiles it for the installed torch. `compiles` is the code that it compiles when it
    is used: "cuda" with nvcc, "triton" kernels, for which Triton compiles C, or "c++". If one of
    `unless` is installed, it need not compile. For an `application`, torch is chosen to fit the
    package, not vice versa. A package with a `library_per_cuda` loads the one for torch's CUDA. One
    that `goes_on_without` its compiled code reports this and works. One `for_some_gpus` has
    optional kernels that exist only for some generations.
    """

    package: Project
    repository: Words
    pypi: tuple[Form, ...] = ()
    compiles: tuple[Code, ...] = ()
    unless: tuple[Project, ...] = ()
    application: bool = False
    library_per_cuda: bool = False
    goes_on_without: bool = False
    for_some_gpus: bool = False


class KnownPackages(Table, frozen=True):
    """Answers what is known about a package. Names compare as on PyPI."""

    name: ClassVar[str] = "known_packages"
    rows: tuple[KnownPackageRow, ...]

    def known(self, package: str) -> KnownPackageRow | None:
        """Return the row of a package; None if the table does not have it."""
        return self._by_name.get(re.sub(_SEPARATORS, "-", package).lower())

    def compiling(self, *codes: Code) -> tuple[KnownPackageRow, ...]:
        """Return the packages that compile one of these kinds of code when they are used."""
        return tuple(row for row in self.rows if set(codes) & set(row.compiles))

    @cached_property
    def _by_name(self) -> dict[str, KnownPackageRow]:
        return {row.package: row for row in self.rows}
