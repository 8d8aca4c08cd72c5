"""Packages beside torch: the newest releases that fit a build, and each other, together."""

import itertools
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gpucheck.tables import Tables
from gpucheck.tables.companions import ExtensionRow, Extensions
from gpucheck.tables.torch import TorchPins
from gpucheck.tables.versions import at_least, capability_numbers, numbers, parse

if TYPE_CHECKING:  # offers.py imports this module
    from packaging.specifiers import SpecifierSet

    from gpucheck.advice.offers import Card, Offer, Situation

_MOST_SETS = 10_000  # chosen: three packages with twenty releases each; a table has fewer


class Companion(Struct, frozen=True, kw_only=True):
    """A release of a package that fits a build.

    ``version`` is "" where the page of wheels ``index`` decides. ``from_source``: its setup needs
    the installed torch, and compiles or fetches the wheel that was made for it. ``extras`` are
    those that the package has for this CUDA.
    """

    package: str
    version: str = ""
    extras: str = ""
    index: str = ""
    from_source: bool = False
    requires: dict[str, str] = {}

    def requirement(self) -> str:
        """Return the requirement for pip: ``vllm==0.33.0``."""
        return f"{self.package}{self.extras}" + (f"=={self.version}" if self.version else "")

    def __str__(self) -> str:
        """Return the name and the version, as people write them."""
        return f"{self.package} {self.version}".rstrip()


class Companions:
    """The releases that fit, from one set of tables."""

    def __init__(self, tables: Tables, wanted: Collection[str]) -> None:
        self._tables = tables
        self._extensions = tables.get(Extensions)
        self._wanted = tuple(dict.fromkeys(wanted))

    def chosen(self, offer: "Offer", situation: "Situation") -> tuple[Companion, ...] | None:
        """Return the newest releases that fit a build and each other; None if none do."""
        fitting = [list(self._fitting(name, offer, situation)) for name in self._wanted]
        sets = itertools.islice(itertools.product(*fitting), _MOST_SETS)
        return next((found for found in sets if _agree(found, offer)), None)

    def lacking(self, offer: "Offer", situation: "Situation") -> tuple[str, ...]:
        """Return which packages have no release for a build, whatever the others need."""
        return tuple(n for n in self._wanted if not any(self._fitting(n, offer, situation)))

    def has_wheels_for(self, name: str, platform: str) -> bool:
        """Return whether a package has wheels for a platform; True if the tables list none."""
        rows = self._extensions.of_package(name)
        return not rows or any(platform in row.platforms for row in rows)

    def come_as_source(self, name: str) -> bool:
        """Return whether PyPI has a package as source."""
        return any(row.from_source for row in self._extensions.of_package(name))

    def below(self, name: str, offer: "Offer", situation: "Situation") -> "tuple[str, Card] | None":
        """Return the lowest capability that a package supports, and a GPU that has a lower one.

        None unless that holds for every release that fits a build of pip otherwise, or for every
        release if none does.
        """
        rows = self._extensions.of_package(name)
        anywhere = replace(situation, cards=(), hidden=())
        by_pip = offer.channel == "pip"
        return _below(
            [row for row in rows if by_pip and self._fits(row, offer, anywhere)] or rows, situation
        )

    def oldest_glibc(self, name: str, offer: "Offer", situation: "Situation") -> str | None:
        """Return the C library that a package needs at least, None if something else keeps it away.

        Only where no release fits: it is the lowest that one needs which fits otherwise.
        """
        anywhere = replace(situation, glibc=None)
        needs = (
            row.glibc
            for row in self._extensions.of_package(name)
            if row.glibc and self._fits(row, offer, anywhere)
        )
        return min(needs, key=numbers, default=None)

    def is_for_another_python(self, name: str, offer: "Offer", situation: "Situation") -> bool:
        """Return whether releases of a package fit a build, but for the Python."""
        anywhere = replace(situation, python=None)
        return any(self._fits(row, offer, anywhere) for row in self._extensions.of_package(name))

    def _fitting(self, name: str, offer: "Offer", situation: "Situation") -> Iterator[Companion]:
        """Yield the releases of one package that fit, the newest first.

        None does for the PyTorch of a board: PyPI's wheels for ARM are made for servers, whose
        CUDA boards have from JetPack 7 on (https://github.com/dusty-nv/jetson-containers/pull/1257;
        https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1941).
        """
        if offer.of_board:
            return
        if name == "triton":
            pin = self._tables.get(TorchPins).pin(offer.torch, offer.platform, name)
            if pin is not None:
                yield Companion(package=name, version=pin.specifier.lstrip("=~"))
            return
        index = self._extensions.wheels(name, offer.torch, offer.build, offer.platform)
        # PyTorch Geometric makes no wheels for ARM servers and for Python without a GIL.
        if index is not None and offer.platform != "linux_aarch64" and not _is_free(situation):
            yield Companion(package=name, index=index)
        for row in self._extensions.of_package(name):
            if self._fits(row, offer, situation):
                yield Companion(
                    package=name, version=f"{row.version}{row.local_for(offer.build) or ''}",
                    extras=_extras(row, offer),
                    from_source=row.from_source, requires=row.requires,
                )  # fmt: skip

    def _fits(self, row: ExtensionRow, offer: "Offer", situation: "Situation") -> bool:
        """Whether a release runs beside a build on this machine, as far as the table says."""
        cuda = offer.cuda.partition(".")[0]
        majors = {entry.partition(".")[0].removesuffix("+") for entry in row.cuda}
        return (
            offer.platform in row.platforms
            and (not majors or cuda in majors)
            and row.local_for(offer.build) is not None
            and self._is_for_torch(row, offer.torch)
            and _is_for_python(row, situation.python)
            and _is_for_glibc(row, situation.glibc)
            and all(
                _is_for_gpu(row, card.capability) for card in (*situation.cards, *situation.hidden)
            )
        )

    def _is_for_torch(self, row: ExtensionRow, torch: str) -> bool:
        if row.torch is None:  # its project makes wheels for the releases that it names
            return numbers(torch)[:2] in {numbers(built)[:2] for built in row.built_for_torch}
        return bool(self._extensions.fits_torch(row.package, row.version, torch))


