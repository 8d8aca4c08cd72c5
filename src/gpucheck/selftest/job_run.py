"""A job that runs: which of its tests it is at, and what the end of its process means."""

import msgspec

from gpucheck.facts.selftests import SelfTest
from gpucheck.machine.worker_pool.exits import last_words
from gpucheck.machine.worker_pool.messages import Message
from gpucheck.machine.worker_pool.process import WorkerProcess
from gpucheck.selftest import outcome
from gpucheck.selftest.plan import Job

_PEER_SECONDS = 10.0
"""How long the other ranks of a test are waited for once one has failed."""


class JobRun:
    """A job that runs.

    Args:
        job: what it runs.
        process: its worker.
        limit: seconds of the whole run, for the sentence that says it is over.

    Attributes:
        done: how many of its tests have an outcome.
        begun: whether the next of them has begun.
        stage: what it is about to do.
    """

    def __init__(self, job: Job, process: WorkerProcess, limit: float) -> None:
        self.job = job
        self.done = 0
        self.begun = False
        self.stage = ""
        self._process = process
        self._limit = limit
        self._failed_peer: SelfTest | None = None

    @property
    def test(self) -> str:
        """The test that it is at."""
        return self.job.tests[min(self.done, len(self.job.tests) - 1)]

    @property
    def left(self) -> Job | None:
        """What it still has to do; None when every test has an outcome."""
        is_over = self.done >= len(self.job.tests)
        return None if is_over else self.job.without(self.done)

    def reach(self, stage: str) -> None:
        """Note what it is about to do, unless it is being ended already."""
        if not self._process.is_signalled:
            self.stage = stage

    def begin(self, seconds: float) -> None:
        """Note that its next test has begun, and how long it may take."""
        self.begun, self.stage = True, ""
        self._process.allow(seconds)

    def finish(self, seconds: float) -> None:
        """Note that the test has an outcome; the next one must begin soon."""
        self.done += 1
        self.begun = False
        self._process.allow(seconds)

    def hurry(self, failed: SelfTest) -> None:
        """Wait only a little longer: a rank that this one needs has failed."""
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
                detail=f"stopped: {self._failed_peer.place} had {_past(self._failed_peer.status)}",
                data=last_words(str(message.get("printed", ""))), seconds=seconds,
            )  # fmt: skip
        killed = self._why() if self._process.is_signalled else ""
        found = outcome.ended(self.job, self.test, self.stage, message, killed=killed)
        at_limit = self._process.stopped_for == "run-limit"
        kind = "run-limit" if at_limit else found.kind
        return msgspec.structs.replace(found, kind=kind, seconds=seconds)

    def _why(self) -> str:
        """Say why it was ended."""
        where = f" in: {self.stage}" if self.stage else ""
        if self._process.stopped_for == "run-limit":
            why = f"stopped at the time limit of the run ({self._limit:g} s){where}"
        else:
            why = f"no end after {self._process.allowed:.3g} s{where}"
        stuck = "; it cannot be killed: it is stuck in the driver"
        return why + stuck if self._process.is_unkillable else why


def _past(status: str) -> str:
    return {"timed-out": "not ended in time"}.get(status, status)
