"""Ranks that never came or fell silent: who is named, how surely, and when it may be rank 0."""

from collections.abc import Mapping
from typing import Any

import msgspec
from each import each
from fabric_support import Fabric, lost, roster

from gpucheck.cluster.diagnose.missing import Sights
from gpucheck.cluster.model import Roster
from gpucheck.cluster.store.task_messages import Seen
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit

CERTAIN, LIKELY, POSSIBLE = Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE


@each(
    ("sizes", "absent", "silent"),
    [
        ((1, 1, 1, 1), (3,), (1, 2)),  # only task 0 is left: absent ones are not heard either
        ((1, 1, 1, 1), (3,), (2,)),  # half
        ((1, 1, 1, 1), (), (2, 3)),  # half
        ((1, 1, 1, 1), (2, 3), ()),
        ((1, 1), (), (1,)),
        ((1, 1), (1,), ()),
        ((8, 1, 1), (), (8, 9)),  # many ranks on one node are one voice
    ],
)
def test_who_does_not_hear_most_hosts_is_certain_of_nothing(
    sizes: tuple[int, ...], absent: tuple[int, ...], silent: tuple[int, ...]
) -> None:
    of = Roster(ranks=roster(*sizes).ranks, absent=frozenset(absent))
    found = Fabric(of, lost(*silent)).run().culprits
    assert {one.slug for one in found} == {"rank-missing"}
    assert {one.confidence for one in found} == {POSSIBLE}


def judged(
    seen: Mapping[int, Mapping[int, Seen]], *silent: int, sizes: tuple[int, ...] = (1, 1, 1, 1),
    **more: Any,  # noqa: ANN401  # fields
) -> list[Culprit]:  # fmt: skip
    """Return who is named when tasks are silent and others have seen this of them."""
    return Fabric(roster(*sizes), lost(*silent), sights=Sights(seen=seen, **more)).run().culprits


def test_a_host_that_nobody_reaches_is_dead_or_cut_off() -> None:
    views: dict[int, Seen] = {0: "unreachable", 1: "unreachable", 3: "unreachable"}
    [one] = judged({2: views}, 2)
    assert (one.slug, one.hosts, one.confidence) == ("rank-missing", ("n2",), CERTAIN)
    assert "since 2 other hosts do not reach it either" in one.evidence


def test_hosts_that_fall_silent_together_may_share_a_switch() -> None:
    views: dict[int, Seen] = {0: "unreachable", 1: "unreachable", 2: "unreachable"}
    found = judged({3: views, 4: views}, 3, 4, sizes=(1,) * 5)
    assert [(one.hosts, one.confidence) for one in found] == [(("n3",), LIKELY), (("n4",), LIKELY)]


@each("own", ["refused", "says-nothing", "answers"])
def test_a_host_that_others_reach_is_the_link(own: Seen) -> None:
    views: dict[int, Seen] = {0: "unreachable", 1: own, 3: own}
    [one] = judged({2: views}, 2)
    assert (one.slug, one.ranks, one.is_link) == ("nccl-network-interface", (0, 2), True)
    assert one.confidence is CERTAIN
    assert "while both are reached from n1, n3" in one.evidence


def test_several_links_may_be_host_0_itself() -> None:
    views: dict[int, Seen] = {0: "unreachable", 1: "says-nothing", 4: "says-nothing"}
    found = judged({2: views, 3: views}, 2, 3, sizes=(1,) * 5)
    assert [(one.ranks, one.confidence) for one in found] == [
        ((0, 2), POSSIBLE),
        ((0, 3), POSSIBLE),
    ]
    assert all(one.is_link for one in found)


def test_where_others_disagree_nobody_is_named_surely() -> None:
    [one] = judged({2: {0: "unreachable", 1: "unreachable", 3: "says-nothing"}}, 2)
    assert (one.slug, one.confidence) == ("rank-missing", POSSIBLE)
    assert "still reached from n3, and not from others that were asked" in one.evidence


@each("views", [{}, {0: "unreachable"}])
def test_without_a_witness_nobody_is_named_surely(views: dict[int, Seen]) -> None:
    [one] = judged({2: views}, 2)
    assert (one.slug, one.confidence) == ("rank-missing", POSSIBLE)


