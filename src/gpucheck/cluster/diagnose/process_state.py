"""What is known of the processes themselves: who was held, who waited where, errors of their own.

Supervisors look at workers whose time is over. Errors of a rank's own system are those that no
other rank and no link can cause.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from gpucheck.cluster.model import RankResult, StepResult, pack
from gpucheck.facts.claims import Confidence, Fix
from gpucheck.facts.preflight import Look, Phase, ProcessState
from gpucheck.findings.limits import PROCESS_LIMIT_TOO_LOW
from gpucheck.findings.nccl_network import NCCL_NETWORK_INTERFACE
from gpucheck.findings.ranks import HELD, RANK_HANGS
from gpucheck.language import Sentence, in_series, say, say_many

ADDRESS_SPACE = "address-space-limit"
"""The kind of a result for which a task has seen that the limit on its address space is to blame.
"""
_LONGEST = 200
"""Characters of what a process printed, in a sentence. Chosen: a line of an error, without a page
of it."""
_CONNECTING = ("start", "import", "set-device", "store", "connect")
"""Phases in which a rank starts the threads that it needs."""
_NEXT = 2
"""A connection takes up to two files, so a process that lacks files hangs one below the limit."""
_HELD: dict[ProcessState, str] = {
    "stopped": say("a signal had stopped its process (state T) when the time was over"),
    "traced": say("a debugger held its process (state t) when the time was over"),
    "frozen": say("a control group had frozen its process when the time was over"),
    "uninterruptible": say(
        "its process waited in the kernel, where no signal reaches it (state D), "
        "when the time was over"
    ),
}
_ZYGOTE_HELD: dict[ProcessState, str] = {
    "stopped": say(
        "a signal had stopped the process that forks its workers (state T) when the time was over"
    ),
    "traced": say(
        "a debugger held the process that forks its workers (state t) when the time was over"
    ),
    "frozen": say(
        "a control group had frozen the process that forks its workers when the time was over"
    ),
    "uninterruptible": say(
        "the process that forks its workers waited in the kernel, where no signal "
        "reaches it (state D), when the time was over"
    ),
}
_WAITING = ("_finish",)
"""The function of ``worker/together.py`` in which a rank waits for a collective that it began."""
_TRIAL, _COLLECTIVES = "worker/trial.py run", "worker/together.py check"
"""What runs a trial of a worker, and what it calls for the collectives."""
_LINE = re.compile(r":[0-9]{1,9}(?= )")
"""The number of a line in a frame of a stack."""
_WITNESSES = 2
"""Other ranks that must wait: against a single one nobody knows which of the two is odd."""
_MOST_SPANS = 12
"""Chosen: a sentence with more spans of ranks would not be read; the report has every rank."""
_LEAST_WAIT = 5.0
"""Seconds for a processor that say something."""
_LOOP = 2.0
"""Seconds of processor time that no rank needs between two collectives."""
_LONG_LOOP = 10.0
"""Seconds of processor time that no rank needs from its start to its first collective."""
_BY_ITSELF: tuple[Phase, ...] = ("start", "set-device", "alone")
"""The phases of a worker that is tested alone."""
_MORE = 4.0
"""How many times the processor time of other ranks one needs that runs in circles."""
_GROUPS = {
    "stopped": say("Ranks that a signal had stopped: {count} ({ranks})"),
    "traced": say("Ranks that a debugger held: {count} ({ranks})"),
    "frozen": say("Ranks that a control group had frozen: {count} ({ranks})"),
    "uninterruptible": say(
        "Ranks that waited in the kernel, where no signal reaches them: {count} ({ranks})"
    ),
    "zygote": say("Ranks whose forking process was held: {count} ({ranks})"),
    "collective": say("Ranks that waited in the collective: {count} ({ranks})"),
    "running": say("Ranks that were computing outside the collective: {count} ({ranks})"),
    "sleeping": say("Ranks that waited outside the collective: {count} ({ranks})"),
}
"""What is said of the ranks of a group, as templates."""
_ALONE = (*_HELD, "zygote")
"""What there is to say of ranks that were tested without each other."""


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
        NCCL_NETWORK_INTERFACE.slug,
        lambda text: say(
            "its host has no network interface of the name or address that the job asks for "
            "({said})",
            said=text,
        ),
    ),
    _OwnError(
        re.compile(r"no (?:usable )?socket interface found", re.IGNORECASE),
        NCCL_NETWORK_INTERFACE.slug,
        lambda text: say(
            "NCCL found no network interface that it may use on its host ({said})", said=text
        ),
    ),
    _OwnError(
        re.compile(r"too many open files", re.IGNORECASE),
        PROCESS_LIMIT_TOO_LOW.slug,
        lambda text: say("its process could not open another file ({said})", said=text),
    ),
    _OwnError(
        re.compile(
            r"(?:Error|what\(\)|not start): {1,3}(?:\[Errno 11\] )?Resource temporarily unavailable"
            r"|can't start new thread"
        ),
        PROCESS_LIMIT_TOO_LOW.slug,
        lambda text: say("its system refused another thread or process ({said})", said=text),
    ),
)
"""Words of Gloo, NCCL, Python and the C library. A pattern that another rank's failure could
also print would accuse the wrong host."""


def named(known: Sequence[RankResult]) -> list[DirectEvidence]:
    """Name the ranks of a group that failed by an error of their own system."""
    return [found for result in known if (found := own_error(result)) is not None]


def own_error(result: RankResult) -> DirectEvidence | None:
    """Return what the error of a rank says about its own system, or None."""
    if result.kind == ADDRESS_SPACE:
        return DirectEvidence(
            rank=result.rank, slug=PROCESS_LIMIT_TOO_LOW.slug, evidence=result.detail,
            result=result, is_shared=True,
        )  # fmt: skip
    if (full := _at_its_limit(result)) is not None:
        return full
    if result.status == "timed-out" and result.phase in _CONNECTING:
        return _refused(result)
    if result.status not in ("failed", "crashed"):
        return None
    text = _text(result)
    for error in _ERRORS:
        if (found := error.pattern.search(text)) is not None:
            return _evidence(result, error, found[0])
    return _refused(result)


def _evidence(result: RankResult, error: _OwnError, text: str) -> DirectEvidence:
    words = error.words(text[:_LONGEST])
    return DirectEvidence(
        rank=result.rank, slug=error.slug, evidence=words, result=result, is_shared=True
    )


def _at_its_limit(result: RankResult) -> DirectEvidence | None:
    """Return what it means that a rank had as many files open as it may when its time was over."""
    look = result.look
    if result.passed or look is None or look.files is None or look.file_limit is None:
        return None
    if look.files + _NEXT <= look.file_limit:
        return None
    return DirectEvidence(
        rank=result.rank, slug=PROCESS_LIMIT_TOO_LOW.slug, result=result, is_shared=True,
        confidence=Confidence.LIKELY,
        evidence=say(
            "its process had {files} files open when its time was over, and may open {limit}: it "
            "could not open another",
            files=look.files,
            limit=look.file_limit,
        ),
    )  # fmt: skip


def _refused(result: RankResult) -> DirectEvidence | None:
    """Return what it means that processes or threads were refused while a rank broke down.

    It may have been another program of the same control group that was refused one.
    """
    count = result.data.get("refused_processes")
    if not isinstance(count, int) or count < 1 or result.kind == "peer-lost":
        return None
    if "lost_peer" in result.data:
        return None
    return DirectEvidence(
        rank=result.rank, slug=PROCESS_LIMIT_TOO_LOW.slug, result=result, is_shared=True,
        confidence=Confidence.LIKELY,
        evidence=say_many(
            count,
            "the limit of its control group on processes (pids.max) refused {count} process or "
            "thread in that time",
            "the limit of its control group on processes (pids.max) refused {count} processes or "
            "threads in that time",
        ),
    )  # fmt: skip


def _text(result: RankResult) -> str:
    """Return what a rank said of its failure."""
    names = ("message", "before", "printed") if result.status == "crashed" else ("message",)
    texts = (result.detail, *(result.data.get(name) for name in names))
    return "\n".join(text for text in texts if isinstance(text, str))


def held(known: Sequence[RankResult]) -> list[DirectEvidence]:
    """Name the ranks whose own record says that something outside held them.

    A process that disk or driver delays is in state D for a while, too. So it is certain only where
    SIGKILL was needed, and a mere possibility where most of the group were in that state.
    """
    return [found for result in known if (found := _held(result, known)) is not None]


def not_begun(known: Sequence[RankResult]) -> list[DirectEvidence]:
    """Name the one rank that does not wait in the collective in which all others wait.

    It has announced this collective and not begun it, or stands still behind an earlier one. This
    holds for gloo, which is connected by then: to begin a collective waits for nobody.
    """
    result, waiting = _against_all_others(known)
    if result is None or result.look is None or len(waiting) < _WITNESSES:
        return []
    if lacked_processor(result) and _cpu(result) < _LOOP:
        return []
    words = _not_begun(result, result.look, waiting)
    if not words:
        return []
    return [
        DirectEvidence(
            rank=result.rank, slug=RANK_HANGS.slug, evidence=words,
            confidence=Confidence.LIKELY, result=result,
        )
    ]  # fmt: skip


def _not_begun(result: RankResult, look: Look, waiting: Sequence[RankResult]) -> str:
    """Return what is wrong with the one rank that is elsewhere; "" if it may have waited."""
    if all(result.passed for result in waiting):
        return say(
            "it had not left the collective that {count} other ranks had finished, and did not "
            "wait there; its stack: {frame}",
            count=len(waiting), frame=look.python[0],
        )  # fmt: skip
    latest = max(result.collective for result in waiting)
    began = result.collective == latest and _waits(_place(look))
    if (
        began
        or result.collective > latest
        or any(result.collective != latest for result in waiting)
    ):
        return ""
    return say(
        "it had not begun the collective that {count} other ranks had begun; its stack: {frame}",
        count=len(waiting), frame=look.python[0],
    )  # fmt: skip


def _against_all_others(
    known: Sequence[RankResult],
) -> tuple[RankResult | None, list[RankResult]]:
    """Return the one rank that is where no rank waits, and those that waited; None if none is."""
    # One that lost a peer waited for it, until the peer was ended at its deadline.
    has_lost = {result.rank for result in known if result.phase == "enter" and _lost_a_peer(result)}
    is_done = any(result.passed for result in known)
    timed = [result for result in known if not result.passed and result.rank not in has_lost]
    places = {
        result.rank: _place(result.look)
        for result in timed
        if result.status == "timed-out"
        and result.phase == "enter"
        and result.look
        and result.look.python
    }
    if len(places) < len(timed) or (is_done and (has_lost or len(timed) > 1)):
        return None, []
    usual = _usual(list(places.values()))
    outside = [
        result
        for result in timed
        if places[result.rank] != usual and _is_elsewhere(places[result.rank])
    ]
    if len(outside) != 1 or not all(
        places[result.rank] == usual for result in timed if result not in outside
    ):
        return None, []
    return outside[0], [result for result in known if result not in outside]


def _lost_a_peer(result: RankResult) -> bool:
    """Whether a rank said so, or was ended while it was about to say why it left a collective."""
    if result.kind == "peer-lost":
        return True
    frames = (
        [_LINE.sub("", frame) for frame in result.look.python] if result.look is not None else []
    )
    if result.status != "timed-out" or _TRIAL not in frames:
        return False
    inside = frames[: frames.index(_TRIAL)]
    return inside[-1:] != [_COLLECTIVES]


def _usual(places: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the place where most ranks wait; of few, the one where a rank waits and does no more.

    None if that is none.
    """
    if len(places) > _WITNESSES:
        usual, _count = Counter(places).most_common(1)[0]
        return usual if _waits(usual) else None
    return next((place for place in places if not _is_elsewhere(place)), None)


