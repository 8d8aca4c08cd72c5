"""Of several ranks the one that is to blame is red, and the others say why they were stopped."""

import itertools
import signal
from pathlib import Path
from typing import Any

import pytest
from each import each
from fake_patient import Patient
from selftest_facts import result

from gpucheck.facts.selftests import SelfTest
from gpucheck.selftests.outcome import ended, settled
from gpucheck.selftests.plan import Job, Wish

RANKS = {"one": "ranks"}


def rank(at: int, status: str = "passed", kind: str = "", **more: Any) -> SelfTest:  # noqa: ANN401
    return result("all-reduce", status, kind, rank=at, world_size=3, device="cpu", **more)


def states(results: list[SelfTest]) -> list[tuple[int, str, str]]:
    return [(rank_result.rank, rank_result.status, rank_result.kind) for rank_result in results]


def waits(at: int, *named: int) -> SelfTest:
    detail = f"rank {named[0]} did not enter the all-reduce" if named else "none finished it"
    return rank(at, "failed", "collective-timeout", detail=detail, data={"ranks": list(named)})


def test_those_who_waited_for_a_rank_that_hung_are_not_to_blame() -> None:
    hung = rank(1, "skipped", "stopped", data={"printed": "its stack"})
    found = settled([waits(2, 1), waits(0, 1), hung])
    assert states(found) == [
        (0, "skipped", "stopped"), (1, "timed-out", "timed-out"), (2, "skipped", "stopped"),
    ]  # fmt: skip
    assert found[1].detail == "rank 1 did not enter the all-reduce"
    assert found[1].data["printed"] == "its stack"
    assert found[0].detail == "stopped: rank 1 on cpu had not ended in time"
    assert found[0].data["saw"] == "rank 1 did not enter the all-reduce"


def test_those_who_lost_a_rank_that_crashed_are_not_to_blame() -> None:
    lost = rank(0, "failed", "peer-lost", detail="Connection closed by peer")
    found = settled([lost, rank(1, "crashed", "signal"), waits(2, 1)])
    assert states(found) == [
        (0, "skipped", "stopped"), (1, "crashed", "signal"), (2, "skipped", "stopped"),
    ]  # fmt: skip
    assert found[0].detail == "stopped: rank 1 on cpu had crashed"


def test_where_nobody_is_named_all_stay_as_they_are() -> None:
    assert [rank_result.status for rank_result in settled([waits(0), waits(1), waits(2)])] == [
        "failed"
    ] * 3
    lost = [rank(at, "failed", "peer-lost") for at in range(3)]
    assert [rank_result.kind for rank_result in settled(lost)] == ["peer-lost"] * 3


def test_wrong_values_stay_with_those_who_saw_them() -> None:
    wrong = rank(2, "failed", "wrong-value")
    assert states(settled([wrong, rank(0), rank(1)])) == [
        (0, "passed", ""), (1, "passed", ""), (2, "failed", "wrong-value"),
    ]  # fmt: skip


def test_two_ranks_that_hang_are_both_named() -> None:
    stopped = [rank(at, "skipped", "stopped") for at in (1, 2)]
    found = settled([waits(0, 1, 2), *stopped])
    assert [rank_result.status for rank_result in found] == ["skipped", "timed-out", "timed-out"]


LOST_PEER = """\
host7:4242:4251 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer \
host7<40112>
[rank0]:[E1121 09:10:08.364365475 ProcessGroupNCCL.cpp:552] [Rank 0] Collective WorkNCCL(SeqNum=3, \
OpType=ALLREDUCE, NumelIn=1000, NumelOut=1000, Timeout(ms)=3600000) raised the following async \
exception: NCCL error: remote process exited or there was a network error, NCCL version 2.27.5
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting \
prematurely.
[rank0]:[E1121 09:10:08.365393482 ProcessGroupNCCL.cpp:2197] [PG ID 0 PG GUID 0(default_pg) \
Rank 0] Process group watchdog thread terminated with exception: NCCL error: remote process \
exited or there was a network error, NCCL version 2.27.5
terminate called after throwing an instance of 'c10::DistBackendError'
Fatal Python error: Aborted

Thread 0x00007f1d2c5c0740 (most recent call first):
  File "/home/alice/venv/lib/python3.11/site-packages/gpucheck/worker/groups.py", line 200 in _wait
"""
OWN_FAULT = """\
[rank0]:[E1121 09:10:08.930967482 ProcessGroupNCCL.cpp:1595] [PG ID 0 PG GUID 0(default_pg) \
Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal \
memory access was encountered
host7:4242:4251 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer
terminate called after throwing an instance of 'c10::DistBackendError'
"""
TIMED_OUT = """\
[rank0]:[E1121 09:40:08.365393482 ProcessGroupNCCL.cpp:2197] [PG ID 0 PG GUID 0(default_pg) \
Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught \
collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE) ran for 600004 milliseconds
"""


