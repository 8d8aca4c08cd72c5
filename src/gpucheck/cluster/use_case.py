"""A pre-flight as one task of a job: from what is wanted to its outcome, without a word printed."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec

from gpucheck.cluster import job_plan, launcher, task_0
from gpucheck.cluster.door import Door, tell_refused
from gpucheck.cluster.figures import baseline
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.judgement import Judgement, Result
from gpucheck.cluster.launcher_variables import EntranceError
from gpucheck.cluster.model import ExitStatus, RootCause, StepResult
from gpucheck.cluster.request import PreflightRequest
from gpucheck.cluster.session import Policy, Session
from gpucheck.cluster.store.client import ConnectError
from gpucheck.cluster.store.task_messages import Refusal, Verdict
from gpucheck.cluster.store.wire import NoPortError, SameRunError, StoreError
from gpucheck.cluster.task.supervisor import ExitReason
from gpucheck.doctor.selftests import test_names
from gpucheck.engine import diagnose
from gpucheck.facts import builtins
from gpucheck.facts.claims import Severity
from gpucheck.facts.snapshot import Snapshot
from gpucheck.interface.errors import (
    NO_ROOM,
    AskError,
    RefusedError,
    UsageError,
    no_room,
    printable,
    words_of,
)
from gpucheck.interface.listener import Listener
from gpucheck.interface.requirements import required
from gpucheck.language import in_series, say
from gpucheck.machine import LiveHost
from gpucheck.machine.candidates import Candidate, TargetWish, choose
from gpucheck.machine.target import refusal
from gpucheck.tables import Tables

# Exit statuses, as in docs/preflight/reference.md; click has the same for a usage error.
INCONCLUSIVE: ExitStatus = 3
MISCONFIGURED: ExitStatus = 4
_USAGE = 2
_HIGHEST = 5
"""Exit statuses (docs/preflight/reference.md); a verdict with another one is not believed."""
_MISFITS = ("wrong-token", "task-taken", "other-size")
"""Why a store does not let a task in that belongs to another job, or to none."""
_LONGEST_MESSAGE = 600
"""Characters. Chosen: a refusal with a path in it still is a paragraph."""


class PreflightListener(Listener):
    """Is told how one task's run goes, and what came of it. This one does nothing."""

    def placed(self, place: launcher.TaskPlace, host: str) -> None:
        """The launcher has told which task this is; ``host`` is its own name of this machine.

        An :class:`AskError` ends the run, and the other tasks hear why.
        """

    def refused(self, why: str) -> None:
        """This task of a job cannot take part; the others are told next."""

    def others_know(self, status: int) -> None:
        """The others were told; ``status`` is how this task ends. The error follows."""

    def connected(self) -> None:
        """The store is found: from now on results are to be written, whoever ends the job."""

    def progress(self, what: str) -> None:
        """What is going on, in words."""

    def tests_over(self) -> None:
        """The results follow."""

    def result(self, result: Result, history: Sequence[StepResult]) -> None:
        """The result with its steps, which task 0 alone has."""

    def no_report(self, why: str, *, err: bool = False, always: bool = False) -> None:
        """Why this task has no report; ``always``: it matters, whichever task of its node it is."""

    def verdict(
        self, own: Mapping[str, Any], plain: Mapping[str, Any], message: Verdict | None
    ) -> None:
        """What this task has seen itself, and the verdict as data; the message if one came."""

    def note(self, sentence: str) -> None:
        """Something beside the result."""


