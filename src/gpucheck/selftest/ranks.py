"""Which rank is to blame when a test of several ranks failed, and which only waited for it."""

from collections.abc import Sequence

import msgspec

from gpucheck.facts.selftests import SelfTest

_WAITED = ("collective-timeout", "peer-lost")
"""Kinds of results that only say that another rank is missing."""
_STOPPED = "stopped"
_ABORTED = "SIGABRT"
"""How NCCL's watchdog ends a process, which then can report nothing."""


def settled(results: Sequence[SelfTest]) -> list[SelfTest]:
    """Return the results of the ranks of one test, in their order, with the blame settled.

    ``results`` come in the order in which they ended. A rank that the others waited for in vain is
    timed-out, even if it was stopped only after they had given up. Ranks that lost it, or waited
    for it, are not to blame.
    """
    told = next((one for one in results if one.data.get("ranks")), None)
    named = list(told.data["ranks"]) if told is not None else []
    read = [_named(one, told) if told is not None and one.rank in named else one for one in results]
    guilty: list[SelfTest] = []
    for one in read:
        if one.went_wrong and not _only_waited(one, named) and not _pulled_down(one, guilty):
            guilty.append(one)
    if guilty:
        first = min(guilty, key=lambda one: one.rank)
        blamed = {one.rank for one in guilty}
        read = [
            _waited(one, first) if one.went_wrong and one.rank not in blamed else one
            for one in read
        ]
    return sorted(read, key=lambda one: one.rank)


def _only_waited(result: SelfTest, named: Sequence[int]) -> bool:
    return result.went_wrong and result.kind in _WAITED and result.rank not in named


def _pulled_down(result: SelfTest, before: Sequence[SelfTest]) -> bool:
    """Whether a rank was aborted because it lost another one that had failed before."""
    if result.data.get("signal") != _ABORTED or not result.data.get("lost_peer"):
        return False
    return any(not one.data.get("lost_peer") for one in before)


def _named(result: SelfTest, told: SelfTest) -> SelfTest:
    """Return the result of a rank that others name: stopped, it had not ended in time."""
    if result.kind != _STOPPED:
        return result
    data = {**result.data, "waited_in": told.stage}
    return msgspec.structs.replace(
        result, status="timed-out", kind="timed-out", detail=told.detail, data=data
    )


def _waited(result: SelfTest, first: SelfTest) -> SelfTest:
    how = {"timed-out": "not ended in time"}.get(first.status, first.status)
    data = {**result.data, "saw": result.data.get("lost_peer") or result.detail}
    return msgspec.structs.replace(
        result,
        status="skipped",
        kind=_STOPPED,
        detail=f"stopped: {first.place} had {how}",
        data=data,
    )
