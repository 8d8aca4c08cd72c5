"""The published PyTorch builds, and the limits of a machine that each of them meets."""

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from gpucheck.advice.build_limits import MachineLimits, fits_driver, fits_gpus, operating_system
from gpucheck.advice.companions import Companion, Companions
from gpucheck.language import say
from gpucheck.tables import OperatingSystem, Tables
from gpucheck.tables.compilers import CubinRules, Runs
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import DriverBranches, DriverSupport
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts
from gpucheck.tables.jetson import JetsonWheelRow, JetsonWheels
from gpucheck.tables.torch import (
    BuildRow,
    ReleaseRow,
    TorchBuilds,
    TorchReleases,
    WheelIndexes,
)
from gpucheck.tables.versions import at_least, capability_numbers, numbers, parse

Limit = Literal["torch", "python", "driver", "glibc", "companions"]
Channel = Literal["pip", "conda-forge"]
CHANNEL: Final = "conda-forge"
WINDOWS_ON_ARM_PAGE: Final = "https://github.com/NVIDIA/pytorch-windows-ci"
"""NVIDIA's page about its builds for Windows on Arm: the command, GPUs, driver and index."""
_CAPABILITIES = 64  # more than the table of GPUs has; texts of others are bounded so
_DRIVERS = 64  # whose CUDA versions are kept: a search asks for those of one again and again
_QUESTIONS = 512  # about the oldest driver: the same for all builds of a CUDA
LIMITS: tuple[Limit, ...] = ("python", "driver", "torch", "glibc", "companions")


class Card(Struct, frozen=True):
    """A GPU: its name, and its compute capability ("8.9")."""

    label: str
    capability: str

    def __str__(self) -> str:
        """Return ``NVIDIA H100 (sm_90)``, as a sentence: ``say`` keeps it one."""
        capability = capability_numbers(self.capability)
        if capability is None:  # a saved snapshot may say anything
            return self.label
        code = f"sm_{capability[0]}{capability[1]}"
        if self.label == self.capability:
            return code
        return say("{gpu} ({code})", gpu=self.label, code=code)


def one_a_capability(cards: Collection[Card]) -> list[Card]:
    """Return the first GPU of each compute capability."""
    first: dict[str, Card] = {}
    for card in cards:
        first.setdefault(card.capability, card)
    return list(first.values())


class Situation(Struct, frozen=True, kw_only=True):
    """What a build has to fit.

    ``torch`` is a PEP 440 specifier or a version ("" admits all). ``python`` is such as "3.12" or
    "3.13t", None if no Python limits the choice. ``driver_serves``: the driver is known to serve
    these GPUs, so no table is asked whether it can. ``hidden`` are GPUs of the machine that
    CUDA_VISIBLE_DEVICES hides; a build that fits them as well is preferred. ``driver_os`` is the
    system of the driver, if it differs from the platform (Windows, inside WSL). ``channel`` is
    where builds are looked for, ``companions`` the packages that have to fit as well. ``l4t`` is
    the Linux for Tegra of a Jetson board ("36.4.3").
    """

    platform: str
    python: str | None = None
    cards: tuple[Card, ...] = ()
    hidden: tuple[Card, ...] = ()
    driver: str | None = None
    driver_cuda: str | None = None
    driver_os: OperatingSystem | None = None
    glibc: str | None = None
    torch: str = ""
    driver_serves: bool = False
    channel: Channel = "pip"
    companions: tuple[str, ...] = ()
    l4t: str | None = None


class Offer(Struct, frozen=True, kw_only=True):
    """A build that can be installed; ``build`` is "cpu" and ``cuda`` "" for one without CUDA.

    ``is_default``: a plain ``pip install torch`` of this release installs it. ``confirmed`` false:
    the list of its GPU code is not fully confirmed, ``note`` says why. ``announced`` false: PyTorch
    published it without naming it in its release plan. ``channel`` is who publishes it.
    ``index`` or ``wheel``: it was made for boards, and only this index has it or this address is
    its own; ``wheel_name`` is the name to save it under if the address does not end in it. It needs
    the libraries ``lacking``, which the boards lack. ``requires`` are packages that pip or conda
    would choose too new. ``driver`` is the oldest that its maker names, ""
    where that of its CUDA counts.
    """

    torch: str
    build: str
    cuda: str
    platform: str
    is_default: bool
    glibc: str | None = None
    confirmed: bool = True
    announced: bool = True
    note: str = ""
    channel: Channel = "pip"
    experimental: bool = False
    index: str = ""
    wheel: str = ""
    wheel_name: str = ""
    lacking: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    driver: str = ""

    @property
    def of_board(self) -> bool:
        """Whether it was made for Jetson boards."""
        return bool(self.index or self.wheel)

    def __str__(self) -> str:
        """Return ``torch 2.9.1 (cu128)``, as a sentence: ``say`` keeps it one."""
        return say("torch {torch} ({build})", torch=self.torch, build=self.build)


