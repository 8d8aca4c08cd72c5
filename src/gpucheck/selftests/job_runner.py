"""Runs jobs in workers, until each of their tests has an outcome."""

import contextlib
import math
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from gpucheck.facts.selftests import SelfTest
from gpucheck.language import Sentence, say
from gpucheck.machine.worker_pool.pool import ZYGOTE, StartProgram, WorkerPool
from gpucheck.machine.worker_pool.process import Message, WorkerProcess, last_words
from gpucheck.selftests import outcome
from gpucheck.selftests.outcome import ProgressGrid, sentence_in, settled, stopped_for
from gpucheck.selftests.plan import Job, SelfTestHeader, Step, Wish, first_job, order
from gpucheck.worker import BOOTSTRAP

# The folder that the processes of one step share: creation, removal, and cleanup after a kill.
#
# A run that is killed cannot remove its own folder, so the next run does. It removes folders that
# belong to this user, have a name of gpucheck's form, and are not locked. Every run locks its own
# folder.

_PREFIX = "gpucheck-step-"
# What mkdtemp makes of the prefix: other folders of that name are not removed.
_OURS = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_PRIVATE = 0o700  # as mkdtemp makes it: another mode is not our folder
_LOCKS = os.name == "posix"
_YOUNG = 60.0
"""Seconds: a younger folder may belong to a run that has not locked it yet."""


@contextlib.contextmanager
def step_folder() -> Iterator[str]:
    """Make a folder that the ranks of a step share; "" if none can be made."""
    try:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
    except OSError:
        folder = ""
    lock = _open(folder) if folder else None
    try:
        if lock is not None:
            _lock(lock)
        yield folder
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(place: str | None = None) -> None:
    """Remove the folders that killed runs of this user have left behind."""
    where = Path(place or tempfile.gettempdir())
    with contextlib.suppress(OSError):
        for folder in where.iterdir():
            if _OURS.fullmatch(folder.name):
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    handle = _open(folder)
    if handle is None:
        return
    try:
        found = os.fstat(handle)
        is_ours = found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == _PRIVATE
        if is_ours and time.time() - found.st_mtime > _YOUNG and _lock(handle):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _open(folder: str | Path) -> int | None:
    """Open a folder; None if it is a link or cannot be opened."""
    if not _LOCKS:
        return None
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None


def _lock(handle: int) -> bool:
    """Lock the folder as long as it is open; False if another process has locked it."""
    import fcntl  # noqa: PLC0415  # not on Windows

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


