"""What one failed step tells by itself, and what it does not."""

import msgspec
from each import each
from fabric_support import hung

from gpucheck.cluster.diagnose.direct_evidence import DirectEvidence, alone, together
from gpucheck.cluster.model import RankResult
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Look

GROUP = tuple(range(8))


def _told(results: dict[int, RankResult]) -> list[tuple[str, int]]:
    return [(one.slug, one.rank) for one in _named(results)]


def _named(results: dict[int, RankResult]) -> list[DirectEvidence]:
    return together(tuple(sorted(results)), results)


def _with(results: dict[int, RankResult], rank: int, **changes: object) -> dict[int, RankResult]:
    return {**results, rank: msgspec.structs.replace(results[rank], **changes)}


def test_all_entered_and_nobody_left_tells_nothing() -> None:
    assert _told(hung(GROUP)) == []


@each("phase", ["start", "import", "set-device", "connect"])
def test_one_that_never_entered(phase: str) -> None:
    assert _told(_with(hung(GROUP), 5, phase=phase, collective=0)) == [("rank-hangs", 5)]


def _timed(rank: int, phase: str, in_phase: float, *, own: bool) -> dict[int, RankResult]:
    """Others waited in the collective for 38 s; one was so long in an earlier phase."""
    waited = {"in_phase": 38.0, "own_deadline": True}
    results = {at: msgspec.structs.replace(one, data=waited) for at, one in hung(GROUP).items()}
    data = {"in_phase": in_phase, "own_deadline": own}
    return _with(results, rank, phase=phase, collective=0, data=data)


@each(
    ("phase", "in_phase", "own", "sure"),
    [
        ("connect", 38.0, False, Confidence.CERTAIN),
        ("set-device", 38.0, False, Confidence.LIKELY),
        ("set-device", 60.0, True, Confidence.CERTAIN),
        ("start", 30.0, True, Confidence.CERTAIN),
        ("start", 25.0, False, Confidence.LIKELY),
    ],
)
def test_it_is_as_sure_as_the_time_it_had(
    phase: str,
    in_phase: float,
    own: bool,  # noqa: FBT001  # a table
    sure: Confidence,
) -> None:
    [one] = _named(_timed(5, phase, in_phase, own=own))
    assert (one.rank, one.confidence) == (5, sure)
    assert ("it is slow or stuck" in one.evidence) == (sure is Confidence.LIKELY)


@each("phase", ["start", "set-device", "connect"])
def test_one_that_was_late_and_on_its_way_is_not_named(phase: str) -> None:
    assert _told(_timed(5, phase, 3.0, own=False)) == []


def test_one_that_cannot_reach_the_store_may_be_kept_from_it() -> None:
    assert _told(_with(hung(GROUP), 5, phase="store", collective=0)) == []


def test_one_that_left_a_collective_and_never_entered_the_next() -> None:
    [one] = _named(_with(hung(GROUP, collective=4), 5, phase="leave", collective=3))
    assert (one.slug, one.rank) == ("rank-hangs", 5)
    assert "never entered all-reduce 4" in one.evidence


def test_one_that_is_stuck_in_an_earlier_collective_may_be_waiting() -> None:
    assert _told(_with(hung(GROUP, collective=4), 5, collective=3)) == []


def test_one_that_was_stopped_had_no_time_to_come() -> None:
    results = _with(hung(GROUP), 5, phase="connect", collective=0, status="stopped")
    assert _told(results) == []


def test_several_that_hang_by_themselves_are_all_named() -> None:
    results = _with(hung(GROUP), 5, phase="set-device", collective=0)
    results = _with(results, 6, phase="set-device", collective=0)
    assert _told(results) == [("rank-hangs", 5), ("rank-hangs", 6)]


def test_two_that_do_not_connect_may_not_reach_each_other() -> None:
    results = _with(hung(GROUP), 5, phase="connect", collective=0)
    assert _told(_with(results, 6, phase="connect", collective=0)) == []


def test_the_first_of_the_group_hangs_before_the_others_begin() -> None:
    waiting = {
        rank: RankResult(rank=rank, status="timed-out", phase="start", kind="not-begun", order=rank)
        for rank in GROUP
    }
    results = {**waiting, 0: RankResult(rank=0, status="timed-out", phase="set-device", order=9)}
    assert _told(results) == [("rank-hangs", 0)]
    assert _told(waiting) == []


def _crashed(rank: int, order: int, **more: object) -> RankResult:
    return msgspec.structs.replace(
        RankResult(rank=rank, status="crashed", phase="enter", kind="signal", order=order), **more
    )


