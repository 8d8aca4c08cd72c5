"""A recommendation as text and as JSON-like data."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gpucheck.advice.recommender import Offer, Recommendation
from gpucheck.facts import builtins
from gpucheck.language import in_series, say
from gpucheck.output.blocks import Commands
from gpucheck.output.layout import Page
from gpucheck.output.words import LONGEST_COMMAND, clean

SCHEMA = "gpucheck.recommendation/1"


class Missing(Struct, frozen=True):
    """A fact that a recommendation needs and that is unknown, and the option that supplies it."""

    fact: str
    option: str


class Choice(Struct, frozen=True, kw_only=True):
    """What to install with a driver of this release or a newer one."""

    driver: str
    build: Offer
    commands: tuple[str, ...]


class Shown(Struct, frozen=True, kw_only=True):
    """Everything to show: the answer, the commands that install it, and what is missing.

    ``choices``: where only the driver is unknown, what fits which, the newest first.
    """

    answer: Recommendation
    commands: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    verify: str = ""
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    described: bool = False
    yours: str = ""
    """That the build that is installed fits, "" if it does not or if that is not known."""

    @property
    def outcome(self) -> str:
        """Return ``command``, ``nothing-fits`` or ``unknown``."""
        if self.missing or self.answer.unheard_of or self.answer.unseen:
            return "unknown"
        return "nothing-fits" if self.answer.best is None else "command"


def text(
    shown: Shown, *, quiet: bool = False, color: bool = False, width: int | None = None
) -> str:
    """Return the recommendation for a terminal; with ``quiet`` only the commands."""
    page = Page(width, color=color)
    answer = shown.answer
    if quiet and shown.commands:
        for command in shown.commands:
            page.verbatim(clean(command, LONGEST_COMMAND))
        return page.text()
    if shown.yours:
        page.words(shown.yours, style="bold")
        page.blank()
    page.words(_headline(shown), style="" if shown.yours else "bold")
    for missing in () if shown.choices else shown.missing:
        page.words(
            say("{fact}: give {option}", fact=missing.fact, option=missing.option),
            lead="- ",
            indent=2,
            hang=4,
        )
    if shown.commands:
        page.blank()
        page.write([Commands(shown.commands)], 0)
    _chosen(page, shown.choices)
    _listed(page, say("Why"), answer.reasons)
    _listed(page, say("Note"), (*shown.notes, *answer.left_out, *answer.notes))
    if answer.alternatives:
        older = in_series([str(offer) for offer in answer.alternatives])
        _listed(page, say("Older releases that also fit"), (say("{older}.", older=older),))
    if shown.commands and shown.verify:
        page.blank()
        page.write([Commands((shown.verify,), lead=say("Verify"))], 0)
    return page.text()


def as_json(shown: Shown) -> dict[str, Any]:
    """Return the recommendation as JSON-like data."""
    answer = shown.answer
    needed = answer.driver_needed
    update = answer.driver_update
    return {
        "schema": SCHEMA,
        "outcome": shown.outcome,
        "described": shown.described,
        "yours": shown.yours,
        "commands": list(shown.commands),
        "verify": shown.verify,
        "build": None if shown.missing else _offer(answer.best),
        "companions": [
            {"package": chosen.package, "version": chosen.version} for chosen in answer.companions
        ],
        "reasons": list(answer.reasons),
        "notes": [*shown.notes, *answer.left_out, *answer.notes],
        "missing": builtins(shown.missing),
        "choices": builtins(shown.choices),
        "would_fit": [_offer(offer) for offer in answer.would_fit],
        "driver_update": None if update is None else {"driver": needed, "build": _offer(update)},
        "alternatives": [_offer(offer) for offer in answer.alternatives],
    }


def _headline(shown: Shown) -> str:
    best = shown.answer.best
    if shown.choices:
        return say(
            "What fits depends on the driver (nvidia-smi shows its release; name it by --driver):"
        )
    if shown.missing:
        return say("Too few facts are known to recommend a build.")
    if shown.outcome == "unknown":
        return say("Which build fits is unknown.")
    if best is None:
        return say("No PyTorch build fits.")
    if "the newest" in shown.yours:
        return say("The command that installs it:")
    if shown.yours:
        return say("The newest that fits is {offer}; the command that installs it:", offer=best)
    if not best.cuda:
        return say("Install PyTorch {torch}, the CPU build:", torch=best.torch)
    return say(
        "Install PyTorch {torch}, built for CUDA {cuda} ({build}):",
        torch=best.torch, cuda=best.cuda, build=best.build,
    )  # fmt: skip


def _chosen(page: Page, choices: Sequence[Choice]) -> None:
    for number, choice in enumerate(choices):
        page.blank()
        page.words(_chosen_by(choice, is_first=not number), indent=2)
        page.write([Commands(choice.commands)])


def _chosen_by(choice: Choice, *, is_first: bool) -> str:
    driver, build = choice.driver, choice.build
    if is_first:
        return say(
            "Driver {release} or newer: PyTorch {torch}, built for CUDA {cuda} ({build})",
            release=driver, torch=build.torch, cuda=build.cuda, build=build.build,
        )  # fmt: skip
    return say(
        "Otherwise, driver {release} or newer: PyTorch {torch}, built for CUDA {cuda} ({build})",
        release=driver, torch=build.torch, cuda=build.cuda, build=build.build,
    )  # fmt: skip


def _listed(page: Page, heading: str, sentences: Sequence[str]) -> None:
    if sentences:
        page.heading(heading)
    for sentence in sentences:
        page.words(clean(sentence), lead="- ", indent=2, hang=4)


def _offer(offer: Offer | None) -> dict[str, Any] | None:
    return None if offer is None else msgspec.structs.asdict(offer)
