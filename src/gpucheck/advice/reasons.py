"""The sentences of a recommendation: why this build, what excludes what, what would help."""

from collections.abc import Collection

from msgspec.structs import replace

from gpucheck.advice.exclusions import PLATFORMS, driver_in_words, lacking
from gpucheck.advice.offers import (
    CHANNEL,
    Card,
    Offer,
    Offers,
    Situation,
    newest_first,
    one_a_capability,
)
from gpucheck.language import any_of, in_series, in_turn, listed, phrase, say, say_many
from gpucheck.tables.base import HOW_TO_RENEW
from gpucheck.tables.companions import Extensions
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts
from gpucheck.tables.jetson import Jetpacks
from gpucheck.tables.versions import admitted, numbers, parse, released

_NO_MODULES = say(
    "No driver serves all of these GPUs on Linux: some need the open kernel modules, others the "
    "proprietary ones, and only one kind can be loaded."
)
_PREVIOUS_PAGE = "https://pytorch.org/get-started/previous-versions/"
_UNIFIED_PAGE = "https://github.com/pytorch/pytorch/pull/186285"


class Reasons:
    """Describes the limits of one situation in words."""

    def __init__(self, offers: Offers, situation: Situation) -> None:
        self._offers = offers
        self._situation = situation
        self._architectures = offers.tables.get(GpuArchitectures)
        self._branches = offers.tables.get(DriverBranches)

    def no_builds(self) -> str:
        """Say that PyTorch publishes nothing for the platform."""
        platform = PLATFORMS.get(self._situation.platform, self._situation.platform)
        if self._situation.cards:
            return say(
                "The tables know no CUDA build of PyTorch for {platform}.", platform=platform
            )
        return say("The tables know no build of PyTorch for {platform}.", platform=platform)

    def no_code(self, card: Card) -> str:
        """Say that no build supports a GPU."""
        words = {
            "oldest": self._offers.oldest(),
            "platform": PLATFORMS.get(self._situation.platform, self._situation.platform),
            "gpu": card,
            "architecture": self._architectures.architecture(card.capability),
        }
        if self._situation.channel == CHANNEL:
            return say(
                "No build of conda-forge's PyTorch {oldest} or newer for {platform} is known to "
                "have code for {gpu}, architecture {architecture}.",
                **words,
            )
        return say(
            "No wheel of PyTorch {oldest} or newer for {platform} is known to have code for {gpu}, "
            "architecture {architecture}.",
            **words,
        )

    def at_conda_forge(self, found: Offer | None) -> tuple[str, ...]:
        """Say what conda-forge has for GPUs for which there is no wheel; empty if nothing at all.

        Args:
            found: its best offer for this situation, which is of that channel.
        """
        gpus, oldest = self._cards(), self._offers.oldest()
        if found is not None and found.requires:
            return (
                say("conda-forge has a build with code for {gpus}: {offer}, which needs {packages} "
                    "(command: gpucheck recommend --tool conda).",
                    gpus=gpus, offer=found, packages=listed(found.requires)),
            )  # fmt: skip
        if found is not None:
            return (
                say("conda-forge has a build with code for {gpus}: {offer}.",
                    gpus=gpus, offer=found),
            )  # fmt: skip
        if oldest is None:
            return ()
        cards = self._situation.cards
        if frozenset.intersection(*(self._offers.with_code_for(card.capability) for card in cards)):
            return (
                say("conda-forge has builds with code for {gpus}, but none that fits the driver, "
                    "the Python and the system.", gpus=gpus),
            )  # fmt: skip
        return (
            say("No build of conda-forge, from PyTorch {oldest} on, is known to run on it either.",
                oldest=oldest),
        )  # fmt: skip

    def unheard_of(self) -> tuple[str, ...]:
        """Say which GPUs have a compute capability that the tables do not know."""
        return tuple(
            say(
                "The tables {version} do not know the compute capability of {gpu}.",
                version=self._offers.tables.version,
                gpu=card,
            )
            for card in one_a_capability(self._situation.cards)
            if not self._architectures.knows(card.capability)
        )

    def jetsons(self) -> tuple[str, ...]:
        """Say which GPUs are on Jetson boards, and what their JetPack has to be.

        The boards of JetPack 7 take the builds for ARM servers, if these have code for them.
        """
        products = self._offers.tables.get(GpuProducts)
        boards = [
            card
            for card in one_a_capability(self._situation.cards)
            if products.is_jetson(card.capability)
        ]
        found = [
            say("{gpu} is a Jetson: NVIDIA publishes its PyTorch with JetPack.", gpu=card)
            for card in boards
        ]
        return (*found, *self.newer_jetpack()) if found else ()

    def newer_jetpack(self) -> tuple[str, ...]:
        """Say which JetPack would allow the builds for ARM servers; empty if none would."""
        rows = sorted(self._offers.tables.get(Jetpacks).rows, key=lambda row: parse(row.l4t) or ())
        row = next((row for row in rows if row.cuda and self._serve(row.cuda)), None)
        if row is None:
            return ()
        jetpack = row.jetpack.partition(" ")[0]
        if self._situation.l4t is None:
            return (
                say(
                    "Which one depends on its JetPack (--jetpack): from {jetpack} on the board "
                    "takes PyTorch's builds for ARM servers.",
                    jetpack=jetpack,
                ),
            )
        return (
            say(
                "With JetPack {jetpack} or newer the board would take PyTorch's builds for ARM "
                "servers.",
                jetpack=jetpack,
            ),
        )

    def _serve(self, cuda: str) -> bool:
        """Return whether boards with this CUDA run a build for ARM servers with code for them."""
        situation = replace(self._situation, driver=None, driver_cuda=cuda)
        unified, runs = self._offers.is_unified(situation), self._offers.cuda_for(situation)
        return all(
            any(
                not offer.of_board and offer.cuda in runs
                for offer in self._offers.with_code_for(card.capability, unified=unified)
            )
            for card in situation.cards
        )

    def none_admitted(self, newest: str) -> str:
        """Say that no release matches the request, or that nobody has seen the builds of it.

        Args:
            newest: the newest release that is offered.
        """
        asked = self._situation.torch
        if self._situation.channel == "pip" and self._situation.cards:
            unseen = self._offers.unseen()
            if found := admitted(asked, unseen)[0]:
                return self._not_seen(max(found, key=numbers))
            newest = max((newest, *unseen), key=numbers)
        if found := admitted(asked, self._offers.releases())[0]:
            return self._not_built(max(found, key=numbers))
        none = say(
            "--torch {asked} matches no release in the tables, which have {oldest} to {newest}.",
            asked=asked,
            oldest=min(self._offers.releases(), key=numbers),
            newest=newest,
        )
        wanted = released(asked.strip().lstrip("=~> ").partition("+")[0])
        if wanted is None or wanted <= numbers(newest)[: len(wanted)]:
            return none
        return in_turn((none, say("{how}.", how=HOW_TO_RENEW)))

    def _not_built(self, torch: str) -> str:
        """Say which build of a release there is not: the one that was named, or any for CUDA."""
        asked = self._situation.torch
        platform = PLATFORMS.get(self._situation.platform, self._situation.platform)
        if build := asked.partition("+")[2]:
            return say(
                "The tables have no build {build} of torch {torch} for {platform}.",
                build=build, torch=torch, platform=platform,
            )  # fmt: skip
        if not self._situation.cards:
            return say(
                "The tables have no wheel of torch {torch} for {platform}.",
                torch=torch, platform=platform,
            )  # fmt: skip
        return say(
            "The tables have no CUDA build of torch {torch} for {platform}.",
            torch=torch, platform=platform,
        )  # fmt: skip

    def no_code_admitted(self, unsure: Collection[Offer]) -> str:
        """Say that no build that matches the request has code for the GPUs, or is known to.

        Args:
            unsure: those that match it and may have code, as their lists are not confirmed.
        """
        words = {"asked": self._situation.torch, "gpus": self._cards()}
        if unsure:
            return say(
                "No build that matches --torch {asked} is known to have code for {gpus}: the list "
                "of GPU code in {offer} is not fully confirmed.",
                offer=newest_first(unsure)[0],
                **words,
            )
        return say("No build that matches --torch {asked} has code for {gpus}.", **words)

    def share_none(self) -> tuple[str, ...]:
        """Say that the GPUs have no build in common, and what each of them needs."""
        cards = one_a_capability(self._situation.cards)
        return (
            say("No build of PyTorch has code for all of {gpus}.", gpus=self._cards()),
            *map(self._needs, cards),
            _NO_MODULES
            if self.need_other_modules()
            else say(
                "Create one environment for each, and choose the GPU with CUDA_VISIBLE_DEVICES."
            ),
        )

    def fits(self, offer: Offer) -> tuple[str, ...]:
        """Say why an offer fits."""
        found: list[str] = []
        situation = self._situation
        if situation.cards:
            found.append(say("It has code for {gpus}.", gpus=self._cards()))
        else:
            found.append(say("There is no NVIDIA GPU: this is the build for the CPU."))
        if offer.cuda and self._has_driver():
            found.append(self._runs(offer))
        if situation.python and offer.channel == "pip":
            found.append(say("It has wheels for Python {python}.", python=situation.python))
        elif situation.python:
            found.append(
                say(
                    "{channel} has it for Python {python}.",
                    channel=offer.channel,
                    python=situation.python,
                )
            )
        if chosen := self._offers.companions(offer, situation):
            found.append(
                say(
                    "These releases fit it: {packages}.",
                    packages=in_series([str(companion) for companion in chosen]),
                )
            )
        return tuple(found)

    def _runs(self, offer: Offer) -> str:
        """Say that the driver runs builds of the CUDA of an offer."""
        if oldest := self._oldest(offer):
            return say(
                "{driver} runs builds for CUDA {cuda}, which need {oldest} or newer.",
                driver=driver_in_words(self._situation),
                cuda=offer.cuda,
                oldest=oldest,
            )
        return say(
            "{driver} runs builds for CUDA {cuda}.",
            driver=driver_in_words(self._situation),
            cuda=offer.cuda,
        )

    def caveats(self, offer: Offer) -> tuple[str, ...]:
        """Say what is not certain about an offer."""
        found: list[str] = []
        if not offer.confirmed:
            found.append(_unconfirmed(phrase(offer.note)))
        if not offer.announced:
            found.append(say("PyTorch published this build without announcing it."))
        release = self._situation.driver
        if release is not None and not self._branches.knows(release):
            found.append(say("Driver {release} is newer than the tables.", release=release))
        found += [
            say(
                "{gpu} is not in PyTorch's list of this build. By torch's own rule ({page}) it "
                "runs code for ARM servers from CUDA 13.2 on, and users of JetPack 7.2.1 say that "
                "it does: likely, not certain.",
                gpu=card,
                page=_UNIFIED_PAGE,
            )
            for card in one_a_capability(self._situation.cards)
            if offer.cuda and offer not in self._offers.with_code_for(card.capability)
        ]
        found += lacking(offer)
        found += self._without_own_code(offer)
        if self.need_other_modules():
            found.append(_NO_MODULES)
        return tuple(found)

    def _without_own_code(self, offer: Offer) -> list[str]:
        """Say which packages have no kernels of their own for a GPU, and what they do there."""
        table = self._offers.tables.get(Extensions)
        found: list[str] = []
        for chosen in self._offers.companions(offer, self._situation) or ():
            row = table.release(chosen.package, chosen.version)
            below = [
                str(card)
                for card in one_a_capability(self._situation.cards)
                if table.does_without_own_code(chosen.package, chosen.version, card.capability)
            ]
            if row is not None and below:
                found.append(
                    say(
                        "{package} has kernels of its own for compute capability {first} or newer: "
                        "on {gpus} its attention is PyTorch's, and its other kernels do not run.",
                        package=str(chosen), first=row.own_code_from, gpus=listed(below),
                    )
                )  # fmt: skip
        return found

    def unseen(self, than: Offer | None = None) -> tuple[str, ...]:
        """Say which release is not offered because nobody has seen its builds.

        Args:
            than: what is offered, which it has to be newer than; None for one that would fit.
        """
        situation = self._situation
        if not situation.cards or situation.channel != "pip" or (than and situation.torch):
            return ()
        if than is not None and than.of_board:
            return ()
        found = [
            torch
            for torch in admitted(situation.torch, self._offers.unseen())[0]
            if (
                numbers(torch) > numbers(than.torch)
                if than is not None
                else self._offers.may_fit(torch, situation)
            )
        ]
        return (self._not_seen(max(found, key=numbers)),) if found else ()

    def unannounced(self, fitting: Collection[Offer], best: Offer) -> tuple[str, ...]:
        """Say which newer release fits in a build that PyTorch does not announce."""
        newer = [offer for offer in fitting if numbers(offer.torch) > numbers(best.torch)]
        if not best.announced or not newer:
            return ()
        newest = newest_first(newer)[0]
        return (
            say(
                "{offer} fits as well (--torch {torch}), but PyTorch published that build without "
                "announcing it.",
                offer=newest,
                torch=newest.torch,
            ),
        )

    def older(self) -> tuple[str, ...]:
        """Say that a release older than the tables may run with this driver; empty if none can."""
        situation, offers = self._situation, self._offers
        oldest = min(offers.releases(), key=numbers)
        first = [o for o in offers.with_cuda() if o.torch == oldest]
        runnable = frozenset(first).intersection(
            *(offers.with_code_for(card.capability) for card in situation.cards)
        )
        asked = situation.torch or situation.channel == CHANNEL or not situation.cards
        if asked or not any(offers.has_wheel_for(o, situation.python) for o in runnable):
            return ()
        return (
            say(
                "The tables begin with torch {oldest}. An older release may run with this driver: "
                "{page} has the commands.",
                oldest=oldest,
                page=_PREVIOUS_PAGE,
            ),
        )

    def _not_seen(self, torch: str) -> str:
        return say(
            "torch {torch} is not offered: whether its CUDA builds for {platform} are on "
            "PyTorch's index was not seen.",
            torch=torch,
            platform=PLATFORMS.get(self._situation.platform, self._situation.platform),
        )

    def need_other_modules(self) -> bool:
        """Return whether no kernel modules support all GPUs, unless a driver serves them here."""
        situation = self._situation
        on_windows = situation.driver_os == "windows" or situation.platform.startswith("windows")
        named = ((card.capability, card.label) for card in situation.cards)
        return not (on_windows or situation.driver_serves) and self._architectures.share_no_modules(
            named
        )

    def code_ends(self, last: Offer, newest: Offer) -> str:
        """Say where the code for the GPUs ends."""
        return say_many(
            len(one_a_capability(self._situation.cards)),
            "{gpus} needs a {build} build of torch {last} or older: no build of torch {newest} is "
            "known to have code for it.",
            "{gpus} need a {build} build of torch {last} or older: no build of torch {newest} is "
            "known to have code for them.",
            gpus=self._cards(),
            build=last.build,
            last=last.torch,
            newest=newest.torch,
        )

    def _needs(self, card: Card) -> str:
        """Say which releases have code for a GPU."""
        offers = newest_first(self._offers.with_code_for(card.capability))
        releases = sorted({offer.torch for offer in offers}, key=numbers)
        by_cuda = sorted(offers, key=lambda offer: parse(offer.cuda) or ())
        builds = list(dict.fromkeys(offer.build for offer in by_cuda))
        if len(releases) == 1:
            return say(
                "{gpu} needs torch {release}, built as {builds}.",
                gpu=card,
                release=releases[0],
                builds=any_of(builds),
            )
        return say(
            "{gpu} needs torch {first} to {last}, built as {builds}.",
            gpu=card,
            first=releases[0],
            last=releases[-1],
            builds=any_of(builds),
        )

    def _oldest(self, offer: Offer) -> str | None:
        return self._offers.least_driver(offer, self._situation)

    def _has_driver(self) -> bool:
        return self._situation.driver is not None or self._situation.driver_cuda is not None

    def _cards(self) -> str:
        """Return the GPUs, one of each compute capability."""
        return listed([str(card) for card in one_a_capability(self._situation.cards)])


def _unconfirmed(note: str) -> str:
    if note:
        return say("The list of GPU code in this build is not fully confirmed: {note}.", note=note)
    return say("The list of GPU code in this build is not fully confirmed.")
