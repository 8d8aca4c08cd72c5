from typing import Any

import pytest
from each import each
from rule_facts import (
    DOCKER,
    HOST,
    LINUX,
    address,
    commands,
    cuda_fails,
    hit,
    nvml_gpu,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import KernelLog, Nvml, NvmlGpu, XidEvent
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

QUIET_LOG = KernelLog(xids=[], fallen_off_bus=[], nvrm=[])


def gpu(**state: Any) -> Nvml:  # noqa: ANN401  # any field of a GPU
    fields = {"index": 0, "device_name": "NVIDIA A100-SXM4-80GB", "pci_address": address(0)}
    return nvml_gpu(NvmlGpu(**{**fields, "lost": False, "handle_code": 0, **state}))


def log(*xids: int, ago: float | None = 60.0) -> KernelLog:
    return KernelLog(
        xids=[
            XidEvent(xid=xid, pci_address=address(0), message=f"Xid {xid}", seconds_ago=ago)
            for xid in xids
        ]
    )


def judge(*sections: Section) -> Judgement:
    return ask("gpu-hardware-fault", LINUX, *sections)


def test_a_failed_remapping_means_replacement() -> None:
    found = hit(judge(HOST, gpu(rows_failed=True)))
    assert found.evidence == ("nvml.gpus.0.rows_failed",)
    assert "replaced" in found.fixes[0].text
    assert commands(found) == "nvidia-smi -q -i 0"
    assert "reset" not in commands(found)


@each(
    ("variables", "others"),
    [
        ({}, "0,2"),
        ({"CUDA_VISIBLE_DEVICES": "0"}, ""),
        ({"SLURM_JOB_ID": "1"}, ""),
        (None, ""),
    ],
)
def test_the_other_gpus_are_used_meanwhile(variables: dict[str, str] | None, others: str) -> None:
    gpus = Nvml(
        gpus=[
            NvmlGpu(index=at, pci_address=address(at), lost=False, rows_failed=at in (1, 3))
            for at in range(4)
        ]
    )
    found = hit(judge(HOST, gpus, Environment(variables=variables)))
    assert (f"export CUDA_VISIBLE_DEVICES={others}" in commands(found)) == bool(others)
    assert ("Until then" in found.fixes[0].text) == bool(others)


def test_uncorrected_errors_that_nothing_covers() -> None:
    found = hit(
        judge(HOST, gpu(ecc_uncorrected=2, rows_remapped_uncorrected=0, rows_pending=False))
    )
    assert "2 uncorrected memory errors" in found.headline
    assert "GPU 0 (NVIDIA A100-SXM4-80GB)" in found.headline
    assert "sudo nvidia-smi --gpu-reset -i 0" in commands(found)


@each(
    "state",
    [
        {"ecc_uncorrected": 1, "rows_remapped_uncorrected": 1, "rows_pending": False},
        {"ecc_uncorrected": 1, "rows_remapped_uncorrected": 0, "rows_pending": True},
        {"ecc_uncorrected": 1, "pages_pending": True},
        {"ecc_corrected": 4000, "ecc_uncorrected": 0, "ecc_uncorrected_ever": 3},
        {"rows_failed": False},
        {},
    ],
)
def test_no_fault_or_one_that_is_covered(state: dict[str, Any]) -> None:
    quiet(judge(HOST, gpu(**state), QUIET_LOG))


def test_a_gpu_that_needs_a_reset() -> None:
    found = hit(judge(HOST, gpu(handle_code=16)))
    assert "NVML error 16" in found.headline


def test_cuda_says_it() -> None:
    assert "214" in hit(judge(HOST, cuda_fails(214))).headline
    quiet(judge(HOST, gpu(), cuda_fails(999), QUIET_LOG))


@each("xid", [48, 62, 64, 95, 119, 120, 140])
def test_xids_that_ask_for_a_reset(xid: int) -> None:
    found = hit(judge(HOST, gpu(), log(xid)))
    assert f"Xid {xid} (" in found.headline
    assert " of GPU 0 (NVIDIA A100-SXM4-80GB)" in found.headline
    assert found.severity is Severity.ERROR
    assert found.confidence is Confidence.LIKELY
    assert found.evidence == ("kernel_log.xids.0.xid", "kernel_log.xids.0.message")


@each("xid", [13, 31, 43, 45, 63, 74, 79, 92, 94, 9999])
def test_xids_of_programs_and_of_other_findings(xid: int) -> None:
    quiet(judge(HOST, gpu(), log(xid)))


def test_an_old_xid_on_a_gpu_that_answers() -> None:
    found = hit(judge(HOST, gpu(), log(119, ago=30 * 3600)))
    assert found.severity is Severity.WARNING
    assert found.confidence is Confidence.POSSIBLE
    assert "30 hours ago" in found.headline


def test_an_old_xid_of_a_gpu_that_does_not() -> None:
    other = nvml_gpu(NvmlGpu(index=1, lost=False, pci_address=address(1)))
    found = hit(judge(HOST, other, log(119, ago=30 * 3600)))
    assert found.severity is Severity.ERROR
    assert address(0) in found.headline


def test_the_newest_of_several() -> None:
    events = [*(log(62, ago=900.0).xids or []), *(log(95, ago=60.0).xids or [])]
    assert "Xid 95" in hit(judge(HOST, gpu(), KernelLog(xids=events))).headline


def test_a_container_cannot_reset() -> None:
    assert "gpu-reset" not in commands(hit(judge(DOCKER, gpu(), log(119))))


def test_a_log_that_could_not_be_read() -> None:
    assert "could not be read" in quiet(judge(HOST, gpu()))


def test_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        judge(HOST, QUIET_LOG)
