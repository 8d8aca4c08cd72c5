"""What is known of the processes themselves: who was held, who waited where, errors of their own.

Supervisors look at workers whose time is over, and PyTorch's flight recorder keeps which ranks had
begun the last collective. Errors of a rank's own system are those that no other rank and no link
can cause.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from gpucheck.cluster.model import RankResult, StepResult, pack
from gpucheck.facts.claims import Confidence, Fix
from gpucheck.facts.preflight import Phase
from gpucheck.facts.process_state import Look, ProcessState
from gpucheck.findings import nccl_network_interface, process_limit_too_low, rank_hangs
from gpucheck.language import Sentence, in_series, say, say_many

ADDRESS_SPACE = "address-space-limit"
"""The kind of a result for which a task has seen that the limit on its address space is to blame.
"""
_LONGEST = 200
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
_MOST_SPANS = 12
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


def held(known: Sequence[RankResult]) -> list[DirectEvidence]:
    """Name the ranks whose own record says that something outside held them.

    A process that disk or driver delays is in state D for a while, too. So it is certain only where
    SIGKILL was needed, and a mere possibility where most of the group were in that state.
    """
    return [found for one in known if (found := _held(one, known)) is not None]


def not_begun(known: Sequence[RankResult]) -> list[DirectEvidence]:
    """Name the one rank that does not wait in the collective in which all others wait.

    It has announced this collective and not begun it, or stands still behind an earlier one. This
    holds for gloo, which is connected by then: to begin a collective waits for nobody.
    """
    one, waiting = _against_all_others(known)
    if one is None or one.look is None or len(waiting) < _WITNESSES:
        return []
    if lacked_processor(one) and _cpu(one) < _LOOP:
        return []
    words = _not_begun(one, one.look, waiting)
    if not words:
        return []
    return [
        DirectEvidence(
            rank=one.rank, slug=rank_hangs.RULE.slug, evidence=words,
            confidence=Confidence.LIKELY, result=one,
        )
    ]  # fmt: skip


def _not_begun(one: RankResult, look: Look, waiting: Sequence[RankResult]) -> str:
    """Return what is wrong with the one rank that is elsewhere; "" if it may have waited."""
    if all(two.passed for two in waiting):
        return say(
            "it had not left the collective that {count} other ranks had finished, and did not "
            "wait there; its stack: {frame}",
            count=len(waiting), frame=look.python[0],
        )  # fmt: skip
    latest = max(two.collective for two in waiting)
    began = one.collective == latest and _waits(_place(look))
    if began or one.collective > latest or any(two.collective != latest for two in waiting):
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
    has_lost = {one.rank for one in known if one.phase == "enter" and _lost_a_peer(one)}
    is_done = any(one.passed for one in known)
    timed = [one for one in known if not one.passed and one.rank not in has_lost]
    places = {
        one.rank: _place(one.look)
        for one in timed
        if one.status == "timed-out" and one.phase == "enter" and one.look and one.look.python
    }
    if len(places) < len(timed) or (is_done and (has_lost or len(timed) > 1)):
        return None, []
    usual = _usual(list(places.values()))
    outside = [
        one for one in timed if places[one.rank] != usual and _is_elsewhere(places[one.rank])
    ]
    if len(outside) != 1 or not all(
        places[one.rank] == usual for one in timed if one not in outside
    ):
        return None, []
    return outside[0], [one for one in known if one not in outside]


def _lost_a_peer(one: RankResult) -> bool:
    """Whether a rank said so, or was ended while it was about to say why it left a collective."""
    if one.kind == "peer-lost":
        return True
    frames = [_LINE.sub("", frame) for frame in one.look.python] if one.look is not None else []
    if one.status != "timed-out" or _TRIAL not in frames:
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


def lacked_processor(one: RankResult) -> bool:
    """Whether a rank ran out of time because others used the processors of its host.

    It was ready to run for longer than it ran. A process that hangs waits for something else. If
    one runs in circles on a busy host, only others that did the same work can show it.
    """
    look = one.look
    if one.status != "timed-out" or look is None or look.state in _HELD:
        return False
    return (look.wait_seconds or 0.0) >= max(_LEAST_WAIT, _cpu(one))


def needed_no_more(one: RankResult) -> bool:
    """Whether a rank got more processor time than anything but a loop needs before its collective.

    Then it does not matter for how long it waited for a processor. To start CUDA takes seconds.
    """
    return _cpu(one) >= _LONG_LOOP


def runs_in_circles(one: RankResult, others: Sequence[RankResult]) -> bool:
    """Whether a rank used far more processor time than others for all of the same work, alone."""
    used = [other.facts.cpu_seconds or 0.0 for other in others if other.passed]
    is_enough = one.phase in _BY_ITSELF and len(used) >= _WITNESSES and min(used) > 0
    return is_enough and _cpu(one) >= max(_LOOP, _MORE * max(used))


def _cpu(one: RankResult) -> float:
    return (one.look.cpu_seconds or 0.0) if one.look is not None else 0.0


def slow_hosts(ranks: Sequence[RankResult]) -> str:
    """Return in a sentence what is known of the ranks that lacked a processor."""
    seen = [one.look for one in ranks if one.look is not None]
    return say_many(
        len(ranks),
        "rank {ranks} ran out of time because its host was too busy: it had used {cpu:.0f} s of "
        "processor time and waited {wait:.0f} s for a processor; start fewer tasks there, end what "
        "else runs there, or raise --timeout",
        "ranks {ranks} ran out of time because their hosts were too busy: on average they had used "
        "{cpu:.0f} s of processor time and waited {wait:.0f} s for a processor; start fewer tasks "
        "there, end what else runs there, or raise --timeout",
        ranks=_spans_of([one.rank for one in ranks]),
        cpu=sum(look.cpu_seconds or 0.0 for look in seen) / max(1, len(seen)),
        wait=sum(look.wait_seconds or 0.0 for look in seen) / max(1, len(seen)),
    )


def in_groups(history: Sequence[StepResult]) -> list[str]:
    """Return what the ranks did when the time of a step was over, in groups.

    It is the first step in which a rank was held, or else the first in which time was over.
    """
    seen = [one for one in history if any(_is_seen(result) for result in one.results.values())]
    of = next((one for one in seen if held(list(one.results.values()))), next(iter(seen), None))
    if of is None:
        return []
    groups: dict[str, list[int]] = {}
    for rank, result in sorted(of.results.items()):
        if (name := _group(result)) is not None and (name in _ALONE or of.step.kind != "alone"):
            groups.setdefault(name, []).append(rank)
    return [
        Sentence(words.key, {"count": len(groups[name]), "ranks": _spans_of(groups[name])})
        for name, words in _GROUPS.items()
        if name in groups
    ]


def _held(one: RankResult, known: Sequence[RankResult]) -> DirectEvidence | None:
    look = one.look
    if look is None or one.passed:
        return None
    if look.state in _HELD:
        state, words, sure = look.state, _HELD[look.state], _certainty(one, known)
    elif look.zygote in _ZYGOTE_HELD:
        state, words = look.zygote, _ZYGOTE_HELD[look.zygote]
        sure = Confidence.LIKELY if state == "uninterruptible" else Confidence.CERTAIN
    else:
        return None
    return DirectEvidence(
        rank=one.rank, slug=rank_hangs.RULE.slug, evidence=words, confidence=sure, result=one,
        is_seen=sure is Confidence.CERTAIN, fixes=(rank_hangs.HELD[state],),
    )  # fmt: skip


def _certainty(one: RankResult, known: Sequence[RankResult]) -> Confidence:
    if one.look is None or one.look.state != "uninterruptible":
        return Confidence.CERTAIN
    same = sum(two.look is not None and two.look.state == "uninterruptible" for two in known)
    if 2 * same > len(known) > 1:
        return Confidence.POSSIBLE
    return Confidence.CERTAIN if one.look.killed else Confidence.LIKELY


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


def _is_seen(one: RankResult) -> bool:
    return one.look is not None and not one.passed


def _group(one: RankResult) -> str | None:
    """Return what a rank did when the time was over. None if that is unknown or it had ended."""
    look = one.look
    if look is not None and not one.passed:
        if look.state in _HELD:
            return look.state
        if look.zygote in _ZYGOTE_HELD:
            return "zygote"
    is_victim = one.status == "stopped" or one.kind == "peer-lost"
    if one.phase == "enter" and (one.status == "timed-out" or is_victim):
        return "collective"
    if one.status == "timed-out" and look is not None:
        return "running" if look.state == "running" else "sleeping"
    return None


def _spans_of(ranks: Iterable[int]) -> str:
    """Return ranks as a few spans, ``0-6, 8-31``."""
    parts = pack(tuple(ranks)).split(",")
    more = ["..."] if len(parts) > _MOST_SPANS else []
    return in_series([*parts[:_MOST_SPANS], *more])


def recorded_in_groups(history: Sequence[StepResult]) -> list[str]:
    """Return in sentences what was recorded in the first step in which ranks ran out of time."""
    for done in history:
        if said := _of_group(done.results):
            return said
    return []


def _of_group(results: Mapping[int, RankResult]) -> list[str]:
    known = {rank: one.flight for rank, one in sorted(results.items()) if one.flight is not None}
    latest = max((one.begun for one in known.values()), default=0)
    if not latest:
        return []
    begun = [rank for rank, one in known.items() if one.begun == latest]
    behind = [rank for rank, one in known.items() if one.begun < latest]
    operation = known[begun[0]].operation
    said: list[str] = [
        say(
            "Ranks that had begun collective {number} ({operation}) according to PyTorch's flight "
            "recorder: {count} ({ranks})",
            number=latest, operation=operation, count=len(begun), ranks=_spans_of(begun),
        )
    ]  # fmt: skip
    if behind:
        said.append(
            say(
                "Ranks that had not begun it according to their recorder: {count} ({ranks})",
                count=len(behind), ranks=_spans_of(behind),
            )
        )  # fmt: skip
    return said
