"""``gpucheck fix``: carries out the fixes that change this environment alone, with a way back."""

import contextlib
import os
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gpucheck.doctor.commands.check import diagnose, judged
from gpucheck.doctor.run import open_host, open_tables, run_probes
from gpucheck.interface.options import examples, output_options_with
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import UsageRefusedError, colored, echo, page_width, write_out
from gpucheck.language import say, spoken

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.engine import Report
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.fixing.journal import Journal, JournalStep
    from gpucheck.fixing.permitted import Place
    from gpucheck.fixing.plan import EnvironmentProject, FixPlan
    from gpucheck.machine.commands import Lock

_NOTHING_RUN = 2  # exit status: docs/architecture.md, 1.2
_LONGEST = 2000  # chosen: whoever has to agree must see every package that is named


@click.command(
    short_help=say("Carry out the fixes that change this environment alone."),
    epilog=examples(
        "gpucheck fix                 # shows the plan, and asks before each step",
        "gpucheck fix --dry-run       # shows the plan and changes nothing",
        "gpucheck fix --yes --python ~/venv",
        "gpucheck fix --undo          # puts everything back as it was",
    ),
)
@click.option("-y", "--yes", is_flag=True, help=say("Do not ask before a step."))
@click.option("--dry-run", is_flag=True, help=say("Show the plan, and change nothing."))
@click.option(
    "--continue",
    "go_on",
    is_flag=True,
    help=say("Go on with a run that was interrupted."),
)
@click.option(
    "--undo", is_flag=True, help=say("Put everything back as it was before the last run.")
)
@click.option(
    "--lock",
    is_flag=True,
    help=say("In a project of uv or poetry, let that tool change the project and its lock file."),
)
@judged
@click.option("--machine", hidden=True)
@click.option("--format", "form", type=OneOf(["terminal", "json"]), default="terminal")
@output_options_with(say("Also compare CUDA libraries with the hashes of their wheels."))
@click.pass_context
def fix(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Carry out the fixes that change this environment alone, and check again.

    It diagnoses as "check" does, shows a numbered plan, and asks before each step. It runs pip, uv
    and conda in the target environment, and renames a file of yours. What changes the machine it
    only prints. The state before is kept in the environment, so that --undo can put it back
    exactly.

    Exit status: as "check" ends, for the state afterwards; 2 also if nothing was run because nobody
    could be asked.
    """
    for name in ("sysroot", "machine"):
        if options[name]:
            raise click.UsageError(
                say("fix changes this machine, so it does not take {option}.", option=f"--{name}")
            )
    if sum((options["go_on"], options["undo"], options["dry_run"])) > 1:
        raise click.UsageError(say("Give one of --dry-run, --continue and --undo."))
    ctx.exit(_Run(options).status())


class _Run:
    """One call of the command."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._text = ""
        self._json = options["form"] == "json"
        self._can_ask = sys.stdin.isatty() and not self._json
        self._refused = ""
        self._place: Place | None = None
        self._project: EnvironmentProject | None = None

    def status(self) -> int:
        """Do what is asked for, and return the exit status."""
        if self._options["undo"] or self._options["go_on"]:
            return self._earlier_run()
        report = diagnose(self._options)
        self._look_around(report.snapshot)
        made = self._plan(report)
        if self._place is not None:
            self._refuse_unfinished(self._place)
        commands = [command for step in made.steps for command in step.commands]
        if (
            self._options["lock"]
            and commands
            and all(command.action != "lock" for command in commands)
        ):
            raise UsageRefusedError(
                say("--lock needs a project of uv or poetry, and that tool on PATH.")
            )
        if not self._json:
            from gpucheck.fixing import carrying_out  # noqa: PLC0415

            self._write(
                carrying_out.plan_text(report, made, self._place, self._project, **self._look())
            )
        as_check = report.exit_status(self._options["fail_on"])
        if self._options["dry_run"] or not made.steps or self._place is None:
            self._write_document(report, made)
            return as_check
        if not self._options["yes"] and not self._can_ask:
            echo(say("Nothing was run: nobody can be asked here. --yes runs it without asking."))
            self._write_document(report, made)
            return _NOTHING_RUN
        return self._carried_out(report, made, self._place)

    def _look_around(self, snapshot: "Snapshot") -> None:
        from gpucheck.fixing.permitted import RefusedPlaceError, place_of  # noqa: PLC0415
        from gpucheck.fixing.plan import project_of  # noqa: PLC0415

        try:
            self._place = place_of(snapshot)
            self._project = project_of(self._place)
        except RefusedPlaceError as error:
            self._refused = error.args[0]

    def _plan(self, report: "Report") -> "FixPlan":
        from gpucheck.fixing.plan import plan  # noqa: PLC0415

        host = open_host(None)
        return plan(
            report,
            self._place,
            self._project,
            lambda name: host.which(name).value is not None,
            lock=self._options["lock"],
            refused=self._refused,
        )

    def _refuse_unfinished(self, place: "Place") -> None:
        from gpucheck.fixing import journal as journals  # noqa: PLC0415

        found = journals.unfinished(place)
        if found is not None:
            _folder, journal = found
            lock = self._lock(place)
            lock.close()
            raise UsageRefusedError(_stopped(journal))

    def _lock(self, place: "Place") -> "Lock":
        from gpucheck.fixing.carrying_out import lock_of  # noqa: PLC0415

        try:
            lock = lock_of(place)
        except OSError as error:
            raise UsageRefusedError(
                say("{folder} cannot be written: {why}", folder=place.home, why=error.strerror)
            ) from error
        if lock is None:
            raise UsageRefusedError(
                say(
                    "Another gpucheck fix, or a command that it has started, is still at work here."
                )
            )
        return lock

    def _carried_out(self, report: "Report", made: "FixPlan", place: "Place") -> int:
        from gpucheck.fixing import carrying_out  # noqa: PLC0415
        from gpucheck.fixing import journal as journals  # noqa: PLC0415
        from gpucheck.fixing.journal import forget_old  # noqa: PLC0415

        lock = self._lock(place)
        journal = self._new_journal(made, place)
        if not self._options["yes"] and not self._agreed(journal.steps):
            self._write_document(report, made)
            return report.exit_status(self._options["fail_on"])
        journal.torch_worked = carrying_out.imports_torch(place.python)
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
        folder = journals.new_folder(place, stamp)
        try:
            with _telling_where(journal):
                carrying_out.begin(folder, journal)
        except OSError as error:
            raise UsageRefusedError(
                say("The state could not be kept, so nothing was changed: {error}", error=error)
            ) from error
        forget_old(place, folder)
        return self._to_the_end(folder, journal, lock, report, made)

    def _new_journal(self, made: "FixPlan", place: "Place") -> "Journal":
        """Return the journal of a new run; say before anybody is asked if there is no way back."""
        from gpucheck.fixing.journal import Journal, can_link, size_of  # noqa: PLC0415

        links = can_link(place)
        kept = True
        if not links:
            from gpucheck.output.words import size  # noqa: PLC0415

            need, space = size_of(place), open_host(None).space(place.prefix).value
            # Half of what is free stays for the packages themselves.
            kept = space is not None and space.free > 2 * need
            echo(
                say("No hard links are possible here, so the state takes {size}.", size=size(need))
                if kept
                else say("There is no room for the state ({size}): no way back.", size=size(need))
            )
        files = self._project.files if self._project is not None and self._options["lock"] else ()
        steps = list(made.steps)
        return Journal(place=place, steps=steps, links=links, kept=kept, project_files=files)

    def _agreed(self, steps: "list[JournalStep]") -> bool:
        """Ask before each step; whether any was agreed to."""
        for number, step in enumerate(steps, 1):
            answer = _asked(say("Step {number}: carry it out?", number=number), "ynq")
            if answer == "q":
                for later in steps[number - 1 :]:
                    later.status = "declined"
                break
            step.status = "planned" if answer == "y" else "declined"
        return any(step.status == "planned" for step in steps)

    def _to_the_end(
        self,
        folder: Path,
        journal: "Journal",
        lock: "Lock",
        report: "Report | None",
        made: "FixPlan | None",
    ) -> int:
        """Run what is planned, check again, and offer the way back."""
        from gpucheck.fixing import carrying_out  # noqa: PLC0415
        from gpucheck.fixing.journal import extra_space  # noqa: PLC0415
        from gpucheck.fixing.plan import FixPlan  # noqa: PLC0415

        with _telling_where(journal):
            carrying_out.carry_out(folder, journal, lock, self._show())
            after = diagnose(self._options)
            torch = carrying_out.imports_torch(journal.place.python)
            outcome = carrying_out.compared(report or after, after, journal, torch=torch)
            if self._goes_back(journal, outcome):
                _put_back(folder, journal)
                outcome = msgspec.structs.replace(outcome, undone=True)
        if not self._json:
            space = extra_space(folder)
            look = self._look()
            self._write(carrying_out.outcome_text(outcome, folder, space, journal, **look))
        self._write_document(
            report or after, made or FixPlan(steps=(), left=()), steps=journal.steps,
            state=None if outcome.undone else folder, outcome=outcome,
        )  # fmt: skip
        shown = report if outcome.undone and report is not None else after
        return shown.exit_status(self._options["fail_on"])

    def _goes_back(self, journal: "Journal", outcome: Any) -> bool:  # noqa: ANN401
        """Whether to put everything back: torch became worse, or the user wants it."""
        if not journal.kept:
            return False
        worse = journal.torch_worked is True and outcome.torch_imports is False
        if not (worse or outcome.stays or outcome.new):
            return False
        if self._options["yes"] or not self._can_ask:
            return worse
        echo(say("This did not work out as planned."))
        return _asked(say("Put everything back as it was?"), "yn") == "y"

    def _earlier_run(self) -> int:
        """Go on with an interrupted run, or take the last one back."""
        from gpucheck.fixing import carrying_out  # noqa: PLC0415
        from gpucheck.fixing import journal as journals  # noqa: PLC0415

        place = self._target()
        undo = self._options["undo"]
        found = journals.undoable(place) if undo else journals.unfinished(place)
        if found is None:
            raise UsageRefusedError(
                say("There is no run in {folder} that could be taken back.", folder=place.home)
                if undo
                else say("There is no interrupted run in {folder}.", folder=place.home)
            )
        folder, journal = found
        lock = self._lock(place)
        if undo and not journal.kept:
            raise UsageRefusedError(
                say("The state before that run was not kept, so there is no way back.")
            )
        if undo and not self._accepts_loss(carrying_out.changed_since(folder, place)):
            return _NOTHING_RUN
        with _telling_where(journal):
            if undo or journal.kept:
                _put_back(folder, journal)
        if undo:
            echo(say("Everything is as it was before the run, and was compared with it."))
            return 0
        try:
            with _telling_where(journal):
                carrying_out.start_again(folder, journal)
        except carrying_out.ForeignJournalError as error:
            raise UsageRefusedError(
                say("The journal of that run has a command that gpucheck does not run: {command}",
                    command=error)
            ) from error  # fmt: skip
        except OSError as error:
            raise UsageRefusedError(
                say("The state could not be kept, so nothing was changed: {error}", error=error)
            ) from error
        return self._to_the_end(folder, journal, lock, None, None)

    def _accepts_loss(self, changed: tuple[str, ...]) -> bool:
        """Whether packages that were changed since may be put back as well."""
        if not changed or self._options["yes"]:
            return True
        from gpucheck.language import in_series  # noqa: PLC0415

        echo(
            say("Since then these have changed, and are put back as well: {packages}",
                packages=in_series(changed)),
            limit=_LONGEST,
        )  # fmt: skip
        if not self._can_ask:
            echo(say("Nothing was run: nobody can be asked here. --yes runs it without asking."))
            return False
        return _asked(say("Put everything back as it was?"), "yn") == "y"

    def _target(self) -> "Place":
        """Return the place of the target; asking the interpreter is enough for it."""
        from gpucheck.probes import all_probes  # noqa: PLC0415

        needed = ("interpreter", "system")
        others = [probe.name for probe in all_probes() if probe.name not in needed]
        tables = open_tables(self._options["tables"])
        found = run_probes(open_host(None), tables, self._options, skip=others)
        self._look_around(found.snapshot)
        if self._place is None:
            raise UsageRefusedError(self._refused)
        return self._place

    def _show(self) -> Any:  # noqa: ANN401
        """Return what shows the output of pip: on a terminal it appears as it comes."""
        if self._options["quiet"] or self._json or not sys.stderr.isatty():
            return None

        def show(data: bytes) -> None:
            os.write(sys.stderr.fileno(), data)

        return show

    def _look(self) -> dict[str, Any]:
        return {"width": page_width(self._options), "color": colored(self._options)}

    def _write(self, text: str) -> None:
        """Write to stdout, or all so far to the file."""
        self._text += text
        whole = self._text if self._options["output"] else text
        write_out(whole, self._options["output"])
        sys.stdout.flush()

    def _write_document(self, report: "Report", made: "FixPlan", **more: Any) -> None:  # noqa: ANN401
        if not self._json:
            return
        from gpucheck.facts import builtins  # noqa: PLC0415
        from gpucheck.fixing import carrying_out  # noqa: PLC0415
        from gpucheck.output.json_text import json_text  # noqa: PLC0415

        document = carrying_out.document(
            report, made, self._place, self._project, refused=self._refused, **more
        )
        self._write(json_text(builtins(document)))


def _put_back(folder: Path, journal: "Journal") -> None:
    from gpucheck.fixing import carrying_out  # noqa: PLC0415
    from gpucheck.fixing.journal import NotRestoredError  # noqa: PLC0415

    try:
        carrying_out.go_back(folder, journal)
    except (NotRestoredError, OSError) as error:
        raise UsageRefusedError(
            say("Not everything could be put back: {error}", error=error)
        ) from error


@contextlib.contextmanager
def _telling_where(journal: "Journal") -> Iterator[None]:
    """Say where a run stopped if a signal ends it."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        echo(_stopped(journal), limit=_LONGEST)
        raise


def _stopped(journal: "Journal") -> str:
    """Return where a run stopped, and how to go on."""
    from gpucheck.fixing.carrying_out import again  # noqa: PLC0415

    commands = {
        "go_on": again(journal.place, "--continue"),
        "undo": again(journal.place, "--undo"),
    }
    found = journal.interrupted()
    if journal.status in ("planned", "undone"):
        return say("Nothing is changed, and nothing was left half done.")
    if journal.status == "done":
        return say("All steps have ended, but were not checked. To go back: {undo}", **commands)
    if journal.status == "undoing" or found is None:
        return say("Putting everything back was interrupted. To go on: {undo}", **commands)
    number, step = found
    return say(
        "A run of gpucheck fix was interrupted in step {number}: {command}. To go on: {go_on}. To "
        "go back: {undo}",
        number=number, command=step.commands[step.at].text, **commands,
    )  # fmt: skip


def _asked(question: str, answers: str) -> str:
    """Return the first letter of the answer; the last of those allowed if there is none."""
    letters = "/".join(answers)
    while True:
        click.echo(f"{spoken(question)} [{letters}] ", err=True, nl=False)
        line = sys.stdin.readline()
        if not line:
            return answers[-1]
        if line.strip()[:1].lower() in tuple(answers):
            return line.strip()[:1].lower()


COMMAND = fix
