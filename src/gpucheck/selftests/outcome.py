"""The outcome of one self-test: from its answer, or from the end of its process."""

import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from gpucheck.facts.selftests import Measurement, SelfTest, SelfTestStatus
from gpucheck.language import Sentence, say
from gpucheck.language.read_back import said_again
from gpucheck.machine.worker_pool.process import Message, worker_exit
from gpucheck.selftests.plan import Job

# The progress of the self-tests, as the command line shows it.

State = Literal["waiting", "running", "passed", "failed", "skipped", "timed-out", "crashed"]


class ProgressGrid:
    """The state of each self-test in each place."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, State]] = {}
        """By test, then by place."""
        self.stages: dict[str, str] = {}
        """What each place is about to do."""
        self.started = time.monotonic()

    def put(self, test: str, place: str, state: State) -> None:
        """Set the state of a test in a place."""
        self.cells.setdefault(test, {})[place] = state


# A sentence in a worker's message: its English text, its template and its parameters.
#
# Any code in the target interpreter may have written the message, so it is read with care.


def sentence_in(message: Message, field: str) -> str:
    """Return the text of a field, with its template if the message has a sound one for it."""
    return said_again(str(message.get(field, "")), message.get("said"))


# Decides which rank is to blame for a failed test of several ranks, and which only waited.

_WAITED = ("collective-timeout", "peer-lost")
"""Kinds of results that only say that another rank is missing."""
_STOPPED = "stopped"
_ABORTED = "SIGABRT"
"""How NCCL's watchdog ends a process, which then can report nothing."""


def settled(results: Sequence[SelfTest]) -> list[SelfTest]:
    """Return the results of the ranks of one test, in rank order, with the blame decided.

    ``results`` are in the order in which the ranks ended. A rank for which the others waited in
    vain is timed-out, even if it was stopped only after they had given up. Ranks that lost it or
    waited for it are not to blame.
    """
    witness = next((result for result in results if result.data.get("ranks")), None)
    named = list(witness.data["ranks"]) if witness is not None else []
    read = [
        _named(result, witness) if witness is not None and result.rank in named else result
        for result in results
    ]
    suspects = [result for result in read if result.went_wrong and not _only_waited(result, named)]
    guilty = [
        suspect
        for at, suspect in enumerate(suspects)
        if not (_aborted_for_a_peer(suspect) and _has_cause(suspects[:at], suspects[at:], named))
    ]
    if guilty:
        first = min(guilty, key=lambda result: result.rank)
        blamed = {result.rank for result in guilty}
        read = [result if result.rank in blamed else _cleared(result, first) for result in read]
    return sorted(read, key=lambda result: result.rank)


def stopped_for(first: SelfTest) -> str:
    """Return why a rank was stopped: another rank had failed."""
    place = first.place
    if first.status == "timed-out":
        return say("stopped: {place} had not ended in time", place=place)
    if first.status == "crashed":
        return say("stopped: {place} had crashed", place=place)
    return say("stopped: {place} had failed", place=place)


def _only_waited(result: SelfTest, named: Sequence[int]) -> bool:
    return result.kind in _WAITED and result.rank not in named


def _aborted_for_a_peer(result: SelfTest) -> bool:
    """Whether a watchdog ended this rank, whose last output says that it lost another rank."""
    return result.data.get("signal") == _ABORTED and bool(result.data.get("lost_peer"))


def _has_cause(before: Sequence[SelfTest], after: Sequence[SelfTest], named: Sequence[int]) -> bool:
    """Whether a rank that failed for a reason of its own explains an abort among these.

    The end of that rank may be seen later than the abort: the kernel closes the connections of a
    dying process some time before its parent can notice the end. A later time-out explains the
    abort only if others name that rank, because it may itself have waited for the one that aborted.
    """
    later = (result for result in after if result.status != "timed-out" or result.rank in named)
    return any(not result.data.get("lost_peer") for result in (*before, *later))


