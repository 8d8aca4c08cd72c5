"""Decides which rank is to blame for a failed test of several ranks, and which only waited."""

from collections.abc import Sequence

import msgspec

from gpucheck.facts.selftests import SelfTest
from gpucheck.language import say

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
