"""The sentences of a recommendation: why this build, what excludes what, what would help."""

from collections.abc import Collection

from gpucheck.advice.offers import Card, Limit, Offer, Offers, Situation, newest_first
from gpucheck.tables.driver_branches import DriverBranches
from gpucheck.tables.driver_support import DriverSupport, Drives
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.gpu_products import GpuProducts
from gpucheck.tables.versions import capability_numbers, numbers

_PLATFORMS = {
    "linux_x86_64": "Linux on x86_64",
    "linux_aarch64": "Linux on aarch64",
    "windows": "Windows",
    "windows_aarch64": "Windows on aarch64",
}


class Reasons:
    """Describes the limits of one situation in words."""

    def __init__(self, offers: Offers, situation: Situation) -> None:
        self._offers = offers
        self._situation = situation
        self._architectures = offers.tables.get(GpuArchitectures)
        self._branches = offers.tables.get(DriverBranches)
        self._support = DriverSupport(self._architectures, self._branches)

    def no_builds(self) -> str:
        """Say that PyTorch publishes nothing for the platform."""
        what = "CUDA builds" if self._situation.cards else "builds"
        platform = _PLATFORMS.get(self._situation.platform, self._situation.platform)
        return f"The tables know no PyTorch {what} for {platform}."

    def no_code(self, card: Card) -> str:
        """Say that no build supports a GPU."""
        architecture = self._architectures.architecture(card.capability)
        platform = _PLATFORMS.get(self._situation.platform, self._situation.platform)
        return f"No build for {platform} is known to have code for {card}, of {architecture}."

    def unheard_of(self) -> tuple[str, ...]:
        """Say which GPUs have a compute capability that the tables do not know."""
        return tuple(
            f"The tables (of {self._offers.tables.date}) do not know the capability of {card}."
            for card in _one_a_capability(self._situation.cards)
            if not self._architectures.knows(card.capability)
        )

    def jetsons(self) -> tuple[str, ...]:
        """Say which GPUs are on Jetson boards whose PyTorch comes with their JetPack.

        The newer boards (Thor) take the builds for ARM servers, if these have code for them.
        """
        products = self._offers.tables.get(GpuProducts)
        return tuple(
            f"{card} is a Jetson, whose PyTorch comes with its JetPack from NVIDIA."
            for card in _one_a_capability(self._situation.cards)
            if products.is_jetson(card.capability)
            and not self._offers.with_code_for(card.capability)
        )

    def none_admitted(self, newest: str) -> str:
        """Say that no release matches the request."""
        asked = self._situation.torch
        return f"--torch {asked} admits no release of the tables, whose newest is {newest}."

    def no_code_admitted(self) -> str:
        """Say that no release that matches the request has code for the GPUs."""
        cards = _listed([str(card) for card in _one_a_capability(self._situation.cards)])
        return f"No build that --torch {self._situation.torch} admits has code for {cards}."

    def share_none(self) -> tuple[str, ...]:
        """Say that the GPUs have no build in common, and what each of them needs."""
        cards = _one_a_capability(self._situation.cards)
        first = f"{_listed([str(card) for card in cards])} share no build of PyTorch:"
        return (
            first,
            *(f"{card} needs {self._range(card)}." for card in cards),
            "Make one environment for each, and choose the GPU with CUDA_VISIBLE_DEVICES.",
        )

    def undriven(self) -> tuple[str, ...]:
        """Say which GPUs the driver does not support; empty if it is known to, or if unknown."""
        if self._situation.driver_serves:
            return ()
        return tuple(
            sentence
            for card in _one_a_capability(self._situation.cards)
            if (sentence := self._undriven(card))
        )

    def fits(self, offer: Offer) -> tuple[str, ...]:
        """Say why an offer fits."""
        found = []
        situation = self._situation
        if situation.cards:
            cards = [str(card) for card in _one_a_capability(situation.cards)]
            found.append(f"It has code for {_listed(cards)}.")
        else:
            found.append("There is no NVIDIA GPU: this is the build for the CPU.")
        if offer.cuda and self._has_driver():
            oldest = self._oldest(offer)
            needs = f", which need {oldest} or newer" if oldest else ""
            found.append(f"{self._driver()} runs builds for CUDA {offer.cuda}{needs}.")
        if situation.python:
            found.append(f"It has wheels for Python {situation.python}.")
        return tuple(found)

    def caveats(self, offer: Offer) -> tuple[str, ...]:
        """Say what is not certain about an offer."""
        found = []
        if not offer.confirmed:
            why = f": {offer.note}" if offer.note else ""
            found.append(f"The list of GPU code in this build is not fully confirmed{why}.")
        if not offer.announced:
            found.append("PyTorch published this build without announcing it.")
        release = self._situation.driver
        if release is not None and not self._branches.knows(release):
            found.append(f"Driver {release} is newer than the tables.")
        return tuple(found)

    def code_ends(self, last: Offer, newest: Offer) -> str:
        """Say where the code for the GPUs ends."""
        cards = _listed([str(card) for card in _one_a_capability(self._situation.cards)])
        verb = "needs" if len(_one_a_capability(self._situation.cards)) == 1 else "need"
        return (
            f"{cards} {verb} a {last.build} build, torch <= {last.torch}: none of torch "
            f"{newest.torch} is known to have the code."
        )

    def would_allow(self, limit: Limit, offer: Offer) -> str:
        """Say what changing one limit would allow."""
        return _sentence(f"{self._change(limit, offer)} would allow {offer}")

    def excludes(self, limits: Collection[Limit], offer: Offer) -> str:
        """Say which limits exclude an offer, and what to change."""
        why = " and ".join(self._exclusion(limit, offer) for limit in limits)
        how = " and ".join(self._change(limit, offer) for limit in limits)
        return _sentence(f"{why}: {how} would allow {offer}")

    def with_a_driver(self, limits: Collection[Limit], offer: Offer) -> str:
        """Say what a driver that supports the GPUs would allow, with other changes if needed."""
        dropped = any(self._drives(card) == "dropped" for card in self._situation.cards)
        driver = "that driver" if dropped else f"driver {self.driver_for(offer)} or newer"
        changes = [driver, *(self._change(limit, offer) for limit in limits)]
        return f"With {' and '.join(changes)} {offer} would fit."

    def driver_for(self, offer: Offer) -> str | None:
        """Return the oldest driver that runs an offer on these GPUs."""
        return self._offers.oldest_driver(offer, self._situation)

    def _range(self, card: Card) -> str:
        offers = newest_first(self._offers.with_code_for(card.capability))
        releases = sorted({offer.torch for offer in offers}, key=numbers)
        builds = sorted({offer.build for offer in offers})
        one = len(releases) == 1
        which = releases[0] if one else f"{releases[0]} to {releases[-1]}"
        return f"torch {which}, built as {' or '.join(builds)}"

    def _undriven(self, card: Card) -> str:
        drives = self._drives(card)
        if drives == "dropped":
            return (
                f"{self._driver()} no longer drives {card}: branch "
                f"{self._support.last([card.capability])} is the last that does. "
                "Install a driver of that branch."
            )
        if drives == "too-old":
            return (
                f"{self._driver()} does not drive {card} yet: branch "
                f"{self._support.first(card.capability)} is the first that does. "
                "Install a newer driver."
            )
        return self._doubtful(card) if drives == "not-known" else ""

    def _drives(self, card: Card) -> Drives | None:
        release, cuda = self._situation.driver, self._situation.driver_cuda
        return self._support.drives(card.capability, release=release, cuda=cuda)

    def _doubtful(self, card: Card) -> str:
        """Say that it is unknown whether so old a driver supports a GPU."""
        toolkit = ".".join(map(str, self._support.first_toolkit(card.capability) or ()))
        return (
            f"{self._driver()} is not known to drive {card}: it is older than CUDA {toolkit}, the "
            "first whose compiler knows this GPU. Install a newer driver."
        )

    def _exclusion(self, limit: Limit, offer: Offer) -> str:
        if limit == "python":
            return f"Python {self._situation.python} has no wheel of torch {offer.torch}"
        if limit == "driver":
            return f"{self._driver()} does not run builds for CUDA {offer.cuda}"
        if limit == "glibc":
            return f"this system's glibc {self._situation.glibc} is older than {offer.glibc}"
        return f"--torch {self._situation.torch} excludes torch {offer.torch}"

    def _change(self, limit: Limit, offer: Offer) -> str:
        if limit == "python":
            return f"Python {self._nearest_python(offer)}"
        if limit == "driver":
            needed = self.driver_for(offer)
            return f"driver {needed} or newer" if needed else "a newer driver"
        if limit == "glibc":
            return f"a system or container with glibc {offer.glibc} or newer"
        return "a --torch that admits it"

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

    def _oldest(self, offer: Offer) -> str | None:
        return self._offers.least_driver(offer, self._situation)

    def _has_driver(self) -> bool:
        return self._situation.driver is not None or self._situation.driver_cuda is not None

    def _driver(self) -> str:
        release, cuda = self._situation.driver, self._situation.driver_cuda
        if release is None:
            return f"The driver (CUDA {cuda})"
        return f"Driver {release} (CUDA {cuda})" if cuda else f"Driver {release}"


def left_out(offers: Offers, best: Offer, hidden: Collection[Card]) -> str:
    """Say which of the hidden GPUs an offer leaves out because no build fits all GPUs."""
    without = [card for card in hidden if best not in offers.with_code_for(card.capability)]
    cards = _listed([str(card) for card in _one_a_capability(without or hidden)])
    return (
        f"No build fits all GPUs of this machine: this one leaves out {cards}, which "
        "CUDA_VISIBLE_DEVICES hides."
    )


def _one_a_capability(cards: Collection[Card]) -> list[Card]:
    """Return the first GPU of each compute capability."""
    first: dict[str, Card] = {}
    for card in cards:
        first.setdefault(card.capability, card)
    return list(first.values())


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