class Task:
    """One task's run.

    Args:
        request: what the user wants.
        tables: the compatibility tables.
        begun: when the command began, a time of ``time.monotonic()``.
        listener: hears how far it is, and what came of it.
        owns_process: whether this process is gpucheck's own: a SIGTERM then means the pre-flight.
        is_alone: whether it is the only task, whatever has started it.

    Raises:
        UsageError: what is wanted, or the launcher's information, makes no sense.
    """

    def __init__(
        self,
        request: PreflightRequest,
        tables: Tables,
        begun: float,
        listener: PreflightListener,
        *,
        owns_process: bool = False,
        is_alone: bool = False,
    ) -> None:
        self._request = request
        self._begun = begun
        self._listener = listener
        self._owns_process = owns_process
        self._host = LiveHost("")
        self._tables = tables
        self.place = launcher.alone(self._host.env()) if is_alone else self._find_place()
        with self._refusing():
            listener.placed(self.place, self._host.identity().node)
            self._drill = self._read_drill()
            self.requirements = required(self._request.require, self._request.gpus)
            self._baseline = self._read_baseline()
        self._tests = test_names(request.tests)
        self._session: Session | None = None
        self.status: int = INCONCLUSIVE
        """The exit status if the run ended now."""

    @property
    def told_to_end(self) -> bool:
        """Whether it has received SIGTERM."""
        return self._session is not None and self._session.told_to_end

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        """Tell the other tasks if this one is refused: they would call it missing otherwise."""
        try:
            yield
        except AskError as error:
            if self.place.tasks > 1:
                why = words_of(error)
                self._listener.refused(why)
                self._listener.others_know(self._refuse(why))
            raise

    def _refuse(self, why: str) -> int:
        """Tell the other tasks why this one is refused; return the exit status."""
        place = self.place
        token = self._host.env().get(launcher.TOKEN_VARIABLE, "").strip()
        verdict = tell_refused(
            Door(self._host.env(), place, self._request.port, token),
            Refusal(host=self._host.identity().node, why=why),
            self._begun + self._request.timeout,
        )
        return _USAGE if verdict is None or verdict.all_refused else verdict.exit

    def run(self) -> int:
        """Run it; return the exit status.

        Raises:
            AskError: the interpreter or the secret cannot be used.
        """
        with self._refusing():
            plan = self._plan()
        judgement = Judgement(
            plan, self.place, self._tables,
            local=lambda: self._session.snapshot if self._session is not None else None,
            clock=lambda: time.monotonic() - self._begun,
            requirements=self.requirements, fail_on=self._request.fail_on,
        )  # fmt: skip
        policy = Policy(
            judgement.next_step,
            judgement.finish,
            lambda snapshot: roots(snapshot, self._tables),
            judgement.without_task_0,
        )
        try:
            session = self._session = Session(
                self._host, self.place, plan, policy, self._listener.progress
            )
        except StoreError as error:
            return self._without_store(error)
        except OSError as error:
            return self._without_room(error)
        self._listener.connected()
        try:
            return self._end(session, session.run(), judgement)
        except OSError as error:
            _tell_why(session, error)
            return self._without_room(error)
        except BaseException as error:
            _tell_why(session, error)
            raise
        finally:
            session.close()

    def _without_store(self, error: StoreError) -> int:
        """Report why there is no store; return the exit status."""
        why = words_of(error)
        # A port that task 0 cannot open, another job's store: no machine is in question.
        reason = error.reason if isinstance(error, ConnectError) else ""
        if isinstance(error, NoPortError | SameRunError) or reason in _MISFITS:
            self.status = MISCONFIGURED
            self._listener.no_report(say("misconfigured: {why}", why=why), always=True)
        else:
            why = self._no_store(error)
            self._listener.no_report(say("inconclusive: {why}", why=why))
        self._listener.verdict(
            {"facts": {"task": self.place.task, "host": self._host.identity().node}},
            {"exit": self.status, "why": why},
            None,
        )
        return self.status

    def _without_room(self, error: OSError) -> int:
        if error.errno not in NO_ROOM:
            raise error
        self._listener.no_report(say("misconfigured: {why}", why=no_room(error)), err=True)
        return MISCONFIGURED

    def _end(self, session: Session, exit_reason: ExitReason, judgement: Judgement) -> int:
        """Show and write what is known; return the exit status."""
        self._listener.tests_over()
        is_given_up = exit_reason.reason == "given-up"  # the others have a verdict of their own
        if exit_reason.verdict is None and session.coordinator is not None and not is_given_up:
            is_blind = exit_reason.reason in ("store-lost", "not-understood")
            session.coordinator.stop(exit_reason.detail, is_blind=is_blind)  # what it knows
        result = judgement.result
        verdict: dict[str, Any] = {"exit": INCONCLUSIVE, "why": exit_reason.detail}
        if exit_reason.verdict is not None:
            verdict = builtins(exit_reason.verdict)
        if result is not None:
            verdict = {**verdict, "exit": result.ending.status or verdict["exit"]}
        self.status = _status(verdict)
        if result is not None:
            self._listener.result(
                msgspec.structs.replace(result, drill=self._drill.text), judgement.history
            )
        elif exit_reason.verdict is not None:
            self._say_what_was_lost(session, exit_reason)
        else:
            why = _why(exit_reason, task_0.host_of_task_0(self.place))
            self._listener.no_report(say("inconclusive: {why}", why=why))
        self._listener.verdict(session.own, verdict, exit_reason.verdict)
        self._save_baseline(session, verdict)
        if exit_reason.reason in ("verdict", "signal", "time"):
            session.leave()
        return self.status

    def _say_what_was_lost(self, session: Session, exit_reason: ExitReason) -> None:
        """Report what the tasks that met without task 0 know of it, or that it was refused."""
        verdict = exit_reason.verdict
        sentence = exit_reason.detail or (verdict.refused if verdict is not None else "")
        if sentence and self.status == INCONCLUSIVE:
            sentence = say("inconclusive: {why}", why=sentence)
        if sentence:
            self._listener.no_report(sentence, always=session.has_taken_over)

    def _save_baseline(self, session: Session, verdict: Mapping[str, Any]) -> None:
        """Save what this task's GPUs have reached, if all was well and this was not a drill."""
        is_well = verdict["exit"] == 0 and not self._drill
        if self._request.baseline != "save" or not is_well:
            return
        own = session.own
        devices = own["facts"].get("devices") or []
        rates: dict[int, dict[str, float]] = {}
        for step in own["steps"]:
            for result in step["results"] if step["step"] == "alone" else ():
                rates.setdefault(result["rank"], {}).update(result["measurements"])
        seen = [
            (device.get("uuid"), device.get("name"), rates.get(rank, {}))
            for rank, device in zip(sorted(rates), devices, strict=False)
        ]
        groups = [
            (group["uuids"], group["size"], group["busbw"]) for group in verdict.get("groups") or ()
        ]
        new = baseline.measured(seen, groups, datetime.now(tz=timezone.utc).date().isoformat())
        try:
            baseline.update(baseline.default_path(self._host.env()), new)
        except baseline.RateBaselineError as error:
            self._listener.note(words_of(error))

    def _no_store(self, error: StoreError) -> str:
        """Return why there is no store, and what a name of Slurm's needs if that is the reason."""
        place = self.place
        unknown = isinstance(error, ConnectError) and error.reason == "not-resolved"
        if isinstance(error, ConnectError) and not unknown:
            return printable(task_0.never_met(error, place))
        if place.launcher != "slurm" or not unknown or self._request.master:
            return words_of(error)
        return task_0.advice(words_of(error), place.master_host)

    def _plan(self) -> JobPlan:
        request, python = self._request, self._python()
        plan = JobPlan(
            tasks=self.place.tasks,
            cuda=request.device == "cuda",
            begun=self._begun,
            timeout=request.timeout,
            tests=self._tests,
            links=request.links,
            level=request.level,
            python=python.executable,
            chosen_by=python.chosen_by,
            port=request.port,
            token=self._token(),
            drill=self._drill,
            baseline=self._baseline,
            takes_signals=self._owns_process,
        )
        return plan.within(self.place, request.ranks)

    def _python(self) -> Candidate:
        """Return the target interpreter.

        Raises:
            UsageError: there is none.
            RefusedError: the one that was named cannot be used.
        """
        target = TargetWish(python=self._request.python)
        if self.place.tasks == 1 and (why := refusal(self._host, target)):
            raise RefusedError(printable(why, limit=_LONGEST_MESSAGE))
        candidates = choose(self._host, target)
        if not candidates:
            raise UsageError(say("no Python interpreter was found: name one with --python"))
        if candidates[0].problem:
            raise RefusedError(printable(candidates[0].problem))
        self._listener.accepted(self._host, target)
        return candidates[0]

    def _find_place(self) -> launcher.TaskPlace:
        asked = launcher.PlaceRequest(
            master=self._request.master, nodes=self._request.nodes,
            pid=os.getpid(), parent=os.getppid(),
        )  # fmt: skip
        try:
            found = launcher.find(self._host.env(), asked)
        except EntranceError as error:
            raise UsageError(words_of(error)) from error
        for note in found.notes:
            self._listener.note(note)
        usual = task_0.notices(found, master_is_given=bool(self._request.master))
        return msgspec.structs.replace(found, notices=(*found.notices, *usual))

    def _token(self) -> str:
        try:
            return launcher.token(self._host.env())
        except EntranceError as error:
            raise UsageError(words_of(error)) from error

    def _read_drill(self) -> job_plan.Drill:
        try:
            drill = job_plan.parse_drill(self._request.drill)
        except ValueError as error:
            raise UsageError(words_of(error)) from error
        if self.place.tasks == 1 and drill.absent:
            raise UsageError(say("--drill absent needs a launcher: here no task could stay away"))
        if self._request.device == "cuda":
            why = drill.lacks_task(self.place.tasks)
            self._say_who_stays_away(drill)
        else:
            why = drill.problem(self.place.tasks * (self._request.ranks or 1))
        if why:
            raise UsageError(why)
        return drill

    def _say_who_stays_away(self, drill: job_plan.Drill) -> None:
        """Report that more than one rank stays away if a task uses all GPUs of its node."""
        place = self.place
        if place.task == 0 and place.local_tasks == 1 and not place.one_gpu and drill.absent:
            tasks = in_series([str(task) for task in sorted(drill.absent)])
            self._listener.note(
                say(
                    "--drill absent: task {tasks} stays away, with every GPU of its node",
                    tasks=tasks,
                )
            )

    def _read_baseline(self) -> baseline.Baseline | None:
        """Return what this node's GPUs reached before; None without a comparison.

        Raises:
            UsageError: the file is not a baseline.
        """
        if self._request.baseline != "compare":
            return None
        try:
            return baseline.load(baseline.default_path(self._host.env()))
        except baseline.RateBaselineError as error:
            raise UsageError(words_of(error)) from error


