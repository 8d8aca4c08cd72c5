"""Errors of a rank's own system that no other rank and no link can cause."""

import re
from collections.abc import Callable, Sequence

import msgspec

from gpucheck.cluster.model import RankResult
from gpucheck.facts.claims import Confidence, Fix
from gpucheck.findings import nccl_network_interface, process_limit_too_low
from gpucheck.language import say, say_many

ADDRESS_SPACE = "address-space-limit"
"""The kind of a result for which a task has seen that the limit on its address space is to blame.
"""
_LONGEST = 200
_CONNECTING = ("start", "import", "set-device", "store", "connect")
"""Phases in which a rank starts the threads that it needs."""
_NEXT = 2
"""A connection takes up to two files, so a process that lacks files hangs one below the limit."""


class DirectEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that one step shows to have failed, and how certain that is."""

    rank: int
    slug: str
    evidence: str
    confidence: Confidence = Confidence.CERTAIN
    result: RankResult
    is_seen: bool = False
    """Whether it was seen, not inferred: that it passes later takes nothing of it back."""
    is_shared: bool = False
    """Whether all ranks of which the same is said have it from one cause."""
    fixes: tuple[Fix, ...] = ()
    """What to do, if not what the finding says."""


class _OwnError(msgspec.Struct, frozen=True):
    """What an error says, the finding that it is, and the sentence about it."""

    pattern: re.Pattern[str]
    slug: str
    words: Callable[[str], str]
    """The sentence, made of what the error says."""


_ERRORS = (
    _OwnError(
        re.compile(r"unable to find (?:address|interface) for: \S{1,60}", re.IGNORECASE),
        nccl_network_interface.RULE.slug,
        lambda said: say(
            "its host has no network interface of the name or address that the job asks for "
            "({said})",
            said=said,
        ),
    ),
    _OwnError(
        re.compile(r"no (?:usable )?socket interface found", re.IGNORECASE),
        nccl_network_interface.RULE.slug,
        lambda said: say(
            "NCCL found no network interface that it may use on its host ({said})", said=said
        ),
    ),
    _OwnError(
        re.compile(r"too many open files", re.IGNORECASE),
        process_limit_too_low.RULE.slug,
        lambda said: say("its process could not open another file ({said})", said=said),
    ),
    _OwnError(
        re.compile(
            r"(?:Error|what\(\)|not start): {1,3}(?:\[Errno 11\] )?Resource temporarily unavailable"
            r"|can't start new thread"
        ),
        process_limit_too_low.RULE.slug,
        lambda said: say("its system refused another thread or process ({said})", said=said),
    ),
)


def named(known: Sequence[RankResult]) -> list[DirectEvidence]:
    """Name the ranks of a group that failed by an error of their own system."""
    return [found for one in known if (found := own_error(one)) is not None]


def own_error(one: RankResult) -> DirectEvidence | None:
    """Return what the error of a rank says about its own system, or None."""
    if one.kind == ADDRESS_SPACE:
        return DirectEvidence(
            rank=one.rank, slug=process_limit_too_low.RULE.slug, evidence=one.detail, result=one,
            is_shared=True,
        )  # fmt: skip
    if (full := _at_its_limit(one)) is not None:
        return full
    if one.status == "timed-out" and one.phase in _CONNECTING:
        return _refused(one)
    if one.status not in ("failed", "crashed"):
        return None
    text = _text(one)
    for error in _ERRORS:
        if (found := error.pattern.search(text)) is not None:
            return _evidence(one, error, found[0])
    return _refused(one)


def _evidence(one: RankResult, error: _OwnError, said: str) -> DirectEvidence:
    words = error.words(said[:_LONGEST])
    return DirectEvidence(
        rank=one.rank, slug=error.slug, evidence=words, result=one, is_shared=True
    )


def _at_its_limit(one: RankResult) -> DirectEvidence | None:
    """Return what it means that a rank had as many files open as it may when its time was over."""
    look = one.look
    if one.passed or look is None or look.files is None or look.file_limit is None:
        return None
    if look.files + _NEXT <= look.file_limit:
        return None
    return DirectEvidence(
        rank=one.rank, slug=process_limit_too_low.RULE.slug, result=one, is_shared=True,
        confidence=Confidence.LIKELY,
        evidence=say(
            "its process had {files} files open when its time was over, and may open {limit}: it "
            "could not open another",
            files=look.files,
            limit=look.file_limit,
        ),
    )  # fmt: skip


def _refused(one: RankResult) -> DirectEvidence | None:
    """Return what it means that processes or threads were refused while a rank broke down.

    It may have been another program of the same control group that was refused one.
    """
    count = one.data.get("refused_processes")
    if not isinstance(count, int) or count < 1 or one.kind == "peer-lost":
        return None
    if "lost_peer" in one.data:
        return None
    return DirectEvidence(
        rank=one.rank, slug=process_limit_too_low.RULE.slug, result=one, is_shared=True,
        confidence=Confidence.LIKELY,
        evidence=say_many(
            count,
            "the limit of its control group on processes (pids.max) refused {count} process or "
            "thread in that time",
            "the limit of its control group on processes (pids.max) refused {count} processes or "
            "threads in that time",
        ),
    )  # fmt: skip


def _text(one: RankResult) -> str:
    """Return what a rank said of its failure."""
    names = ("message", "before", "printed") if one.status == "crashed" else ("message",)
    texts = (one.detail, *(one.data.get(name) for name in names))
    return "\n".join(text for text in texts if isinstance(text, str))