def died(at: int, number: int, printed: str = "") -> SelfTest:
    """Return what the launcher makes of a rank whose process ended by a signal."""
    job = Job(tests=("all-reduce",), device=f"cuda:{at}", devices=(f"cuda:{at}",), rank=at,
              world_size=3)  # fmt: skip
    message = {"event": "ended", "signal": number, "printed": printed}
    return ended(job, "all-reduce", "all-reduce of 1000 fp32", message)


@each("printed", [LOST_PEER, TIMED_OUT])
@each("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_those_whom_the_watchdog_aborts_after_a_crash_are_not_to_blame(
    number: int, printed: str
) -> None:
    found = settled([died(1, number), died(0, signal.SIGABRT, printed), waits(2)])
    assert states(found) == [
        (0, "skipped", "stopped"), (1, "crashed", "signal"), (2, "skipped", "stopped"),
    ]  # fmt: skip
    assert found[0].detail == "stopped: rank 1 on cuda:1 had crashed"
    assert found[0].data["saw"] in printed
    assert found[0].data["printed"]


def test_those_whom_the_watchdog_aborts_after_an_error_are_not_to_blame() -> None:
    failed = rank(1, "failed", "cuda-error", detail="an illegal memory access")
    found = settled([failed, died(0, signal.SIGABRT, LOST_PEER), rank(2)])
    assert states(found) == [
        (0, "skipped", "stopped"), (1, "failed", "cuda-error"), (2, "passed", ""),
    ]  # fmt: skip


CLOSED = """\
watchdog thread terminated with exception: \
[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer \
[127.0.0.1]:21939. This is typically caused by a remote worker crashing. Check the logs of the \
remote worker before reporting an error. GLHF! 🏖️
Fatal Python error: Aborted
"""
RESET = """\
watchdog thread terminated with exception: \
[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error \
[127.0.0.1]:10674: Connection reset by peer. This is typically caused by a remote worker hanging \
or bugs in the application. Check the logs of the remote worker before reporting an error. GLHF! 🏖️
Fatal Python error: Aborted
"""
SEGFAULT = "Fatal Python error: Segmentation fault\n"


@each("seen", list(itertools.permutations(range(3))))
def test_the_order_in_which_ends_are_seen_does_not_decide(seen: tuple[int, ...]) -> None:
    """Rank 1 crashed, and 0 and 2 aborted for it; the end of 1 was seen first, second or last.

    In gloo's own words. Sockets of a process close before its parent can wait for it.
    """
    ends = [
        died(0, signal.SIGABRT, CLOSED),
        died(1, signal.SIGSEGV, SEGFAULT),
        died(2, signal.SIGABRT, RESET),
    ]
    found = settled([ends[at] for at in seen])
    assert states(found) == [
        (0, "skipped", "stopped"), (1, "crashed", "signal"), (2, "skipped", "stopped"),
    ]  # fmt: skip
    assert found[0].detail == found[2].detail == "stopped: rank 1 on cuda:1 had crashed"
    assert "Connection closed by peer" in found[0].data["saw"]
    assert "Connection reset by peer" in found[2].data["saw"]


def test_a_rank_that_was_stopped_for_a_victim_names_the_one_to_blame() -> None:
    """The end of rank 0 was seen first, so rank 2 was stopped because of it."""
    stopped = rank(2, "skipped", "stopped", detail="stopped: rank 0 on cuda:0 had crashed")
    found = settled([died(0, signal.SIGABRT, CLOSED), died(1, signal.SIGSEGV, SEGFAULT), stopped])
    assert found[2].detail == "stopped: rank 1 on cuda:1 had crashed"
    assert "saw" not in found[2].data


HUNG = rank(1, "timed-out", "timed-out", detail="it did not end within 9 s")


