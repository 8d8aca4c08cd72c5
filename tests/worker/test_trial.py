"""Ranks of a pre-flight in real groups over gloo: well, and with each fault under one of them."""

import datetime as dt
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from trial_support import FIRST, SIZES, Said, order, run_group
from worker_support import flip, torch

from gpucheck.worker import drill, together, trial
from gpucheck.worker.bench import Failed
from gpucheck.worker.collectives import ROUNDS

pytestmark = pytest.mark.process

Tensor = Any
LEAST = 1 + ROUNDS * len(SIZES) + 3 + 1
"""The number of the last collective: stamp, all sizes in rounds, the timing, stamp."""


def outcomes(group: list[Said]) -> list[tuple[str, str]]:
    return [(output.result["status"], output.result["kind"]) for output in group]


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_healthy_group(size: int) -> None:
    group = run_group(size)
    for output in group:
        assert output.result["status"] == "passed", output
        assert list(output.result["measurements"]) == [f"all-reduce {SIZES[-1]} B s"]
        assert 0 < output.result["measurements"][f"all-reduce {SIZES[-1]} B s"] < 10
        assert output.result["phase"] == "done"
        last = output.result["collective"]
        assert LEAST <= last == group[0].result["collective"]
        expected = [("set-device", 0), ("store", 0), ("connect", 0)]
        for number in range(1, last + 1):
            expected += [("enter", number), ("leave", number)]
        assert output.phases[: len(expected)] == expected
        assert {phase for phase, _ in output.phases[len(expected) :]} == {"done"}
        assert output.status == 0
    assert [any(m["event"] == "store" for m in output.messages) for output in group] == [
        True,
        *[False] * (size - 1),
    ]


