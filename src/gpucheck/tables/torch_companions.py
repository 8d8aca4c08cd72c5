"""torchvision and torchaudio: which release belongs to a torch, and which torch each one pins."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table
from gpucheck.tables.versions import at_least, compare, numbers, released

Package = Literal["torchvision", "torchaudio"]


class CompanionRow(Row, frozen=True, tag_field="kind", tag="companions"):
    """The companions of a torch release; `torchvision_also` says which others fit, in words."""

    torch: str
    torchvision: str | None = None
    torchaudio: str | None = None
    torchvision_also: str | None = None


class PinRow(Row, frozen=True, tag_field="kind", tag="pin"):
    """What a companion's metadata requires: `torch` is "==2.6.0", ">=2.14.0", or "" for no pin."""

    package: Package
    version: str
    torch: str
    date: str


class TorchCompanions(Table, frozen=True):
    """Answers which companions go with a torch. Local parts (+cu124) of versions do not count."""

    name: ClassVar[str] = "torch_companions"
    rows: tuple[CompanionRow | PinRow, ...]

    def companion_for(self, torch_version: str, package: Package) -> str | None:
        """Return the release of `package` that was made for this torch release."""
        wanted = released(torch_version)
        if wanted is None:
            return None
        for row in self._companions():
            if compare(numbers(row.torch), wanted) == 0:
                return row.torchvision if package == "torchvision" else row.torchaudio
        return None

    def pin(self, package: Package, version: str) -> str | None:
        """Return the torch requirement of a companion release; "" when it was seen to have none."""
        wanted = released(version)
        for row in self.rows:
            if not isinstance(row, PinRow) or row.package != package:
                continue
            if released(row.version) == wanted:
                return row.torch
        return None

    def agrees(self, package: Package, version: str, torch_version: str) -> bool | None:
        """Say whether a companion release fits a torch release.

        A companion without a pin fits the torch it was made for and later ones, for it uses only
        torch's stable ABI; whether it fits an earlier one is unknown.
        """
        pin, torch = self.pin(package, version), released(torch_version)
        if pin is None or torch is None:
            return None
        if not pin:
            return True if self._made_for_this_or_older(package, version, torch) else None
        # packaging takes milliseconds to import, and few questions need it.
        from packaging.specifiers import SpecifierSet  # noqa: PLC0415

        return SpecifierSet(pin).contains(".".join(str(number) for number in torch))

    def _made_for_this_or_older(
        self,
        package: Package,
        version: str,
        torch: tuple[int, ...],
    ) -> bool:
        wanted = released(version)
        return any(
            released(self.companion_for(row.torch, package)) == wanted
            and at_least(torch, numbers(row.torch))
            for row in self._companions()
        )

    def _companions(self) -> list[CompanionRow]:
        return [row for row in self.rows if isinstance(row, CompanionRow)]
