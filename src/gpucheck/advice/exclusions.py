"""Which limits exclude an offer, in words, and what to change so that it fits."""

from collections.abc import Collection, Sequence

from gpucheck.advice.companions import Companions
from gpucheck.advice.offers import (
    WINDOWS_ON_ARM_PAGE,
    Card,
    Limit,
    Offer,
    Offers,
    Situation,
    one_a_capability,
)
from gpucheck.language import Sentence, any_of, in_turn, listed, say
from gpucheck.tables.driver import DriverBranches, DriverSupport, Drives
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.versions import capability_numbers, numbers

_NEWER_DRIVER = say("a newer driver")
_INDEX_OF_BOARDS = "https://pypi.jetson-ai-lab.io"
PLATFORMS = {
    "linux_x86_64": say("Linux on x86_64"),
    "linux_aarch64": say("Linux on aarch64"),
    "windows": "Windows",
    "windows_aarch64": say("Windows on Arm"),
}
"""The platforms of the tables, in words."""


def usual_range(pythons: Sequence[str]) -> str:
    """Return the usual ones of some Pythons: "3.10 to 3.14"."""
    plain = [python for python in pythons if not python.endswith("t")]
    if len(plain) == 1:
        return plain[0]
    return say("{first} to {last}", first=plain[0], last=plain[-1])


def driver_in_words(situation: Situation) -> Sentence:
    """Return the driver of a situation, as the subject of a sentence."""
    release, cuda = situation.driver, situation.driver_cuda
    if release is None:
        return say("The driver (CUDA {cuda})", cuda=cuda)
    if cuda:
        return say("Driver {release} (CUDA {cuda})", release=release, cuda=cuda)
    return say("Driver {release}", release=release)


