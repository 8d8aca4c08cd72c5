"""What the raw answers of libcuda mean."""

from pathlib import Path
from typing import Any

from each import each
from support import machine

from gpucheck.facts.driver import CudaDriver
from gpucheck.probes import cuda_driver

A100: dict[str, Any] = {
    "library": "/usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03",
    "load_error": "",
    "init_code": 0,
    "cuda_version": 12020,
    "device_count": 1,
    "devices": [
        {
            "name": "NVIDIA A100-SXM4-80GB",
            "compute_capability": [8, 0],
            "uuid": "8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a90",
        }
    ],
}


def _read(tmp_path: Path, raw: dict[str, Any] | None) -> CudaDriver:
    answers = {} if raw is None else {"cuinit.json": raw}
    return cuda_driver.collect(machine(tmp_path, answers=answers))


def test_a_driver_that_works(tmp_path: Path) -> None:
    section = _read(tmp_path, A100)
    assert section.library == "/usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03"
    assert section.load_error == ""
    assert section.init_code == 0
    assert section.cuda == "12.2"
    assert section.device_count == 1
    assert section.devices is not None
    device = section.devices[0]
    assert device.device_name == "NVIDIA A100-SXM4-80GB"
    assert device.compute_capability == "8.0"
    assert device.uuid == "GPU-8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a90"
    assert section.problems == {}
    assert section.source("cuda") == "libcuda"


@each(
    ("number", "version"),
    [(12020, "12.2"), (11080, "11.8"), (9020, "9.2"), (13010, "13.1"), (0, None), ("12", None)],
)
def test_cuda_versions(tmp_path: Path, number: object, version: str | None) -> None:
    assert _read(tmp_path, {**A100, "cuda_version": number}).cuda == version


def test_a_library_that_is_not_there(tmp_path: Path) -> None:
    words = "libcuda.so.1: cannot open shared object file: No such file or directory"
    section = _read(tmp_path, {"library": "", "load_error": words})
    assert section.library == ""
    assert section.load_error == words
    assert section.init_code is None
    assert section.problem("init_code") == f"libcuda could not be loaded ({words})"


def test_a_machine_without_a_record_has_no_library(tmp_path: Path) -> None:
    section = _read(tmp_path, None)
    assert (section.library, section.load_error) == ("", "not found")
    assert section.device_count is None


def test_no_device_counts_none_and_other_codes_count_nothing(tmp_path: Path) -> None:
    raw = {key: A100[key] for key in ("library", "load_error", "cuda_version")}
    assert _read(tmp_path, {**raw, "init_code": 100}).device_count == 0
    mismatch = _read(tmp_path, {**raw, "init_code": 803})
    assert mismatch.device_count is None
    assert mismatch.problem("devices") == "libcuda: cuInit returned 803"


def test_a_device_that_fails_is_not_the_end_of_the_others(tmp_path: Path) -> None:
    broken = {key: {"error": 999} for key in ("name", "compute_capability", "uuid")}
    section = _read(tmp_path, {**A100, "device_count": 2, "devices": [*A100["devices"], broken]})
    assert section.devices is not None
    assert section.devices[0].compute_capability == "8.0"
    assert section.devices[1].compute_capability is None
    assert section.devices[1].problem("compute_capability") == "libcuda: error 999"


def test_a_probe_that_did_not_answer_is_unknown_as_a_whole(tmp_path: Path) -> None:
    section = _read(tmp_path, {"problem": "timed-out: no answer in cuInit after 30 s"})
    assert section.library is None
    assert section.problem("init_code") == "timed-out: no answer in cuInit after 30 s"


@each("value", ["", "x", -1, None, True, [], {}, [1], [{"name": 3}]])
def test_nonsense_makes_a_field_unknown_and_nothing_crashes(tmp_path: Path, value: object) -> None:
    section = _read(tmp_path, dict.fromkeys(A100, value))
    assert section.cuda is None