def _lost_peer(rank: int, order: int) -> RankResult:
    return RankResult(rank=rank, status="failed", phase="enter", kind="peer-lost", order=order)


def test_the_first_end_counts_and_no_victims() -> None:
    results = {rank: _lost_peer(rank, rank + 1) for rank in GROUP}
    assert _told(results) == []
    assert _told({**results, 5: _crashed(5, 9)}) == [("rank-crashed", 5)]
    both = {**results, 5: _crashed(5, 9), 6: _crashed(6, 4)}
    assert _told(both) == [("rank-crashed", 6)]


def test_a_crash_after_a_time_out_may_be_its_echo() -> None:
    assert _told({**hung(GROUP), 5: _crashed(5, 99)}) == []


def test_when_many_crash_it_is_nobodys_own_fault() -> None:
    assert _told({rank: _crashed(rank, rank + 1) for rank in GROUP}) == []


def test_two_crashes_without_an_order_are_not_put_in_one() -> None:
    results = {rank: _lost_peer(rank, 0) for rank in GROUP}
    assert _told({**results, 5: _crashed(5, 0)}) == [("rank-crashed", 5)]
    assert _told({**results, 5: _crashed(5, 0), 6: _crashed(6, 0)}) == []


@each("kind", ["nccl-error", "wrong-value", "collective-timeout"])
def test_an_error_that_the_other_end_may_cause_names_nobody(kind: str) -> None:
    results = {rank: _lost_peer(rank, rank + 1) for rank in GROUP}
    assert _told({**results, 5: _crashed(5, 9, status="failed", kind=kind)}) == []


def test_an_error_of_its_own_device_names_the_rank() -> None:
    results = {rank: _lost_peer(rank, rank + 1) for rank in GROUP}
    one = _crashed(5, 9, status="failed", kind="cuda-error")
    assert _told({**results, 5: one}) == [("rank-crashed", 5)]
    unconnected = msgspec.structs.replace(one, phase="connect")
    assert _told({**results, 5: unconnected}) == []


def _wrong(rank: int, blamed: object) -> RankResult:
    return RankResult(
        rank=rank,
        status="failed",
        phase="done",
        kind="wrong-value",
        data={"rank": blamed, "fault": "doubled"},
        order=rank + 1,
    )


def test_a_wrong_sum_names_a_rank_only_when_all_agree() -> None:
    agreed = {rank: _wrong(rank, 3) for rank in GROUP}
    [one] = _named(agreed)
    assert (one.slug, one.rank, one.confidence) == ("wrong-result", 3, Confidence.CERTAIN)
    assert "doubled" in one.evidence
    assert _told({**agreed, 3: RankResult(rank=3, status="passed")}) == [("wrong-result", 3)]
    assert _told({**agreed, 4: RankResult(rank=4, status="passed")}) == []
    assert _told({**agreed, 4: _wrong(4, 2)}) == []
    assert _told({**agreed, 4: _wrong(4, None)}) == []
    assert _told({rank: _wrong(rank, 99) for rank in GROUP}) == []


def test_of_two_ranks_a_wrong_sum_names_none() -> None:
    assert _told({0: _wrong(0, 1), 1: _wrong(1, 1)}) == []
    assert _told({0: _wrong(0, 1), 1: _wrong(1, 0)}) == []


def test_who_waits_for_a_silent_one_is_not_judged() -> None:
    silent = RankResult(rank=5, status="lost", phase="connect", kind="silent")
    results = _with({**hung(GROUP), 5: silent}, 6, phase="connect", collective=0)
    assert _told(results) == []


def test_who_cannot_be_killed_is_named_but_not_for_certain() -> None:
    [one] = _named(_with(hung(GROUP), 5, kind="unkillable"))
    assert (one.slug, one.rank, one.confidence) == ("rank-hangs", 5, Confidence.LIKELY)
    assert "stuck in the driver" in one.evidence


def test_alone_only_its_own_end_counts() -> None:
    assert alone(RankResult(rank=0, status="passed")) is None
    assert alone(RankResult(rank=0, status="not-run")) is None
    assert alone(RankResult(rank=0, status="stopped")) is None
    assert alone(RankResult(rank=0, status="lost")) is None
    root = {"roots": [{"slug": "torch-missing", "headline": "No torch", "confidence": "likely"}]}
    failed = RankResult(rank=0, status="failed", phase="import", kind="import-failed", data=root)
    direct = alone(failed)
    assert direct is not None
    assert (direct.slug, direct.confidence) == ("torch-missing", Confidence.LIKELY)
    assert "No torch" in direct.evidence