def _tell_why(session: Session, error: BaseException) -> None:
    """Tell the other tasks why this one ends: task 0 would otherwise look like a dead one."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        session.abandon(MISCONFIGURED, no_room(error))
    elif isinstance(error, KeyboardInterrupt):
        session.abandon(INCONCLUSIVE, say("task 0 was interrupted"))
    else:
        name = type(error).__name__
        session.abandon(INCONCLUSIVE, say("task 0 failed by itself ({error})", error=name))


def _status(verdict: Mapping[str, Any]) -> int:
    status = verdict.get("exit")
    return status if isinstance(status, int) and 0 <= status <= _HIGHEST else INCONCLUSIVE


def _why(exit_reason: ExitReason, host: str) -> str:
    """Return why a task has no verdict; ``host`` is where task 0 runs."""
    if exit_reason.reason == "store-lost":
        return say(
            "rank 0, or its store, is gone (look at host {host}): {why}",
            host=host,
            why=exit_reason.detail,
        )
    return exit_reason.detail


def roots(snapshot: Snapshot, tables: Tables) -> list[RootCause]:
    """Return the errors that the rules find on this node, the root cause first."""
    standing = diagnose(snapshot, tables).standing
    return [
        RootCause(
            slug=finding.slug,
            headline=finding.headline,
            confidence=finding.confidence,
            fixes=finding.fixes,
        )
        for finding in standing
        if finding.severity is Severity.ERROR
    ]
