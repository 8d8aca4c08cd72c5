"""An error of CUDA that is named by its number alone is what the table says."""

import json
import time

import pytest
from each import each

from gpucheck import triage
from gpucheck.facts.request import Pasted
from gpucheck.tables import Tables
from gpucheck.tables.error_codes import CudaErrorRow, CudaErrors
from gpucheck.ticket.intake import read_text
from gpucheck.ticket.plain_words import meant, with_names

TABLES = Tables()
ERRORS = TABLES.get(CudaErrors)
FINDINGS = [row for row in ERRORS.rows if row.slugs and row.runtime]


def lines(words: str) -> list[str]:
    return [line.text for line in with_names(read_text(words.encode()), TABLES).lines]


@each("row", FINDINGS, ids=[str(row.runtime) for row in FINDINGS])
def test_each_code_that_stands_for_a_finding_is_named(row: CudaErrorRow) -> None:
    report = triage(f"torch fails to initialise\nCUDA error: error code {row.code}\n")
    also = {"visible-devices-hides-gpus", "device-permission"}
    assert report.root_causes[0] in {*row.slugs, *also}


@each("row", FINDINGS, ids=[str(row.runtime) for row in FINDINGS])
def test_each_name_that_stands_for_a_finding_is_named(row: CudaErrorRow) -> None:
    for name in filter(None, (row.runtime, row.driver)):
        report = triage(f"torch fails to initialise\ncuInit failed with {name} on this machine\n")
        assert report.root_causes[0] in row.slugs


@each(
    ("line", "name"),
    [
        ("cuda runtime error (35) at THCGeneral.cpp:50", "cudaErrorInsufficientDriver"),
        ("THCudaCheck FAIL file=a/THCGeneral.cpp line=50 error=38", "cudaErrorNoDevice"),
        ("THCudaCheckWarn FAIL file=a.cpp line=3 error=77", "cudaErrorIllegalAddress"),
        ("CUDA error: error code 34", "cudaErrorStubLibrary"),
        ("CUDA error 804", "cudaErrorCompatNotSupportedOnDevice"),
        ("CUDA Error Code: 803", "cudaErrorSystemDriverMismatch"),
        ("CUDA driver error: 222", "cudaErrorUnsupportedPtxVersion"),
        ("CUDA failure 48: ; GPU=0 ; hostname=a", "cudaErrorNoKernelImageForDevice"),
        ("CUDA error (59)", "cudaErrorAssert"),
        ("cudaError 36", "cudaErrorCallRequiresNewerDriver"),
        ("cudaError_t: 100", "cudaErrorNoDevice"),
        ("Check failed: cudaGetLastError() == 209", "cudaErrorNoKernelImageForDevice"),
        ("cudaGetDeviceCount returned 100", "cudaErrorNoDevice"),
        ("cudaSetDevice(0) failed: error code 46", "cudaErrorDevicesUnavailable"),
        ("cuInit(0) returned 802", "cudaErrorSystemNotReady"),
        ("cuInit failed with error 999", "cudaErrorUnknown"),
        ("[100] Call to cuInit results in an error", "cudaErrorNoDevice"),
        ("CUDA error at a.cu:20 code=214(cuda_ecc)", "cudaErrorECCUncorrectable"),
        (
            "CUDA error at a.cu:20 code=46(cudaErrorDevicesUnavailable)",
            "cudaErrorDevicesUnavailable",
        ),
        ("cuInit(0) return code:100 indicating an error", "cudaErrorNoDevice"),
        ("failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY", "cudaErrorSystemNotReady"),
        ("CUDA initialization failed with error 101", "cudaErrorInvalidDevice"),
        ("CUDA error 8 at kernel.cu:10", "cudaErrorInvalidDeviceFunction"),
        ("cuda runtime error (30) : unknown error at a.cpp:3", "cudaErrorUnknown"),
    ],
)
def test_every_form_is_read(line: str, name: str) -> None:
    row = ERRORS.named(name)
    assert row is not None
    assert lines(f"first\n{line}\nlast") == ["first", f"{line} [{name}: {row.message}]", "last"]


@each(
    "line",
    [
        "CUDA error: 3 GPUs are there",
        "CUDA error 404",
        "CUDA error: 12.4 is not there",
        "cudaErrorNoDevice: no CUDA-capable device is detected",
        "cudaErrorSomethingElse",
        "CUDA error 0",
        "CUDA errors: 100 times",
        "the driver says error code 35",
        "CUDA 100 error",
        "cudaGetDeviceCount returned 2",
        "if (cudaGetLastError() == 35) {",
        "CUDA error 9999",
    ],
)
def test_what_is_no_number_of_an_error_is_left_alone(line: str) -> None:
    assert lines(line) == [line]


@each(
    "line",
    [
        "RuntimeError: CUDA error: 2",
        "CUDA error 2 at kernel.cu:10",
        "cudaMalloc failed: error code 2",
        "cuMemAlloc failed with error 2",
    ],
)
def test_2_is_out_of_memory_without_its_words(line: str) -> None:
    assert triage(f"torch fails\n{line}\n").root_causes == ("out-of-memory",)


@each(
    "line",
    [
        "cudaGetDeviceCount() returned 2",
        "cudaGetDevice returned 2",
        "cudaGetDeviceProperties returned 2",
        "cuInit(0) returned 2",
        "cuDeviceGetCount failed with error 2",
    ],
)
def test_2_of_a_call_that_uses_no_gpu_memory_names_no_cause(line: str) -> None:
    """It may be a count, and if it is an error, something else than GPU memory is short."""
    assert lines(line) == [line]
    assert triage(f"torch fails\n{line}\n").root_causes == ()


def test_the_words_of_a_line_decide_between_the_old_and_the_new_number() -> None:
    """10 was an invalid device and is now another error, 4 was a failed launch."""
    old, new = meant(10, "(10) : invalid device ordinal", ERRORS), meant(10, "error 10", ERRORS)
    assert old is not None
    assert old.runtime == "cudaErrorInvalidDevice"
    assert new is not None
    assert new.runtime == "cudaErrorInvalidDevice"  # of the two the one that is a finding
    shut = meant(4, "(4) : driver shutting down", ERRORS)
    failed = meant(4, "(4) : unspecified launch failure", ERRORS)
    assert shut is not None
    assert failed is not None
    assert (shut.code, failed.code) == (4, 719)
    assert meant(4, "error 4", ERRORS) is None


def test_a_text_without_such_an_error_is_the_same_object() -> None:
    text = read_text(b"CUDA error: out of memory\n")
    assert with_names(text, TABLES) is text


def test_the_name_is_shown_as_evidence_and_kept_when_saved() -> None:
    report = triage("CUDA error: error code 34\n")
    signs = report.snapshot.get(Pasted).signs
    assert signs
    assert "cudaErrorStubLibrary" in (signs[0].text or "")
    again = triage(json.dumps(report.as_json()))
    assert again.root_causes == report.root_causes


@pytest.mark.hostile
def test_hostile_lines_are_read_quickly() -> None:
    for piece in ("CUDA error ", "cudaGetDevice(", "THCudaCheck FAIL error=", "cuInit ", "1", "[1"):
        begun = time.process_time()
        lines("\n".join([(piece * 4096)[:4096], f"cuda error code {piece * 100}"] * 20))
        assert time.process_time() - begun < 0.5