def test_more_ranks_than_an_element_can_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three ranks, of which an element carries one or two: the smallest size is sent twice."""
    monkeypatch.setattr("gpucheck.worker.collectives.RANKS_EACH", 2)
    for output in run_group(3):
        assert output.result["status"] == "passed", output
        assert output.result["collective"] >= LEAST + ROUNDS


def test_where_it_is_slow_the_first_rank_has_all_measure_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def limit(seconds: float) -> Callable[[], None]:
        return lambda: setattr(together, "_LONG", seconds)

    slow = run_group(2, faults={0: limit(0.0), 1: limit(100.0)})
    monkeypatch.setattr(together, "_LONG", 100.0)
    fast = run_group(2)
    assert outcomes(slow + fast) == [("passed", "")] * 4
    assert [output.result["collective"] for output in slow] == [LEAST] * 2
    assert [output.result["collective"] for output in fast] == [LEAST + 1] * 2


def test_the_first_rank_keeps_the_store_until_the_others_have_gone() -> None:
    group = run_group(3)
    assert group[0].ended >= max(output.ended for output in group[1:]) - 0.1


def test_a_healthy_rank_does_not_leave_before_the_slowest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "_PARTING", dt.timedelta(seconds=10))

    def dawdle() -> None:
        part = together.Together.part

        def late(self: together.Together) -> None:
            time.sleep(1.0)
            part(self)

        together.Together.part = late  # type: ignore[method-assign]

    group = run_group(3, faults={2: dawdle})
    assert outcomes(group) == [("passed", "")] * 3
    assert group[2].ended - min(output.ended for output in group) < 0.6


def test_a_rank_that_never_says_farewell_holds_nobody_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(together, "_PARTING", dt.timedelta(seconds=0.5))

    def vanish() -> None:
        together.Together.part = lambda _self: os._exit(0)  # type: ignore[method-assign,assignment]

    start = time.monotonic()
    group = run_group(3, faults={2: vanish})
    assert outcomes(group) == [("passed", "")] * 3
    assert max(output.ended for output in group) - start < 8


@pytest.mark.parametrize(("size", "at"), [(2, 0), (2, 1), (3, 1), (4, 3)])
def test_the_drill_wrong_is_named_by_all(size: int, at: int) -> None:
    for output in run_group(size, drills={at: [{"fault": "wrong"}]}):
        assert output.result["kind"] == "wrong-value"
        assert output.result["data"] == {
            "sizes": list(SIZES), "rank": FIRST + at, "fault": "missing", "segment": 0,
        }  # fmt: skip
        assert output.result["detail"].endswith(f"what rank {FIRST + at} sent is missing")
        # Nobody was left alone in a collective.
        assert output.result["phase"] == "done"
        assert output.result["collective"] >= LEAST


def before(act: Callable[[Tensor], None]) -> Callable[[], None]:
    """Do something with what a rank sends."""

    def fault() -> None:
        right = torch.distributed.all_reduce

        def wrong(tensor: Tensor, **named: Any) -> Any:  # noqa: ANN401
            act(tensor)
            return right(tensor, **named)

        torch.distributed.all_reduce = wrong

    return fault


def after(act: Callable[[Tensor], None]) -> Callable[[], None]:
    """Do something with what a rank has received."""

    def fault() -> None:
        right = torch.distributed.all_reduce

        class Then:
            def __init__(self, tensor: Tensor, work: Any) -> None:  # noqa: ANN401
                self.tensor, self.work = tensor, work

            def wait(self) -> None:
                self.work.wait()
                act(self.tensor)

        def wrong(tensor: Tensor, **named: Any) -> Then:  # noqa: ANN401
            return Then(tensor, right(tensor, **named))

        torch.distributed.all_reduce = wrong

    return fault


def flip_one(tensor: Tensor) -> None:
    if len(tensor) > 1:
        tensor.copy_(flip(tensor, 20, at=33))


def test_what_arrives_twice_is_named() -> None:
    for output in run_group(3, faults={2: before(lambda tensor: tensor.mul_(2))}):
        assert output.result["data"]["rank"] == FIRST + 2
        assert output.result["data"]["fault"] == "doubled"
        assert output.result["detail"].endswith(f"what rank {FIRST + 2} sent is there twice")


def test_a_flipped_bit_names_nobody() -> None:
    for output in run_group(3, faults={1: before(flip_one)}):
        assert output.result["kind"] == "wrong-value"
        assert output.result["data"] == {"sizes": list(SIZES[1:])}
        detail = "all-reduce of 4 KiB: 1 of 1024 sums are wrong, the first at 33: "
        assert output.result["detail"].startswith(detail)
        assert output.result["detail"].endswith("instead of 7")


def test_what_only_one_rank_receives_wrong_names_nobody() -> None:
    group = run_group(3, faults={1: after(flip_one)})
    assert outcomes(group) == [("passed", ""), ("failed", "wrong-value"), ("passed", "")]
    assert "rank" not in group[1].result["data"]


def test_a_result_that_is_not_a_number() -> None:
    group = run_group(2, faults={0: after(lambda tensor: tensor[:1].fill_(float("nan")))})
    assert outcomes(group) == [("failed", "wrong-value"), ("passed", "")]
    assert "the first at 0: nan instead of 3" in group[0].result["detail"]
    assert "rank" not in group[0].result["data"]


def test_the_drill_crash_costs_the_others_their_peer() -> None:
    group = run_group(3, drills={1: [{"fault": "crash"}]})
    assert os.WTERMSIG(group[1].status) == signal.SIGSEGV
    assert group[1].phases[-1] == ("enter", 1)
    for output in (group[0], group[2]):
        assert (output.result["status"], output.result["kind"]) == ("failed", "peer-lost"), output
        assert output.result["phase"] == "enter"


@pytest.mark.parametrize("fault", ["hang", "stop"])
def test_the_drills_hang_and_stop_never_enter(fault: str) -> None:
    where = [("enter", 1), ("enter", 1), ("connect", 0)]
    group = run_group(3, drills={2: [{"fault": fault}]}, until=where)
    assert [output.phases[-1] for output in group] == where
    assert all(os.WTERMSIG(output.status) == signal.SIGKILL for output in group)


def test_the_drill_link_hangs_where_both_ends_are() -> None:
    broken = [{"fault": "link", "other": FIRST + 2}]
    group = run_group(3, drills={0: broken}, until=[("enter", 1)] * 3)
    assert [output.phases[-1] for output in group] == [("enter", 1)] * 3
    assert all(os.WTERMSIG(output.status) == signal.SIGKILL for output in group)
    assert outcomes(run_group(2, drills={0: broken})) == [("passed", "")] * 2


def test_without_a_drill_torch_stays_as_it_is() -> None:
    torchless = object()  # nothing can be replaced in it
    assert drill.arm(torchless, {"drill": None}) == []
    assert drill.arm(torchless, {}) == []


def closed_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("host", "detail"), [("127.0.0.1", "refused"), ("no.such.host.invalid", "")]
)
def test_a_store_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, host: str, detail: str
) -> None:
    monkeypatch.setattr(together, "_REFUSED", 0.3)
    place = {"host": host, "port": closed_port()}
    result = run_one(order(1, 2, store=place, connect_seconds=2.0))
    assert (result["status"], result["kind"]) == ("failed", "store-unreachable")
    assert result["phase"] == "store"
    assert f"{host} port {place['port']}" in result["detail"]
    assert detail in result["detail"]


@pytest.mark.parametrize(("size", "seconds"), [(2, 10.0), (1000, 60.0)])
def test_silence_is_not_waited_for_as_long_in_a_small_group(
    monkeypatch: pytest.MonkeyPatch, size: int, seconds: float
) -> None:
    waited: list[float] = []

    def silent(_place: tuple[str, int], patience: float) -> socket.socket:
        waited.append(patience)
        raise TimeoutError("timed out")

    monkeypatch.setattr(together, "_REFUSED", -1.0)
    monkeypatch.setattr(socket, "create_connection", silent)
    place = {"host": "10.77.0.2", "port": 41083}
    result = run_one(order(1, size, store=place, connect_seconds=60.0))
    assert (result["status"], result["kind"]) == ("failed", "store-unreachable")
    assert result["data"] == {"address": "10.77.0.2", "port": 41083, "error": "timed out"}
    assert waited == [pytest.approx(seconds, abs=1.0)]


def run_one(told: dict[str, Any]) -> dict[str, Any]:
    """Run an order that comes to no process group, in this process."""
    sent: list[dict[str, Any]] = []
    with mock.patch.dict(os.environ):
        trial.run(torch, told, {}, sent.append)
    (result,) = (message for message in sent if message["event"] == "result")
    return result


def test_a_torch_without_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    result = run_one(order(0, 1, backend="nccl"))
    assert (result["kind"], result["phase"]) == ("backend-missing", "set-device")
    assert result["detail"] == "this torch was built without nccl"


def test_a_torch_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    assert run_one(order(0, 1))["detail"] == "this torch was built without torch.distributed"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, which works")
@pytest.mark.parametrize("kind", ["alone", "collective"])
def test_a_gpu_that_cannot_be_used(kind: str) -> None:
    result = run_one(order(0, 1, trial=kind, device="cuda:0", backend="nccl"))
    assert (result["status"], result["phase"]) == ("failed", "set-device")
    assert result["kind"] in ("cuda-error", "python-exception")


def test_the_variables_of_an_order_and_a_watchdog_that_stands_back() -> None:
    sent_order = order(0, 1, trial="alone", env={"NCCL_P2P_DISABLE": "1"})
    with mock.patch.dict(os.environ, TORCH_NCCL_BLOCKING_WAIT="1"):
        trial.run(torch, sent_order, {}, lambda _message: None)
        assert os.environ["NCCL_P2P_DISABLE"] == "1"
        assert os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "0"
        assert "TORCH_NCCL_BLOCKING_WAIT" not in os.environ


@pytest.mark.parametrize(
    ("words", "phase", "kind"),
    [
        ("[pair.cc:537] Read error: Connection reset by peer", "enter", "peer-lost"),
        ("NCCL error: remote process exited or there was a network error", "enter", "peer-lost"),
        ("NCCL error in: x.cpp:1, ncclRemoteError: A call failed", "enter", "peer-lost"),
        ("NCCL error in: x.cpp:1, unhandled system error, ncclSystemError", "enter", "nccl-error"),
        ("The client socket has timed out", "store", "store-unreachable"),
    ],
)
def test_what_an_exception_means(words: str, phase: str, kind: str) -> None:
    assert together.meaning(RuntimeError(words), phase)["kind"] == kind


def test_a_fault_of_ours_is_no_unreachable_store() -> None:
    assert together.meaning(KeyError("host"), "store")["kind"] == "python-exception"


RATES = ["fp32 TFLOP/s", "copy GB/s"]


def test_alone_all_rates_and_little_time() -> None:
    (output,) = run_group(1, trial="alone")
    assert output.result["status"] == "passed", output
    assert list(output.result["measurements"]) == RATES
    assert all(0 < rate < 1e4 for rate in output.result["measurements"].values())
    assert output.phases == [("set-device", 0), ("alone", 0), ("done", 0)]
    assert 0 < output.result["data"]["cpu_seconds"] < 10
    assert sum(m["event"] == "stage" for m in output.messages) >= 4
    assert output.seconds < 0.6, "eight ranks share two cores of CI"


def _slowed_down() -> dict[str, float]:
    """Return by how much the drill made each rate smaller, of two runs one after the other."""
    usual, slow = (
        run_group(1, trial="alone", drills=drills)[0].result
        for drills in ({}, {0: [{"fault": "slow", "factor": 6.0}]})
    )
    assert slow["status"] == "passed"
    return {name: usual["measurements"][name] / slow["measurements"][name] for name in RATES}


def test_the_drill_slow_is_slow_and_otherwise_right() -> None:
    """On a busy machine one of the two runs may be slow by itself: three pairs are tried."""
    tried: list[dict[str, float]] = []
    for _ in range(3):
        tried.append(_slowed_down())
        if all(3.0 < ratio < 12.0 for ratio in tried[-1].values()):
            return
    pytest.fail(f"the drill slows down by other factors than 6: {tried}")


def test_a_factor_that_is_no_whole_number_holds_on_average() -> None:
    calls: list[int] = []
    slow = drill._repeated(lambda: calls.append(1), 2.5)  # noqa: SLF001
    for _ in range(10):
        slow()
    assert len(calls) == 25


def wrong_product() -> None:
    right = torch.mm

    def wrong(*given: Any, **named: Any) -> Tensor:  # noqa: ANN401
        product = right(*given, **named)
        if len(given[0]) == trial._CHECKED:  # noqa: SLF001
            product[3, 4] += 1
        return product

    torch.mm = wrong


def wrong_copy() -> None:
    right = torch.Tensor.copy_

    def wrong(self: Tensor, other: Tensor, **named: Any) -> Tensor:  # noqa: ANN401
        right(self, other, **named)
        self[-1:].zero_()
        return self

    torch.Tensor.copy_ = wrong


@pytest.mark.parametrize("fault", [wrong_product, wrong_copy])
def test_alone_a_wrong_value(fault: Callable[[], None]) -> None:
    (output,) = run_group(1, trial="alone", faults={0: fault})
    assert (output.result["status"], output.result["kind"]) == ("failed", "wrong-value")
    assert output.result["phase"] == "alone"


def test_on_a_gpu_the_self_tests_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run_tests(_torch: Any, sent_order: dict[str, Any], _notes: Any, send: Any) -> None:  # noqa: ANN401
        (name,) = sent_order["tests"]
        ran.append(name)
        send({"event": "begin", "test": name, "deadline": sent_order["seconds"][name]})
        send({"event": "stage", "text": "a step"})
        is_bad = name == "cublas-matmul"
        send({
            "event": "result", "test": name, "status": "failed" if is_bad else "skipped",
            "kind": "wrong-value", "detail": "it is off", "data": {"at": 7},
        })  # fmt: skip

    monkeypatch.setattr(trial, "run_tests", run_tests)
    monkeypatch.setattr(trial, "_rates", lambda _bench: {"fp32 TFLOP/s": 1.0})
    sent: list[dict[str, Any]] = []
    progress = together.StepProgress(sent.append)
    sent_order = order(0, 1, trial="alone", device="cuda:1", tests=[])
    with pytest.raises(Failed) as caught:
        trial.run_alone(torch, sent_order, {}, sent.append, progress)
    assert ran == ["device-placement", "cublas-matmul"]
    assert (caught.value.kind, caught.value.detail) == ("wrong-value", "cublas-matmul: it is off")
    assert caught.value.data == {"at": 7, "test": "cublas-matmul"}
    assert next(m for m in sent if m["event"] == "stage")["text"] == "device-placement: a step"

    ran.clear()
    sent_order["tests"] = ["device-placement"]
    assert trial.run_alone(torch, sent_order, {}, sent.append, progress) == {"fp32 TFLOP/s": 1.0}
