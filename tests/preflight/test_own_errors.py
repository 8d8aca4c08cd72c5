"""Errors that a rank owes to its own system: no other rank and no link is blamed."""

from typing import Any

from each import each
from fabric_support import Fabric, Results, hung, passed, roster

from gpucheck.cluster.diagnose import process_state
from gpucheck.cluster.model import RankResult, Step
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Look
from gpucheck.findings import all_rules

NOPE = (
    "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] "
    "ifa != nullptr. Unable to find address for: nope"
)
ABORTED = (
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce "
    "fail at gloo/transport/tcp/listener.cc:63] false. accept: Too many open files\n"
)


def failed(detail: str, status: str = "failed", **more: Any) -> RankResult:  # noqa: ANN401
    return RankResult(
        rank=1, status=status, phase="connect", kind="python-exception", detail=detail, **more  # type: ignore[arg-type]
    )  # fmt: skip


@each(
    ("result", "slug"),
    [
        (failed(NOPE), "nccl-network-interface"),
        (failed("RuntimeError: x", data={"message": NOPE}), "nccl-network-interface"),
        (failed("RuntimeError: no socket interface found"), "nccl-network-interface"),
        (failed("OSError: [Errno 24] Too many open files"), "process-limit-too-low"),
        (failed("SIGABRT", "crashed", data={"printed": ABORTED}), "process-limit-too-low"),
        (failed("RuntimeError: Resource temporarily unavailable"), "process-limit-too-low"),
        (
            failed("BlockingIOError: [Errno 11] Resource temporarily unavailable", "crashed"),
            "process-limit-too-low",
        ),
        (failed("RuntimeError: can't start new thread"), "process-limit-too-low"),
        (failed("SIGABRT", "crashed", data={"before": ABORTED}), "process-limit-too-low"),
    ],
)
def test_its_own_error_names_the_cause(result: RankResult, slug: str) -> None:
    found = process_state.own_error(result)
    assert found is not None
    assert (found.slug, found.confidence) == (slug, Confidence.CERTAIN)
    assert all_rules()[slug].preflight_class == 4


@each(
    "result",
    [
        failed("RuntimeError: Connection closed by peer [10.0.0.1]:4000"),
        failed("RuntimeError: read: Resource temporarily unavailable by the peer"),
        failed("passed on", data={"printed": ABORTED}),  # a warning of one that ended well
        failed("", data={"message": 7}),
        RankResult(rank=1, status="timed-out", detail=NOPE),
        RankResult(rank=1, status="timed-out", look=Look(files=20, file_limit=1024)),
        RankResult(rank=1, status="timed-out", look=Look(files=20)),
        RankResult(rank=1, status="passed", look=Look(files=20, file_limit=20)),
    ],
)
def test_what_others_may_have_caused_names_nothing(result: RankResult) -> None:
    assert process_state.own_error(result) is None


@each("files", [19, 20])
def test_a_process_at_its_limit_is_told_even_if_it_hangs(files: int) -> None:
    result = RankResult(rank=1, status="timed-out", look=Look(files=files, file_limit=20))
    found = process_state.own_error(result)
    assert found is not None
    assert (found.slug, found.confidence) == ("process-limit-too-low", Confidence.LIKELY)
    assert f"{files} files open" in found.evidence


@each("shape", [(4,), (2, 2), (1, 1, 1)])
def test_all_ranks_with_one_error_are_one_cause_and_nobody_else_is_blamed(
    shape: tuple[int, ...],
) -> None:
    of = roster(*shape)

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        if step.kind == "alone" or not {0, 1} & set(group):
            return None
        results = hung(group, "connect", 0)
        for rank in {0, 1} & set(group):
            results[rank] = RankResult(
                rank=rank, status="failed", phase="connect", kind="python-exception", detail=NOPE,
                order=rank + 1,
            )  # fmt: skip
        return results

    [entry] = Fabric(of, fault).run().culprits
    assert (entry.slug, entry.ranks) == ("nccl-network-interface", (0, 1))
    assert entry.confidence is Confidence.CERTAIN
    assert not entry.is_link


def test_a_healthy_step_names_nobody() -> None:
    assert process_state.named(list(passed((0, 1)).values())) == []


@each(
    ("result", "is_named"),
    [
        (failed("SIGABRT", "crashed", data={"refused_processes": 2}), True),
        (failed("no end of connect", "timed-out", data={"refused_processes": 1}), True),
        (failed("SIGABRT", "crashed", data={"refused_processes": 0}), False),
        (failed("SIGABRT", "crashed", data={"refused_processes": "many"}), False),
        (failed("SIGABRT", "crashed", data={"refused_processes": 2, "lost_peer": "x"}), False),
        (failed("", "stopped", data={"refused_processes": 2}), False),
        (
            RankResult(rank=1, status="timed-out", phase="enter", data={"refused_processes": 2}),
            False,
        ),
        (
            RankResult(rank=1, status="failed", kind="peer-lost", data={"refused_processes": 2}),
            False,
        ),
    ],
)
def test_processes_that_its_control_group_refused(result: RankResult, is_named: bool) -> None:  # noqa: FBT001
    found = process_state.own_error(result)
    assert (found is not None) is is_named
    if found is not None:
        assert (found.slug, found.confidence) == ("process-limit-too-low", Confidence.LIKELY)
        assert "pids.max" in found.evidence
