"""Ranks that never came or fell silent: their host, the link to it, or rank 0 itself is at fault.

Task 0 sees only that it does not hear them. It is sure of nothing by itself unless it hears most of
the hosts. What others saw of the silent ones tells a dead host from a link that is cut.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gpucheck.cluster.diagnose import naming
from gpucheck.cluster.diagnose.evidence import Evidence
from gpucheck.cluster.diagnose.naming import between, blamed, words_of
from gpucheck.cluster.model import Roster, StepResult
from gpucheck.cluster.store.task_messages import Seen
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit, FailedGroup, Phase
from gpucheck.findings.ranks import RANK_HANGS, RANK_MISSING
from gpucheck.language import say, say_many

_REACHED: tuple[Seen, ...] = ("refused", "says-nothing", "answers")
"""Something on the host answered, so its network works."""
_OF_THE_KERNEL: tuple[Seen, ...] = ("ended", "stopped", "uninterruptible", "runs")
"""What the kernel of its own machine says; it is not mistaken."""


class Sights(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of tasks that task 0 does not hear, besides their silence."""

    seen: Mapping[int, Mapping[int, Seen]] = {}
    """By task, and by the task that was asked about it; of a whole host one task is looked for."""
    back: frozenset[int] = frozenset()
    """Tasks that were silent for long enough to be lost, and are heard again."""
    awaited: frozenset[int] = frozenset()
    """Tasks that have not come, and that still had time to."""
    left: frozenset[int] = frozenset()
    """Tasks that were told to end before the job was judged, and said so."""
    broken: frozenset[int] = frozenset()
    """Tasks whose connection ended without a word, just before the job was told to end."""
    closed: frozenset[int] = frozenset()
    """Tasks whose connection was closed as soon as they fell silent, as their systems do when the
    process dies. A task that ends because it hears nothing closes it later."""
    gave_up: Mapping[int, str] = {}
    """Tasks that have ended because nothing came from task 0 any more, with what they saw."""
    narrow: frozenset[int] = frozenset()
    """Tasks of which nothing came after their registration, not even their large message."""
    mute: frozenset[int] = frozenset()
    """Tasks that have connected, and have never registered."""


def missing(evidence: Evidence, sights: Sights) -> list[Culprit]:
    """Name the ranks that never registered, and those that registered and fell silent."""
    return _Missing(evidence, sights).culprits()


def lost_ranks(history: Sequence[StepResult]) -> set[int]:
    """Return the ranks that came, and whose supervisors fell silent."""
    every = (result for done in history for result in done.results.values())
    return {result.rank for result in every if result.status == "lost"}