def lacked_processor(result: RankResult) -> bool:
    """Whether a rank ran out of time because others used the processors of its host.

    It was ready to run for longer than it ran. A process that hangs waits for something else. If
    one runs in circles on a busy host, only others that did the same work can show it.
    """
    look = result.look
    if result.status != "timed-out" or look is None or look.state in _HELD:
        return False
    return (look.wait_seconds or 0.0) >= max(_LEAST_WAIT, _cpu(result))


def needed_no_more(result: RankResult) -> bool:
    """Whether a rank got more processor time than anything but a loop needs before its collective.

    Then it does not matter for how long it waited for a processor. To start CUDA takes seconds.
    """
    return _cpu(result) >= _LONG_LOOP


def runs_in_circles(result: RankResult, others: Sequence[RankResult]) -> bool:
    """Whether a rank used far more processor time than others for all of the same work, alone."""
    used = [other.facts.cpu_seconds or 0.0 for other in others if other.passed]
    is_enough = result.phase in _BY_ITSELF and len(used) >= _WITNESSES and min(used) > 0
    return is_enough and _cpu(result) >= max(_LOOP, _MORE * max(used))


def _cpu(result: RankResult) -> float:
    return (result.look.cpu_seconds or 0.0) if result.look is not None else 0.0


def slow_hosts(ranks: Sequence[RankResult]) -> str:
    """Return in a sentence what is known of the ranks that lacked a processor."""
    seen = [result.look for result in ranks if result.look is not None]
    return say_many(
        len(ranks),
        "rank {ranks} ran out of time because its host was too busy: it had used {cpu:.0f} s of "
        "processor time and waited {wait:.0f} s for a processor; start fewer tasks there, end what "
        "else runs there, or raise --timeout",
        "ranks {ranks} ran out of time because their hosts were too busy: on average they had used "
        "{cpu:.0f} s of processor time and waited {wait:.0f} s for a processor; start fewer tasks "
        "there, end what else runs there, or raise --timeout",
        ranks=spans_of([result.rank for result in ranks]),
        cpu=sum(look.cpu_seconds or 0.0 for look in seen) / max(1, len(seen)),
        wait=sum(look.wait_seconds or 0.0 for look in seen) / max(1, len(seen)),
    )