def test_that_torch_sees_no_gpu_is_no_proof_that_there_is_none() -> None:
    seen = RankResult(
        rank=3, status="failed", phase="census", kind="no-device", detail="torch sees no GPU for it"
    )
    direct = alone(seen)
    assert direct is not None
    assert (direct.slug, direct.confidence) == ("no-nvidia-gpu", Confidence.POSSIBLE)


def test_an_import_that_never_ends_is_no_broken_gpu() -> None:
    slow = RankResult(rank=3, status="timed-out", phase="import", kind="timed-out", detail="slow")
    direct = alone(slow)
    assert direct is not None
    assert (direct.slug, direct.confidence) == ("torch-import-broken", Confidence.POSSIBLE)


def _connecting(**changes: object) -> dict[int, RankResult]:
    """Four ranks of which three tried to connect, as a real job with a rank that hung left them."""
    results = {
        at: RankResult(
            rank=at, status="timed-out", phase="connect",
            data={"own_deadline": at == 0, "in_phase": 20.0}, look=Look(state="sleeping"),
        )
        for at in range(4)
    }  # fmt: skip
    changes = {"phase": "start", "data": {"own_deadline": True, "in_phase": 20.0}, **changes}
    return _with(results, 2, **changes)


def test_one_that_never_tried_to_connect_is_named() -> None:
    [one] = _named(_connecting())
    assert (one.slug, one.rank, one.confidence) == ("rank-hangs", 2, Confidence.CERTAIN)
    assert "never tried to connect, while 3 other ranks did" in one.evidence
    assert _told(_connecting(phase="set-device")) == [("rank-hangs", 2)]


def test_one_that_stood_still_while_the_others_connected_is_likely() -> None:
    """Its own time was not over: a busy machine started its worker later."""
    [one] = _named(_connecting(data={"own_deadline": False, "in_phase": 15.0}))
    assert (one.slug, one.rank, one.confidence) == ("rank-hangs", 2, Confidence.LIKELY)
    assert "it is slow or stuck" in one.evidence


@each(
    "changes",
    [
        {"data": {"own_deadline": False}},  # nobody knows for how long it was there
        {"data": {"own_deadline": False, "in_phase": 9.0}},  # it was late and still moved
        {"phase": "connect"},  # it may be behind a bad link
        {"kind": "not-begun"},
        {"look": Look(state="sleeping", wait_seconds=18.0, cpu_seconds=1.0)},  # a busy host
    ],
)
def test_one_that_may_have_been_late_is_not_named(changes: dict[str, object]) -> None:
    assert _told(_connecting(**changes)) == []


def test_most_that_never_tried_to_connect_share_a_cause() -> None:
    results = _connecting()
    for at in (1, 3):
        results[at] = msgspec.structs.replace(results[2], rank=at)
    assert _told(results) == []


_ON_ITS_WAY = Look(
    state="sleeping",
    python=("python3.11/socket.py:962 getaddrinfo", "worker/together.py:322 _reach"),
)


def _on_the_way(**changes: object) -> dict[int, RankResult]:
    """Three ranks of four have reached the store, as a real job left them."""
    seen = {
        "phase": "store",
        "data": {"own_deadline": False, "in_phase": 30.0},
        "look": _ON_ITS_WAY,
    }
    return _connecting(**{**seen, **changes})


def test_one_that_hung_on_its_way_to_the_store_is_likely() -> None:
    [one] = _named(_on_the_way())
    assert (one.slug, one.rank, one.confidence) == ("rank-hangs", 2, Confidence.LIKELY)
    assert "python3.11/socket.py:962 getaddrinfo" in one.evidence


def test_one_that_loops_on_its_way_on_a_busy_host_is_likely() -> None:
    busy = msgspec.structs.replace(_ON_ITS_WAY, wait_seconds=15.8, cpu_seconds=14.2)
    assert _told(_on_the_way(look=busy)) == [("rank-hangs", 2)]


@each(
    "changes",
    [
        {"data": {"own_deadline": False, "in_phase": 9.0}},  # it may give up yet
        {"look": Look(state="sleeping", python=("worker/together.py:190 _find_store",))},
        {"look": None},
        {"look": msgspec.structs.replace(_ON_ITS_WAY, wait_seconds=18.0, cpu_seconds=1.0)},
        {"status": "failed", "kind": "store-unreachable"},  # its route is bad
    ],
)
def test_one_on_its_way_to_the_store_may_be_kept_by_others(changes: dict[str, object]) -> None:
    assert _told(_on_the_way(**changes)) == []


def test_two_on_their_way_to_the_store_name_nobody() -> None:
    results = _on_the_way()
    results[3] = msgspec.structs.replace(results[2], rank=3)
    assert _told(results) == []