class Offers:
    """The offers for one platform, and the questions whether they meet a limit."""

    def __init__(self, tables: Tables, platform: str) -> None:
        self.tables = tables
        self.platform = platform
        self._releases = {row.torch: row for row in tables.get(TorchReleases).newest_first()}
        self._rows: dict[Offer, BuildRow] = dict(self._published())
        self._boards = {_board_offer(row): row for row in self._installable()}
        self._code = lru_cache(_CAPABILITIES)(self._offers_with_code)
        self._cuda = frozenset(offer.cuda for offer in (*self._rows, *self._boards))
        self._runs = lru_cache(_DRIVERS)(self._cuda_that_runs)
        self._oldest = lru_cache(_QUESTIONS)(self._oldest_driver)

    def with_cuda(self) -> Collection[Offer]:
        """Return every published CUDA build."""
        return self._rows.keys()

    def releases(self) -> Collection[str]:
        """Return every release in the table, also those without a build for the platform."""
        return self._releases.keys()

    def oldest(self) -> str | None:
        """Return the oldest minor release of which the tables have CUDA builds."""
        return self.tables.get(TorchBuilds).oldest(self.platform)

    def for_board(self, l4t: str | None) -> frozenset[Offer]:
        """Return the builds that were made for the boards of a Linux for Tegra."""
        made = self.tables.get(JetsonWheels).for_l4t(l4t or "")
        return frozenset(offer for offer, row in self._boards.items() if row in made)

    def without_cuda(self) -> list[Offer]:
        """Return the CPU build of every release that has wheels for this platform."""
        return [
            Offer(
                torch=release.torch,
                build="cpu",
                cuda="",
                platform=self.platform,
                is_default=release.default_builds.get(self.platform) == "cpu",
                glibc=release.glibc,
            )
            for release in self._releases.values()
            if self.platform in release.pythons
        ]

    def with_code_for(self, capability: str, *, unified: bool = False) -> frozenset[Offer]:
        """Return the builds with machine code for a GPU. PTX does not count: wheels have none.

        For the GPU of a Jetson board the list of the code has to be confirmed, because few people
        run the wheels for servers there. ``unified``: the board's CUDA is one of those with which
        code for servers counts as well.
        """
        return self._code(capability, unified)

    def _offers_with_code(self, capability: str, unified: bool) -> frozenset[Offer]:  # noqa: FBT001  # its cache takes no names
        machine = MachineLimits(self.platform, capabilities=(capability,), unified=unified)
        board = self.tables.get(GpuProducts).is_jetson(capability)
        made = (o for o, row in self._boards.items() if capability in row.compute_capabilities)
        return frozenset(made) | frozenset(
            offer
            for offer, row in self._rows.items()
            if (row.confirmed or not board) and fits_gpus(self.tables, row, machine) is Runs.CUBIN
        )

    def may_have_code(self, offer: Offer, capability: str) -> bool:
        """Whether a build may have code for a GPU, because its list of it is not confirmed.

        Not if its compiler makes none for the GPU, or if its cuDNN does not support it.
        """
        row = self._rows.get(offer)
        if row is None or row.confirmed:
            return False
        unlisted = replace(row, arch_list=(), ptx=())
        machine = MachineLimits(self.platform, capabilities=(capability,))
        return fits_gpus(self.tables, unlisted, machine) is not Runs.NO

    def is_unified(self, situation: Situation) -> bool:
        """Whether the system has one CUDA for servers and boards, as JetPack 7.2 has on Orin."""
        have = parse(situation.driver_cuda)
        first = parse(self.tables.get(CubinRules).unified_from)
        of_boards = self.platform == "linux_aarch64"
        return of_boards and have is not None and first is not None and at_least(have, first)

    def reaches(self, capability: str) -> bool:
        """Return whether any build has machine code or PTX for a GPU, whatever the driver."""
        machine = MachineLimits(self.platform, capabilities=(capability,))
        runs = (Runs.CUBIN, Runs.PTX)
        return any(fits_gpus(self.tables, row, machine) in runs for row in self._rows.values())

    def pythons(self, offer: Offer) -> tuple[str, ...]:
        """Return the Pythons for which the release of an offer has wheels."""
        made = self._boards.get(offer)
        if made is not None:
            return (made.python,) if made.python else ()
        own = self._rows[offer].pythons if offer in self._rows else ()
        return own or self._releases[offer.torch].pythons.get(self.platform, ())

    def other_pythons(self, offer: Offer) -> str:
        """Return the page that lists the Pythons of a build, "" if the tables have them all."""
        row = self._rows.get(offer)
        if row is None or not row.pythons or offer.channel != "pip":
            return ""
        index = self.tables.get(WheelIndexes).index(offer.build, offer.platform)
        return "" if index is None else f"{index.address}torch/"

    def takes_driver(self, offer: Offer, situation: Situation) -> bool:
        """Return whether the driver is as new as the maker of a build asks; True if unknown."""
        have = parse(situation.driver)
        return not offer.driver or have is None or at_least(have, numbers(offer.driver))

    def has_wheel_for(self, offer: Offer, python: str | None) -> bool:
        """Return whether the release of an offer has wheels for a Python; True for None."""
        return python is None or python in self.pythons(offer)

    def unseen(self) -> tuple[str, ...]:
        """Return the releases of which no table says whether their CUDA builds were published."""
        builds = self.tables.get(TorchBuilds)
        return tuple(
            torch
            for torch, release in self._releases.items()
            if self.platform in release.pythons
            and (rows := builds.of_release(torch, self.platform))
            and all(row.available is None for row in rows)
        )

    def may_fit(self, torch: str, situation: Situation) -> bool:
        """Return whether a build of an unseen release would fit GPUs, driver, Python and glibc."""
        release = self._releases[torch]
        machine = _machine(self.platform, situation)
        return (
            (situation.python is None or situation.python in release.pythons[self.platform])
            and not situation.companions
            and any(
                fits_gpus(self.tables, row, machine) is Runs.CUBIN
                and fits_driver(self.tables, row.cuda, machine) is not False
                and runs_on_glibc(_offer(release, row, self.platform), situation.glibc)
                for row in self.tables.get(TorchBuilds).of_release(torch, self.platform)
            )
        )

    def companions(self, offer: Offer, situation: Situation) -> tuple[Companion, ...] | None:
        """Return the packages of a situation that fit an offer together; None if none do."""
        return Companions(self.tables, situation.companions).chosen(offer, situation)

    def without_companions(self, offer: Offer, situation: Situation) -> tuple[str, ...]:
        """Return which packages of a situation have no release for an offer.

        Where each of them has one, these disagree with each other.
        """
        return Companions(self.tables, situation.companions).lacking(offer, situation)

    def for_another_python(self, package: str, offer: Offer, situation: Situation) -> bool:
        """Return whether a package has releases for an offer, but not for this Python."""
        return Companions(self.tables, ()).is_for_another_python(package, offer, situation)

    def cuda_for(self, situation: Situation) -> frozenset[str]:
        """Return the CUDA versions whose builds the driver runs; all of them if it is unknown."""
        if situation.driver is None and situation.driver_cuda is None:
            return self._cuda
        return self._runs(situation.driver, situation.driver_cuda, situation.driver_os)

    def _cuda_that_runs(
        self, driver: str | None, driver_cuda: str | None, driver_os: OperatingSystem | None
    ) -> frozenset[str]:
        machine = MachineLimits(
            self.platform, driver=driver, driver_cuda=driver_cuda, driver_os=driver_os
        )
        return frozenset(cuda for cuda in self._cuda if fits_driver(self.tables, cuda, machine))

    def least_driver(self, offer: Offer, situation: Situation) -> str | None:
        """Return the oldest driver release that runs an offer, whatever the GPUs.

        None for a Jetson, whose driver is part of its JetPack.
        """
        capabilities = frozenset(card.capability for card in situation.cards)
        return self._least_driver(offer.cuda, offer.driver, capabilities, situation.driver_os)

    def _least_driver(
        self, cuda: str, driver: str, capabilities: frozenset[str], os: OperatingSystem | None
    ) -> str | None:
        products = self.tables.get(GpuProducts)
        if any(map(products.is_jetson, capabilities)):
            return None
        os = os or operating_system(self.platform)
        of_cuda = self.tables.get(CudaDrivers).oldest_driver(cuda, os)
        return max(of_cuda, driver, key=numbers) if of_cuda and driver else of_cuda

    def oldest_driver(self, offer: Offer, situation: Situation) -> str | None:
        """Return the oldest driver release that runs an offer and supports the GPUs.

        None if the table does not have it, or if no release does both.
        """
        capabilities = frozenset(card.capability for card in situation.cards)
        return self._oldest(offer.cuda, offer.driver, capabilities, situation.driver_os)

    def _oldest_driver(
        self, cuda: str, driver: str, capabilities: frozenset[str], os: OperatingSystem | None
    ) -> str | None:
        oldest = self._least_driver(cuda, driver, capabilities, os)
        if oldest is None:
            return None
        support = DriverSupport(self.tables.get(GpuArchitectures), self.tables.get(DriverBranches))
        first = max((support.first(capability) or 0 for capability in capabilities), default=0)
        last = support.last(capabilities)
        needed = oldest if numbers(oldest)[0] >= first else str(first)
        return None if last is not None and numbers(needed)[0] > last else needed

    def _installable(self) -> Iterator[JetsonWheelRow]:
        if self.platform == "linux_aarch64":
            rows = self.tables.get(JetsonWheels).rows
            yield from (row for row in rows if (row.index or row.wheel) and row.cuda)

    def _published(self) -> Iterator[tuple[Offer, BuildRow]]:
        builds = self.tables.get(TorchBuilds)
        for release in self._releases.values():
            # RELEASE.md has one column of them for all platforms; the rows of Linux have it.
            linux = builds.of_release(release.torch, "linux_x86_64")
            experimental = {row.cuda for row in linux if row.status == "experimental"}
            for row in builds.of_release(release.torch, self.platform):
                if row.available and (not row.releases or release.torch in row.releases):
                    offer = _offer(release, row, self.platform)
                    yield replace(offer, experimental=row.cuda in experimental), row


