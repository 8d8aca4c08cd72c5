"""Packages that everybody can download: where their source is, and what they compile."""

import re
from functools import cached_property
from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table

_SEPARATORS = r"[-_.]+"

Form = Literal["source", "wheel"]
Code = Literal["cuda", "triton", "c++"]


class KnownPackageRow(Row, frozen=True):
    """A distribution by its name on PyPI, and the public repository of its source.

    `pypi` is what PyPI has of it, absent where nobody looked: with the source alone, pip compiles
    it for the torch that is there. `compiles` is the code that it compiles when it is used: "cuda"
    with nvcc, "triton" kernels, for which Triton compiles C, or "c++"; beside one of `unless` it
    need not. torch is brought to an `application`, not the application to torch. A package with a
    `library_per_cuda` takes the one for torch's CUDA; one that `goes_on_without` its compiled code
    says so and works; one `for_some_gpus` has kernels that are an addition for some generations.
    """

    package: str
    repository: str
    pypi: tuple[Form, ...] = ()
    compiles: tuple[Code, ...] = ()
    unless: tuple[str, ...] = ()
    application: bool = False
    library_per_cuda: bool = False
    goes_on_without: bool = False
    for_some_gpus: bool = False


class KnownPackages(Table, frozen=True):
    """Answers what is known of a package. Names compare as PyPI compares them."""

    name: ClassVar[str] = "known_packages"
    rows: tuple[KnownPackageRow, ...]

    def known(self, package: str) -> KnownPackageRow | None:
        """Return the row of a package; None: the table does not have it."""
        return self._by_name.get(re.sub(_SEPARATORS, "-", package).lower())

    def compiling(self, *codes: Code) -> tuple[KnownPackageRow, ...]:
        """Return the packages that compile one of these kinds of code when they are used."""
        return tuple(row for row in self.rows if set(codes) & set(row.compiles))

    @cached_property
    def _by_name(self) -> dict[str, KnownPackageRow]:
        return {row.package: row for row in self.rows}
