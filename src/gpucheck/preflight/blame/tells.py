"""What a step that went wrong tells by itself: the rank that failed, with no further round.

A collective that hangs tells nothing when everybody has entered it. It tells who is to blame when
one rank never came to it, when one ended before all others, or when all got the same wrong sum.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import msgspec

from gpucheck.findings import Confidence
from gpucheck.preflight.model import RankResult
from gpucheck.probes.preflight import Phase
from gpucheck.rules import (
    no_nvidia_gpu,
    rank_crashed,
    rank_hangs,
    torch_import_broken,
    wrong_result,
)

PHASES: tuple[str, ...] = get_args(Phase)
_ENTER = PHASES.index("enter")
_STORE, _CONNECT = PHASES.index("store"), PHASES.index("connect")

_VICTIM = ("peer-lost", "store-unreachable", "not-begun")
"""Kinds of ranks that only saw, or waited for, another one that had failed."""
_SHARED = ("nccl-error", "wrong-value", "collective-timeout", "not-finite")
"""Kinds that the other end, or the link, may have caused just as well."""
_FAILING = ("failed", "crashed", "timed-out", "lost")


class Tell(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that is to blame by what a step told, and how sure that is."""

    rank: int
    slug: str
    evidence: str
    confidence: Confidence = Confidence.CERTAIN
    result: RankResult


def went_wrong(result: RankResult | None) -> bool:
    """Whether this rank failed itself; not where it only waited, or never ran."""
    return result is not None and result.status in _FAILING


def alone(result: RankResult) -> Tell | None:
    """Judge a rank that was tested without any communication: whatever fails there is its own."""
    if not went_wrong(result) or result.status == "lost":
        return None
    words = _words(result)
    roots = result.data.get("roots")
    if isinstance(roots, list) and roots and isinstance(roots[0], dict) and roots[0].get("slug"):
        said = f"never came to its tests: {roots[0].get('headline') or result.detail}"
        sure = _confidence(roots[0].get("confidence"))
        slug = str(roots[0]["slug"])
        return Tell(rank=result.rank, slug=slug, evidence=said, confidence=sure, result=result)
    if result.kind == "no-device":
        said = f"has no GPU to test: {result.detail}"
        # Its node's own check named no cause, so why torch sees none is not known.
        return Tell(
            rank=result.rank, slug=no_nvidia_gpu.RULE.slug, evidence=said,
            confidence=Confidence.POSSIBLE, result=result,
        )  # fmt: skip
    if result.status == "timed-out" and result.phase == "import":
        said = f"{result.detail}: a slow or hanging disk, or torch hangs in it{words}"
        return Tell(
            rank=result.rank, slug=torch_import_broken.RULE.slug, evidence=said,
            confidence=Confidence.POSSIBLE, result=result,
        )  # fmt: skip
    if result.status == "timed-out":
        rule = rank_hangs.RULE
        said = f"did not finish its tests alone, in phase {result.phase}{words}"
    elif result.kind in ("wrong-value", "not-finite"):
        rule = wrong_result.RULE
        said = f"computed wrong values alone, without any other rank{words}"
    else:
        what = result.kind or result.status
        rule = rank_crashed.RULE
        said = f"failed alone, without any other rank, in phase {result.phase} ({what}){words}"
    return Tell(rank=result.rank, slug=rule.slug, evidence=said + _stuck(result), result=result)


def together(group: Sequence[int], results: Mapping[int, RankResult]) -> list[Tell]:
    """Name who is to blame in a group whose collective failed; [] when it does not tell."""
    known = [results[rank] for rank in group if rank in results]
    if any(one.status == "lost" for one in known):
        return []  # the others waited for it; that it is lost is said elsewhere
    return _first_to_fail(known) or _never_entered(known) or _wrong_sum(known) or _unkillable(known)


def _confidence(word: object) -> Confidence:
    return next((one for one in Confidence if one.value == word), Confidence.LIKELY)


