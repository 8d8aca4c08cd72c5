"""A job under way: where it is, until when it may take, and how it is ended."""

import time
from typing import Literal

import msgspec

from gpucheck.host.supervised import KILL, TERMINATE
from gpucheck.probes.selftests import SelfTest
from gpucheck.selftest import outcome
from gpucheck.selftest.crew import Crew, Message
from gpucheck.selftest.plan import Job

State = Literal["waiting", "running", "passed", "failed", "skipped", "timed-out", "crashed"]

_TERM_SECONDS = _KILL_SECONDS = 2.0
_PEER_SECONDS = 10.0
"""How long the ranks of a test are waited for once one of them has failed."""


class Board:
    """What is known while the tests run, for whoever shows it."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, State]] = {}
        """By test, then by place."""
        self.stages: dict[str, str] = {}
        """What each place is about to do."""
        self.started = time.monotonic()

    def put(self, test: str, place: str, state: State) -> None:
        """Note the state of a test in a place."""
        self.cells.setdefault(test, {})[place] = state


class Running:
    """One job under way.

    Args:
        job: what it runs.
        seconds: how long it may take to begin.
        end: the end of the run, a time of ``time.monotonic()``.
        limit: seconds of the whole run, for the words that say it is over.
    """

    def __init__(self, job: Job, seconds: float, end: float, limit: float) -> None:
        self.job = job
        self.done = 0
        """How many of its tests have an outcome."""
        self.begun = False
        """Whether the next of them has begun."""
        self.stage = ""
        self._end = end
        self._limit = limit
        self._killed = ""
        self._at_limit = False
        self._waits_for: SelfTest | None = None
        self._sent = 0
        self.wait_for(seconds)

    @property
    def test(self) -> str:
        """The test that it is at."""
        return self.job.tests[min(self.done, len(self.job.tests) - 1)]

    def wait_for(self, seconds: float) -> None:
        """Give it so long from now, but not longer than the run."""
        self._since = time.monotonic()
        self._deadline = min(self._since + seconds, self._end)

    def begin(self, seconds: float) -> None:
        """Note that its next test has begun."""
        self.begun, self.stage = True, ""
        self.wait_for(seconds)

    def finish(self, seconds: float) -> None:
        """Note that the test has an outcome; the next one is to begin soon."""
        self.done += 1
        self.begun = False
        self.wait_for(seconds)

    def hurry(self, because: SelfTest) -> None:
        """Wait only a little longer: a rank that this one waits for has failed."""
        soon = time.monotonic() + _PEER_SECONDS
        if not self._killed and soon < self._deadline:
            self._deadline, self._waits_for = soon, because

    def seconds(self) -> float:
        """Return how long the current test has taken."""
        return time.monotonic() - self._since

    def push(self, crew: Crew, key: str) -> bool:
        """Take the next step to end it when its time has come; True when all is in vain."""
        now = time.monotonic()
        if now < self._deadline:
            return False
        if not self._killed:
            self._killed = self._why(now)
            self._deadline = self._signal(crew, key, TERMINATE, _TERM_SECONDS)
        elif self._sent == TERMINATE != KILL:
            self._deadline = self._signal(crew, key, KILL, _KILL_SECONDS)
        else:
            self._killed += "; it cannot be killed: it is stuck in the driver"
            return True
        return False

    def result(self, message: Message) -> SelfTest:
        """Return what the end of its process means for its current test."""
        if self._killed and self._waits_for is not None:
            first = self._waits_for
            return outcome.made(
                self.job, self.test, "skipped", stage=self.stage, kind="stopped",
                detail=f"stopped: {first.place} had {_past(first.status)}",
                data=outcome.printed_data(str(message.get("printed", ""))),
                seconds=round(self.seconds(), 3),
            )  # fmt: skip
        found = outcome.ended(self.job, self.test, self.stage, message, killed=self._killed)
        kind = "run-limit" if self._at_limit else found.kind
        return msgspec.structs.replace(found, kind=kind, seconds=round(self.seconds(), 3))

    def _signal(self, crew: Crew, key: str, number: int, seconds: float) -> float:
        crew.signal(key, number)
        self._sent = number
        return time.monotonic() + seconds

    def _why(self, now: float) -> str:
        self._at_limit = now >= self._end
        where = f" in: {self.stage}" if self.stage else ""
        if self._at_limit:
            return f"stopped at the time limit of the run ({self._limit:g} s){where}"
        return f"no end after {self._deadline - self._since:.3g} s{where}"


def _past(status: str) -> str:
    return {"timed-out": "not ended in time"}.get(status, status)