def in_groups(history: Sequence[StepResult]) -> list[str]:
    """Return what the ranks did when the time of a step was over, in groups.

    It is the first step in which a rank was held, or else the first in which time was over.
    """
    seen = [done for done in history if any(_is_seen(result) for result in done.results.values())]
    of = next((done for done in seen if held(list(done.results.values()))), next(iter(seen), None))
    if of is None:
        return []
    groups: dict[str, list[int]] = {}
    for rank, result in sorted(of.results.items()):
        if (name := _group(result)) is not None and (name in _ALONE or of.step.kind != "alone"):
            groups.setdefault(name, []).append(rank)
    return [
        Sentence(words.key, {"count": len(groups[name]), "ranks": spans_of(groups[name])})
        for name, words in _GROUPS.items()
        if name in groups
    ]


def _held(result: RankResult, known: Sequence[RankResult]) -> DirectEvidence | None:
    look = result.look
    if look is None or result.passed:
        return None
    if look.state in _HELD:
        state, words, sure = look.state, _HELD[look.state], _certainty(result, known)
    elif look.zygote in _ZYGOTE_HELD:
        state, words = look.zygote, _ZYGOTE_HELD[look.zygote]
        sure = Confidence.LIKELY if state == "uninterruptible" else Confidence.CERTAIN
    else:
        return None
    return DirectEvidence(
        rank=result.rank, slug=RANK_HANGS.slug, evidence=words, confidence=sure,
        result=result, is_seen=sure is Confidence.CERTAIN, fixes=(HELD[state],),
    )  # fmt: skip


