"""What is said about a plan and its outcome, for people and for programs."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpucheck.derived.surroundings import in_either
from gpucheck.engine import Report
from gpucheck.fixing.journal import Journal, JournalStep
from gpucheck.fixing.permitted import Place
from gpucheck.fixing.plan import FixDocument, FixLeft, FixPlan, FixResult, FixStep, Who
from gpucheck.fixing.projects import EnvironmentProject
from gpucheck.language import in_series, say, say_many
from gpucheck.output.blocks import Commands, SectionBlock, Words
from gpucheck.output.layout import Page
from gpucheck.output.summary import verdict
from gpucheck.output.words import LONGEST_WORDS, clean, size

_HEADINGS: dict[Who, str] = {
    "administrator": say("For the administrator"),
    "you": say("For you"),
    "later": say("Afterwards"),
}


class FixOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run: the report after it, and what has changed against the one before."""

    report: Report
    gone: tuple[str, ...]
    stays: tuple[str, ...]
    new: tuple[str, ...]
    torch_imports: bool | None
    undone: bool = False


def again(place: Place, option: str) -> str:
    """Return the command that goes on with this environment: ``--continue`` or ``--undo``."""
    words = ["gpucheck", "fix", option, "--python", place.python]
    return " ".join(map(in_either, words)) if place.windows else shlex.join(words)


def plan_text(
    report: Report,
    made: FixPlan,
    place: Place | None,
    project: EnvironmentProject | None,
    **look: Any,  # noqa: ANN401
) -> str:
    """Return the numbered steps, then what is left for whom.

    Args:
        report: the diagnosis.
        made: the plan.
        place: the environment; None if nothing may be changed.
        project: what it belongs to.
        look: width and colour of the page.
    """
    page = Page(look["width"], color=look["color"])
    page.words(verdict(report), style="bold")
    if made.steps and place is not None:
        page.heading(say("In {environment}", environment=place.prefix))
        for number, step in enumerate(made.steps, 1):
            _step(page, number, step)
        if project is not None:
            page.blank()
            page.words(project.undo_sentence())
            _lasting(page, made, project)
    elif not made.left:
        page.words(say("There is nothing to fix."))
    else:
        page.words(say("There is nothing that gpucheck can do here by itself."))
    for who, heading in _HEADINGS.items():
        found = tuple(_left(fix_left) for fix_left in made.left if fix_left.who == who)
        if found:
            page.write([SectionBlock(heading, found)])
    return page.text()


def _step(page: Page, number: int, step: JournalStep) -> None:
    page.words(clean(step.text, LONGEST_WORDS), lead=f"{number}. ", indent=2, hang=5)
    page.words(say("For: {slugs}", slugs=in_series(step.slugs)), indent=5)
    for change in step.changes:
        page.words(clean(change, LONGEST_WORDS), indent=5)
    page.write([Commands(tuple(command.text for command in step.commands))], 5)


def _lasting(page: Page, made: FixPlan, project: EnvironmentProject) -> None:
    found = lasting(made, project)
    if found:
        page.words(say("To make it stay (--lock does this instead):"))
    page.write([Commands(found)], 0)
    if any("--index" in shlex.split(command) for command in found):
        page.words(
            say(
                'Then write "explicit = true" below that index in pyproject.toml, or uv looks '
                "there for all other packages, too."
            )
        )


def lasting(made: FixPlan, project: EnvironmentProject | None) -> tuple[str, ...]:
    """Return the commands of the project's tool that make the steps stay."""
    if project is None:
        return ()
    return tuple(shlex.join(argv) for step in made.steps for argv in project.lasting(step.commands))


def _left(left: FixLeft) -> Words:
    below = Commands(left.commands), Words(left.reason)
    return Words(left.text, lead=left.slug, hangs=True, below=below)


def outcome_text(
    outcome: FixOutcome,
    folder: Path,
    space: int,
    journal: Journal,
    **look: Any,  # noqa: ANN401
) -> str:
    """Return what the same check says after the steps, and where the way back is."""
    page = Page(look["width"], color=look["color"])
    page.blank()
    for number, step in enumerate(journal.steps, 1):
        if step.status == "failed":
            page.words(
                say("Step {number} failed: {detail}", number=number, detail=step.detail),
                style="red",
            )
    if outcome.gone:
        page.words(
            say_many(
                len(outcome.gone), "{slugs} is gone.", "{slugs} are gone.",
                slugs=in_series(outcome.gone),
            ),
            style="green",
        )  # fmt: skip
    if outcome.stays:
        page.words(
            say_many(
                len(outcome.stays), "{slugs} is still there.", "{slugs} are still there.",
                slugs=in_series(outcome.stays),
            ),
            style="yellow",
        )  # fmt: skip
    if outcome.new:
        page.words(say("New: {slugs}", slugs=in_series(outcome.new)), style="red")
    if journal.torch_worked and outcome.torch_imports is False:
        page.words(say("torch could be imported before, and now it cannot."), style="red")
    if outcome.undone:
        page.words(say("Everything was put back as it was."))
        return page.text()
    page.words(say("Now: {verdict}", verdict=verdict(outcome.report)))
    if journal.kept:
        page.words(
            say(
                "The state before is in {folder} and takes {size}. The way back:",
                folder=folder,
                size=size(space),
            )
        )
        page.verbatim(again(journal.place, "--undo"), indent=2)
    return page.text()


def document(
    report: Report,
    made: FixPlan,
    place: Place | None,
    project: EnvironmentProject | None,
    *,
    refused: str = "",
    steps: Sequence[JournalStep] = (),
    state: Path | None = None,
    outcome: FixOutcome | None = None,
) -> FixDocument:
    """Return the plan and its outcome for programs; ``steps`` are those of the journal."""
    return FixDocument(
        verdict=report.verdict,
        root_causes=report.root_causes,
        environment=place.prefix if place is not None else None,
        refused=refused,
        project=project.undo_sentence() if project is not None else "",
        lasting=lasting(made, project),
        steps=tuple(
            FixStep(
                slugs=step.slugs,
                text=step.text,
                changes=step.changes,
                commands=tuple(command.text for command in step.commands),
                status=step.status,
                detail=step.detail,
            )
            for step in steps or made.steps
        ),
        left=made.left,
        state=str(state) if state is not None else None,
        result=None
        if outcome is None
        else FixResult(
            verdict=outcome.report.verdict,
            root_causes=outcome.report.root_causes,
            gone=outcome.gone,
            stays=outcome.stays,
            new=outcome.new,
            torch_imports=outcome.torch_imports,
            undone=outcome.undone,
        ),
    )
