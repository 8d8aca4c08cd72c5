"""Runs the steps of a journal, goes on or takes them back, and says what came of it."""

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpucheck.derived.surroundings import in_either
from gpucheck.engine import Report
from gpucheck.facts.claims import Severity
from gpucheck.fixing import journal as journals
from gpucheck.fixing.journal import Journal, JournalStep, frozen, keep, restore
from gpucheck.fixing.permitted import Command, Place, runnable
from gpucheck.fixing.plan import (
    EnvironmentProject,
    FixDocument,
    FixLeft,
    FixPlan,
    FixResult,
    FixStep,
    Who,
)
from gpucheck.language import in_series, say, say_many
from gpucheck.machine import LiveHost
from gpucheck.machine.commands import Lock
from gpucheck.machine.commands import change as run_change
from gpucheck.output.blocks import Commands, SectionBlock, Words
from gpucheck.output.layout import Page
from gpucheck.output.summary import verdict
from gpucheck.output.words import LONGEST_WORDS, clean, size

# What is said about a plan and its outcome, for people and for programs.

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


# Runs the steps of a journal, goes on with them, or takes them back.

# Seconds. Chosen: twice what a self-test gives `import torch`, as the files were just written. If
# it is over, that alone takes nothing back: nobody knows whether torch works.
_IMPORT_SECONDS = 120.0
# Bytes and characters. Chosen: pip's and uv's last words stand at the end, and become one sentence.
_END_OF_LOG, _LONGEST_WORDS = 8192, 300
_LOG, _AFTER = "log.txt", "freeze-after.txt"
_QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUNBUFFERED": "1"}
Show = Callable[[bytes], None]


class ForeignJournalError(Exception):
    """Somebody else has written the journal; the message is the command."""


def lock_of(place: Place) -> Lock | None:
    """Take the lock of an environment; None if another run, or a step of one, still has it."""
    Path(place.home).mkdir(mode=0o700, exist_ok=True)
    lock = Lock(str(Path(place.home) / "lock"))
    if lock.taken():
        return lock
    lock.close()
    return None


def imports_torch(python: str) -> bool | None:
    """Whether the target can import torch; None if it gave no answer in time."""
    ran = LiveHost().run([python, "-c", "import torch"], timeout=_IMPORT_SECONDS).value
    return None if ran is None else ran.status == 0


def begin(folder: Path, journal: Journal) -> None:
    """Keep the state; from then on the run counts as begun.

    Raises:
        OSError: the state could not be kept; nothing was changed.
    """
    journal.status = "planned"
    journals.write(folder, journal)
    try:
        if journal.kept:
            keep(folder, journal)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    journal.status = "running"
    journals.write(folder, journal)


def carry_out(folder: Path, journal: Journal, lock: Lock, show: Show | None) -> None:
    """Run the steps that wait, until one fails."""
    for step in journal.steps:
        if step.status != "planned":
            continue
        step.status = "running"
        if not _ran(folder, journal, step, lock, show):
            step.status = "failed"
            break
        step.status = "done"
        journals.write(folder, journal)
    journal.status = "done"
    journals.write(folder, journal)
    (folder / _AFTER).write_text(frozen(journal.place), encoding="utf-8")


def _ran(folder: Path, journal: Journal, step: JournalStep, lock: Lock, show: Show | None) -> bool:
    for number, command in enumerate(step.commands):
        step.at = number
        journals.write(folder, journal)
        try:
            status = _run(folder, command, lock, show)
        except OSError as error:
            step.detail = say("{command}: {error}", command=command.text, error=error)
            return False
        if status:
            step.detail = say(
                "{command} ended with {status}: {words} (see {log})",
                command=command.text, status=status, log=folder / _LOG,
                words=_last_words(folder / _LOG),
            )  # fmt: skip
            return False
    return True


def _run(folder: Path, command: Command, lock: Lock, show: Show | None) -> int:
    if command.action == "move":
        Path(command.argv[1]).rename(command.argv[2])
        return 0
    env = {**LiveHost().env(), **_QUIET}
    return run_change(
        command.argv, env=env, cwd=str(folder), log=str(folder / _LOG), lock=lock, show=show
    )


def _last_words(log: Path) -> str:
    """Return the last line of a command's output, its last error if it names one."""
    with log.open("rb") as file:
        file.seek(-min(_END_OF_LOG, log.stat().st_size), os.SEEK_END)
        lines = file.read().decode("utf-8", "replace").split("\n")
    printed_lines = [line.strip() for line in lines if line.strip()]
    errors = [line for line in printed_lines if line.lower().startswith("error")]
    return clean("".join((errors or printed_lines)[-1:]), _LONGEST_WORDS)


def go_back(folder: Path, journal: Journal) -> None:
    """Put everything back as it was.

    Raises:
        state.NotRestoredError: something differs from what was kept.
        OSError: a file could not be moved.
    """
    journal.status = "undoing"
    journals.write(folder, journal)
    restore(folder, journal)
    journal.status = "undone"
    journals.write(folder, journal)


def start_again(folder: Path, journal: Journal) -> None:
    """Begin a run again that was interrupted and put back, so that nothing half-done is left.

    Raises:
        OSError: the state could not be kept; nothing was changed.
        ForeignJournalError: the journal has a command that gpucheck does not run.
    """
    for step in journal.steps:
        if step.status != "declined" and (journal.kept or step.status == "running"):
            step.status = "planned"
    waiting = (
        command for step in journal.steps if step.status == "planned" for command in step.commands
    )
    for command in waiting:
        if command.action != "lock" and runnable(command.text, journal.place) != command:
            raise ForeignJournalError(command.text)
    begin(folder, journal)


def changed_since(folder: Path, place: Place) -> tuple[str, ...]:
    """Return what was installed or removed since a run ended, in the words of ``pip freeze``."""
    after = folder / _AFTER
    if not after.is_file():
        return ()
    before, now = after.read_text(encoding="utf-8"), frozen(place)
    return tuple(sorted(set(before.splitlines()) ^ set(now.splitlines())))


def compared(before: Report, after: Report, journal: Journal, *, torch: bool | None) -> FixOutcome:
    """Return what has become of the findings that the steps were for."""
    planned = [
        slug for step in journal.steps if step.status in ("done", "failed") for slug in step.slugs
    ]
    standing = {finding.slug for finding in after.standing if finding.severity is not Severity.INFO}
    errors = {finding.slug for finding in after.standing if finding.severity is Severity.ERROR}
    known = {finding.slug for finding in before.findings}
    return FixOutcome(
        report=after,
        gone=tuple(slug for slug in planned if slug not in standing),
        stays=tuple(slug for slug in planned if slug in standing),
        new=tuple(sorted(errors - known)),
        torch_imports=torch,
    )
