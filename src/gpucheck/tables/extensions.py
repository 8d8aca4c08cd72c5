"""Extensions of PyTorch: which torch, CUDA and GPUs their releases are for."""

import re
from typing import ClassVar

from gpucheck.tables.base import Row, Table
from gpucheck.tables.versions import at_least, capability_numbers

_SEPARATORS = re.compile(r"[-_.]+")


class ExtensionRow(Row, frozen=True):
    """A release of an extension; a column is absent where no primary source says it.

    `torch` is what its metadata requires ("==2.7.1"), `built_for_torch` and `built_with_cuda` the
    releases that its own build makes wheels for, `cuda` and `cudnn` what it needs at run time
    ("12" is all of 12, "12.0+" this and newer), `capability_from` the lowest compute capability.
    """

    package: str
    version: str
    torch: str | None = None
    built_for_torch: tuple[str, ...] = ()
    built_with_cuda: tuple[str, ...] = ()
    cuda: tuple[str, ...] = ()
    cudnn: tuple[str, ...] = ()
    capability_from: str | None = None


class Extensions(Table, frozen=True):
    """Answers what a release of an extension goes with. Names compare as PyPI compares them."""

    name: ClassVar[str] = "extensions"
    rows: tuple[ExtensionRow, ...]

    def release(self, package: str, version: str) -> ExtensionRow | None:
        """Return the row of a release such as xformers 0.0.30, a local part (+cu126) apart."""
        wanted = (_plain(package), version.partition("+")[0])
        return next((r for r in self.rows if (_plain(r.package), r.version) == wanted), None)

    def fits_torch(self, package: str, version: str, torch: str) -> bool | None:
        """Say whether a release's metadata admits a torch; None where they do not name one."""
        row = self.release(package, version)
        if row is None or row.torch is None:
            return None
        # packaging takes milliseconds to import, and few questions need it.
        from packaging.specifiers import SpecifierSet  # noqa: PLC0415
        from packaging.version import InvalidVersion, Version  # noqa: PLC0415

        try:
            return SpecifierSet(row.torch).contains(Version(torch).public)
        except InvalidVersion:
            return None

    def for_torch(self, package: str, torch: str) -> tuple[str, ...]:
        """Return the releases of a package whose metadata admit a torch, as in the table."""
        plain = _plain(package)
        rows = [row for row in self.rows if _plain(row.package) == plain]
        return tuple(r.version for r in rows if self.fits_torch(package, r.version, torch))

    def serves_gpu(self, package: str, version: str, capability: str) -> bool | None:
        """Say whether a GPU is new enough for a release; None where no lower end is known."""
        row, device = self.release(package, version), capability_numbers(capability)
        lowest = None if row is None else capability_numbers(row.capability_from)
        return None if device is None or lowest is None else at_least(device, lowest)


def _plain(package: str) -> str:
    return _SEPARATORS.sub("-", package).lower()
