"""What NCCL, Gloo and the ranks of a self-test said names the cause; selftest-failed yields."""

import inspect
from typing import Any

import pytest
from each import each
from rule_facts import A100, CUDA_TORCH, HOST, LINUX, NO_VARIABLES, cuda_sees, nvml, on_bus
from rules_support import TABLES, snapshot
from selftest_facts import failed, ran, result

from gpucheck.engine import Diagnosis, diagnose
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.system import LimitsOfProcess
from gpucheck.findings.form import Finding
from gpucheck.findings.witnesses import selftest_says
from gpucheck.selftests.outcome import settled
from gpucheck.worker import groups

DEVICES = ("cuda:0", "cuda:1", "cuda:2")
MACHINE = (
    LINUX,
    HOST,
    NO_VARIABLES,
    on_bus(A100, A100, A100),
    nvml(A100, A100, A100),
    cuda_sees(A100, A100, A100),
    CUDA_TORCH,
)
NCCL_ERROR = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690"


def rank(at: int, status: str = "passed", kind: str = "", **more: Any) -> SelfTest:  # noqa: ANN401
    more = {"device": DEVICES[at], "detail": "it went wrong", **more}
    return result("all-reduce", status, kind, rank=at, world_size=3, **more)


def nccl_says(*warnings: str, **data: Any) -> SelfTests:  # noqa: ANN401
    """Return a run in which one rank failed over NCCL, with its warnings."""
    more = {"nccl_result": "ncclSystemError", "nccl_warnings": list(warnings), **data}
    bad = rank(1, "failed", "nccl-error", detail=NCCL_ERROR, data=more)
    stopped = [rank(at, "skipped", "stopped") for at in (0, 2)]
    return ran(stopped[0], bad, stopped[1], devices=DEVICES)


def judged(tests: SelfTests, *more: Any) -> Diagnosis:  # noqa: ANN401
    return diagnose(snapshot(*MACHINE, *more, tests), TABLES)


def standing(found: Diagnosis) -> list[str]:
    return [finding.slug for finding in found.standing if finding.severity is Severity.ERROR]


def standing_instead(tests: SelfTests, slug: str, *more: Any) -> Finding:  # noqa: ANN401
    """Return the finding of this slug, which has to stand, and suppresses selftest-failed."""
    found = judged(tests, *more)
    other = next(finding for finding in found.findings if finding.slug == "selftest-failed")
    assert other.silenced_by == slug
    return next(finding for finding in found.standing if finding.slug == slug)


@each(
    ("slug", "words"),
    [
        ("nccl-infiniband", "Call to ibv_open_device failed"),
        ("nccl-infiniband", "NET/IB : Got completion from peer 10.0.0.2<4000> with error 12"),
        ("shm-too-small", "Error: failed to extend /dev/shm/nccl-AbCdEf to 9637892 bytes"),
        (
            "shm-too-small",
            "Error: failed to extend /dev/shm/nccl-AbCdEf to 8 bytes, error: No space left",
        ),
        ("nccl-network-interface", "Bootstrap : no socket interface found"),
        ("fabric-manager-down", "Cuda failure 802 'system not yet initialized'"),
        ("fabric-manager-down", "Cuda failure 802"),
        (
            "nccl-version-mismatch",
            "Mismatched NCCL version detected : ncclVersion 22703 rank 1 vs 22605 rank 0",
        ),
    ],
)
def test_a_warning_of_nccl_names_the_cause(slug: str, words: str) -> None:
    found = standing_instead(nccl_says("some other line", words), slug)
    assert found.severity is Severity.ERROR
    assert "rank 1 on cuda:1" in found.headline
    assert words in found.headline
    is_sure = slug != "nccl-infiniband"  # NCCL warns of an adapter and may go on without it
    assert found.confidence is (Confidence.CERTAIN if is_sure else Confidence.LIKELY)
    assert {fix.verify for fix in found.fixes} == {"gpucheck selftest --tests all-reduce"}
    facts = [each.fact for each in found.evidence]
    assert "selftests.results.1.detail" in facts
    assert "selftests.results.1.data.nccl_warnings" in facts
    assert found.fixes


def test_what_was_printed_before_a_crash_counts_as_well() -> None:
    printed = "node1:7:9 [0] misc/shmutils.cc:72 NCCL WARN Call to posix_fallocate failed : No \
space left on device\n"
    bad = rank(1, "crashed", "signal", detail="killed by SIGABRT", data={"printed": printed})
    found = standing_instead(ran(rank(0), bad, rank(2), devices=DEVICES), "shm-too-small")
    assert "posix_fallocate" in found.headline
    died = {finding.slug: finding.silenced_by for finding in judged(ran(rank(0), bad)).findings}
    assert died["rank-crashed"] == "shm-too-small"


def test_a_bus_error_over_nccl_is_likely_shared_memory() -> None:
    bad = rank(1, "crashed", "signal", detail="killed by SIGBUS in: all-reduce of 8 MiB")
    found = standing_instead(ran(rank(0), bad, rank(2), devices=DEVICES), "shm-too-small")
    assert found.confidence is Confidence.LIKELY


def test_words_stand_though_the_facts_look_fine() -> None:
    plenty = LimitsOfProcess(shm_total_bytes=1 << 34)
    words = "Error: failed to extend /dev/shm/nccl-AbCdEf to 9637892 bytes"
    assert standing_instead(nccl_says(words), "shm-too-small", plenty).slug == "shm-too-small"