def _certainty(result: RankResult, known: Sequence[RankResult]) -> Confidence:
    if result.look is None or result.look.state != "uninterruptible":
        return Confidence.CERTAIN
    same = sum(
        result.look is not None and result.look.state == "uninterruptible" for result in known
    )
    if 2 * same > len(known) > 1:
        return Confidence.POSSIBLE
    return Confidence.CERTAIN if result.look.killed else Confidence.LIKELY


def _place(look: Look) -> tuple[str, ...]:
    """Return the functions in which a rank is, the innermost first, up to the one that waits.

    Ranks that wait in a collective are at the same place, whatever torch calls there.
    """
    functions = [_LINE.sub("", frame) for frame in look.python]
    waiting = [at for at, name in enumerate(functions) if name.endswith(_WAITING)]
    return tuple(functions[: waiting[0] + 1] if waiting else functions)


def _is_elsewhere(place: tuple[str, ...]) -> bool:
    """Whether a place is none where a rank waits in a collective, to whatever torch calls there."""
    return not _waits(place) or not (len(place) == 1 or place[0].endswith(" wait"))


def _waits(place: tuple[str, ...]) -> bool:
    return place[-1].endswith(_WAITING)


def _is_seen(result: RankResult) -> bool:
    return result.look is not None and not result.passed


def _group(result: RankResult) -> str | None:
    """Return what a rank did when the time was over. None if that is unknown or it had ended."""
    look = result.look
    if look is not None and not result.passed:
        if look.state in _HELD:
            return look.state
        if look.zygote in _ZYGOTE_HELD:
            return "zygote"
    is_victim = result.status == "stopped" or result.kind == "peer-lost"
    if result.phase == "enter" and (result.status == "timed-out" or is_victim):
        return "collective"
    if result.status == "timed-out" and look is not None:
        return "running" if look.state == "running" else "sleeping"
    return None


def spans_of(ranks: Iterable[int]) -> str:
    """Return ranks as a few spans, ``0-6, 8-31``."""
    parts = pack(tuple(ranks)).split(",")
    more = ["..."] if len(parts) > _MOST_SPANS else []
    return in_series([*parts[:_MOST_SPANS], *more])
