"""A pre-flight as one task of a job: from what is wanted to its outcome, without a word printed."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from gpucheck.api.errors import NO_ROOM, AskError, RefusedError, UsageError, no_room
from gpucheck.api.preflight_request import PreflightRequest
from gpucheck.api.selftests import test_names
from gpucheck.api.words import printable, words_of
from gpucheck.cluster import drill as drills
from gpucheck.cluster import refusal as refusal_of_task
from gpucheck.cluster import unreached
from gpucheck.cluster.diagnose.localise import Limits
from gpucheck.cluster.door import Door
from gpucheck.cluster.figures import baseline, policy
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.judgement import Judgement, Result, Wanted, roots
from gpucheck.cluster.launchers import entrance
from gpucheck.cluster.launchers.variables import EntranceError
from gpucheck.cluster.model import ExitStatus
from gpucheck.cluster.refusal import Refused
from gpucheck.cluster.session import Policy, Session
from gpucheck.cluster.store.client import ConnectError
from gpucheck.cluster.store.messages import Verdict
from gpucheck.cluster.store.wire import NoPortError, SameRunError, StoreError
from gpucheck.cluster.task.supervisor import ExitReason
from gpucheck.facts import builtins
from gpucheck.facts.encoding import in_utf_8
from gpucheck.facts.streams import reading
from gpucheck.language import in_series, say
from gpucheck.machine import LiveHost
from gpucheck.machine.candidates import Candidate, TargetWish, choose
from gpucheck.machine.target import refusal
from gpucheck.tables import Tables

INCONCLUSIVE: ExitStatus = 3
MISCONFIGURED: ExitStatus = 4
_USAGE = 2
_HIGHEST = 5
_MISFITS = ("wrong-token", "task-taken", "other-size")
"""Why a store does not let a task in that belongs to another job, or to none."""
_FIRST = 60.0
"""Seconds for the first collective with the usual time limit; later rounds have a quarter."""
_FEW, _SHARE_OF_FEW = 256, 0.75
"""Up to so many tasks connect faster, and have this share of the time for it. So a rank that hangs
is named within a minute."""
_ALONE = 30.0
_LONGEST_FILE = 1 << 20
_LONGEST_MESSAGE = 600


class Task:
    """One task's run.

    Args:
        wish: what the user wants.
        tables: the compatibility tables.
        begun: when the command began, a time of ``time.monotonic()``.

    Raises:
        UsageError: what is wanted, or the launcher's information, makes no sense.
    """

    takes_signals = False
    """Whether this process is gpucheck's own, so that a SIGTERM means the pre-flight."""

    def __init__(self, wish: PreflightRequest, tables: Tables, begun: float) -> None:
        self._wish = wish
        self._begun = begun
        self._host = LiveHost("")
        self._tables = tables
        self._entrance = self._find_entrance()
        with self._refusing():
            self._check_places()
            self._drill = self._read_drill()
            self._requirements = self._read_requirements()
            self._baseline = self._read_baseline()
        self._session: Session | None = None
        self._status: int = INCONCLUSIVE
        """The exit status if the run ended now."""
        self._judgement = Judgement(
            self._wanted(), self._tables, self._local_snapshot, lambda: time.monotonic() - begun
        )

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        """Tell the other tasks if this one is refused: they would call it missing otherwise.

        Raises:
            AskError: it was refused; of a process of its own what :meth:`_refused` returns.
        """
        try:
            yield
        except AskError as error:
            if self._entrance.tasks == 1:
                raise
            why = words_of(error)
            self._say_refused(why)
            raise self._refused(error, self._refuse(why)) from error

    def _refuse(self, why: str) -> int:
        """Tell the other tasks why this one is refused; return the exit status."""
        place = self._entrance
        token = self._host.env().get(entrance.TOKEN_VARIABLE, "").strip()
        verdict = refusal_of_task.tell(
            Refused(place, self._host.identity().node, why, self._begun + self._wish.timeout),
            Door(self._host.env(), place, self._wish.port, token),
        )
        return _USAGE if verdict is None or verdict.all_refused else verdict.exit

    def _run(self) -> int:
        """Run it; return the exit status."""
        with self._refusing():
            plan = self._plan()
        try:
            session = self._session = Session(
                self._host, self._entrance, plan, self._policy(), self._tell
            )
        except StoreError as error:
            return self._without_store(error)
        except OSError as error:
            return self._without_room(error)
        with self._in_charge_of_signals():
            try:
                return self._end(session, session.run())
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
            self._status = MISCONFIGURED
            self._say(say("misconfigured: {why}", why=why), always=True)
        else:
            why = self._no_store(error)
            self._say(say("inconclusive: {why}", why=why))
        self._without_verdict({"exit": self._status, "why": why})
        return self._status

    def _without_room(self, error: OSError) -> int:
        if error.errno not in NO_ROOM:
            raise error
        self._say(say("misconfigured: {why}", why=no_room(error)), err=True)
        return MISCONFIGURED

    def _end(self, session: Session, exit_reason: ExitReason) -> int:
        """Show and write what is known; return the exit status."""
        self._all_is_known()
        is_given_up = exit_reason.reason == "given-up"  # the others have a verdict of their own
        if exit_reason.verdict is None and session.coordinator is not None and not is_given_up:
            is_blind = exit_reason.reason in ("store-lost", "not-understood")
            session.coordinator.stop(exit_reason.detail, is_blind=is_blind)  # what it knows
        result = self._judgement.result
        verdict: dict[str, Any] = {"exit": INCONCLUSIVE, "why": exit_reason.detail}
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
            why = _why(exit_reason, unreached.host_of_task_0(self._entrance))
            self._say(say("inconclusive: {why}", why=why))
        self._take_verdict(session, verdict, exit_reason.verdict)
        self._save_baseline(session, verdict)
        if exit_reason.reason in ("verdict", "signal", "time"):
            session.leave()
        return self._status

    def _say_what_was_lost(self, session: Session, exit_reason: ExitReason) -> None:
        """Report what the tasks that met without task 0 know of it, or that it was refused."""
        verdict = exit_reason.verdict
        sentence = exit_reason.detail or (verdict.refused if verdict is not None else "")
        if sentence and self._status == INCONCLUSIVE:
            sentence = say("inconclusive: {why}", why=sentence)
        if sentence:
            self._say(sentence, always=session.has_taken_over)

    # What whoever runs it may add.

    def _check_places(self) -> None:
        """Refuse places that cannot be written to, before the work."""

    def _say_refused(self, why: str) -> None:
        """Report that this task of a job cannot take part."""

    def _refused(self, error: AskError, _status: int) -> BaseException:
        """Return what is raised once the other tasks know of it."""
        return error

    def _in_charge_of_signals(self) -> "contextlib.AbstractContextManager[None]":
        return contextlib.nullcontext()

    def _all_is_known(self) -> None:
        """Act on the end of the tests, before anything is shown."""

    def _show(self, result: Result) -> None:
        """Show the result, which task 0 alone has."""

    def _take_verdict(
        self, session: Session, verdict: Mapping[str, Any], said: Verdict | None
    ) -> None:
        """Act on the verdict, which each task has."""

    def _without_verdict(self, verdict: Mapping[str, Any]) -> None:
        """Act on the end of a task that has found no store."""

    def _tell(self, what: str) -> None:
        """Show what is going on."""

    def _say(self, sentence: str, *, err: bool = False, always: bool = False) -> None:
        """Report why this task has no report; ``always``: whichever task of its node it is."""

    def _note(self, sentence: str) -> None:
        """Report something beside the result."""

    def _asks(self, python: TargetWish) -> None:
        """Act on the choice of an interpreter, which is about to be run."""

    # What it needs.

    def _save_baseline(self, session: Session, verdict: Mapping[str, Any]) -> None:
        """Save what this task's GPUs have reached, if all was well and this was not a drill."""
        is_well = verdict["exit"] == 0 and not self._drill
        if self._wish.baseline != "save" or not is_well:
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
            baseline.update(baseline.default_path(self._host.env()), new)
        except baseline.BaselineError as error:
            self._note(words_of(error))

    def _no_store(self, error: StoreError) -> str:
        """Return why there is no store, and what a name of Slurm's needs if that is the reason."""
        place = self._entrance
        unknown = isinstance(error, ConnectError) and error.reason == "not-resolved"
        if isinstance(error, ConnectError) and not unknown:
            return printable(unreached.never_met(error, place))
        if place.launcher != "slurm" or not unknown or self._wish.master:
            return words_of(error)
        return unreached.advice(words_of(error), place.master_host)

    def _policy(self) -> Policy:
        judgement = self._judgement
        return Policy(
            judgement.next_step,
            judgement.finish,
            lambda snapshot: roots(snapshot, self._tables),
            judgement.without_task_0,
        )

    def _wanted(self) -> Wanted:
        wish = self._wish
        share = wish.timeout / 4
        usual = max(_FIRST, wish.timeout / 5)
        first = usual if self._entrance.tasks > _FEW else _SHARE_OF_FEW * usual
        cuda = wish.device == "cuda"
        return Wanted(
            backend="nccl" if cuda else "gloo",
            launcher=self._entrance.launcher,
            limits=Limits(
                backend="nccl" if cuda else "gloo",
                tests=test_names(wish.tests),
                alone_seconds=min(_ALONE, share),
                first_seconds=min(first, share),
                least_seconds=min(usual / 4, share / 2),
                links=wish.links,
            ),
            requirements=self._requirements,
            fail_on=wish.fail_on,
            drill=bool(self._drill),
            begun=self._begun,
            timeout=wish.timeout,
            notices=(
                *self._entrance.notices,
                *unreached.notices(self._entrance, master_is_given=bool(wish.master)),
            ),
        )

    def _plan(self) -> JobPlan:
        wish, python = self._wish, self._python()
        plan = JobPlan(
            tasks=self._entrance.tasks,
            cuda=wish.device == "cuda",
            begun=self._begun,
            level=wish.level,
            python=python.executable,
            chosen_by=python.chosen_by,
            port=wish.port,
            token=self._token(),
            drill=self._drill,
            baseline=self._baseline,
            takes_signals=self.takes_signals,
        )
        return plan.within(wish.timeout, self._entrance, wish.ranks)

    def _python(self) -> Candidate:
        """Return the target interpreter.

        Raises:
            UsageError: there is none.
            RefusedError: the one that was named cannot be used.
        """
        wish = TargetWish(python=self._wish.python)
        if self._entrance.tasks == 1 and (why := refusal(self._host, wish)):
            raise RefusedError(printable(why, limit=_LONGEST_MESSAGE))
        candidates = choose(self._host, wish)
        if not candidates:
            raise UsageError(say("no Python interpreter was found: name one with --python"))
        if candidates[0].problem:
            raise RefusedError(printable(candidates[0].problem))
        self._asks(wish)
        return candidates[0]

    def _find_entrance(self) -> entrance.TaskPlace:
        options = self._wish
        wish = entrance.Wish(
            master=options.master, nodes=options.nodes, pid=os.getpid(), parent=os.getppid()
        )
        try:
            found = entrance.find(self._host.env(), wish)
        except EntranceError as error:
            raise UsageError(words_of(error)) from error
        for note in found.notes:
            self._note(note)
        return found

    def _token(self) -> str:
        try:
            return entrance.token(self._host.env())
        except EntranceError as error:
            raise UsageError(words_of(error)) from error

    def _read_drill(self) -> drills.Drill:
        try:
            drill = drills.parse(self._wish.drill)
        except ValueError as error:
            raise UsageError(words_of(error)) from error
        if self._entrance.tasks == 1 and drill.absent:
            raise UsageError(say("--drill absent needs a launcher: here no task could stay away"))
        if self._wish.device == "cuda":
            why = drill.lacks_task(self._entrance.tasks)
            self._say_who_stays_away(drill)
        else:
            why = drill.problem(self._entrance.tasks * (self._wish.ranks or 1))
        if why:
            raise UsageError(why)
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
            UsageError: one is not understood, or a file cannot be read.
        """
        parts, lines = [], []
        try:
            for text in self._wish.require:
                if "=" in text and not os.path.isfile(text):  # noqa: PTH113  # never raises
                    lines.append(text)
                else:
                    parts.append(policy.parse_file(_content(text), text))
            return policy.joined([*parts, policy.parse_lines(lines)])
        except policy.PolicyError as error:
            raise UsageError(words_of(error)) from error

    def _read_baseline(self) -> baseline.Baseline | None:
        """Return what this node's GPUs reached before; None without a comparison.

        Raises:
            UsageError: the file is not a baseline.
        """
        if self._wish.baseline != "compare":
            return None
        try:
            return baseline.load(baseline.default_path(self._host.env()))
        except baseline.BaselineError as error:
            raise UsageError(words_of(error)) from error

    def _local_snapshot(self) -> Any:  # noqa: ANN401  # a Snapshot, or None
        return self._session.snapshot if self._session is not None else None


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


def _content(name: str) -> str:
    try:
        with reading(Path(name)) as opened:
            return in_utf_8(opened.read(_LONGEST_FILE)).decode("utf-8", "replace")
    except (OSError, ValueError) as error:  # ValueError: no file can have such a name
        raise UsageError(
            say(
                "--require {name}: neither KEY=VALUE nor a file that can be read ({strerror})",
                name=printable(name),
                strerror=getattr(error, "strerror", None) or printable(str(error)),
            )
        ) from error


def _why(exit_reason: ExitReason, host: str) -> str:
    """Return why a task has no verdict; ``host`` is where task 0 runs."""
    if exit_reason.reason == "store-lost":
        return say(
            "rank 0, or its store, is gone (look at host {host}): {why}",
            host=host,
            why=exit_reason.detail,
        )
    return exit_reason.detail
