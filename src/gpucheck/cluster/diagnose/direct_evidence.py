"""What one failed step says by itself about which rank failed.

A hanging collective says nothing when every rank has entered it. It names a rank when that rank
never entered it, when it ended before all others, or when all others got the same wrong sum.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from gpucheck.cluster.diagnose import process_state
from gpucheck.cluster.diagnose.process_state import DirectEvidence
from gpucheck.cluster.model import Backend, RankResult
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Phase
from gpucheck.findings.gpu_health import WRONG_RESULT
from gpucheck.findings.gpu_presence import NO_NVIDIA_GPU
from gpucheck.findings.ranks import RANK_CRASHED, RANK_HANGS
from gpucheck.findings.torch_import import TORCH_IMPORT_BROKEN
from gpucheck.language import say

__all__ = ["PHASES", "DirectEvidence", "agreed_on", "alone", "together", "went_wrong"]

PHASES: tuple[str, ...] = get_args(Phase)
_ENTER = PHASES.index("enter")
_STORE, _CONNECT = PHASES.index("store"), PHASES.index("connect")
_WITNESSES, _SMALL = 2, 64
"""How many others it takes, and the ranks of a group whose workers give up early."""
_GIVES_UP = 20.0
"""Seconds after which they have surely given up: twice their patience."""

_VICTIM = ("peer-lost", "store-unreachable", "not-begun")
"""Kinds of ranks that only saw another rank fail, or waited for it."""
_SHARED = ("nccl-error", "wrong-value", "collective-timeout", "not-finite")
"""Kinds that the other end, or the link, may have caused as well."""
_FAILING = ("failed", "crashed", "timed-out", "lost")
"""How a rank ends that is to blame, or may be."""


def went_wrong(result: RankResult | None) -> bool:
    """Whether this rank failed itself; not when it only waited, or never ran."""
    return result is not None and result.status in _FAILING


def alone(result: RankResult, others: Sequence[RankResult] = ()) -> DirectEvidence | None:
    """Judge a rank that was tested without communication: any failure there is its own.

    Args:
        result: of the rank.
        others: results of ranks that had the same work in the same step, on the same hardware.
    """
    if not went_wrong(result) or result.status == "lost":
        return None
    if held := process_state.held([result]):
        return held[0]
    is_busy = process_state.lacked_processor(result)
    if is_busy and not process_state.runs_in_circles(result, others):
        return None
    if (own := process_state.own_error(result)) is not None:
        return own
    if result.facts.roots:
        root = result.facts.roots[0]
        sentence = say("never reached its tests: {why}", why=root.headline or result.detail)
        return DirectEvidence(
            rank=result.rank, slug=root.slug, evidence=sentence, confidence=root.confidence,
            result=result,
        )  # fmt: skip
    if result.kind == "no-device":
        sentence = say("has no GPU to test: {why}", why=result.detail)
        # Its node's own check named no cause, so why torch sees none is not known.
        return DirectEvidence(
            rank=result.rank, slug=NO_NVIDIA_GPU.slug, evidence=sentence,
            confidence=Confidence.POSSIBLE, result=result,
        )  # fmt: skip
    if result.status == "timed-out" and result.phase == "import":
        sentence = say(
            "{what}: the disk is slow or hangs, or the import itself hangs", what=result.detail
        )
        return DirectEvidence(
            rank=result.rank, slug=TORCH_IMPORT_BROKEN.slug, evidence=sentence,
            confidence=Confidence.POSSIBLE, result=result,
        )  # fmt: skip
    if result.status == "timed-out":
        rule = RANK_HANGS
        sentence = say("did not finish its tests alone, in phase {phase}", phase=result.phase)
    elif result.kind in ("wrong-value", "not-finite"):
        rule = WRONG_RESULT
        sentence = say("computed wrong values alone, without any other rank")
    else:
        rule = RANK_CRASHED
        sentence = say(
            "failed alone, without any other rank, in phase {phase} ({kind})",
            phase=result.phase, kind=result.kind or result.status,
        )  # fmt: skip
    return DirectEvidence(
        rank=result.rank, slug=rule.slug, evidence=_with_rest(sentence, result), result=result,
        confidence=Confidence.LIKELY if is_busy else Confidence.CERTAIN,
    )  # fmt: skip


def together(
    group: Sequence[int], results: Mapping[int, RankResult], backend: Backend = "nccl"
) -> list[DirectEvidence]:
    """Name the failed ranks of a group whose collective failed; [] when it names nobody."""
    known = [results[rank] for rank in group if rank in results]
    if found := [*process_state.held(known), *process_state.named(known)]:
        return found
    if any(result.status == "lost" for result in known):
        return []  # the others waited for it; that it is lost is said elsewhere
    named = _first_to_fail(known) or _never_entered(known)
    if not named and backend == "gloo":
        named = process_state.not_begun(known)
    return named or _wrong_sum(known) or _unkillable(known)


def _first_to_fail(known: list[RankResult]) -> list[DirectEvidence]:
    """Name the rank that failed first by its own fault; later failures may follow from it."""
    ended = [result for result in known if went_wrong(result) and result.kind not in _VICTIM]
    if not ended:
        return []
    first = min(ended, key=lambda result: (result.order or math.inf, result.rank))
    own = [result for result in ended if _is_own(result)]
    unordered = not first.order and len(ended) > 1
    if first not in own or unordered or len(own) > max(1, len(known) // 4):
        return []
    others = len(known) - 1
    what = first.kind or first.status
    words = say(
        "ended ({kind}) before the other {count} ranks of its group did, in phase {phase}",
        kind=what, count=others, phase=first.phase,
    )  # fmt: skip
    return [
        DirectEvidence(
            rank=first.rank,
            slug=RANK_CRASHED.slug,
            evidence=_with_detail(words, first),
            result=first,
        )
    ]


def _is_own(result: RankResult) -> bool:
    """Whether a rank ended by its own fault: not by a time-out, nor by what a peer can cause."""
    if result.status == "crashed":
        return True
    connecting = _STORE <= PHASES.index(result.phase) <= _CONNECT
    return result.status == "failed" and result.kind not in _SHARED and not connecting


def _never_entered(known: list[RankResult]) -> list[DirectEvidence]:
    """Name the ranks that never entered the collective that all others are in."""
    inside = [result for result in known if result.phase == "enter" and result.status != "passed"]
    if not inside:
        return _opened_no_store(known) or _never_connected(known) or _held_on_the_way(known)
    latest = max(result.collective for result in inside)
    behind = [
        result for result in known if result.status == "timed-out" and _is_behind(result, latest)
    ]
    connecting = [result for result in behind if result.phase in ("store", "connect")]
    if len(connecting) > 1 or any(result.phase == "store" for result in connecting):
        return []  # ranks that could not reach one another look the same
    behind = [result for result in behind if _stood_still(result, inside)]
    if len(behind) > len(known) // 2:
        return []
    waiting = sum(result.collective == latest for result in inside)
    return [
        DirectEvidence(
            rank=result.rank,
            slug=RANK_HANGS.slug,
            evidence=_with_time(_with_rest(_outside(result, latest, waiting), result), result),
            confidence=Confidence.LIKELY if _had_time(result) else Confidence.CERTAIN,
            result=result,
        )
        for result in behind
    ]


def _outside(result: RankResult, latest: int, waiting: int) -> str:
    if latest <= 1:
        return say(
            "never entered the first all-reduce, in which {count} other ranks waited; its last "
            "phase was {phase}",
            count=waiting, phase=result.phase,
        )  # fmt: skip
    return say(
        "never entered all-reduce {number}, in which {count} other ranks waited; its last phase "
        "was {phase}",
        number=latest, count=waiting, phase=result.phase,
    )  # fmt: skip


def _stood_still(result: RankResult, waiting: list[RankResult]) -> bool:
    """Whether it was in its phase for at least half as long as the others waited for it.

    Otherwise it was late and still moving, and pairs will show whether it works.
    """
    own = result.facts.in_phase
    longest = max((result.facts.in_phase or 0.0 for result in waiting), default=0.0)
    return own is None or result.facts.own_deadline or 2 * own >= longest


def _had_time(result: RankResult) -> bool:
    """Whether a rank still had time in its phase: its GPU may start slowly.

    Connecting ranks wait for nothing of their own, and all others had finished.
    """
    return not result.facts.own_deadline and result.phase not in ("connect", "leave")


def _with_time(sentence: str, result: RankResult) -> str:
    if not _had_time(result):
        return sentence
    return say(
        "{said}; it is slow or stuck: the others reached their time limit before it reached its "
        "own",
        said=sentence,
    )


def _opened_no_store(known: list[RankResult]) -> list[DirectEvidence]:
    """Name the first rank of a group if it hung before the others could begin."""
    first, others = known[0], known[1:]
    waiting = all(result.kind == "not-begun" for result in others)
    if first.status != "timed-out" or first.kind == "not-begun" or not waiting or not others:
        return []
    words = say(
        "was to open the store at which {count} other ranks meet, and hung in phase {phase}",
        count=len(others), phase=first.phase,
    )  # fmt: skip
    sure = Confidence.LIKELY if _had_time(first) else Confidence.CERTAIN
    return [
        DirectEvidence(
            rank=first.rank,
            slug=RANK_HANGS.slug,
            evidence=_with_time(_with_rest(words, first), first),
            confidence=sure,
            result=first,
        )
    ]


def _never_connected(known: list[RankResult]) -> list[DirectEvidence]:
    """Name the ranks that stood still before they tried to connect, if all others tried.

    No link can keep a worker from its first steps.
    """
    trying = [result for result in known if PHASES.index(result.phase) in (_STORE, _CONNECT)]
    behind = [result for result in known if _is_before_connecting(result, trying)]
    if len(behind) + len(trying) < len(known) or 2 * len(behind) > len(known):
        return []
    return [
        DirectEvidence(
            rank=result.rank,
            slug=RANK_HANGS.slug,
            evidence=_with_time(
                _with_rest(
                    say(
                        "never tried to connect, while {count} other ranks did; its last phase was "
                        "{phase}",
                        count=len(trying), phase=result.phase,
                    ),
                    result,
                ),
                result,
            ),
            confidence=Confidence.LIKELY if _had_time(result) else Confidence.CERTAIN,
            result=result,
        )
        for result in behind
    ]  # fmt: skip


def _held_on_the_way(known: list[RankResult]) -> list[DirectEvidence]:
    """Name the one rank that hung on its way to the store, which all others have reached.

    A worker of a small group gives up after ten seconds and says why (``worker/together.py``). One
    that neither arrives nor gives up hangs, for example where a host name is looked up.
    """
    late = [result for result in known if result.phase == "store"]
    others = [result for result in known if result.phase == "connect"]
    if len(late) != 1 or len(others) < len(known) - 1 or not _WITNESSES <= len(others) < _SMALL:
        return []
    (result,) = late
    stack = result.look.python if result.look is not None else ()
    is_stuck = result.status == "timed-out" and (result.facts.in_phase or 0.0) >= _GIVES_UP
    on_its_way = any(frame.endswith(" _reach") for frame in stack)
    was_starved = process_state.lacked_processor(result) and not process_state.needed_no_more(
        result
    )
    if not is_stuck or not on_its_way or was_starved:
        return []
    words = say(
        "neither reached the store that {count} other ranks had reached, nor gave up; its stack: "
        "{frame}",
        count=len(others), frame=stack[0],
    )  # fmt: skip
    return [
        DirectEvidence(
            rank=result.rank, slug=RANK_HANGS.slug, evidence=_with_rest(words, result),
            confidence=Confidence.LIKELY, result=result,
        )
    ]  # fmt: skip


def _is_before_connecting(result: RankResult, trying: list[RankResult]) -> bool:
    """Whether it stood still in a phase before it connects, although it had a processor.

    A rank that had not begun waited for the first rank of its group.
    """
    is_early = PHASES.index(result.phase) < _STORE and result.kind != "not-begun"
    is_timed = result.facts.own_deadline or result.facts.in_phase is not None
    is_stuck = result.status == "timed-out" and is_timed and _stood_still(result, trying)
    return is_early and is_stuck and not process_state.lacked_processor(result)


def _is_behind(result: RankResult, latest: int) -> bool:
    if result.kind == "not-begun":
        return False
    if result.phase == "leave":
        return result.collective < latest
    return PHASES.index(result.phase) < _ENTER


def _wrong_sum(known: list[RankResult]) -> list[DirectEvidence]:
    """Name the rank whose contribution every other rank found wrong in the same way.

    Nobody is named in a group of two: a link that fails in one direction looks the same.
    """
    wrong = [result for result in known if result.kind == "wrong-value"]
    blamed = agreed_on(known)
    result = next((result for result in known if result.rank == blamed), None)
    if len(known) <= 2 or len(wrong) < 2 or result is None:  # noqa: PLR2004  # witnesses
        return []
    if any(outcome.passed and outcome is not result for outcome in known):
        return []
    fault = wrong[0].facts.fault
    if fault is not None:
        words = say(
            "its contribution to the sum was wrong ({fault}), in the same way on {count} ranks of "
            "{all}",
            fault=fault, count=len(wrong), all=len(known),
        )  # fmt: skip
    else:
        words = say(
            "its contribution to the sum was wrong, in the same way on {count} ranks of {all}",
            count=len(wrong), all=len(known),
        )  # fmt: skip
    return [DirectEvidence(rank=result.rank, slug=WRONG_RESULT.slug, evidence=words, result=result)]


def agreed_on(known: Iterable[RankResult]) -> int | None:
    """Return the rank whose contribution all witnesses of a wrong sum found wrong, if any."""
    named = {result.facts.rank for result in known if result.kind == "wrong-value"}
    return named.pop() if len(named) == 1 else None


def _unkillable(known: list[RankResult]) -> list[DirectEvidence]:
    """Name the ranks that could not be killed: they never take part again, whatever the cause."""
    stuck = [result for result in known if result.kind == "unkillable"]
    few = len(stuck) <= max(1, len(known) // 4)
    return [
        DirectEvidence(
            rank=result.rank,
            slug=RANK_HANGS.slug,
            evidence=_with_rest(say("got stuck in phase {phase}", phase=result.phase), result),
            confidence=Confidence.LIKELY if few else Confidence.POSSIBLE,
            result=result,
        )
        for result in stuck
    ]


def _with_rest(sentence: str, result: RankResult) -> str:
    """Return a sentence with the rank's own words, and that it cannot be killed if that is so."""
    words = _with_detail(sentence, result)
    if result.kind != "unkillable":
        return words
    return say("{said}; not even SIGKILL ended it: stuck in the driver", said=words)


def _with_detail(sentence: str, result: RankResult) -> str:
    return (
        say("{said}: {detail}", said=sentence, detail=result.detail) if result.detail else sentence
    )
