"""Runs the steps of a journal, goes on with them, or takes them back."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from gpucheck.engine import Report
from gpucheck.facts.claims import Severity
from gpucheck.fixing import journal as journals
from gpucheck.fixing import state
from gpucheck.fixing.journal import Journal, JournalStep
from gpucheck.fixing.permitted import Command, Place, runnable
from gpucheck.fixing.words import FixOutcome
from gpucheck.language import say
from gpucheck.machine import LiveHost
from gpucheck.machine.changing import Lock, change
from gpucheck.output.words import clean

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
            state.keep(folder, journal)
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
    (folder / _AFTER).write_text(state.frozen(journal.place), encoding="utf-8")


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
    return change(
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
    state.restore(folder, journal)
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
    before, now = after.read_text(encoding="utf-8"), state.frozen(place)
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
