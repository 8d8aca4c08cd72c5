"""torchvision, torchaudio, torchtext: which release belongs to a torch, which torch each pins."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Specifier, Table, VersionText, Words
from gpucheck.tables.versions import at_least, compare, numbers, released

Package = Literal["torchvision", "torchaudio", "torchtext"]


class CompanionRow(Row, frozen=True, tag_field="kind", tag="companions"):
    """The companions of a torch release; `torchvision_also` says which others fit, in words.

    torchtext is missing from torch 2.4 on: 0.18.0 was its last release.
    """

    torch: VersionText
    torchvision: VersionText | None = None
    torchaudio: VersionText | None = None
    torchtext: VersionText | None = None
    torchvision_also: Words | None = None


class PinRow(Row, frozen=True, tag_field="kind", tag="pin"):
    """What a companion's metadata requires: `torch` is "==2.6.0", ">=2.14.0", or "" for no pin.

    `known_to` is the newest minor release of torch it was made for, if the metadata has no upper
    bound although the package does not use only torch's stable ABI.
    """

    package: Package
    version: VersionText
    torch: Specifier
    date: Words | None = None
    known_to: VersionText | None = None


class TorchCompanions(Table, frozen=True):
    """Answers which companions fit a torch. Local parts (+cu124) of versions are ignored."""

    name: ClassVar[str] = "torch_companions"
    rows: tuple[CompanionRow | PinRow, ...]

    def companion_for(self, torch_version: str, package: Package) -> str | None:
        """Return the release of `package` that was made for this torch release."""
        wanted = released(torch_version)
        if wanted is None:
            return None
        for row in self._companions():
            if compare(numbers(row.torch), wanted) == 0:
                found: str | None = getattr(row, package)
                return found
        return None

    def pin(self, package: Package, version: str) -> str | None:
        """Return the torch requirement of a companion release; "" if it is known to have none."""
        row = self.made_for(package, version)
        return None if row is None else row.torch

    def agrees(self, package: Package, version: str, torch_version: str) -> bool | None:
        """Return whether a companion release fits a torch release.

        A companion without a pin fits the torch it was made for and later ones, because it uses
        only torch's stable ABI; for an earlier one the answer is unknown. The answer is also
        unknown for a later torch if the companion has no upper bound and no stable ABI (torchtext
        0.18.0).
        """
        row, torch = self.made_for(package, version), released(torch_version)
        if row is None or torch is None:
            return None
        pin, known_to = row.torch, released(row.known_to)
        if known_to is not None and compare(torch[:2], known_to) > 0:
            return None
        if not pin:
            return True if self._made_for_this_or_older(package, version, torch) else None
        # Imported late: packaging takes milliseconds to import, and few questions need it.
        from packaging.specifiers import SpecifierSet  # noqa: PLC0415

        return SpecifierSet(pin).contains(".".join(str(number) for number in torch))

    def made_for(self, package: Package, version: str) -> PinRow | None:
        """Return the row that says which torch a companion release requires."""
        wanted = released(version)
        if wanted is None:
            return None
        pins = [row for row in self.rows if isinstance(row, PinRow) and row.package == package]
        return next((row for row in pins if compare(numbers(row.version), wanted) == 0), None)

    def _made_for_this_or_older(
        self,
        package: Package,
        version: str,
        torch: tuple[int, ...],
    ) -> bool:
        wanted = released(version) or ()
        return any(
            compare(released(self.companion_for(row.torch, package)) or (), wanted) == 0
            and at_least(torch, numbers(row.torch))
            for row in self._companions()
        )

    def _companions(self) -> list[CompanionRow]:
        return [row for row in self.rows if isinstance(row, CompanionRow)]