def test_a_witness_that_is_silent_itself_does_not_count() -> None:
    seen: dict[int, dict[int, Seen]] = {2: {0: "unreachable", 3: "unreachable"}}
    found = judged(seen, 2, 3, sizes=(1,) * 5)
    assert {one.confidence for one in found} == {POSSIBLE}


def test_of_two_hosts_one_that_refuses_runs_and_its_process_has_ended() -> None:
    [one] = judged({1: {0: "refused"}}, 1, sizes=(1, 1), closed=frozenset({1}))
    assert (one.slug, one.ranks, one.confidence) == ("rank-missing", (1,), CERTAIN)
    assert "so its process has ended" in one.evidence


@each(
    ("seen", "sure"),
    [
        ("ended", CERTAIN),
        ("stopped", CERTAIN),
        ("uninterruptible", LIKELY),
        ("runs", POSSIBLE),
        ("refused", CERTAIN),
        ("says-nothing", LIKELY),
    ],
)
def test_what_its_own_host_says_of_a_process_decides(seen: Seen, sure: Confidence) -> None:
    """Another task of the host is heard, so the network works."""
    of = roster(1, 1, 1)
    ranks = tuple(msgspec.structs.replace(one, node=0, host="n0") for one in of.ranks)
    sights = Sights(seen={2: {0: seen}}, closed=frozenset({2}))
    [one] = Fabric(Roster(ranks=ranks), lost(2), sights=sights).run().culprits
    assert (one.slug, one.ranks, one.confidence) == ("rank-missing", (2,), sure)


def test_who_is_heard_again_was_only_slow() -> None:
    views: dict[int, Seen] = {0: "says-nothing", 1: "says-nothing", 3: "says-nothing"}
    [one] = judged({2: views}, 2, back=frozenset({2}))
    assert (one.slug, one.confidence) == ("rank-missing", POSSIBLE)
    assert "was heard again" in one.evidence


def test_an_absent_host_that_others_reach_is_the_link() -> None:
    of = Roster(ranks=roster(1, 1, 1, 1).ranks, absent=frozenset({2}))
    views: dict[int, Seen] = {0: "unreachable", 1: "answers", 3: "answers"}
    [one] = Fabric(of, sights=Sights(seen={2: views})).run().culprits
    assert (one.ranks, one.is_link) == ((0, 2), True)


@each(
    ("views", "sure", "why"),
    [
        ({0: "refused", 1: "answers", 3: "answers"}, LIKELY, "is reached from that of task 0"),
        ({0: "answers"}, LIKELY, "is reached from that of task 0"),
        ({0: "unreachable", 1: "unreachable", 3: "unreachable"}, LIKELY, "since 2 other hosts"),
        ({0: "unreachable", 1: "unreachable", 3: "answers"}, POSSIBLE, "its own output says"),
        ({0: "unreachable"}, POSSIBLE, "its own output says"),
        ({}, POSSIBLE, "its own output says"),
    ],
)
def test_who_never_came_may_not_reach_task_0(
    views: Mapping[int, Seen], sure: Confidence, why: str
) -> None:
    """Its launcher gives the name of its host, which would be excluded if it were likely."""
    of = Roster(ranks=roster(1, 1, 1, 1).ranks, absent=frozenset({2}))
    [one] = Fabric(of, sights=Sights(seen={2: views})).run().culprits
    assert (one.slug, one.hosts, one.confidence) == ("rank-missing", ("n2",), sure)
    assert why in one.evidence


def test_only_a_task_whose_host_reaches_task_0_is_missing_for_certain() -> None:
    """Another task of its host has come by the same way."""
    of = roster(1, 1, 1, 1)
    last = msgspec.structs.replace(of.ranks[3], node=2, host="n2")
    some = Roster(ranks=(*of.ranks[:3], last), absent=frozenset({3}))
    [one] = Fabric(some, sights=Sights()).run().culprits
    assert (one.slug, one.ranks, one.confidence) == ("rank-missing", (3,), CERTAIN)
    assert "while other tasks of its host did" in one.evidence


def test_who_still_had_time_to_come_is_not_missing() -> None:
    of = Roster(ranks=roster(1, 1, 1, 1).ranks, absent=frozenset({2}))
    assert Fabric(of, sights=Sights(awaited=frozenset({2}))).run().culprits == []


