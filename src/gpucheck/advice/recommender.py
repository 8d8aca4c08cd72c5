"""The PyTorch build that works on every GPU of a machine, and why; or why there is none."""

from collections.abc import Collection
from functools import lru_cache
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from gpucheck.advice.companions import Companion
from gpucheck.advice.exclusions import Exclusions
from gpucheck.advice.offers import (
    CHANNEL,
    LIMITS,
    Card,
    Channel,
    Limit,
    Offer,
    Offers,
    Situation,
    newest_first,
    one_a_capability,
    runs_on_glibc,
)
from gpucheck.advice.package_indexes import CondaOffers, names_its_build
from gpucheck.advice.reasons import Reasons
from gpucheck.language import listed, say
from gpucheck.tables import Tables
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.gpus import GpuProducts
from gpucheck.tables.jetson import Jetpacks
from gpucheck.tables.versions import SpecifierError, admitted, numbers

__all__ = ["Card", "Offer", "Recommendation", "Recommender", "Situation", "SpecifierError"]

_MOST_ALTERNATIVES = 4  # chosen: one a minor version; older ones are rarely wanted
_MOST_STEPS = 3  # chosen: each is an offer for an older driver, and the reader has to pick one
_TOLD: tuple[Limit, ...] = ("python", "driver", "glibc", "companions")
"""The limits of which it is said what more they would allow; the user knows ``--torch``."""


class ForDriver(Struct, frozen=True):
    """The best offer for a driver of this release or a newer one, up to that of the step before."""

    driver: str
    offer: Offer


class Recommendation(Struct, frozen=True, kw_only=True):
    """The best offer, None if nothing fits.

    ``reasons`` say why this one, or what excludes what. ``companions`` are the releases of the
    packages that were wished for. ``would_fit`` are the offers that a change
    would allow, in the order of the reasons that name it. ``driver_update`` is the newer release
    that a newer driver would allow, ``driver_needed`` the driver release that it requires.
    ``oldest_driver`` is the oldest driver release that runs the best offer. ``by_driver`` has what
    fits which driver, the newest first, where the driver is unknown. ``unheard_of``: the
    tables do not know a GPU. ``unseen``: a release may fit whose builds nobody has seen, or whose
    list of code is not confirmed. ``left_out`` says which GPUs hidden by a mask the best offer does
    not fit. ``alternatives`` are older releases that fit as well, the newest first. ``no_code``: no
    build of the channel has code for all GPUs, which some driver may serve together; ``elsewhere``
    is then what conda-forge has.
    """

    best: Offer | None
    reasons: tuple[str, ...]
    companions: tuple[Companion, ...] = ()
    notes: tuple[str, ...] = ()
    alternatives: tuple[Offer, ...] = ()
    would_fit: tuple[Offer, ...] = ()
    driver_update: Offer | None = None
    driver_needed: str | None = None
    oldest_driver: str | None = None
    by_driver: tuple[ForDriver, ...] = ()
    unheard_of: bool = False
    unseen: bool = False
    left_out: tuple[str, ...] = ()
    no_code: bool = False
    elsewhere: Offer | None = None