_TICK = 0.05  # seconds; chosen: progress is drawn less often, and a deadline may be so late
_GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL, and from there to giving up."""
_IMPORT_SECONDS = (
    60.0  # docs/selftests/reference.md promises it; it took 3.8 s on an H100 (docs/evidence.md)
)
_START_SECONDS = 30.0
"""Seconds from the order to the first test, and between two tests."""
_LONGEST_STAGE = 300  # chosen: a stage is a sentence
_SHORTEST = 1.0
"""A job with less time than this is not started."""

_PEER_SECONDS = 10.0
"""How long the other ranks of a test are waited for once one has failed."""


class JobRun:
    """A running job.

    Args:
        job: the job.
        process: its worker.
        limit: the seconds of the whole run, for the sentence that says that this time is over.

    Attributes:
        done: how many of its tests have an outcome.
        begun: whether the next of them has begun.
        began: when that was, a time of ``time.monotonic()``; None if it has not begun.
        stage: its next dangerous step.
    """

    def __init__(self, job: Job, process: WorkerProcess, limit: float) -> None:
        self.job = job
        self.done = 0
        self.begun = False
        self.began: float | None = None
        self.stage = ""
        self._process = process
        self._limit = limit
        self._failed_peer: SelfTest | None = None

    @property
    def test(self) -> str:
        """The current test."""
        return self.job.tests[min(self.done, len(self.job.tests) - 1)]

    @property
    def left(self) -> Job | None:
        """The rest of the job; None if every test has an outcome."""
        is_over = self.done >= len(self.job.tests)
        return None if is_over else self.job.without(self.done)

    def reach(self, stage: str) -> None:
        """Note its next dangerous step, unless it is already being ended."""
        if not self._process.is_signalled:
            self.stage = stage

    def begin(self, seconds: float) -> None:
        """Note that its next test has begun, and set the deadline of the test."""
        self.begun, self.stage = True, ""
        self.began = time.monotonic()
        self._process.allow(seconds)

    def finish(self, seconds: float) -> None:
        """Note that the test has an outcome; the next one must begin soon."""
        self.done += 1
        self.begun = False
        self.began = None
        self._process.allow(seconds)

    def hurry(self, failed: SelfTest) -> None:
        """Shorten the deadline, because a rank that this one needs has failed."""
        if self._failed_peer is None and self._process.seconds_left > _PEER_SECONDS:
            self._process.stop("peer-failed", within=_PEER_SECONDS)
            self._failed_peer = failed

    def has_ended_well(self, message: Message) -> bool:
        """Whether its process ended at a permitted point: after its last test, or between two."""
        between = self.done > 0 and not self.begun and message.get("status") == 0
        return between or self.left is None

    def result(self, message: Message) -> SelfTest:
        """Return what the end of its process means for its current test."""
        seconds = round(self._process.seconds, 3)
        if self._process.is_signalled and self._failed_peer is not None:
            return outcome.made(
                self.job, self.test, "skipped", stage=self.stage, kind="stopped",
                detail=stopped_for(self._failed_peer),
                data=last_words(str(message.get("printed", ""))), seconds=seconds,
            )  # fmt: skip
        killed = self._why() if self._process.is_signalled else ""
        found = outcome.ended(self.job, self.test, self.stage, message, killed=killed)
        at_limit = self._process.stopped_for == "run-limit"
        kind = "run-limit" if at_limit else found.kind
        return msgspec.structs.replace(found, kind=kind, seconds=seconds)

    def _why(self) -> str:
        """Return why it was ended."""
        why = self._at_limit() if self._process.stopped_for == "run-limit" else self._no_end()
        if self._process.is_unkillable:
            return say("{why}; it cannot be killed: it is stuck in the driver", why=why)
        return why

    def _at_limit(self) -> str:
        if self.stage:
            return say(
                "stopped at the time limit of the run ({limit:g} s) in: {stage}",
                limit=self._limit, stage=self.stage,
            )  # fmt: skip
        return say("stopped at the time limit of the run ({limit:g} s)", limit=self._limit)

    def _no_end(self) -> str:
        seconds = self._process.allowed
        if self.stage:
            return say(
                "it did not end within {seconds:.3g} s, in: {stage}",
                seconds=seconds,
                stage=self.stage,
            )
        return say("it did not end within {seconds:.3g} s", seconds=seconds)


class JobRunner:
    """Runs the jobs of one target interpreter.

    Args:
        start: starts a program (``LiveHost.supervise``).
        python: the target interpreter.
        wish: what the user asked for.
        headers: every self-test.
        grid: receives the state of each test.
        tell: called ten times a second.
        cores: the number of CPU cores of this machine.
        forks: whether workers may be forked by one process that imports torch.
    """

    def __init__(
        self,
        start: StartProgram,
        python: str,
        wish: Wish,
        headers: Mapping[str, SelfTestHeader],
        *,
        grid: ProgressGrid,
        tell: Callable[[], None],
        cores: int,
        forks: bool,
    ) -> None:
        self._wish = wish
        self._headers = headers
        self._grid = grid
        self._tell = tell
        self._cores = cores
        self._begun = time.monotonic()
        self._end = self._begun + wish.timeout
        self._pool = WorkerPool(
            start, (python, BOOTSTRAP), self._hear, end=self._end, grace=_GRACE,
            import_seconds=_IMPORT_SECONDS, forks=forks,
        )  # fmt: skip
        self._under_way: dict[str, JobRun] = {}
        self._waiting: list[Job] = []
        self._results: list[SelfTest] = []
        self.import_seconds: float | None = None
        """How long importing torch took."""

    @property
    def forks(self) -> bool:
        """Whether workers are forked."""
        return self._pool.forks

    def import_torch(self) -> list[SelfTest]:
        """Have torch imported once for all workers; return what went wrong, [] if nothing did.

        A zygote that must not fork is replaced by workers that import torch themselves.
        """
        self._results = []
        job = first_job()
        if problem := self._pool.open():
            self._not_started(job, problem)
        elif self._pool.zygote is not None:
            self._under_way[ZYGOTE] = JobRun(job, self._pool.zygote, self._wish.timeout)
            while self._pool.state == "importing":
                self._tell()
                self._pool.tick(_TICK)
            self._under_way.clear()
        return self._results

    def run(self, step: Step) -> list[SelfTest]:
        """Run jobs side by side; return the outcome of each of their tests."""
        self._results = []
        with step_folder() as folder:
            try:
                self._work_off(step, folder)
            except BaseException:
                self._pool.close()  # what still runs would go on writing into the folder
                raise
        if step[0].world_size > 1:
            self._results = settled(self._results)
            self.show(step, self._results)
        return self._results

    def show(self, step: Step, results: list[SelfTest]) -> None:
        """Show how the ranks of a step ended, once it is known which rank is to blame."""
        for job, result in zip(step, results, strict=False):
            self._grid.put(result.name, job.place, result.status)

    def stop_forking(self) -> None:
        """Run each further job in a process of its own."""
        self._pool.stop_forking()

    def skip(self, job: Job, why: str) -> list[SelfTest]:
        """Return the tests of a job as skipped."""
        found = [outcome.made(job, test, "skipped", detail=why) for test in job.tests]
        for result in found:
            self._grid.put(result.name, job.place, result.status)
        return found

    def close(self) -> None:
        """Kill what still runs."""
        self._pool.close()

    def _work_off(self, step: Step, folder: str) -> None:
        threads = max(1, self._cores // len(step))
        self._waiting = list(step)
        while self._waiting or self._under_way:
            waiting, self._waiting = self._waiting, []
            for job in waiting:
                self._launch(job, threads, folder)
            self._tell()
            self._pool.tick(_TICK)
            self._hurry()

    def _launch(self, job: Job, threads: int, folder: str) -> None:
        """Start a job, unless that is impossible or no time is left for it."""
        if time.monotonic() + _SHORTEST > self._end:
            limit = self._wish.timeout
            why = say("the time limit of the run ({limit:g} s) left no time", limit=limit)
            self._results += self.skip(job, why)
            return
        sent_order = order(job, self._wish, self._headers, threads=threads, folder=folder)
        process = self._pool.start(job.key, sent_order, self._start_seconds())
        if process.problem and self._pool.forks:
            self._pool.stop_forking()
            process = self._pool.start(job.key, sent_order, self._start_seconds())
        if process.problem:
            self._not_started(job, process.problem)
            return
        self._grid.put(job.tests[0], job.place, "running")
        self._under_way[job.key] = JobRun(job, process, self._wish.timeout)

    def _start_seconds(self) -> float:
        return self._pool.own_import_seconds + _START_SECONDS

    def _hurry(self) -> None:
        """Hurry the ranks that wait for a failed one."""
        failed = next((result for result in self._results if result.went_wrong), None)
        for run in self._under_way.values():
            if failed is not None and run.job.world_size > 1:
                run.hurry(failed)

    def _hear(self, process: WorkerProcess, message: Message) -> None:
        """Process a message of a worker, or of the zygote while it imports torch."""
        run = self._under_way.get(process.key)
        event = message.get("event")
        if run is None:
            return
        if event == "ended":
            self._take_end(run, process, message)
        elif run.left is None:
            return  # it may repeat its answers without end
        elif "too_old" in message:
            self._note(run, _too_old(run, message))
        elif event == "stage":
            run.reach(_stage(message))
            self._grid.stages[run.job.place] = run.stage
        elif event == "ready":
            self.import_seconds = _import_seconds(message)
        elif event == "begin":
            run.begin(self._headers[run.test].seconds[self._wish.level])
            self._grid.stages.pop(run.job.place, None)
            self._grid.put(run.test, run.job.place, "running")
        elif event == "result":
            self._note(run, self._marked(outcome.answered(run.job, message, run.stage)))
        elif event == "import-failed":
            self._note(run, outcome.import_failed(run.job, message))

    def _take_end(self, run: JobRun, process: WorkerProcess, message: Message) -> None:
        """Note the end of a process; a fresh process runs the rest of its tests."""
        del self._under_way[process.key]
        if process.is_unkillable:
            self._note(run, run.result(message))
            if run.left is not None:
                why = say("the GPU is held by a process that cannot be killed")
                self._results += self.skip(run.left, why)
            return
        if not run.has_ended_well(message):
            self._note(run, self._marked(run.result(message)))
        if run.left is not None:
            self._waiting.append(run.left)

    def _note(self, run: JobRun, result: SelfTest) -> None:
        if run.began is not None:
            began = round(run.began - self._begun, 2)
            result = msgspec.structs.replace(result, began=began)
        run.finish(_START_SECONDS)
        self._keep(result, run.job)

    def _keep(self, result: SelfTest, job: Job) -> None:
        self._results.append(result)
        self._grid.put(result.name, job.place, result.status)

    def _not_started(self, job: Job, problem: str) -> None:
        first = job.tests[0]
        self._keep(outcome.made(job, first, "crashed", kind="not-started", detail=problem), job)
        self._results += self.skip(job.without(1), problem)

    def _marked(self, result: SelfTest) -> SelfTest:
        """Note in a failed result that its process was forked."""
        if not result.went_wrong or not self._pool.forks:
            return result
        return msgspec.structs.replace(result, data={**result.data, "forked": True})


def _stage(message: Message) -> str:
    text = sentence_in(message, "text")
    return text if isinstance(text, Sentence) else text[:_LONGEST_STAGE]


def _import_seconds(message: Message) -> float | None:
    """Return how long a worker says that importing torch took; None if it says nothing sound."""
    notes = message.get("notes")
    import_seconds = notes.get("import_seconds") if isinstance(notes, dict) else None
    if not isinstance(import_seconds, int | float) or isinstance(import_seconds, bool):
        return None
    return import_seconds if math.isfinite(import_seconds) else None


def _too_old(run: JobRun, message: Message) -> SelfTest:
    version = str(message["too_old"])[:20]
    detail = say(
        "the target is Python {version}; the self-tests need 3.8 or newer", version=version
    )
    return outcome.made(run.job, run.test, "crashed", kind="too-old", detail=detail)