def test_a_small_shm_that_nccl_met_is_an_error_with_both_facts() -> None:
    small = LimitsOfProcess(shm_total_bytes=1 << 26, sources={"*": "statvfs"})
    words = "Error: failed to extend /dev/shm/nccl-AbCdEf to 9637892 bytes"
    found = standing_instead(nccl_says(words), "shm-too-small", small)
    assert found.severity is Severity.ERROR
    facts = {each.fact for each in found.evidence}
    assert {"limits.shm_total_bytes", "selftests.results.1.detail"} <= facts


@pytest.mark.hostile
def test_hostile_words_cost_little() -> None:
    huge = "NCCL WARN NET/IB : " + "a" * 10_000_000
    found = judged(nccl_says(printed=huge + "\n" * 1_000_000, message=[1], detail=None))
    assert all(len(finding.headline) < 1000 for finding in found.findings)


@each(
    "words",
    [
        "NET/IB : No device found.",
        "Cuda failure 'out of memory'",
        "Call to connect returned Connection refused, retrying",
        "",
    ],
)
def test_words_that_name_nothing_leave_selftest_failed(words: str) -> None:
    found = judged(nccl_says(words))
    assert standing(found) == ["selftest-failed"]


def test_a_test_that_passed_or_ran_on_one_gpu_says_nothing_by_its_words() -> None:
    words = {"printed": "NCCL WARN Call to ibv_open_device failed"}
    fine = judged(ran(rank(0, data=words), rank(1), rank(2), devices=DEVICES))
    assert standing(fine) == []
    alone = failed("training-step", "python-exception", data=words)
    assert standing(judged(ran(alone))) == ["selftest-failed"]


def test_gloo_says_which_interface_is_not_there() -> None:
    words = "RuntimeError: [enforce fail at device.cc:83] ifa != nullptr. Unable to find address \
for: eth9"
    both = [rank(at, "failed", "python-exception", device="cpu", detail=words) for at in range(3)]
    found = standing_instead(ran(*both, devices=()), "nccl-network-interface")
    assert "eth9" in found.headline


def test_words_of_infiniband_mean_nothing_over_gloo() -> None:
    bad = rank(
        1, "failed", "python-exception", device="cpu", data={"printed": "Call to ibv_x failed"}
    )
    slugs = {finding.slug for finding in judged(ran(rank(0, device="cpu"), bad)).findings}
    assert "nccl-infiniband" not in slugs


def waits(at: int, *named: int, **more: Any) -> SelfTest:  # noqa: ANN401
    detail = "every process began the all-reduce, and none finished it within 20 s"
    if named:
        detail = f"rank {named[0]} did not enter the all-reduce of 1000 fp32"
    more = {"stage": "all-reduce of 1000 fp32", "detail": detail, **more}
    return rank(at, "failed", "collective-timeout", data={"ranks": list(named)}, **more)


def test_a_collective_that_nobody_leaves_is_a_timeout() -> None:
    found = standing_instead(ran(*(waits(at) for at in range(3)), devices=DEVICES), "nccl-timeout")
    assert "every process began the all-reduce" in found.headline
    assert len(found.evidence) == len(DEVICES)


def test_a_timeout_over_gloo_is_none_of_nccl() -> None:
    on_cpu = [waits(at, device="cpu") for at in range(3)]
    assert standing(judged(ran(*on_cpu, devices=()))) == ["selftest-failed"]


def test_something_more_specific_than_a_timeout() -> None:
    words = {"ranks": [], "nccl_warnings": ["Call to ibv_modify_qp failed with error 110"]}
    late = [rank(at, "failed", "collective-timeout", data=words) for at in range(3)]
    found = judged(ran(*late, devices=DEVICES))
    assert standing(found) == ["nccl-infiniband"]
    passed = {"ranks": [], "control": {"cured_by": {"NCCL_P2P_DISABLE": "1"}}}
    late = [rank(at, "failed", "collective-timeout", data=passed) for at in range(3)]
    found = judged(ran(*late, devices=DEVICES))
    assert standing(found) == ["nccl-p2p-broken"]
    assert "iommu=pt" in found.findings[0].fixes[1].text  # no NVLink is known here


@each(
    ("slug", "stage"),
    [("rank-hangs", "all-reduce of 1000 fp32"), ("rank-missing", "the ranks come together")],
)
def test_a_rank_for_which_the_others_wait(slug: str, stage: str) -> None:
    stopped = rank(1, "skipped", "stopped")
    results = settled([waits(0, 1, stage=stage), waits(2, 1, stage=stage), stopped])
    found = standing_instead(ran(*results, devices=DEVICES), slug)
    assert "rank 1 on cuda:1" in found.headline
    assert "gpucheck selftest --device cuda:1" in found.fixes[0].commands


@each("kind", ["signal", "exit-status", "no-answer"])
def test_a_rank_that_died(kind: str) -> None:
    results = settled([rank(0, "failed", "peer-lost"), rank(1, "crashed", kind), rank(2)])
    found = standing_instead(ran(*results, devices=DEVICES), "rank-crashed")
    assert "rank 1 on cuda:1" in found.headline


def test_where_all_ranks_die_there_is_none_to_name() -> None:
    all_of_them = [rank(at, "crashed", "signal") for at in range(3)]
    found = judged(ran(*all_of_them, devices=DEVICES))
    assert standing(found) == ["selftest-failed"]


def test_the_stage_of_the_meeting_is_the_worker_s() -> None:
    assert f'bench.stage(say("{selftest_says.MEETING}"))' in inspect.getsource(groups)
