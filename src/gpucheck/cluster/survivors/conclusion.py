"""What the tasks that met without task 0 can say about it: pure functions of what each one saw."""

from collections.abc import Mapping

import msgspec

from gpucheck.cluster.diagnose.naming import words_of
from gpucheck.cluster.spans import unpack
from gpucheck.cluster.store.task_messages import Attendees, Seen, Survivor, Verdict
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit, Preflight, RankOutcome
from gpucheck.findings import rank_missing
from gpucheck.language import say, say_many

_STRONGEST: tuple[Seen, ...] = (
    "ended", "refused", "stopped", "uninterruptible", "says-nothing", "unreachable"
)  # fmt: skip
_CERTAIN: tuple[Seen, ...] = ("ended", "refused", "stopped")
_OF_THE_KERNEL: tuple[Seen, ...] = ("ended", "stopped", "uninterruptible")
"""What the kernel of its own machine says."""
_INCONCLUSIVE = 3
_ACQUITS: tuple[Seen, ...] = ("answers", "runs")


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """The loss of task 0: which host it was on, who was there before, and who has met since."""

    host: str
    attendees: Attendees
    met: Mapping[int, Survivor]
    after: float
    """Seconds from the start of the run to the last sign of task 0."""
    tasks: int = 0
    """All tasks that the job should have; 0 means that all of them came."""


class Conclusion(msgspec.Struct, frozen=True):
    """Whether the host of task 0 is named, how surely, and why or why not in a sentence."""

    confidence: Confidence | None
    sentence: str


def conclude(loss: Loss) -> Conclusion:
    """Judge the loss of task 0.

    From another machine a single task cannot tell a dead task 0 from a connection of its own that
    is cut. So a host is named only if most tasks met, or all that were not on that host. If most
    of them do not even reach the host, most of all hosts must have met: otherwise these may be the
    ones that are cut off. The kernel of its own machine is not mistaken: one task there is enough.
    """
    sights = {one.seen for one in loss.met.values()}
    if "answers" in sights:
        return Conclusion(None, _said(loss, _still_answers(loss)))
    if "runs" in sights:
        why = say("its process runs and does not answer; its host may be too busy")
        return Conclusion(None, _said(loss, why))
    strongest = next((one for one in _STRONGEST if one in sights), None)
    if strongest is None or not (_says_its_kernel(loss, strongest) or _are_enough(loss)):
        return Conclusion(None, _too_few(loss))
    if _most_reach_nothing(loss) and not _are_most_hosts(loss):
        return Conclusion(None, _cut_off(loss))
    sure = Confidence.CERTAIN if strongest in _CERTAIN else Confidence.LIKELY
    return Conclusion(sure, _said(loss, _sight(strongest, loss)))


def is_about_task_0(verdict: Verdict, loss: Loss) -> bool:
    """Whether a task can believe the verdict of a deputy: it accuses the host of task 0 or nobody.

    ``loss`` is what this task knows itself. If task 0 still answers it, nobody is to be accused.
    """
    if not verdict.culprits:
        return verdict.exit == _INCONCLUSIVE
    if any(one.seen in _ACQUITS for one in loss.met.values()):
        return False
    return all(
        one.slug == rank_missing.RULE.slug and {one.host, *one.hosts} == {loss.host}
        for one in verdict.culprits
    )


def _says_its_kernel(loss: Loss, seen: Seen) -> bool:
    """Whether this was seen on the host of task 0 itself, by its kernel."""
    return seen in _OF_THE_KERNEL and any(
        one.seen == seen and one.host == loss.host for one in loss.met.values()
    )


def _are_enough(loss: Loss) -> bool:
    """Whether most of the tasks that were there have met, or all that were elsewhere."""
    attendees = loss.attendees
    elsewhere = sum(1 for one in loss.met.values() if one.host != loss.host)
    are_all = elsewhere and elsewhere >= attendees.tasks - attendees.beside
    return (
        bool(are_all)
        or 2 * len(loss.met) > attendees.tasks
        or len(loss.met) >= attendees.tasks - 1 > 0
    )


def _most_reach_nothing(loss: Loss) -> bool:
    """Whether most who met do not reach the host, so that a single other voice decides nothing."""
    return 2 * sum(1 for one in loss.met.values() if one.seen == "unreachable") > len(loss.met)


