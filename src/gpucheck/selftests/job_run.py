"""A running job: its current test, and the meaning of the end of its process."""

import time

import msgspec

from gpucheck.facts.selftests import SelfTest
from gpucheck.language import say
from gpucheck.machine.worker_pool.exits import last_words
from gpucheck.machine.worker_pool.process import WorkerProcess
from gpucheck.machine.worker_pool.worker_messages import Message
from gpucheck.selftests import outcome
from gpucheck.selftests.plan import Job
from gpucheck.selftests.ranks import stopped_for

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
