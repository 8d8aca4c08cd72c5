"""One task's run of ``gpucheck preflight``: from its options to its exit status."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import msgspec

from gpucheck.cli.options import PREFLIGHT_FORMATS, rendered
from gpucheck.cli.preflight_lines import ProgressLine, print_line
from gpucheck.cli.run import open_tables, say_whose_python
from gpucheck.cli.selftests import test_names
from gpucheck.cli.text import (
    NO_ROOM,
    RefusedError,
    colored,
    no_room,
    page_width,
    printable,
    refuse_unwritable,
    words_of,
    write_out,
)
from gpucheck.cluster import drill as drills
from gpucheck.cluster import node_names
from gpucheck.cluster import refusal as refusal_of_task
from gpucheck.cluster.diagnose.localise import Limits
from gpucheck.cluster.door import Door
from gpucheck.cluster.figures import baseline, policy
from gpucheck.cluster.judgement import Judgement, Result, Wanted, roots
from gpucheck.cluster.launchers import entrance
from gpucheck.cluster.launchers.variables import EntranceError
from gpucheck.cluster.model import ExitStatus
from gpucheck.cluster.refusal import Refused
from gpucheck.cluster.session import Policy, Session, Settings
from gpucheck.cluster.store.client import ConnectError
from gpucheck.cluster.store.wire import SameRunError, StoreError
from gpucheck.cluster.task.supervisor import ExitReason
from gpucheck.facts import builtins
from gpucheck.language import in_series, say
from gpucheck.machine import LiveHost
from gpucheck.machine.target import Candidate, TargetWish, choose, refusal
from gpucheck.machine.waker import Waker
from gpucheck.machine.waker import start as start_waker

_INCONCLUSIVE: ExitStatus = 3
_MISCONFIGURED: ExitStatus = 4
_HIGHEST = 5
_LATE, _AFTER_SIGNAL, _LOOK = 5.0, 9.0, 0.25
"""Seconds after the time limit, and after a SIGTERM, until the process ends itself by force; and
the interval of the check."""
_STOPPED = _LATE + 1.0
"""Seconds after the time limit until this process is woken if a signal has stopped it."""
_FIRST = 60.0
"""Seconds for the first collective with the usual time limit; later rounds have a quarter."""
_FEW, _SHARE_OF_FEW = 256, 0.75
"""Up to so many tasks connect faster, and have this share of the time for it. So a rank that hangs
is named within a minute."""
_ALONE = 30.0
_FAREWELL = 8
"""Seconds for the last output after a SIGTERM, before SIGALRM ends the process."""
_LONGEST_FILE = 1 << 20
_LONGEST_MESSAGE = 600


class Run:
    """One task's run.

    Args:
        options: of the command line.
        begun: when the command began, a time of ``time.monotonic()``.

    Raises:
        click.UsageError: an option, or the launcher's information, makes no sense.
    """

    def __init__(self, options: dict[str, Any], begun: float) -> None:
        self._options = options
        self._begun = begun
        self._host = LiveHost("")
        self._tables = open_tables(options["tables"])
        self._entrance = self._find_entrance()
        self._waker: Waker | None = None
        with self._refusing():
            self._refuse_unwritable()
            self._drill = self._read_drill()
            self._requirements = self._read_requirements()
            self._baseline = self._read_baseline()
        self._session: Session | None = None
        self._over = threading.Event()
        self._status: int = _INCONCLUSIVE
        """The exit status if the run ended now."""
        self._line = ProgressLine() if self._shows_progress() else None
        self._judgement = Judgement(
            self._wanted(), self._tables, self._local_snapshot, lambda: time.monotonic() - begun
        )

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        """Tell the other tasks if this one is refused: they would call it missing otherwise.

        Raises:
            click.exceptions.Exit: it was refused, and all tasks end with the same status.
        """
        try:
            yield
        except click.ClickException as error:
            if self._entrance.tasks == 1:
                raise
            raise click.exceptions.Exit(self._refuse(error)) from error

    def _refuse(self, error: click.ClickException) -> int:
        """Print why this task is refused, and tell the others; return the exit status."""
        place, why = self._entrance, words_of(error)
        host = self._host.identity().node
        line = say(
            "gpucheck preflight: task {task} on {host}: {what}",
            task=place.task, host=host, what=say("it cannot take part: {why}", why=why),
        )  # fmt: skip
        print_line(line, err=True)
        token = self._host.env().get(entrance.TOKEN_VARIABLE, "").strip()
        with self._woken():  # it waits for the others
            verdict = refusal_of_task.tell(
                Refused(place, host, why, self._begun + self._options["timeout"]),
                Door(self._host.env(), place, self._options["port"], token),
            )
        return error.exit_code if verdict is None or verdict.all_refused else verdict.exit

    def run(self) -> int:
        """Run it; return the exit status."""
        with self._woken():
            return self._watched()

    @contextlib.contextmanager
    def _woken(self) -> Iterator[None]:
        """Have this task woken if a signal stops it. The first use is before the first thread."""
        if self._waker is not None:
            yield
            return
        end = self._begun + self._options["timeout"]
        self._waker = start_waker(end + _STOPPED - time.monotonic())
        try:
            yield
        finally:
            self._waker.end()

    def _watched(self) -> int:
        self._watch()
        try:
            return self._run()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._say(say("misconfigured: {why}", why=no_room(error)), err=True)
            return _MISCONFIGURED
        finally:
            _flush()  # it may block, so the watchdog still looks
            self._over.set()

    def _run(self) -> int:
        with self._refusing():
            settings = self._settings()
        try:
            session = self._session = Session(
                self._host, self._entrance, settings, self._policy(), self._tell
            )
        except StoreError as error:
            reason = error.reason if isinstance(error, ConnectError) else ""
            if isinstance(error, SameRunError) or reason in ("wrong-token", "task-taken"):
                self._say(say("misconfigured: {why}", why=words_of(error)), always=True)
                return _MISCONFIGURED
            self._say(say("inconclusive: {why}", why=self._no_store(error)))
            return self._status
        # A launcher ends the other tasks as soon as one has left: results are written all the same.
        signal.signal(signal.SIGTERM, lambda _number, _frame: signal.alarm(_FAREWELL))
        try:
            return self._end(session, session.run())
        except BaseException as error:
            _tell_why(session, error)
            raise
        finally:
            session.close()
            # Python resets its signal handlers while it exits; the status must not change by then.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _end(self, session: Session, exit_reason: ExitReason) -> int:
        """Show and write what is known; return the exit status."""
        if self._line is not None:
            self._line.clear()
        is_given_up = exit_reason.reason == "given-up"  # the others have a verdict of their own
        if exit_reason.verdict is None and session.coordinator is not None and not is_given_up:
            session.coordinator.stop(exit_reason.detail)  # task 0 reports what it knows
        result = self._judgement.result
        verdict = {"exit": _INCONCLUSIVE, "why": exit_reason.detail}
        if exit_reason.verdict is not None:
            verdict = builtins(exit_reason.verdict)
        if result is not None:
            verdict = {**verdict, "exit": result.ending.status or verdict["exit"]}
        self._status = _status(verdict)
        if result is not None:
            self._show(msgspec.structs.replace(result, drill=self._drill.text))
        elif exit_reason.verdict is not None:
            self._say_what_was_lost(session, exit_reason)
        else:
            host = next(iter(self._entrance.hosts), self._entrance.master_host)
            self._say(say("inconclusive: {why}", why=_why(exit_reason, host)))
        self._write_each(session, verdict)
        self._save_baseline(session, verdict)
        if exit_reason.reason in ("verdict", "signal", "time"):
            session.leave()
        return self._status

    def _say_what_was_lost(self, session: Session, exit_reason: ExitReason) -> None:
        """Report what the tasks that met without task 0 know of it, or that it was refused."""
        verdict = exit_reason.verdict
        sentence = exit_reason.detail or (verdict.refused if verdict is not None else "")
        if sentence and self._status == _INCONCLUSIVE:
            sentence = say("inconclusive: {why}", why=sentence)
        if sentence:
            self._say(sentence, always=session.has_taken_over)

    def _watch(self) -> None:
        """End this process when the run is late: a stopped terminal or a full pipe may block it."""
        limit = self._begun + self._options["timeout"] + _LATE

        def watch() -> None:
            end = limit
            while time.monotonic() < end:
                if self._over.wait(_LOOK):
                    return
                if self._session is not None and self._session.told_to_end:
                    end = min(end, time.monotonic() + _AFTER_SIGNAL)
            os._exit(self._status)

        threading.Thread(target=watch, name="watchdog", daemon=True).start()

    def _show(self, result: Result) -> None:
        """Print the result, and write the requested files."""
        for write in (self._print, self._write_files):
            try:
                write(result)
            except click.ClickException as error:  # a full disk does not change the verdict,
                self._note(error.message)
            except OSError as error:  # and neither does a reader that has left
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                self._note(say("the output cannot be written: {why}", why=error.strerror))

    def _print(self, result: Result) -> None:
        options = self._options
        if options["form"] == "terminal":
            from gpucheck.output import preflight_text  # noqa: PLC0415

            text = preflight_text.render(
                result,
                verbose=options["verbose"],
                quiet=options["quiet"],
                color=colored(options),
                width=page_width(options),
            )
        else:
            text = rendered(PREFLIGHT_FORMATS, options["form"], result)
        write_out(text, options["output"])
        sys.stdout.flush()

    def _write_files(self, result: Result) -> None:
        from gpucheck.output import preflight_files  # noqa: PLC0415

        options = self._options
        said = preflight_files.write_files(
            result,
            exclude_file=options["exclude_file"],
            good_file=options["good_file"],
            record=options["record"],
            status_file=options["status_file"],
            metrics=options["metrics"],
            bundle_file=options["bundle"],
            history=self._judgement.history,
        )
        for sentence in said:
            self._note(sentence)

    def _write_each(self, session: Session, verdict: Mapping[str, Any]) -> None:
        """Write what this task has seen; a failure does not change the verdict."""
        if self._options["each"]:
            from gpucheck.cluster import files  # noqa: PLC0415

            try:
                files.write_each(self._options["each"], session.own, verdict)
            except files.FileError as error:
                self._note(say("--each: {why}", why=words_of(error)))

    def _save_baseline(self, session: Session, verdict: Mapping[str, Any]) -> None:
        """Save what this task's GPUs have reached, if all was well and this was not a drill."""
        is_well = verdict["exit"] == 0 and not self._drill
        if self._options["baseline"] != "save" or not is_well:
            return
        own = session.own
        devices = own["facts"].get("devices") or []
        rates: dict[int, dict[str, float]] = {}
        for step in own["steps"]:
            for one in step["results"] if step["step"] == "alone" else ():
                rates.setdefault(one["rank"], {}).update(one["measurements"])
        seen = [
            (device.get("uuid"), device.get("name"), rates.get(rank, {}))
            for rank, device in zip(sorted(rates), devices, strict=False)
        ]
        groups = [(one["uuids"], one["size"], one["busbw"]) for one in verdict.get("groups") or ()]
        new = baseline.measured(seen, groups, datetime.now(tz=timezone.utc).date().isoformat())
        try:
            path = baseline.default_path(self._host.env())
            baseline.save(path, baseline.with_news(baseline.load(path), new))
        except baseline.BaselineError as error:
            self._note(words_of(error))

    def _no_store(self, error: StoreError) -> str:
        """Return why there is no store, and what a name of Slurm's needs if that is the reason."""
        place = self._entrance
        unknown = isinstance(error, ConnectError) and error.reason == "not-resolved"
        if place.launcher != "slurm" or not unknown or self._options["master"]:
            return words_of(error)
        return node_names.advice(words_of(error), place.master_host)

    def _policy(self) -> Policy:
        judgement = self._judgement
        return Policy(
            judgement.next_step,
            judgement.finish,
            lambda snapshot: roots(snapshot, self._tables),
            judgement.without_task_0,
        )

    def _wanted(self) -> Wanted:
        options = self._options
        share = options["timeout"] / 4
        usual = max(_FIRST, options["timeout"] / 5)
        first = usual if self._entrance.tasks > _FEW else _SHARE_OF_FEW * usual
        cuda = options["device"] == "cuda"
        return Wanted(
            backend="nccl" if cuda else "gloo",
            launcher=self._entrance.launcher,
            limits=Limits(
                backend="nccl" if cuda else "gloo",
                tests=test_names(options["tests"]),
                alone_seconds=min(_ALONE, share),
                first_seconds=min(first, share),
                least_seconds=min(usual / 4, share / 2),
                links=options["links"],
            ),
            requirements=self._requirements,
            fail_on=options["fail_on"],
            drill=bool(self._drill),
            begun=self._begun,
            timeout=options["timeout"],
            notices=(
                *self._entrance.notices,
                *node_names.notices(self._entrance, master_is_given=bool(options["master"])),
            ),
        )

    def _settings(self) -> Settings:
        options, python = self._options, self._python()
        return Settings(
            python=python.executable,
            chosen_by=python.chosen_by,
            cuda=options["device"] == "cuda",
            timeout=options["timeout"],
            begun=self._begun,
            ranks=options["ranks"],
            port=options["port"],
            token=self._token(),
            level=options["level"],
            drill=self._drill,
            baseline=self._baseline,
        )

    def _python(self) -> Candidate:
        """Return the target interpreter.

        Raises:
            click.UsageError: there is none.
            RefusedError: the one that was named cannot be used.
        """
        wish = TargetWish(python=self._options["python"])
        if self._entrance.tasks == 1 and (why := refusal(self._host, wish)):
            raise RefusedError(printable(why, limit=_LONGEST_MESSAGE))
        candidates = choose(self._host, wish)
        if not candidates:
            raise click.UsageError(say("no Python interpreter was found: name one with --python"))
        if candidates[0].problem:
            raise RefusedError(printable(candidates[0].problem))
        if self._entrance.task == 0 and not self._options["quiet"]:
            say_whose_python(self._host, wish)
        return candidates[0]

    def _find_entrance(self) -> entrance.Entrance:
        options = self._options
        wish = entrance.Wish(
            master=options["master"], nodes=options["nodes"], pid=os.getpid(), parent=os.getppid()
        )
        try:
            found = entrance.find(self._host.env(), wish)
        except EntranceError as error:
            raise click.UsageError(words_of(error)) from error
        for note in found.notes:
            self._note(note)
        return found

    def _refuse_unwritable(self) -> None:
        """Refuse files that cannot be written, before the work; in a job no other task may wait.

        Raises:
            RefusedError: one cannot.
        """
        if self._entrance.tasks == 1:
            for name in ("output", "exclude_file", "good_file", "status_file", "metrics", "bundle"):
                refuse_unwritable(self._options[name])

    def _token(self) -> str:
        try:
            return entrance.token(self._host.env())
        except EntranceError as error:
            raise click.UsageError(words_of(error)) from error

    def _read_drill(self) -> drills.Drill:
        try:
            drill = drills.parse(self._options["drill"])
        except ValueError as error:
            raise click.UsageError(words_of(error)) from error
        if self._entrance.tasks == 1 and drill.absent:
            raise click.UsageError(
                say("--drill absent needs a launcher: here no task could stay away")
            )
        if self._options["device"] == "cuda":
            why = drill.lacks_task(self._entrance.tasks)
            self._say_who_stays_away(drill)
        else:
            why = drill.problem(self._entrance.tasks * (self._options["ranks"] or 1))
        if why:
            raise click.UsageError(why)
        return drill

    def _say_who_stays_away(self, drill: drills.Drill) -> None:
        """Report that more than one rank stays away if a task uses all GPUs of its node."""
        place = self._entrance
        if place.task == 0 and place.local_tasks == 1 and not place.one_gpu and drill.absent:
            tasks = in_series([str(task) for task in sorted(drill.absent)])
            self._note(
                say(
                    "--drill absent: task {tasks} stays away, with every GPU of its node",
                    tasks=tasks,
                )
            )

    def _read_requirements(self) -> policy.Requirements:
        """Read ``--require``: requirements, or files with requirements.

        Raises:
            click.UsageError: one is not understood, or a file cannot be read.
        """
        parts, lines = [], []
        try:
            for text in self._options["require"]:
                if "=" in text and not Path(text).is_file():
                    lines.append(text)
                else:
                    parts.append(policy.parse_file(_content(text), text))
            return policy.joined([*parts, policy.parse_lines(lines)])
        except policy.PolicyError as error:
            raise click.UsageError(words_of(error)) from error

    def _read_baseline(self) -> baseline.Baseline | None:
        """Return what this node's GPUs reached before; None without a comparison.

        Raises:
            click.UsageError: the file is not a baseline.
        """
        if self._options["baseline"] != "compare":
            return None
        try:
            return baseline.load(baseline.default_path(self._host.env()))
        except baseline.BaselineError as error:
            raise click.UsageError(words_of(error)) from error

    def _local_snapshot(self) -> Any:  # noqa: ANN401  # a Snapshot, or None
        return self._session.snapshot if self._session is not None else None

    def _shows_progress(self) -> bool:
        return sys.stderr.isatty() and not self._options["quiet"] and self._entrance.task == 0

    def _tell(self, what: str) -> None:
        if self._line is not None:
            self._line.show(what, time.monotonic() - self._begun)

    def _say(self, sentence: str, *, err: bool = False, always: bool = False) -> None:
        """Print the one line of a task without a report; only one task of each node does.

        Where task 0 has gone, task 1 is the lowest on its node.
        """
        if always or self._entrance.local == 0 or self._entrance.task == 1:
            task, node = self._entrance.task, self._host.identity().node
            line = say(
                "gpucheck preflight: task {task} on {host}: {what}",
                task=task, host=node, what=sentence,
            )  # fmt: skip
            print_line(line, err=err)

    def _note(self, sentence: str) -> None:
        if sentence and not self._options["quiet"]:
            print_line(say("gpucheck preflight: {what}", what=sentence), err=True)


