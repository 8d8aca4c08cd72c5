"""The outcome of one self-test: from its answer, or from the end of its process."""

from typing import Any

import msgspec

from gpucheck.facts.selftests import Measurement, SelfTest, SelfTestStatus
from gpucheck.language import Sentence, say
from gpucheck.machine.worker_pool.exits import worker_exit
from gpucheck.machine.worker_pool.worker_messages import Message
from gpucheck.selftests.plan import Job
from gpucheck.selftests.worker_words import sentence_in

_LONGEST = 2000
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