def test_a_time_out_that_came_first_explains_an_abort_and_a_later_one_does_not() -> None:
    aborted = died(0, signal.SIGABRT, CLOSED)
    assert [rank_result.status for rank_result in settled([HUNG, aborted])] == [
        "skipped",
        "timed-out",
    ]
    assert [rank_result.status for rank_result in settled([aborted, HUNG])] == [
        "crashed",
        "timed-out",
    ]


def test_a_rank_that_is_named_explains_an_abort_before_it_was_stopped() -> None:
    stopped = rank(1, "skipped", "stopped")
    found = settled([waits(2, 1), died(0, signal.SIGABRT, CLOSED), stopped])
    assert [rank_result.status for rank_result in found] == ["skipped", "timed-out", "skipped"]


@each(
    ("first", "second"),
    [
        (died(1, signal.SIGSEGV), died(0, signal.SIGABRT, OWN_FAULT)),
        (died(1, signal.SIGSEGV), died(0, signal.SIGABRT)),  # it does not say why
        (died(1, signal.SIGSEGV), died(0, signal.SIGSEGV, LOST_PEER)),  # no watchdog ends so
        (died(1, signal.SIGABRT, LOST_PEER), died(0, signal.SIGABRT, LOST_PEER)),  # nobody began
    ],
)
def test_an_end_of_its_own_stays_red(first: SelfTest, second: SelfTest) -> None:
    found = settled([first, second, rank(2)])
    assert [rank_result.status for rank_result in found] == ["crashed", "crashed", "passed"]


P2P_ONLY = "bench.require(os.environ.get({name!r}) == {value!r}, 'wrong-value', 'wrong')"


def examine(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> list[SelfTest]:
    patient = Patient(
        folder, monkeypatch, gpus=2, cuda="13.0", tests={"one": body, "after": "pass"}, per=RANKS
    )
    found = patient.examine(Wish())
    assert [rank_result.status for _path, rank_result in found.of("after")] == ["passed", "passed"]
    return [numbered_result for _path, numbered_result in found.of("one")]


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "value", "runs"), [("NCCL_P2P_DISABLE", "1", 1), ("NCCL_CUMEM_ENABLE", "0", 4)]
)
def test_the_control_run_finds_the_transport(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, runs: int
) -> None:
    found = examine(tmp_path, monkeypatch, P2P_ONLY.format(name=name, value=value))
    assert [rank_result.status for rank_result in found] == ["failed", "failed"]
    for rank_result in found:
        control = rank_result.data["control"]
        assert control["cured_by"][name] == value
        assert control["goes_wrong_again"] is True
        assert len(control["tried"]) == runs


@pytest.mark.process
def test_a_failure_in_every_control_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examine(tmp_path, monkeypatch, "raise Failed('wrong-value', 'wrong')")
    control = found[0].data["control"]
    assert control["cured_by"] is None
    assert [trial["verdict"] for trial in control["tried"]] == ["wrong"] * 4


@pytest.mark.process
def test_a_failure_that_does_not_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "was-here"
    body = (
        f"note = {str(note)!r} + str(bench.rank)\n"
        "first = not os.path.exists(note)\nopen(note, 'w').close()\n"
        "bench.require(not first, 'wrong-value', 'wrong')"
    )
    control = examine(tmp_path, monkeypatch, body)[0].data["control"]
    assert control["cured_by"] == {"NCCL_P2P_DISABLE": "1"}
    assert control["goes_wrong_again"] is False


@pytest.mark.process
@pytest.mark.parametrize(
    "body",
    [
        "raise Failed('nccl-error', 'Duplicate GPU detected : rank 1 and rank 0')",
        "raise Failed('wrong-shape', 'x')",
        "pass",
    ],
)
def test_what_no_transport_can_be_to_blame_for_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    assert all(
        "control" not in rank_result.data for rank_result in examine(tmp_path, monkeypatch, body)
    )


@pytest.mark.process
def test_on_the_cpu_there_is_no_nccl_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "raise Failed('wrong-value', 'wrong')"
    found = Patient(tmp_path, monkeypatch, tests={"one": body}, per=RANKS).examine()
    assert all("control" not in rank_result.data for rank_result in found.results or ())


@pytest.mark.process
def test_one_gpu_says_that_nccl_ran_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "bench.remark = 'one GPU'"
    found = Patient(tmp_path, monkeypatch, gpus=1, cuda="13.0", tests={"one": body}, per=RANKS)
    ((_path, rank_result),) = found.examine().of("one")
    assert (rank_result.status, rank_result.detail, rank_result.world_size) == (
        "passed",
        "one GPU",
        1,
    )