class Exclusions:
    """Describes what keeps an offer from fitting a situation."""

    def __init__(self, offers: Offers, situation: Situation) -> None:
        self._offers = offers
        self._situation = situation
        self._packages = Companions(offers.tables, ())
        self._support = DriverSupport(
            offers.tables.get(GpuArchitectures), offers.tables.get(DriverBranches)
        )

    def would_allow(self, limit: Limit, offer: Offer) -> str:
        """Say what changing one limit would allow."""
        if limit == "companions":
            lacking = self._offers.without_companions(offer, self._situation)
            return say(
                "{offer} would fit without {packages}.",
                offer=offer,
                packages=any_of(lacking or self._situation.companions),
            )
        return say(
            "{offer} would fit with {change}.", offer=offer, change=self._change(limit, offer)
        )

    def excludes(self, limits: Collection[Limit], offer: Offer) -> str:
        """Say which limits exclude an offer, and what to change."""
        if self.is_open(limits, offer):
            unknown = say(
                "Whether {offer} has a wheel for Python {python} is not in the tables: one was "
                "seen for Python {seen}, and {index} lists them all. {page} has the command.",
                offer=offer,
                python=self._situation.python,
                seen=usual_range(self._offers.pythons(offer)),
                index=self._offers.other_pythons(offer),
                page=WINDOWS_ON_ARM_PAGE,
            )
            rest = [limit for limit in limits if limit != "python"]
            return in_turn((unknown, *(self.excludes((limit,), offer) for limit in rest)))
        packages_too = "companions" in limits and self._need_another_python(offer)
        to_change = [limit for limit in limits if not (packages_too and limit == "python")]
        return say(
            "{offer} does not fit, because {reasons}. It would fit with {changes}.",
            offer=offer,
            reasons=listed([self._exclusion(limit, offer) for limit in limits]),
            changes=listed([self._change(limit, offer) for limit in to_change]),
        )

    def _need_another_python(self, offer: Offer) -> bool:
        """Whether each package without a release for an offer has one for another Python."""
        lacking = self._offers.without_companions(offer, self._situation)
        return bool(lacking) and all(
            self._offers.for_another_python(name, offer, self._situation) for name in lacking
        )

    def is_open(self, limits: Collection[Limit], offer: Offer) -> bool:
        """Return whether an offer may fit all the same: its wheels for other Pythons are unseen.

        A package that has no release for it makes nothing more certain about these wheels.
        """
        has_others = "python" in limits and bool(self._offers.other_pythons(offer))
        return has_others and set(limits) <= {"python", "companions"}

    def with_a_driver(self, limits: Collection[Limit], offer: Offer) -> str:
        """Say what a driver that supports the GPUs would allow, with other changes if needed."""
        release, cuda = self._situation.driver, self._situation.driver_cuda
        dropped = any(
            self._support.drives(card.capability, release=release, cuda=cuda) == "dropped"
            for card in self._situation.cards
        )
        driver = (
            say("that driver")
            if dropped
            else say(
                "driver {release} or newer",
                release=self._offers.oldest_driver(offer, self._situation),
            )
        )
        changes = [driver, *(self._change(limit, offer) for limit in limits)]
        return say("{offer} would fit with {change}.", offer=offer, change=listed(changes))

    def undriven(self) -> tuple[str, ...]:
        """Say which GPUs the driver does not support; empty if it is known to, or if unknown."""
        if self._situation.driver_serves:
            return ()
        cards = one_a_capability(self._situation.cards)
        undriven = tuple(sentence for card in cards if (sentence := self._undriven(card)))
        if undriven and not self._support.driving_all([card.capability for card in cards]):
            return self._by_no_branch(cards) or undriven
        return undriven

    def _by_no_branch(self, cards: list[Card]) -> tuple[str, ...]:
        """Say which GPUs no branch serves together; empty if one alone has none that is known."""
        lasts = [(last, card) for card in cards if (last := self._support.last([card.capability]))]
        firsts = [
            (first, card) for card in cards if (first := self._support.first(card.capability))
        ]
        (last, old), (first, new) = min(lasts, default=(0, None)), max(firsts, default=(0, None))
        if old is None or new is None or last >= first:
            return ()
        return (
            say(
                "No driver serves all of these GPUs: branch {last} is the last for {old}, and "
                "branch {first} the first for {new}.",
                last=last, old=old, first=first, new=new,
            ),
        )  # fmt: skip

    def _undriven(self, card: Card) -> str:
        drives = self._drives(card)
        if drives == "dropped":
            return say(
                "{driver} no longer supports {gpu}: branch {branch} is the last that does. Install "
                "a driver of that branch.",
                driver=driver_in_words(self._situation),
                gpu=card,
                branch=self._support.last([card.capability]),
            )
        if drives == "too-old":
            return say(
                "{driver} does not support {gpu} yet: branch {branch} is the first that does. "
                "Install a newer driver.",
                driver=driver_in_words(self._situation),
                gpu=card,
                branch=self._support.first(card.capability),
            )
        return self._doubtful(card) if drives == "not-known" else ""

    def _drives(self, card: Card) -> Drives | None:
        release, cuda = self._situation.driver, self._situation.driver_cuda
        return self._support.drives(card.capability, release=release, cuda=cuda)

    def _doubtful(self, card: Card) -> str:
        """Say that it is unknown whether so old a driver supports a GPU."""
        toolkit = ".".join(map(str, self._support.first_toolkit(card.capability) or ()))
        return say(
            "{driver} is not known to support {gpu}: it is older than CUDA {toolkit}, the first "
            "whose compiler knows this GPU. Install a newer driver.",
            driver=driver_in_words(self._situation),
            gpu=card,
            toolkit=toolkit,
        )

    def _exclusion(self, limit: Limit, offer: Offer) -> str:
        if limit == "python" and offer.channel != "pip":
            return say(
                "{channel} has no torch {torch} for Python {python}",
                channel=offer.channel,
                torch=offer.torch,
                python=self._situation.python,
            )
        if limit == "python" and self._offers.other_pythons(offer):
            return say(
                "no wheel of torch {torch} for Python {python} was seen",
                torch=offer.torch,
                python=self._situation.python,
            )
        if limit == "python":
            return say(
                "torch {torch} has no wheel for Python {python}",
                torch=offer.torch,
                python=self._situation.python,
            )
        if limit == "driver":
            return say(
                "{driver} cannot run builds for CUDA {cuda}",
                driver=driver_in_words(self._situation).within(),
                cuda=offer.cuda,
            )
        if limit == "glibc":
            return say(
                "glibc {glibc} of this system is older than {needed}",
                glibc=self._situation.glibc,
                needed=offer.glibc,
            )
        if limit == "companions":
            if lacking := self._offers.without_companions(offer, self._situation):
                return self._without(lacking, offer)
            return say(
                "the releases of {packages} for {offer} exclude each other",
                packages=listed(self._situation.companions),
                offer=offer,
            )
        return say(
            "--torch {asked} excludes torch {torch}",
            asked=self._situation.torch,
            torch=offer.torch,
        )

    def _without(self, packages: Collection[str], offer: Offer) -> str:
        """Say why there is no release of some packages: the GPU is too old for them, or another."""
        if offer.of_board:
            return say(
                "PyPI's wheels of {packages} for ARM are made for servers, not for the JetPack of "
                "this board",
                packages=listed([*packages]),
            )
        found = {name: self._packages.below(name, offer, self._situation) for name in packages}
        reasons: list[str] = [
            say(
                "{package} needs compute capability {capability} or newer, which {gpu} lacks",
                package=name, capability=below[0], gpu=below[1],
            )
            for name, below in found.items()
            if below is not None
        ]  # fmt: skip
        unknown: list[str] = []
        others = [name for name, below in found.items() if below is None]
        if elsewhere := [name for name in others if self._is_of_other_platforms(name, offer)]:
            reasons.append(
                say(
                    "the tables know no wheel of {packages} for {platform}",
                    packages=any_of(elsewhere),
                    platform=PLATFORMS.get(offer.platform, offer.platform),
                )
            )
        others = [name for name in others if name not in elsewhere]
        for name in others:
            if needed := self._oldest_glibc(name, offer):
                reasons.append(
                    say(
                        "{package} needs glibc {needed} or newer for {offer}, and this system has "
                        "{glibc}",
                        package=name, needed=needed, offer=offer, glibc=self._situation.glibc,
                    )
                )  # fmt: skip
            elif self._offers.for_another_python(name, offer, self._situation):
                reasons.append(
                    say(
                        "no release of {package} for {offer} is made for Python {python}",
                        package=name, offer=offer, python=self._situation.python,
                    )
                )  # fmt: skip
            else:
                unknown.append(name)
        if unknown:
            reasons.append(
                say(
                    "the tables have no release of {packages} for {offer}",
                    packages=any_of(unknown),
                    offer=offer,
                )
            )
        return listed(reasons)

    def _change(self, limit: Limit, offer: Offer) -> str:
        if limit == "python":
            return say("Python {python}", python=self._nearest_python(offer))
        if limit == "driver":
            needed = self._offers.oldest_driver(offer, self._situation)
            return say("driver {release} or newer", release=needed) if needed else _NEWER_DRIVER
        if limit == "glibc":
            return say("a system or container with glibc {glibc} or newer", glibc=offer.glibc)
        if limit == "companions":
            return self._other_packages(offer)
        return say("a --torch that matches it")

    def _other_packages(self, offer: Offer) -> str:
        """Return where packages are for which there is no wheel."""
        lacking = self._offers.without_companions(offer, self._situation)
        if offer.of_board:
            return say(
                "{packages} of Jetson AI Lab's index ({index}) or compiled on the board",
                packages=listed(lacking),
                index=offer.index or _INDEX_OF_BOARDS,
            )
        if lacking and all(
            self._is_of_other_platforms(name, offer) and self._packages.come_as_source(name)
            for name in lacking
        ):
            return say(
                "{packages} compiled from source, where that is possible",
                packages=listed(lacking),
            )
        if self._need_another_python(offer):
            return say("another Python")
        needs = [self._oldest_glibc(name, offer) for name in lacking]
        if needs and all(needs):
            newest = max(filter(None, needs), key=numbers)
            return say("a system or container with glibc {glibc} or newer", glibc=newest)
        return say("other packages")

    def _is_of_other_platforms(self, package: str, offer: Offer) -> bool:
        return offer.channel == "pip" and not self._packages.has_wheels_for(package, offer.platform)

    def _oldest_glibc(self, package: str, offer: Offer) -> str | None:
        """Return the C library that a wheel needs, None if that is not what keeps it away."""
        if offer.channel != "pip":
            return None
        return self._packages.oldest_glibc(package, offer, self._situation)

    def _nearest_python(self, offer: Offer) -> str:
        """Return the nearest Python with wheels, of the same kind if there is one."""
        pythons = self._offers.pythons(offer)
        wanted = self._situation.python or ""
        free_threaded = wanted.endswith("t")
        alike = [p for p in pythons if p.endswith("t") == free_threaded]
        have = capability_numbers(wanted.removesuffix("t")) or (0, 0)

        def distance(python: str) -> tuple[int, int]:
            major, minor = capability_numbers(python.removesuffix("t")) or (0, 0)
            return abs(major - have[0]), abs(minor - have[1])

        return min(alike or pythons, key=distance)


_CUDSS_PAGE = "https://developer.nvidia.com/cudss-downloads"
_BROUGHT_BY = {
    "libcudss.so.0": say("NVIDIA's cuDSS ({page})", page=_CUDSS_PAGE),
    "libmpi_cxx.so.20": say("libopenmpi-dev with apt-get"),
    "libopenblas.so.0": say("libopenblas-dev with apt-get"),
}
"""What brings a library that JetPack lacks."""


def lacking(offer: Offer) -> list[str]:
    """Say which libraries a wheel for boards needs that their JetPack does not bring."""
    return [
        say(
            "If torch then lacks {library}, install {package}.",
            library=library,
            package=_BROUGHT_BY.get(library, say("the package that has it")),
        )
        for library in offer.lacking
    ]
