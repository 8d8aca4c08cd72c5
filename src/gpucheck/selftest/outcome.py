"""What became of one self-test: from its answer, from the end of its process, from silence."""

import re
import signal
from typing import Any

import msgspec

from gpucheck.probes.selftests import Measurement, SelfTest, SelfTestStatus
from gpucheck.selftest.plan import Job

Message = dict[str, Any]

_LONGEST = 2000
_PRINTED = 3000
_KILLED = 9
_NCCL_WARN = re.compile(r"NCCL WARN ([^\n]{1,300})")
_STACK = "Current thread"
_PEER_LOST = (
    "Watchdog caught collective operation timeout",
    "remote process exited",
    "NCCL communicator was aborted",
    "Connection closed by remote peer",
    "Connection closed by peer",
    "Connection reset by peer",
)
"""Words of NCCL, gloo and torch's watchdog when another rank is gone or does not answer."""
_OWN_FAULT = ("CUDA error", "Cuda failure", "CUDA out of memory")
"""The watchdog ends a process for a fault of its own GPU, too."""


def answered(job: Job, message: Message, stage: str) -> SelfTest:
    """Return what a worker has answered; an answer that is none is a crash of the test."""
    try:
        status = msgspec.convert(message["status"], SelfTestStatus)
        measurements = msgspec.convert(message.get("measurements", []), list[Measurement])
        data = msgspec.convert(message.get("data") or {}, dict[str, Any])
        return made(
            job,
            str(message["test"]),
            status,
            stage=stage if status not in ("passed", "skipped") else "",
            seconds=float(message.get("seconds", 0.0)),
            measurements=measurements,
            kind=str(message.get("kind", "")),
            detail=str(message.get("detail", "")),
            data=data,
        )
    except (KeyError, TypeError, ValueError) as error:
        return made(
            job, str(message.get("test", job.tests[0])), "crashed", stage=stage,
            kind="bad-answer", detail=f"its answer is not understood: {error}",
        )  # fmt: skip


def import_failed(job: Job, message: Message) -> SelfTest:
    """Return what an exception in ``import torch`` means for the test that was to run."""
    answer = {**message, "test": job.tests[0], "status": "failed", "kind": "import-failed"}
    return answered(job, answer, "import torch")


def ended(job: Job, test: str, stage: str, message: Message, *, killed: str = "") -> SelfTest:
    """Return what it means that a process has ended in the middle of a test.

    ``killed`` is why the launcher ended it, "" when it did not.
    """
    printed = str(message.get("printed", ""))
    data = printed_data(printed)
    if killed:
        return made(job, test, "timed-out", stage=stage, kind="timed-out", detail=killed, data=data)
    where = f" in: {stage}" if stage else ""
    number, status = message.get("signal"), message.get("status")
    if number:
        name = _signal_name(number)
        why = " (the kernel kills like this when memory runs out)" if number == _KILLED else ""
        data |= {"signal": name}
        return made(
            job, test, "crashed", stage=stage, kind="signal",
            detail=f"killed by {name}{where}{why}", data=data,
        )  # fmt: skip
    if status:
        last = next((line for line in reversed(printed.splitlines()) if line.strip()), "")
        data |= {"exit_status": status}
        said = f": {last.strip()[:300]}" if last else ""
        return made(
            job, test, "crashed", stage=stage, kind="exit-status",
            detail=f"its process ended with exit status {status}{where}{said}", data=data,
        )  # fmt: skip
    return made(
        job, test, "crashed", stage=stage, kind="no-answer",
        detail=f"its process ended without an answer{where}", data=data,
    )  # fmt: skip


def made(job: Job, test: str, status: SelfTestStatus, **more: Any) -> SelfTest:  # noqa: ANN401
    """Return a result of this job's place."""
    detail = str(more.pop("detail", ""))[:_LONGEST]
    return SelfTest(
        name=test,
        rank=job.rank,
        world_size=job.world_size,
        device=",".join(job.devices),
        status=status,
        detail=detail,
        sources={"*": f"the self-test {test} on {job.place}"},
        **more,
    )


def printed_data(printed: str) -> dict[str, Any]:
    """Return what is worth keeping of what a process printed: NCCL's warnings, its last words."""
    data: dict[str, Any] = {}
    if warnings := _NCCL_WARN.findall(printed):
        data["nccl_warnings"] = warnings[-5:]
    if lost := _lost_peer(printed):
        data["lost_peer"] = lost
    if printed.strip():
        # A stack that was dumped at the end is read from its top: the innermost call comes first.
        at = printed.rfind(_STACK)
        data["printed"] = printed[at : at + _PRINTED] if at >= 0 else printed[-_PRINTED:]
    return data


def _lost_peer(printed: str) -> str:
    """Return the line in which a process says that another rank is gone; "" when none does."""
    if any(words in printed for words in _OWN_FAULT):
        return ""
    lines = printed.splitlines()
    found = (line.strip() for line in lines if any(words in line for words in _PEER_LOST))
    return next(found, "")[:300]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