def _below(rows: Collection[ExtensionRow], situation: "Situation") -> "tuple[str, Card] | None":
    lowest = min(
        (row.capability_from or "" for row in rows),
        key=lambda text: capability_numbers(text) or (0, 0),
        default="",
    )
    if not lowest:
        return None
    below = (c for c in (*situation.cards, *situation.hidden) if not _reaches(c.capability, lowest))
    card = next(below, None)
    return None if card is None else (lowest, card)


def _agree(found: Collection[Companion], offer: "Offer") -> bool:
    """Whether no package of a set requires another release of a second one, or of a third."""
    have = {companion.package: companion.version for companion in found}
    needs = [(project, need) for release in found for project, need in release.requires.items()]
    pins: dict[str, str] = {}
    for project, need in needs:
        pinned = need.removeprefix("==") if need.startswith("==") else ""
        there = have.get(project) or (offer.torch if project == "torch" else pins.get(project, ""))
        if there and not _specifier(need).contains(there, prereleases=True):
            return False
        if pinned:
            pins[project] = pinned
    return all(
        _specifier(need).contains(pins[project], prereleases=True)
        for project, need in needs
        if project in pins
    )


def _extras(row: ExtensionRow, offer: "Offer") -> str:
    """Return the extras of Transformer Engine: its PyTorch part, and the core for this CUDA."""
    if row.package != "transformer-engine":
        return ""
    return f"[pytorch,core_cu{offer.cuda.partition('.')[0]}]"


def _is_for_python(row: ExtensionRow, python: str | None) -> bool:
    if python is None:
        return True
    return not python.endswith("t") and _specifier(row.python or "").contains(python)


def _is_free(situation: "Situation") -> bool:
    return (situation.python or "").endswith("t")


def _is_for_glibc(row: ExtensionRow, glibc: str | None) -> bool:
    have, need = parse(glibc), parse(row.glibc)
    return have is None or need is None or at_least(have, need)


def _is_for_gpu(row: ExtensionRow, capability: str) -> bool:
    return _reaches(capability, row.capability_from)


def _reaches(capability: str, lowest: str | None) -> bool:
    """Whether a GPU has at least a capability; an unknown one counts as such."""
    device, needed = capability_numbers(capability), capability_numbers(lowest)
    return device is None or needed is None or at_least(device, needed)


def _specifier(text: str) -> "SpecifierSet":
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    return SpecifierSet(text)