def _first_to_fail(known: list[RankResult]) -> list[Tell]:
    """Name the rank that ended first by a fault of its own; what follows may come of it."""
    ended = [one for one in known if went_wrong(one) and one.kind not in _VICTIM]
    if not ended:
        return []
    first = min(ended, key=lambda one: (one.order or math.inf, one.rank))
    own = [one for one in ended if _is_own(one)]
    unordered = not first.order and len(ended) > 1
    if first not in own or unordered or len(own) > max(1, len(known) // 4):
        return []
    others = len(known) - 1
    what = first.kind or first.status
    said = f"ended ({what}) before the other {others} ranks of its group did, in phase"
    words = f"{said} {first.phase}{_words(first)}"
    return [Tell(rank=first.rank, slug=rank_crashed.RULE.slug, evidence=words, result=first)]


def _is_own(one: RankResult) -> bool:
    """Whether a rank's end is its own doing: not a time-out, and nothing that a peer can cause."""
    if one.status == "crashed":
        return True
    connecting = _STORE <= PHASES.index(one.phase) <= _CONNECT
    return one.status == "failed" and one.kind not in _SHARED and not connecting


def _never_entered(known: list[RankResult]) -> list[Tell]:
    """Name who never came to the collective that all others are in."""
    inside = [one for one in known if one.phase == "enter" and one.status != "passed"]
    if not inside:
        return _opened_no_store(known)
    latest = max(one.collective for one in inside)
    behind = [one for one in known if one.status == "timed-out" and _is_behind(one, latest)]
    connecting = [one for one in behind if one.phase in ("store", "connect")]
    if len(connecting) > 1 or any(one.phase == "store" for one in connecting):
        return []  # ranks that could not reach one another look the same
    behind = [one for one in behind if _stood_still(one, inside)]
    if len(behind) > len(known) // 2:
        return []
    which = "the first all-reduce" if latest <= 1 else f"all-reduce {latest}"
    waiting = sum(one.collective == latest for one in inside)
    said = f"never entered {which}, in which {waiting} other ranks waited; its last phase was"
    return [
        Tell(
            rank=one.rank,
            slug=rank_hangs.RULE.slug,
            evidence=f"{said} {one.phase}{_words(one)}{_stuck(one)}{_in_its_time(one)}",
            confidence=Confidence.LIKELY if _in_its_time(one) else Confidence.CERTAIN,
            result=one,
        )
        for one in behind
    ]


def _stood_still(one: RankResult, waiting: list[RankResult]) -> bool:
    """Whether it was in its phase for at least half as long as the others waited for it.

    Else it was late and on its way, and pairs tell whether it works.
    """
    own = one.data.get("in_phase")
    longest = max((float(two.data.get("in_phase") or 0.0) for two in waiting), default=0.0)
    return own is None or bool(one.data.get("own_deadline")) or 2 * float(own) >= longest


def _in_its_time(one: RankResult) -> str:
    """Say so of a rank that had more time where it was, since a GPU may be slow to start there.

    While ranks connect they wait for nothing of their own, and all others were through.
    """
    if one.data.get("own_deadline") or one.phase in ("connect", "leave"):
        return ""
    return "; slow, or stuck: its own time for that was not over when the time of the others was"


def _opened_no_store(known: list[RankResult]) -> list[Tell]:
    """Name the first rank of a group when it hung before the others could begin."""
    first, others = known[0], known[1:]
    waiting = all(one.kind == "not-begun" for one in others)
    if first.status != "timed-out" or first.kind == "not-begun" or not waiting or not others:
        return []
    said = f"was to open the store at which {len(others)} other ranks meet, and hung in phase"
    words = f"{said} {first.phase}{_words(first)}{_stuck(first)}{_in_its_time(first)}"
    sure = Confidence.LIKELY if _in_its_time(first) else Confidence.CERTAIN
    return [
        Tell(
            rank=first.rank,
            slug=rank_hangs.RULE.slug,
            evidence=words,
            confidence=sure,
            result=first,
        )
    ]


def _is_behind(one: RankResult, latest: int) -> bool:
    if one.kind == "not-begun":
        return False
    if one.phase == "leave":
        return one.collective < latest
    return PHASES.index(one.phase) < _ENTER


def _wrong_sum(known: list[RankResult]) -> list[Tell]:
    """Name the rank whose contribution every other rank has found wrong in the same way.

    Not of two ranks: there the link between them, one way, looks the same.
    """
    wrong = [one for one in known if one.kind == "wrong-value"]
    blamed = agreed_on(known)
    result = next((one for one in known if one.rank == blamed), None)
    if len(known) <= 2 or len(wrong) < 2 or result is None:  # noqa: PLR2004  # witnesses
        return []
    if any(one.passed and one is not result for one in known):
        return []
    fault = wrong[0].data.get("fault")
    how = f" ({fault})" if isinstance(fault, str) else ""
    said = f"its contribution to the sum was wrong{how}, in the same way on {len(wrong)} ranks"
    words = f"{said} of {len(known)}"
    return [Tell(rank=result.rank, slug=wrong_result.RULE.slug, evidence=words, result=result)]


def agreed_on(known: Iterable[RankResult]) -> int | None:
    """Return the rank whose contribution all that saw a wrong sum found wrong, if it is one."""
    named = [one.data.get("rank") for one in known if one.kind == "wrong-value"]
    first = named[0] if named else None
    return first if isinstance(first, int) and all(one == first for one in named) else None


def _unkillable(known: list[RankResult]) -> list[Tell]:
    """Name who could not be killed: it never takes part again, whoever made it stick."""
    stuck = [one for one in known if one.kind == "unkillable"]
    few = len(stuck) <= max(1, len(known) // 4)
    return [
        Tell(
            rank=one.rank,
            slug=rank_hangs.RULE.slug,
            evidence=f"got stuck in phase {one.phase}{_words(one)}{_stuck(one)}",
            confidence=Confidence.LIKELY if few else Confidence.POSSIBLE,
            result=one,
        )
        for one in stuck
    ]


def _words(one: RankResult) -> str:
    return f": {one.detail}" if one.detail else ""


def _stuck(one: RankResult) -> str:
    return "; not even SIGKILL ended it: stuck in the driver" if one.kind == "unkillable" else ""