class Recommender:
    """Recommends builds from one set of tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def recommend(self, situation: Situation) -> Recommendation:
        """Return the newest build that fits, with reasons, or the reasons why none does.

        Raises:
            SpecifierError: ``situation.torch`` is not a specifier.
        """
        situation = self._on_board(situation)
        found = self._of_its_channel(situation)
        if not found.no_code or situation.channel == CHANNEL:
            return found
        # conda-forge compiles for more GPUs on ARM than PyTorch does.
        there = replace(situation, channel=CHANNEL, companions=())
        elsewhere = self._of_its_channel(there).best
        of_them = Reasons(self.offers(situation.platform, CHANNEL), there).at_conda_forge(elsewhere)
        return replace(found, reasons=(*found.reasons, *of_them), elsewhere=elsewhere)

    def _on_board(self, situation: Situation) -> Situation:
        """Return what a board's driver says: its CUDA and Linux for Tegra, and no desktop release.

        Its number is that of no desktop driver (580.00 on Thor), so it is compared with none.
        """
        products, jetpacks = self._tables.get(GpuProducts), self._tables.get(Jetpacks)
        release = situation.driver
        if not release or not situation.cards:
            return situation
        if not all(products.is_jetson(card.capability) for card in situation.cards):
            return situation
        row = jetpacks.of_driver(release)
        cuda = jetpacks.cuda_of_driver(release) or self._tables.get(DriverBranches).cuda_of(release)
        return replace(
            situation,
            driver=None,
            driver_cuda=situation.driver_cuda or cuda,
            l4t=situation.l4t or (row.l4t if row else None),
        )

    def _of_its_channel(self, situation: Situation) -> Recommendation:
        offers = self.offers(situation.platform, situation.channel)
        seen = replace(situation, hidden=())
        if not situation.hidden:
            return _Search(offers, seen).result()
        fits_all = _Search(offers, replace(seen, cards=seen.cards + situation.hidden)).result()
        if fits_all.best is not None:
            return fits_all
        fits_seen = _Search(offers, seen).result()
        if fits_seen.best is None:
            return fits_seen
        return replace(fits_seen, left_out=(_left_out(offers, fits_seen.best, situation.hidden),))

    def offers(self, platform: str, channel: Channel = "pip") -> Offers:
        """Return the offers for a platform: wheels, or the builds of conda-forge."""
        return _offers(self._tables, platform, channel)


@lru_cache(maxsize=16)  # the platforms in both channels: each fix asks for the same ones again
def _offers(tables: Tables, platform: str, channel: Channel) -> Offers:
    return (Offers if channel == "pip" else CondaOffers)(tables, platform)


class _Search:
    """Which offers meet which limits of one situation."""

    def __init__(self, offers: Offers, situation: Situation) -> None:
        self._offers = offers
        self._situation = situation
        self._reasons = Reasons(offers, situation)
        self._exclusions = Exclusions(offers, situation)
        self._all: Collection[Offer] = (
            {*offers.with_cuda(), *offers.for_board(situation.l4t)}
            if situation.cards
            else offers.without_cuda()
        )
        cuda = offers.cuda_for(situation)
        releases, build = admitted(situation.torch, {offer.torch for offer in self._all})
        self._meets: dict[Limit, frozenset[Offer]] = {
            "python": frozenset(o for o in self._all if offers.has_wheel_for(o, situation.python)),
            "driver": frozenset(
                o
                for o in self._all
                if not o.cuda or (o.cuda in cuda and offers.takes_driver(o, situation))
            ),
            "torch": frozenset(
                o for o in self._all if o.torch in releases and build in ("", o.build)
            ),
            "glibc": frozenset(o for o in self._all if runs_on_glibc(o, situation.glibc)),
            "companions": frozenset(
                o
                for o in self._all
                if not situation.companions or offers.companions(o, situation) is not None
            ),
        }

    def result(self) -> Recommendation:
        cards = self._situation.cards
        if not self._all:
            return Recommendation(best=None, reasons=(self._reasons.no_builds(),))
        if not self._meets["torch"]:
            newest = newest_first(self._all)[0].torch
            return Recommendation(
                best=None,
                reasons=(self._reasons.none_admitted(newest),),
                unseen=bool(self._reasons.unseen()),
            )
        if unheard_of := self._reasons.unheard_of():
            return Recommendation(best=None, reasons=unheard_of, unheard_of=True)
        runnable = self._with_code(cards)
        if not runnable:
            if jetsons := self._reasons.jetsons():
                return Recommendation(best=None, reasons=jetsons)
            return self._no_code()
        undriven = self._exclusions.undriven()
        if undriven:
            return self._with_another_driver(undriven, runnable)
        fitting = self._sorted(self._fitting(runnable))
        if not fitting:
            return self._nothing(runnable)
        return self._something(fitting, runnable)

    def _with_code(self, cards: Collection[Card]) -> frozenset[Offer]:
        """Return the offers with code for all of these GPUs."""
        found = frozenset(self._all)
        unified = self._offers.is_unified(self._situation)
        for card in cards:
            found &= self._offers.with_code_for(card.capability, unified=unified)
        return found

    def _may_have_code(self, offer: Offer) -> bool:
        """Whether the tables do not exclude that a build has code for all GPUs."""
        cards = self._situation.cards
        return all(self._offers.may_have_code(offer, card.capability) for card in cards)

    def _fitting(
        self, among: frozenset[Offer], ignored: Collection[Limit] = ()
    ) -> frozenset[Offer]:
        """Return the offers that meet every limit except those ignored."""
        for limit in LIMITS:
            if limit not in ignored:
                among &= self._meets[limit]
        return among

    def _sorted(self, offers: Collection[Offer]) -> list[Offer]:
        """Return offers in order of preference.

        The other packages of PyPI are compiled and tested beside the torch of PyPI.
        """
        return newest_first(offers, default_first=bool(self._situation.companions))

    def _no_code(self) -> Recommendation:
        """Tell which GPU no build supports, or that the GPUs have no build in common."""
        cards = self._situation.cards
        lone = [card for card in cards if not self._with_code([card])]
        if lone:
            reasons = tuple(self._reasons.no_code(card) for card in lone)
            return Recommendation(best=None, reasons=reasons, no_code=True)
        no_code = not self._reasons.need_other_modules()  # else no build helps
        return Recommendation(best=None, reasons=self._reasons.share_none(), no_code=no_code)

    def _something(self, fitting: list[Offer], runnable: frozenset[Offer]) -> Recommendation:
        best = fitting[0]
        reasons = list(self._reasons.fits(best))
        newest = newest_first(self._all)[0]
        if best.of_board:
            reasons += self._reasons.newer_jetpack()
        elif _newer(newest, best) and newest.torch not in {offer.torch for offer in runnable}:
            reasons.append(self._reasons.code_ends(newest_first(runnable)[0], newest))
        reasons += self._reasons.unseen(best)
        reasons += self._reasons.unannounced(fitting, best)
        update, needed = None, None
        for limit in _TOLD:
            freed = self._freed(runnable, (limit,))
            if freed is None or not _newer(freed, best):
                continue
            reasons.append(self._exclusions.would_allow(limit, freed))
            if limit == "driver":
                update, needed = freed, self._offers.oldest_driver(freed, self._situation)
        return Recommendation(
            best=best,
            companions=self._offers.companions(best, self._situation) or (),
            reasons=tuple(reasons),
            notes=self._reasons.caveats(best),
            alternatives=_one_a_minor(fitting)[:_MOST_ALTERNATIVES],
            driver_update=update,
            driver_needed=needed,
            oldest_driver=self._offers.oldest_driver(best, self._situation) if best.cuda else None,
            by_driver=self._by_driver(fitting),
        )

    def _by_driver(self, fitting: list[Offer]) -> tuple[ForDriver, ...]:
        situation = self._situation
        if not situation.cards or situation.driver or situation.driver_cuda:
            return ()
        steps: list[ForDriver] = []
        for offer in fitting:
            if names_its_build(offer.torch) and not names_its_build(fitting[0].torch):
                break  # nobody who asks for the newest has a driver for releases of 2022 and before
            needed = self._offers.oldest_driver(offer, self._situation)
            if needed and (not steps or numbers(needed) < numbers(steps[-1].driver)):
                steps.append(ForDriver(needed, offer))
        return tuple(steps[:_MOST_STEPS])

    def _with_another_driver(
        self, undriven: tuple[str, ...], runnable: frozenset[Offer]
    ) -> Recommendation:
        """Return what a driver for the GPUs would allow, with the fewest other changes."""
        others = [limit for limit in LIMITS if limit != "driver"]
        for count in range(len(others) + 1):
            for limits in combinations(others, count):
                freed = self._freed(runnable, ("driver", *limits))
                if freed is not None:
                    then = self._exclusions.with_a_driver(limits, freed)
                    return Recommendation(best=None, reasons=(*undriven, then), would_fit=(freed,))
        return Recommendation(best=None, reasons=undriven)

    def _nothing(self, runnable: frozenset[Offer]) -> Recommendation:
        """Find the fewest limits that exclude everything, and what each change would allow."""
        for count in range(1, len(LIMITS) + 1):
            changes = [
                (limits, freed)
                for limits in combinations(LIMITS, count)
                if (freed := self._freed(runnable, limits)) is not None
            ]
            if changes:
                reasons = [
                    self._exclusions.excludes(limits, self._telling(runnable, limits) or freed)
                    for limits, freed in changes
                ]
                newest, overall = newest_first(runnable)[0], newest_first(self._all)[0]
                unsure: frozenset[Offer] = frozenset()
                if not runnable & self._meets["torch"]:
                    unsure = frozenset(filter(self._may_have_code, self._meets["torch"]))
                    reasons.insert(0, self._reasons.no_code_admitted(unsure))
                elif newest.of_board:
                    reasons += self._reasons.newer_jetpack()
                elif _newer(overall, newest):
                    reasons.insert(0, self._reasons.code_ends(newest, overall))
                older = self._reasons.older() if ("driver",) in dict(changes) else ()
                would = tuple(freed for _limits, freed in changes)
                unseen = self._reasons.unseen()
                is_open = any(self._exclusions.is_open(*change) for change in changes)
                is_open = is_open or bool(self._fitting(unsure))
                return Recommendation(
                    best=None,
                    reasons=(*unseen, *reasons, *older),
                    would_fit=would,
                    unseen=bool(unseen or older) or is_open,
                )
        jetsons = self._reasons.jetsons()
        return Recommendation(best=None, reasons=jetsons or (self._reasons.no_builds(),))

    def _telling(self, runnable: frozenset[Offer], limits: Collection[Limit]) -> Offer | None:
        """Return the newest offer for which there is each package, so that they exclude each other.

        None if that is not why an offer does not fit.
        """
        if tuple(limits) != ("companions",):
            return None
        found = newest_first(self._fitting(runnable, ignored=limits), default_first=True)
        lacking = self._offers.without_companions
        return next((offer for offer in found if not lacking(offer, self._situation)), None)

    def _freed(self, runnable: frozenset[Offer], limits: Collection[Limit]) -> Offer | None:
        """Return the best offer once these limits are changed, None if that cannot help."""
        found = self._fitting(runnable, ignored=limits)
        if "driver" in limits and self._situation.cards:
            # If no driver supports the GPUs, changing the driver is not possible.
            found = frozenset(
                o for o in found if self._offers.oldest_driver(o, self._situation) is not None
            )
        best = self._sorted(found)
        if "driver" not in limits or not best:
            return next(iter(best), None)
        # The smallest step that brings this torch: not everybody may install a new branch.
        alike = [offer for offer in best if _same_but_cuda(offer, best[0])]
        return min(alike, key=lambda o: numbers(self._needed(o) or "0"))

    def _needed(self, offer: Offer) -> str | None:
        return self._offers.oldest_driver(offer, self._situation)


def _newer(left: Offer, right: Offer) -> bool:
    return numbers(left.torch) > numbers(right.torch)


def _same_but_cuda(left: Offer, right: Offer) -> bool:
    """Whether two offers are the same release, and as sure as each other."""
    return all(
        getattr(left, name) == getattr(right, name)
        for name in ("torch", "announced", "confirmed", "experimental")
    )


def _one_a_minor(fitting: list[Offer]) -> tuple[Offer, ...]:
    """Return the best offer of each older minor release, the newest first."""
    found: dict[tuple[int, ...], Offer] = {}
    for offer in fitting:
        found.setdefault(numbers(offer.torch)[:2], offer)
    best = numbers(fitting[0].torch)
    return tuple(offer for minor, offer in found.items() if minor < best[:2])


def _left_out(offers: Offers, best: Offer, hidden: Collection[Card]) -> str:
    """Say which of the hidden GPUs an offer leaves out because no build fits all GPUs."""
    without = [card for card in hidden if best not in offers.with_code_for(card.capability)]
    return say(
        "No build fits all GPUs of this machine: this one leaves out {gpus}, which "
        "CUDA_VISIBLE_DEVICES hides.",
        gpus=listed([str(card) for card in one_a_capability(without or hidden)]),
    )