def test_absent_tasks_of_unknown_hosts_count_as_hosts_of_the_usual_size() -> None:
    """Torchrun does not say where a task would have been: 8 of 32 are one host of four."""
    known = roster(8, 8, 8)
    late = [
        msgspec.structs.replace(known.ranks[0], rank=24 + at, task=3 + at, node=3 + at, host="")
        for at in range(8)
    ]
    of = Roster(ranks=(*known.ranks, *late), absent=frozenset(range(24, 32)))
    found = Fabric(of, sights=Sights()).run().culprits
    assert {one.confidence for one in found} == {LIKELY}
    assert "its own output says that task 0 was not reached" in found[0].evidence


def test_the_rank_that_died_before_the_job_was_told_to_end_is_the_answer() -> None:
    of = roster(1, 1, 1, 1)
    sights = Sights(broken=frozenset({2}), left=frozenset({3}))
    [one] = Fabric(of, lost(2), sights=sights).run().culprits
    assert (one.slug, one.ranks, one.confidence) == ("rank-missing", (2,), LIKELY)
    assert "was closed without a word" in one.evidence


def test_of_many_that_died_at_once_none_is_sure() -> None:
    found = Fabric(
        roster(1, 1, 1, 1), lost(2, 3), sights=Sights(broken=frozenset({2, 3}))
    ).run().culprits  # fmt: skip
    assert {one.confidence for one in found} == {POSSIBLE}


def test_who_was_told_to_end_is_not_accused() -> None:
    of = roster(1, 1, 1, 1)
    gone = Roster(ranks=of.ranks, dead=frozenset({3}))
    assert Fabric(gone, sights=Sights(left=frozenset({3}))).run().culprits == []


@each("own", ["says-nothing", "refused", "answers"])
def test_where_only_small_messages_pass_the_way_is_named(own: Seen) -> None:
    """The task has ended by then, because it heard nothing either."""
    [one] = judged({2: {0: own, 1: own, 3: own}}, 2, narrow=frozenset({2}))
    assert (one.slug, one.ranks, one.is_link) == ("nccl-network-interface", (0, 2), True)
    assert one.confidence is LIKELY
    assert "compare the MTU" in one.evidence


def test_a_task_that_gave_up_says_why() -> None:
    [one] = judged({2: {0: "refused"}}, 2, gave_up={2: "nothing came from task 0 any more"})
    assert (one.ranks, one.is_link, one.confidence) == ((0, 2), True, LIKELY)
    assert "nothing came from task 0 any more" in one.evidence


def test_if_more_than_one_gave_up_it_may_be_task_0() -> None:
    why = dict.fromkeys((1, 2, 3), "nothing came from task 0 any more")
    found = judged({}, 1, 2, 3, gave_up=why)
    assert {(one.is_link, one.confidence) for one in found} == {(True, POSSIBLE)}


def test_who_has_connected_and_never_registered_is_not_named_surely() -> None:
    of = Roster(ranks=roster(1, 1, 1, 1).ranks, absent=frozenset({2}))
    [one] = Fabric(of, sights=Sights(mute=frozenset({2}))).run().culprits
    assert (one.slug, one.confidence) == ("rank-missing", POSSIBLE)
    assert "connected to task 0 and never registered" in one.evidence


@each("seen", ["refused", "ended"])
@each("hosts", [2, 4])
def test_who_ended_because_it_heard_nothing_is_not_named_surely(seen: Seen, hosts: int) -> None:
    """Its connection was not closed when it fell silent: the way to task 0 may be broken."""
    silent = tuple(range(1, hosts))
    views: dict[int, Seen] = {0: seen}
    found = judged(dict.fromkeys(silent, views), *silent, sizes=(1,) * hosts)
    assert {one.confidence for one in found} == {POSSIBLE}
    assert "perhaps because it heard nothing from task 0 either" in found[0].evidence


def test_a_task_of_this_host_that_gave_up_is_no_link() -> None:
    ranks = tuple(msgspec.structs.replace(one, node=0, host="n0") for one in roster(1, 1, 1).ranks)
    sights = Sights(gave_up={2: "nothing came"})
    [one] = Fabric(Roster(ranks=ranks), lost(2), sights=sights).run().culprits
    assert (one.slug, one.is_link, one.confidence) == ("rank-missing", False, POSSIBLE)