def newest_first(offers: Collection[Offer], *, default_first: bool = False) -> list[Offer]:
    """Return offers in order of preference: announced, newest torch, confirmed, newest CUDA.

    ``default_first``: of one release, the build of PyPI comes first. Experimental ones come last:
    PyTorch's RELEASE.md says that they may change.
    """
    return sorted(
        offers,
        key=lambda offer: (
            offer.announced,
            numbers(offer.torch),
            offer.confirmed,
            default_first and offer.is_default,
            not offer.experimental,
            parse(offer.cuda) or (),
        ),
        reverse=True,
    )


def runs_on_glibc(offer: Offer, glibc: str | None) -> bool:
    """Return whether a C library is new enough for an offer; an unknown one counts as such."""
    have, need = parse(glibc), parse(offer.glibc)
    return have is None or need is None or at_least(have, need)


def _offer(release: ReleaseRow, row: BuildRow, platform: str) -> Offer:
    needs = [need for need in (release.glibc, row.glibc) if need]
    return Offer(
        torch=release.torch,
        build=row.build,
        cuda=row.cuda,
        platform=platform,
        is_default=release.default_builds.get(platform) == row.build,
        glibc=max(needs, key=numbers) if needs and platform.startswith("linux") else None,
        confirmed=row.confirmed,
        announced=row.announced is not False,
        note=row.note,
        driver=row.driver or "",
    )


def _board_offer(row: JetsonWheelRow) -> Offer:
    cuda = row.cuda or ""
    return Offer(
        torch=row.torch,
        build=f"cu{cuda.replace('.', '')}",
        cuda=cuda,
        platform="linux_aarch64",
        is_default=False,
        index=row.index or "",
        wheel=row.wheel or "",
        wheel_name=row.wheel_name or "",
        lacking=row.lacking,
        requires=tuple(f"{project}{need}" for project, need in row.requires.items()),
    )


def _machine(platform: str, situation: Situation) -> MachineLimits:
    return MachineLimits(
        platform,
        capabilities=tuple(card.capability for card in situation.cards),
        driver=situation.driver,
        driver_cuda=situation.driver_cuda,
        driver_os=situation.driver_os,
    )