def are_few_heard(roster: Roster, silent: Iterable[int]) -> bool:
    """Whether rank 0 hears no more than half of the hosts, so that it may be cut off itself.

    ``silent`` are ranks that came. Ranks that never came are not heard either. Where the launcher
    does not say on which hosts these should be, they count as so many hosts as others would need.
    """
    gone = roster.absent.union(silent)
    nodes: dict[int, list[int]] = {}
    nowhere = 0
    for rank in roster.ranks:
        if rank.rank in roster.absent and not rank.host:
            nowhere += 1
        else:
            nodes.setdefault(rank.node, []).append(rank.rank)
    widest = max(map(len, nodes.values()), default=1)
    here = next((rank.node for rank in roster.ranks), 0)
    heard = sum(node == here or not gone.issuperset(ranks) for node, ranks in nodes.items())
    every = len(nodes) + -(-nowhere // widest)
    return every > 1 and 2 * heard <= every


class _Missing:
    """The judgement of all ranks that are not heard."""

    def __init__(self, evidence: Evidence, sights: Sights) -> None:
        self._evidence = evidence
        self._roster = evidence.roster
        self._sights = sights
        self._left = {rank.rank for rank in self._roster.ranks if rank.task in sights.left}
        self._silent = evidence.lost - evidence.direct.keys() - self._left
        self._gone = {
            rank.task
            for rank in self._roster.ranks
            if rank.rank in self._silent or rank.rank in self._roster.absent
        }
        self._node_of_task = {rank.task: rank.node for rank in self._roster.ranks}
        self._last: dict[int, Phase] = {
            result.rank: result.phase
            for done in evidence.history
            for result in done.results.values()
            if result.status == "lost"
        }
        self._here = self._roster.ranks[0].node if self._roster.ranks else 0
        places = {min(ranks): self._views(ranks) for ranks in self._by_place(self._silent)}
        ended = {
            rank
            for ranks in self._by_place(self._silent)
            if self._have_ended(ranks, places[min(ranks)]) or self._are_broken(ranks)
            for rank in ranks
        }
        # Whose process has ended is heard of: the system of its own host tells so.
        self._is_in_doubt = are_few_heard(self._roster, self._silent - ended)
        self._cut = [rank for rank, views in places.items() if self._is_link(views)]
        self._dead = [rank for rank, views in places.items() if _reach_nothing(views)]

    def culprits(self) -> list[Culprit]:
        roster, evidence = self._roster, self._evidence
        awaited = {rank.rank for rank in roster.ranks if rank.task in self._sights.awaited}
        found = [self._absent(ranks) for ranks in self._by_place(roster.absent - awaited)]
        found += [self._judge(ranks) for ranks in self._by_place(self._silent)]
        stuck = roster.dead - self._silent - self._left - evidence.direct.keys() - roster.absent
        words = say(
            "no longer takes part: it cannot be killed, or its supervisor stopped responding"
        )
        found += [
            blamed(
                RANK_HANGS.slug, roster, ranks, evidence=words,
                confidence=Confidence.POSSIBLE,
            )
            for ranks in self._by_place(stuck)
        ]  # fmt: skip
        return found

    def _absent(self, ranks: list[int]) -> Culprit:
        views = self._views(ranks)
        if self._is_link(views):
            return self._link(ranks, views)
        sure, words = self._why_absent(ranks, views)
        return blamed(RANK_MISSING.slug, self._roster, ranks, evidence=words, confidence=sure)

    def _why_absent(self, ranks: list[int], views: Mapping[int, Seen]) -> tuple[Confidence, str]:
        """Return how sure it is that ranks are missing, and do not just fail to reach rank 0."""
        if any(self._roster.ranks[rank].task in self._sights.mute for rank in ranks):
            return Confidence.POSSIBLE, say(
                "connected to task 0 and never registered: it hangs at its start, or large packets "
                "get lost on the way (compare the MTU of the network interfaces and switches)"
            )
        if 2 * len(self._roster.absent) > len(self._roster.ranks) or self._is_in_doubt:
            return Confidence.POSSIBLE, say(
                "never registered: it was not started, hangs at its start, or cannot reach rank 0; "
                "because so many are missing, rank 0 itself may have come late or be out of reach"
            )
        if self._is_part_of_a_host(ranks):
            return Confidence.CERTAIN, say(
                "never registered, while other tasks of its host did: it was not started, or hangs "
                "at its start"
            )
        if self._own(views) in _REACHED:
            return Confidence.LIKELY, say(
                "never registered, although its host is reached from that of task 0: it was not "
                "started, hangs at its start, or a firewall keeps it from task 0"
            )
        others = sum(self._node_of_task.get(task) != self._here for task in views)
        if others and _reach_nothing(views):
            return Confidence.LIKELY, say_many(
                others,
                "never registered, and its host is down or cut off, since {count} other host does "
                "not reach it either",
                "never registered, and its host is down or cut off, since {count} other hosts do "
                "not reach it either",
            )
        # A job whose launcher names no hosts can exclude none: that its process was not started is
        # far more common than a single link that is cut. Of a host with a name nothing was seen.
        is_known = bool(self._roster.ranks[ranks[0]].host)
        return Confidence.POSSIBLE if is_known else Confidence.LIKELY, say(
            "never registered: it was not started, hangs at its start, or its host does not reach "
            "that of task 0; if so, its own output says that task 0 was not reached"
        )

    def _judge(self, ranks: list[int]) -> Culprit:
        views = self._views(ranks)
        if self._are_back(ranks):
            pass
        elif self._is_link(views):
            return self._link(ranks, views)
        elif self._said_at_the_end(ranks):
            return self._gave_up(ranks)
        elif self._is_narrow(ranks, views):
            return self._narrow(ranks)
        sure, words = self._why(ranks, views)
        entry = blamed(RANK_MISSING.slug, self._roster, ranks, evidence=words, confidence=sure)
        return msgspec.structs.replace(entry, phase=self._phase(ranks))

    def _why(self, ranks: list[int], views: Mapping[int, Seen]) -> tuple[Confidence, str]:
        """Return how sure it is that their process or host is at fault, and what was seen."""
        phase = self._phase(ranks)
        if self._are_back(ranks):
            return Confidence.POSSIBLE, say(
                "registered, stopped sending heartbeats after phase {phase}, and was heard again "
                "later: its host, or the network to it, was too slow for a while",
                phase=phase,
            )
        if self._are_broken(ranks):
            # A launcher ends all others once one has died; of many that die at once none is first.
            are_few = len(self._sights.broken) <= max(1, len(self._node_of_task) // 4)
            return Confidence.LIKELY if are_few else Confidence.POSSIBLE, say(
                "registered, and its connection was closed without a word after phase {phase}, "
                "just before the job was told to end: its process has died",
                phase=phase,
            )
        kernel_view = next((view for view in views.values() if view in _OF_THE_KERNEL), None)
        own = self._own(views, self._roster.ranks[ranks[0]].node)
        is_over = kernel_view == "ended" or (kernel_view is None and own == "refused")
        if is_over and not self._have_ended(ranks, views):
            return Confidence.POSSIBLE, say(
                "registered, and stopped sending heartbeats after phase {phase}; its process has "
                "ended since, perhaps because it heard nothing from task 0 either",
                phase=phase,
            )
        if kernel_view is not None:
            return _of_the_kernel(kernel_view, phase)
        if own == "refused":
            return Confidence.CERTAIN, say(
                "registered, and stopped sending heartbeats after phase {phase}: its host refuses "
                "connections to its port, so its process has ended",
                phase=phase,
            )
        if own in _REACHED:
            return Confidence.POSSIBLE if self._is_in_doubt else Confidence.LIKELY, say(
                "registered, and stopped sending heartbeats after phase {phase}, while its host "
                "still accepts connections: its process is stopped, or hangs",
                phase=phase,
            )
        if not views and self._is_part_of_a_host(ranks):
            return Confidence.LIKELY, say(
                "registered, but stopped sending heartbeats after phase {phase}, while other tasks "
                "of its host still do: its process is dead, or hangs",
                phase=phase,
            )
        return self._of_a_host(views, phase)

    def _of_a_host(self, views: Mapping[int, Seen], phase: str) -> tuple[Confidence, str]:
        """Judge a host that task 0 does not reach."""
        reach = sorted(self._host(task) for task, view in views.items() if view in _REACHED)
        if reach:
            return Confidence.POSSIBLE, say(
                "registered, but stopped sending heartbeats after phase {phase}; its host is still "
                "reached from {hosts}, and not from others that were asked: the network between "
                "the hosts is broken in more than one place",
                phase=phase, hosts=words_of(reach),
            )  # fmt: skip
        if self._is_in_doubt:
            return Confidence.POSSIBLE, say(
                "registered, but stopped sending heartbeats after phase {phase}; because rank 0 "
                "hears no more than half of the hosts, rank 0 itself may be cut off from them",
                phase=phase,
            )
        others = sum(self._node_of_task.get(task) != self._here for task in views)
        if not others:
            return Confidence.POSSIBLE, say(
                "registered, but stopped sending heartbeats after phase {phase}: its process or "
                "its node is dead, or cut off from rank 0; no other host has said whether it "
                "reaches it",
                phase=phase,
            )
        words = say_many(
            others,
            "registered, but stopped sending heartbeats after phase {phase}: its node is dead or "
            "cut off, since {count} other host does not reach it either",
            "registered, but stopped sending heartbeats after phase {phase}: its node is dead or "
            "cut off, since {count} other hosts do not reach it either",
            phase=phase,
        )
        if len(self._dead) > 1:
            # They may share a switch or a power supply, and each of them may be sound.
            return Confidence.LIKELY, words
        return Confidence.CERTAIN, words

    def _is_link(self, views: Mapping[int, Seen]) -> bool:
        """Whether all other hosts that were asked reach a host, and that of rank 0 does not."""
        others = [
            view for task, view in views.items() if self._node_of_task.get(task) != self._here
        ]
        is_reached = bool(others) and all(sight in _REACHED for sight in others)
        return is_reached and self._own(views) == "unreachable"

    def _link(self, ranks: list[int], views: Mapping[int, Seen]) -> Culprit:
        """Name the link between the host of rank 0 and another one."""
        names = words_of(sorted(self._host(t) for t, view in views.items() if view in _REACHED))
        sure = Confidence.CERTAIN
        words = say(
            "the two hosts do not reach each other, while both are reached from {hosts}",
            hosts=names,
        )
        if len(self._cut) > 1:
            sure = Confidence.POSSIBLE
            words = say(
                "the two hosts do not reach each other, while both are reached from {hosts}; since "
                "the same is true of more hosts, that of rank 0 may be at fault",
                hosts=names,
            )
        ends = [self._roster.ranks[0].rank, ranks[0]]
        entry = blamed(
            naming.of_route(), self._roster, ends, evidence=words, confidence=sure,
            data=FailedGroup(kind="connect", group=ends),
        )  # fmt: skip
        return between(msgspec.structs.replace(entry, phase="connect"), self._roster)

    def _said_at_the_end(self, ranks: list[int]) -> str:
        """Return why the tasks of these ranks have given up, "" if they did not."""
        tasks = (self._roster.ranks[rank].task for rank in ranks)
        return next(filter(None, (self._sights.gave_up.get(task, "") for task in tasks)), "")

    def _gave_up(self, ranks: list[int]) -> Culprit:
        """Name the link of a task that ended because nothing came from task 0 any more."""
        words = say(
            "the task ended by itself, although its messages arrived: {why}",
            why=self._said_at_the_end(ranks),
        )
        if self._roster.ranks[ranks[0]].node == self._here:
            return blamed(
                RANK_MISSING.slug, self._roster, ranks, evidence=words,
                confidence=Confidence.POSSIBLE,
            )  # fmt: skip
        return self._route(ranks, words, len(self._sights.gave_up))

    def _is_narrow(self, ranks: list[int], views: Mapping[int, Seen]) -> bool:
        """Whether the large message of a task got lost that it had sent right after a small one.

        What a process has sent arrives even if it dies then.
        """
        tasks = {self._roster.ranks[rank].task for rank in ranks}
        return tasks <= self._sights.narrow and self._own(views) in _REACHED

    def _narrow(self, ranks: list[int]) -> Culprit:
        """Name the link on which only small messages pass."""
        words = say(
            "small messages pass between the two hosts, and one of 16 KiB did not: large packets "
            "get lost on the way; compare the MTU of the network interfaces and switches"
        )
        return self._route(ranks, words, len(self._sights.narrow))

    def _route(self, ranks: list[int], words: str, tasks: int) -> Culprit:
        """Return the entry of the route between the hosts of rank 0 and of these ranks."""
        ends = [self._roster.ranks[0].rank, ranks[0]]
        entry = blamed(
            naming.of_route(), self._roster, ends, evidence=words,
            confidence=Confidence.LIKELY if tasks == 1 else Confidence.POSSIBLE,
            data=FailedGroup(kind="connect", group=ends),
        )  # fmt: skip
        return between(msgspec.structs.replace(entry, phase="connect"), self._roster)

    def _views(self, ranks: list[int]) -> dict[int, Seen]:
        """Return what was seen of the tasks of these ranks by tasks that are heard."""
        tasks = {self._roster.ranks[rank].task for rank in ranks}
        return {
            witness: seen
            for task in sorted(tasks)
            for witness, seen in self._sights.seen.get(task, {}).items()
            if witness not in self._gone
        }

    def _own(self, views: Mapping[int, Seen], node: int | None = None) -> Seen | None:
        """Return what was seen from the host of rank 0, or else on the node itself."""
        of = {self._node_of_task.get(task): seen for task, seen in views.items()}
        return of.get(self._here, of.get(node))

    def _host(self, task: int) -> str:
        return next(rank.host for rank in self._roster.ranks if rank.task == task)

    def _are_back(self, ranks: list[int]) -> bool:
        return any(self._roster.ranks[rank].task in self._sights.back for rank in ranks)

    def _have_ended(self, ranks: list[int], views: Mapping[int, Seen]) -> bool:
        """Whether their process has died, and did not end because it heard nothing itself."""
        tasks = {self._roster.ranks[rank].task for rank in ranks}
        has_ended = not {"ended", "refused"}.isdisjoint(views.values())
        return has_ended and not tasks.isdisjoint(self._sights.closed)

    def _are_broken(self, ranks: list[int]) -> bool:
        return any(self._roster.ranks[rank].task in self._sights.broken for rank in ranks)

    def _is_part_of_a_host(self, ranks: list[int]) -> bool:
        node = self._roster.ranks[ranks[0]].node
        gone = self._silent | self._roster.absent
        return any(rank.node == node and rank.rank not in gone for rank in self._roster.ranks)

    def _phase(self, ranks: list[int]) -> Phase:
        return self._last[ranks[0]]

    def _by_place(self, ranks: Iterable[int]) -> list[list[int]]:
        """Group ranks by task; by node where all of its ranks are among them, as one cause."""
        affected = set(ranks)
        missing_on: dict[int, bool] = {}
        for member in self._roster.ranks:
            missing_on[member.node] = missing_on.get(member.node, True) and member.rank in affected
        places: dict[tuple[str, int], list[int]] = {}
        for rank in sorted(affected):
            place = self._roster.ranks[rank]
            key = ("node", place.node) if missing_on[place.node] else ("task", place.task)
            places.setdefault(key, []).append(rank)
        return list(places.values())


def _reach_nothing(views: Mapping[int, Seen]) -> bool:
    return bool(views) and set(views.values()) == {"unreachable"}


def _of_the_kernel(seen: Seen, phase: str) -> tuple[Confidence, str]:
    """Return what the kernel of its own host says of a silent process."""
    if seen == "ended":
        return Confidence.CERTAIN, say(
            "registered, and its process has ended without a word after phase {phase}", phase=phase
        )
    if seen == "stopped":
        return Confidence.CERTAIN, say(
            "registered, and stopped sending heartbeats after phase {phase}: its process is "
            "stopped, by a signal or a debugger",
            phase=phase,
        )
    if seen == "uninterruptible":
        return Confidence.LIKELY, say(
            "registered, and stopped sending heartbeats after phase {phase}: its process waits in "
            "the kernel for a disk, a file server or a driver",
            phase=phase,
        )
    return Confidence.POSSIBLE, say(
        "registered, and stopped sending heartbeats after phase {phase}, although its process "
        "runs; its host may be too busy",
        phase=phase,
    )
