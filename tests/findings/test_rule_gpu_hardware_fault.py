from typing import Any

import msgspec
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
from gpucheck.facts.driver import CudaDriver, KernelLog, Nvml, NvmlGpu, SxidEvent, XidEvent
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
    assert ("programs of this shell" in found.fixes[0].text) == bool(others)


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


def of_switch(
    sxid: int, *, fatal: bool | None, ago: float | None = 60.0, link: int | None = 33
) -> KernelLog:
    event = SxidEvent(
        sxid=sxid, pci_address="0000:84:00.0", link=link, fatal=fatal, message=f"SXid {sxid}",
        seconds_ago=ago,
    )  # fmt: skip
    return KernelLog(xids=[], sxids=[event], fallen_off_bus=[], nvrm=[])


CUDA_STARTS = CudaDriver(init_code=0)


@each(
    ("sxid", "fatal", "words"),
    [
        (24007, True, "no working NVLink"),
        (22003, True, "whole NVLink fabric"),
        (10003, None, "whole NVLink fabric"),
        (20034, True, "bad contact"),
        (31999, True, "no working NVLink"),  # one that the table has not, but calls itself fatal
    ],
)
def test_a_fatal_error_of_an_nvswitch(sxid: int, *, fatal: bool | None, words: str) -> None:
    found = hit(judge(HOST, gpu(), of_switch(sxid, fatal=fatal)))
    assert f"SXid {sxid}" in found.headline
    assert words in found.headline
    assert "link 33 of the NVSwitch at PCI 0000:84:00.0" in found.headline
    assert (found.severity, found.confidence) == (Severity.ERROR, Confidence.LIKELY)
    how = "sudo reboot" if sxid == 22003 else "sudo nvidia-smi --gpu-reset"  # as NVIDIA asks
    assert how in commands(found)
    assert found.evidence == ("kernel_log.sxids.0.sxid", "kernel_log.sxids.0.message")
    assert [(where, on_gpu.word) for where, on_gpu in found.gpus] == [("nvml.gpus.0", "drain")]


def test_the_worst_of_several_is_reported() -> None:
    events = [
        *(of_switch(20034, fatal=True).sxids or ()),
        *(of_switch(23001, fatal=True).sxids or ()),
        *(of_switch(12028, fatal=False).sxids or ()),
    ]
    found = hit(judge(HOST, gpu(), KernelLog(xids=[], sxids=events, fallen_off_bus=[], nvrm=[])))
    assert "SXid 23001 (NXBAR_TILE_INGRESS_BUFFER_OVERFLOW)" in found.headline


@each(
    ("sxid", "ago"),
    [(24007, 3 * 24 * 3600.0), (24007, None), (20034, 60.0)],
)
def test_an_nvswitch_that_may_have_been_reset_is_a_warning(sxid: int, ago: float | None) -> None:
    found = hit(judge(HOST, gpu(), CUDA_STARTS, of_switch(sxid, fatal=True, ago=ago)))
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_an_error_that_stalls_a_gpu_is_a_warning() -> None:
    found = hit(judge(HOST, gpu(), CUDA_STARTS, of_switch(12028, fatal=False)))
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.LIKELY)
    assert "Start the program again" in found.fixes[0].text
    routing = hit(judge(HOST, gpu(), CUDA_STARTS, of_switch(11004, fatal=False)))
    assert "partitions" in routing.fixes[0].text


@each(
    ("sxid", "fatal", "ago"),
    [
        (11012, False, 60.0), (22013, False, 60.0), (20001, False, 60.0), (10005, None, 60.0),
        (19084, False, 60.0), (31999, None, 60.0), (12028, False, 3 * 24 * 3600.0),
    ],
)  # fmt: skip
def test_other_errors_of_an_nvswitch_are_silent(
    sxid: int, *, fatal: bool | None, ago: float | None
) -> None:
    quiet(judge(HOST, gpu(), CUDA_STARTS, of_switch(sxid, fatal=fatal, ago=ago)))


BEFORE, SINCE = "NPORT_MULTICASTTSTATE_TAGPOOL_ECC_DBE_ERR", "OSFP_THERM_WARN_DEACTIVATED"


@each(
    ("driver", "names"),
    [("535.129.03", f"({BEFORE})"), ("550.54.15", f"({SINCE})"), (None, f"({BEFORE} / {SINCE})")],
)
def test_a_number_that_changed_its_meaning_is_named_by_the_driver(
    driver: str | None, names: str
) -> None:
    nvml = msgspec.structs.replace(gpu(), driver_release=driver)
    assert names in hit(judge(HOST, nvml, of_switch(28002, fatal=True))).headline


def test_the_driver_says_whether_a_number_is_a_fatal_error() -> None:
    old, new, unknown = (
        msgspec.structs.replace(gpu(), driver_release=release)
        for release in ("545.29.06", "550.40.07", None)
    )
    found = hit(judge(HOST, old, of_switch(28005, fatal=None)))
    assert "NPORT_MULTICASTTSTATE_CRUMBSTORE_BUF_OVERWRITE_ERR" in found.headline
    for nvml in (new, unknown):  # a thermal notice, or it may be one
        quiet(judge(HOST, nvml, CUDA_STARTS, of_switch(28005, fatal=None)))


def test_in_a_container_the_host_restarts() -> None:
    found = hit(judge(DOCKER, gpu(), of_switch(24007, fatal=True)))
    assert "--gpu-reset" not in commands(found)