def _named(result: SelfTest, witness: SelfTest) -> SelfTest:
    """Return the result of a rank that others name: if it was stopped, it was timed-out."""
    if result.kind != _STOPPED:
        return result
    data = {**result.data, "waited_in": str(witness.stage)}
    return msgspec.structs.replace(
        result, status="timed-out", kind="timed-out", detail=witness.detail, data=data
    )


def _cleared(result: SelfTest, first: SelfTest) -> SelfTest:
    """Return the result of a rank that is not to blame; if it was stopped, it names the culprit."""
    if not result.went_wrong and result.kind != _STOPPED:
        return result
    data = dict(result.data)
    if result.went_wrong:
        data["saw"] = data.get("lost_peer") or str(result.detail)
    return msgspec.structs.replace(
        result,
        status="skipped",
        kind=_STOPPED,
        detail=stopped_for(first),
        data=data,
    )


_LONGEST = 2000  # chosen: CUDA's long texts fit; a worker's output is untrusted
_OURS = (
    "after_fork", "confirmed", "control", "forked", "loaded_otherwise", "saw", "waited_in",
)  # fmt: skip
"""What gpucheck adds to the data of a result, and no worker says."""


class _Data(msgspec.Struct):
    """The part of a result's data that decides what is run next, and who is to blame."""

    devices: list[dict[str, Any]] = []
    ranks: list[int] = []


def answered(job: Job, message: Message, stage: str) -> SelfTest:
    """Return the result in a worker's answer; a malformed answer counts as a crash of the test."""
    try:
        status = msgspec.convert(message["status"], SelfTestStatus)
        raw = message.get("measurements", [])
        measurements = [
            msgspec.structs.replace(measured, bound_from=sentence_in(raw_measurement, "bound_from"))
            for measured, raw_measurement in zip(
                msgspec.convert(raw, list[Measurement]), raw, strict=True
            )
        ]
        data = _data(message)
        return made(
            job,
            str(message["test"]),
            status,
            stage=stage if status not in ("passed", "skipped") else "",
            seconds=float(message.get("seconds", 0.0)),
            measurements=measurements,
            kind=str(message.get("kind", "")),
            detail=sentence_in(message, "detail"),
            data=data,
        )
    except (KeyError, TypeError, ValueError) as error:
        return made(
            job, str(message.get("test", job.tests[0])), "crashed", stage=stage,
            kind="bad-answer", detail=say("its answer is not understood: {error}", error=error),
        )  # fmt: skip


def _data(message: Message) -> dict[str, Any]:
    """Return the data in a worker's answer.

    Raises:
        ValueError: they are malformed.
    """
    data = msgspec.convert(message.get("data") or {}, dict[str, Any])
    msgspec.convert(data, _Data)
    return {name: value for name, value in data.items() if name not in _OURS}


def import_failed(job: Job, message: Message) -> SelfTest:
    """Return the result of a test before which ``import torch`` raised an exception."""
    answer = {**message, "test": job.tests[0], "status": "failed", "kind": "import-failed"}
    return answered(job, answer, "import torch")


def ended(job: Job, test: str, stage: str, message: Message, *, killed: str = "") -> SelfTest:
    """Return the result of a test during which its process ended.

    ``killed`` is why gpucheck ended the process; "" if it ended by itself.
    """
    found = worker_exit(message, stage, killed=killed)
    return made(
        job, test, found.status, stage=stage, kind=found.kind, detail=found.detail, data=found.data
    )


def made(job: Job, test: str, status: SelfTestStatus, **more: Any) -> SelfTest:  # noqa: ANN401
    """Return a result for the place of this job."""
    return SelfTest(
        name=test,
        rank=job.rank,
        world_size=job.world_size,
        device=",".join(job.devices),
        status=status,
        detail=_bounded(more.pop("detail", "")),
        sources={"*": say("the self-test {test} on {place}", test=test, place=job.place)},
        **more,
    )


def _bounded(detail: str) -> str:
    if isinstance(detail, Sentence):
        return detail.mapped(lambda part: part[:_LONGEST])
    return detail[:_LONGEST]