def _tell_why(session: Session, error: BaseException) -> None:
    """Tell the other tasks why this one ends: task 0 would otherwise look like a dead one."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        session.abandon(_MISCONFIGURED, no_room(error))
    elif isinstance(error, KeyboardInterrupt):
        session.abandon(_INCONCLUSIVE, say("task 0 was interrupted"))
    else:
        name = type(error).__name__
        session.abandon(_INCONCLUSIVE, say("task 0 failed by itself ({error})", error=name))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _status(verdict: Mapping[str, Any]) -> int:
    status = verdict.get("exit")
    return status if isinstance(status, int) and 0 <= status <= _HIGHEST else _INCONCLUSIVE


def _content(name: str) -> str:
    try:
        with Path(name).open("rb") as opened:
            return opened.read(_LONGEST_FILE).decode("utf-8", "replace")
    except OSError as error:
        raise click.UsageError(
            say(
                "--require {name}: neither KEY=VALUE nor a file that can be read ({strerror})",
                name=printable(name),
                strerror=error.strerror,
            )
        ) from error


def _why(exit_reason: ExitReason, host: str) -> str:
    """Return why a task has no verdict; ``host`` is where task 0 runs."""
    if exit_reason.reason in ("store-lost", "not-understood"):
        return say(
            "rank 0, or its store, is gone (look at host {host}): {why}",
            host=host,
            why=exit_reason.detail,
        )
    return exit_reason.detail
