"""The machine that ``gpucheck recommend`` is asked about: what was described, what is missing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gpucheck.describe.recommend_options import RecommendRequest, has_musl
from gpucheck.language import in_series, say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.advice.recommender import Card, Recommendation
    from gpucheck.advice.situations import Cards
    from gpucheck.describe.recommendation import Missing
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.tables import Tables
    from gpucheck.tables.jetson import JetpackRow

_OS, _GPUS, _DRIVER = say("the operating system"), say("the GPUs"), say("the driver")
DECISIVE = {_OS, _GPUS}
"""Facts without which nothing can be said; without others it can be said what would fit."""


def describe(
    wish: RecommendRequest, tables: "Tables", cards: "Sequence[Card]", notes: list[str]
) -> "Snapshot":
    """Return the described machine; its system is this one unless the user names another."""
    from gpucheck.facts.request import Request  # noqa: PLC0415
    from gpucheck.facts.system import System  # noqa: PLC0415
    from gpucheck.machine import LiveHost  # noqa: PLC0415

    request = Request(wheel_mirror=wish.wheel_mirror)
    here = LiveHost().identity()
    in_wsl = wish.os == "wsl2"
    os = "linux" if wish.os == "wsl2" else wish.os
    if os is None and here.os in ("linux", "windows"):
        os = here.os
    if wish.jetpack:
        board = System(os="linux", machine="aarch64", wsl=0, jetson="")
        return of_sections(tables, board, request)
    processor = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        here.machine.lower(), here.machine.lower()
    )
    sold_with = _processor(cards, tables)
    arch = wish.arch or sold_with or (processor if os == here.os else "x86_64")
    named = wish.arch or sold_with
    assumed = [
        say("{value} ({option})", value=value, option=option)
        for option, value, given in (("--os", os, wish.os), ("--arch", arch, named))
        if os and not given
    ]
    if assumed:
        notes.append(say("Assumed, as nothing else was said: {values}.", values=in_series(assumed)))
    system = System(os=os, machine=arch, wsl=2 if in_wsl else 0, jetson="")
    if has_musl(wish) and os == "linux":
        system = replace(system, libc="musl")
    return of_sections(tables, system, request)


def _processor(cards: "Sequence[Card]", tables: "Tables") -> str | None:
    """Return the processor of machines that are sold with these GPUs, None if any may have them."""
    from gpucheck.tables.gpus import GpuProducts  # noqa: PLC0415

    products = tables.get(GpuProducts)
    return next((found for card in cards if (found := products.processor(card.label))), None)


def of_sections(tables: "Tables", *sections: Any) -> "Snapshot":  # noqa: ANN401  # sections
    """Return a described machine of which these sections are known."""
    from gpucheck.facts.snapshot import ProbeRuns, Snapshot  # noqa: PLC0415

    return Snapshot(
        {section.name: section for section in sections},
        ProbeRuns(),
        tables=tables.version,
        origin="described",
    )


def cards_of_board(board: "JetpackRow", tables: "Tables") -> "Cards | None":
    """Return the GPU of the boards of a JetPack, None if they have several."""
    from gpucheck.advice.recommender import Card  # noqa: PLC0415
    from gpucheck.advice.situations import Cards  # noqa: PLC0415
    from gpucheck.tables.gpus import GpuProducts  # noqa: PLC0415

    products = tables.get(GpuProducts)
    named = [(word, products.capability(word)) for word in board.devices.split()]
    cards = [Card(word, capability) for word, capability in named if capability]
    return Cards(cards=tuple(cards)) if len(cards) == 1 else None


def missing_facts(
    *,
    platform: str | None,
    gpus: "Cards | None",
    python: str | None,
    driver: str | None,
) -> "tuple[Missing, ...]":
    """Return the facts that nobody named and that were not found, with the options for them."""
    from gpucheck.describe.recommendation import Missing  # noqa: PLC0415

    found = []
    if platform is None:
        found.append(Missing(_OS, "--os"))
    if gpus is None:
        found.append(Missing(_GPUS, say('--gpu NAME_OR_CC, or "--gpu none"')))
    if python is None:
        found.append(Missing(say("the Python"), say("--python-version or --python")))
    if gpus is not None and gpus.cards and driver is None:
        found.append(Missing(_DRIVER, say("--driver or --driver-cuda")))
    return tuple(found)


def unless(answer: "Recommendation", lacking: set[str]) -> "Recommendation":
    """Return what is certain although a fact is missing: what fits if it does not matter."""
    from gpucheck.advice.recommender import Recommendation  # noqa: PLC0415

    if answer.best is None or lacking & DECISIVE:
        return Recommendation(best=None, reasons=())
    if lacking == {_DRIVER} and answer.by_driver:
        return Recommendation(
            best=None,
            reasons=answer.reasons,
            notes=answer.notes,
            would_fit=(answer.best,),
            by_driver=answer.by_driver,
        )
    if_it_fits = say(
        "If the missing facts allow it, {offer} is the right build.", offer=answer.best
    )
    needs = say("It needs driver {release} or newer.", release=answer.oldest_driver)
    driver_needed = (needs,) if _DRIVER in lacking and answer.oldest_driver else ()
    return Recommendation(
        best=None,
        reasons=(if_it_fits, *answer.reasons, *driver_needed),
        notes=answer.notes,
        would_fit=(answer.best,),
    )