def _are_most_hosts(loss: Loss) -> bool:
    """Whether most of all hosts met; tasks that never came may be on the side of task 0."""
    attendees = loss.attendees
    late = max(0, loss.tasks - attendees.tasks)
    hosts = attendees.hosts + -(-late * attendees.hosts // max(1, attendees.tasks))
    return 2 * len(_other_hosts(loss)) > hosts


def _other_hosts(loss: Loss) -> list[str]:
    return sorted({one.host for one in loss.met.values()} - {loss.host})


def _said(loss: Loss, what: str) -> str:
    return say_many(
        len(loss.met),
        "task 0 on host {host} stopped answering after {seconds:.0f} s, while {count} other task "
        "was connected: {what}",
        "task 0 on host {host} stopped answering after {seconds:.0f} s, while {count:,} other "
        "tasks were connected: {what}",
        host=loss.host,
        seconds=loss.after,
        what=what,
    )


def _sight(seen: Seen, loss: Loss) -> str:
    """Return in words what was seen of it."""
    if seen == "ended":
        return say("its process has ended without a verdict")
    if seen == "refused":
        return say("its host refuses connections to its port, so its process has ended")
    if seen == "stopped":
        return say("its process is stopped, by a signal or a debugger")
    if seen == "uninterruptible":
        return say("its process waits in the kernel for a disk, a file server or a driver")
    if seen == "says-nothing":
        return say("its host accepts connections, but its process does not answer")
    return say_many(
        len(_other_hosts(loss)),
        "{count} other host does not reach its host any more",
        "{count} other hosts do not reach its host any more",
    )


def _still_answers(loss: Loss) -> str:
    count = sum(1 for one in loss.met.values() if one.seen == "answers")
    return say_many(
        count,
        "it still answers {count} of them, so their connections broke rather than task 0",
        "it still answers {count:,} of them, so their connections broke rather than task 0",
    )


def _too_few(loss: Loss) -> str:
    return say_many(
        len(loss.met),
        "task 0 on host {host} does not answer: it died, or this task is cut off from it. {count} "
        "of {all:,} tasks met without it ({tasks}), too few to tell",
        "task 0 on host {host} does not answer: it died, or these tasks are cut off from it. "
        "{count:,} of {all:,} tasks met without it ({tasks}), too few to tell",
        host=loss.host,
        all=loss.attendees.tasks,
        tasks=words_of(sorted(loss.met)),
    )


def _cut_off(loss: Loss) -> str:
    return say_many(
        len(_other_hosts(loss)),
        "task 0 on host {host} does not answer: it died, or {names} is cut off from it. {count} of "
        "{all} hosts met without it, too few to tell",
        "task 0 on host {host} does not answer: it died, or {names} are cut off from it. {count} "
        "of {all} hosts met without it, too few to tell",
        host=loss.host,
        names=words_of(_other_hosts(loss)),
        all=loss.attendees.hosts,
    )


def section(loss: Loss, found: Conclusion) -> Preflight:
    """Return what is known; launcher, time limits and the like are for the caller to add."""
    ranks = unpack(loss.attendees.ranks)
    culprits = []
    if found.confidence is not None:
        culprits.append(
            Culprit(
                slug=rank_missing.RULE.slug,
                confidence=found.confidence,
                rank=ranks[0] if ranks else None,
                ranks=ranks,
                host=loss.host,
                hosts=(loss.host,),
                evidence=found.sentence,
            )
        )
    outcomes = [
        *(RankOutcome(rank=rank, task=0, host=loss.host, status="lost") for rank in ranks),
        *(
            RankOutcome(rank=rank, task=task, host=one.host, device=device, status="stopped")
            for task, one in loss.met.items()
            for rank, device in one.ranks.items()
        ),
    ]
    return Preflight(
        world_size=loss.attendees.world_size or None,
        nodes=loss.attendees.hosts,
        culprits=culprits,
        ranks=sorted(outcomes, key=lambda one: one.rank),
        steps=[],
        finished=False,
        stopped_because=say("task 0 was lost before it had judged the job"),
        sources={"*": say("gpucheck preflight")},
    )
