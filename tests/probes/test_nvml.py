"""What the raw answers of NVML mean."""

from pathlib import Path
from typing import Any

from each import each
from support import machine

from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.language import say, speaking, spoken
from gpucheck.probes import nvml

RTX_4090: dict[str, Any] = {
    "handle": 0,
    "name": "NVIDIA GeForce RTX 4090",
    "uuid": "GPU-3d1b7a52-6f0e-4b7c-a7c2-94b1d22c1e07",
    "pci_bus_id": "00000000:01:00.0",
    "compute_capability": [8, 9],
    "memory": {"total": 25757220864, "used": 1204551680, "free": 24552669184},
    "compute_processes": [{"pid": 9310, "used": 524288000, "name": "python3"}],
    "graphics_processes": [
        {"pid": 2011, "used": 204472320, "name": "Xorg"},
        {"pid": 9310, "used": 524288000, "name": "python3"},
    ],
    "ecc_mode": {"error": 3},
    "ecc_corrected": {"error": 3},
    "ecc_uncorrected": {"error": 3},
    "ecc_uncorrected_ever": {"error": 3},
    "retired_pages_pending": {"error": 3},
    "remapped_rows": {"error": 3},
    "mig_mode": {"error": 3},
    "mig_devices": [],
    "compute_mode": 3,
    "persistence": 0,
    "sm_clock": 210,
    "sm_clock_max": 3105,
    "clocks_event_reasons": 0,
    "temperature": 41,
    "temperature_slowdown": 100,
    "power": 22310,
    "power_limit": 450000,
    "utilization": 3,
    "pcie_generation": 1,
    "pcie_generation_max": 4,
    "pcie_width": 16,
    "pcie_width_max": 16,
    "nvlinks": [{"error": 3}] * 18,
    "fabric": {"error": 3},
}


def _read(tmp_path: Path, raw: dict[str, Any] | None) -> Nvml:
    answers = {} if raw is None else {"nvml.json": raw}
    return nvml.collect(machine(tmp_path, answers=answers))


def _gpu(tmp_path: Path, **changes: Any) -> NvmlGpu:  # noqa: ANN401  # any raw answer
    raw = {"init_code": 0, "gpus": [{**RTX_4090, **changes}]}
    section = _read(tmp_path, raw)
    assert section.gpus is not None
    return section.gpus[0]


def test_a_desktop_card(tmp_path: Path) -> None:
    gpu = _gpu(tmp_path)
    assert gpu.index == 0
    assert gpu.lost is False
    assert gpu.device_name == "NVIDIA GeForce RTX 4090"
    assert gpu.pci_address == "0000:01:00.0"
    assert gpu.compute_capability == "8.9"
    assert gpu.compute_mode == "exclusive-process"
    assert gpu.persistence is False
    assert gpu.throttle == []
    assert gpu.power_w == 22.31
    assert gpu.nvlinks == []
    assert gpu.fabric_state == "not-supported"
    assert gpu.ecc_enabled is None
    assert gpu.problem("ecc_enabled") == "NVML: Not Supported"
    assert gpu.source("power_w") == "NVML"


def test_every_field_has_a_source_or_a_problem(tmp_path: Path) -> None:
    gpu = _gpu(tmp_path)
    for field in gpu.__struct_fields__:
        if field in ("sources", "problems"):
            continue
        unknown = getattr(gpu, field) is None
        assert (field in gpu.problems) == unknown, field
        assert (field in gpu.sources) != unknown, field


def test_a_process_that_computes_and_draws_is_counted_once(tmp_path: Path) -> None:
    processes = _gpu(tmp_path).processes
    assert processes is not None
    assert [
        (gpu_process.pid, gpu_process.kind, gpu_process.process_name) for gpu_process in processes
    ] == [
        (9310, "compute", "python3"),
        (2011, "graphics", "Xorg"),
    ]


def test_what_windows_does_not_tell_of_a_process_is_unknown(tmp_path: Path) -> None:
    hidden = [{"pid": 7, "used": None, "name": {"error": 4}}]
    processes = _gpu(tmp_path, compute_processes=hidden, graphics_processes={"error": 3}).processes
    assert processes is not None
    assert processes[0].used_bytes is None
    assert processes[0].problem("used_bytes") == "NVML: it gave no value"
    assert processes[0].process_name == ""


@each(
    ("bits", "names"),
    [
        (0x1, ["gpu-idle"]),
        (0x4, ["sw-power-cap"]),
        (0x48, ["hw-slowdown", "hw-thermal-slowdown"]),
        (0x88, ["hw-slowdown", "hw-power-brake-slowdown"]),
        (0x120, ["sw-thermal-slowdown", "display-clock-setting"]),
        (0x8000000000000000, ["0x8000000000000000"]),
    ],
)
def test_clock_reasons_have_names(tmp_path: Path, bits: int, names: list[str]) -> None:
    assert _gpu(tmp_path, clocks_event_reasons=bits).throttle == names


@each(
    ("written", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000C0E1:00:00.0", "c0e1:00:00.0"),
        ("00010000:03:00.0", "10000:03:00.0"),
        ("0000:3b:00.0", "0000:3b:00.0"),
    ],
)
def test_pci_addresses_are_written_as_the_kernel_does(
    tmp_path: Path, written: str, address: str
) -> None:
    assert _gpu(tmp_path, pci_bus_id=written).pci_address == address


def test_row_remapping(tmp_path: Path) -> None:
    gpu = _gpu(tmp_path, remapped_rows=[4, 2, 1, 1])
    assert (gpu.rows_remapped_uncorrected, gpu.rows_pending, gpu.rows_failed) == (2, True, True)


def test_a_mig_change_that_waits_for_a_reset(tmp_path: Path) -> None:
    gpu = _gpu(tmp_path, mig_mode=[0, 1])
    assert (gpu.mig_enabled, gpu.mig_pending, gpu.mig_devices) == (False, True, [])


def test_mig_without_instances(tmp_path: Path) -> None:
    gpu = _gpu(tmp_path, mig_mode=[1, 1], mig_devices=[])
    assert (gpu.mig_enabled, gpu.mig_devices) == (True, [])


def test_mig_instances_that_may_not_be_listed_are_unknown_not_absent(tmp_path: Path) -> None:
    gpu = _gpu(tmp_path, mig_mode=[1, 1], mig_devices={"error": 4})
    assert gpu.mig_devices is None
    assert gpu.problem("mig_devices") == "NVML: Insufficient Permissions"


def test_links_that_the_gpu_lacks_are_left_out(tmp_path: Path) -> None:
    assert _gpu(tmp_path, nvlinks=[1, 0, {"error": 3}, 1]).nvlinks == [True, False, True]


def test_a_link_that_does_not_answer_makes_all_unknown(tmp_path: Path) -> None:
    gpu = _gpu(tmp_path, nvlinks=[1, {"error": 999}])
    assert gpu.nvlinks is None
    assert gpu.problem("nvlinks") == "NVML: not understood: link 1: Unknown Error"


@each(
    ("number", "state"),
    [(0, "not-supported"), (1, "not-started"), (2, "in-progress"), (3, "completed"), (9, None)],
)
def test_fabric_states(tmp_path: Path, number: int, state: str | None) -> None:
    gpu = _gpu(tmp_path, fabric={"state": number, "status": 0})
    assert gpu.fabric_state == state
    assert gpu.fabric_status == 0


@each(("code", "lost"), [(15, True), (999, True), (4, False), (8, False)])
def test_a_gpu_without_a_handle(tmp_path: Path, code: int, lost: bool) -> None:  # noqa: FBT001  # a parameter of the table above
    section = _read(tmp_path, {"init_code": 0, "gpus": [{"handle": code}]})
    assert section.gpus is not None
    gpu = section.gpus[0]
    assert (gpu.lost, gpu.handle_code) == (lost, code)
    assert gpu.mig_enabled is None
    assert gpu.mig_devices is None
    assert gpu.problem("device_name").startswith("NVML: it gives no handle of this GPU: ")


def test_no_gpu_is_a_value(tmp_path: Path) -> None:
    assert _read(tmp_path, {"init_code": 0, "gpus": []}).gpus == []


def test_driver_and_cuda(tmp_path: Path) -> None:
    section = _read(
        tmp_path, {"init_code": 0, "driver_release": "570.124.06", "cuda_version": 12080}
    )
    assert (section.driver_release, section.cuda) == ("570.124.06", "12.8")
    assert section.library_found is True


def test_no_library(tmp_path: Path) -> None:
    section = _read(tmp_path, None)
    assert section.library_found is False
    assert section.init_code is None
    assert section.gpus is None
    assert "not found" in section.problem("gpus")


def test_library_that_nvml_did_not_find(tmp_path: Path) -> None:
    section = _read(tmp_path, {"init_code": 12})
    assert (section.library_found, section.init_code) == (False, 12)


def test_library_that_cannot_be_loaded(tmp_path: Path) -> None:
    raw = {
        "library_found": True,
        "init_code": 12,
        "init_message": "libnvidia-ml.so.1: file too short",
    }
    section = _read(tmp_path, raw)
    assert section.library_found is True
    assert section.problem("gpus") == "NVML: it did not start: libnvidia-ml.so.1: file too short"


def test_a_probe_that_did_not_answer_is_unknown_as_a_whole(tmp_path: Path) -> None:
    section = _read(tmp_path, {"problem": "timed-out: no answer from nvmlInit within 30 s"})
    assert section.library_found is None
    assert section.problems == {"*": "timed-out: no answer from nvmlInit within 30 s"}


def test_the_package_is_broken(tmp_path: Path) -> None:
    raw = {"library_found": True, "init_code": {"error": "nvidia-ml-py cannot be imported: x"}}
    section = _read(tmp_path, raw)
    assert section.library_found is True
    assert section.init_code is None
    assert section.problem("init_code") == "NVML: nvidia-ml-py cannot be imported: x"


def test_why_nvml_could_not_be_used_is_translated() -> None:
    why = say("the package nvidia-ml-py cannot be imported: {error}", error="x")
    section = nvml.decode({"library_found": True, "init_code": {"error": why}})
    with speaking("zh"):
        assert "无法导入" in spoken(section.problem("init_code"))


@each("value", ["", "x", -1, None, True, [], {}, [1], {"total": "much"}, 1e99])
def test_nonsense_makes_a_field_unknown_and_nothing_crashes(tmp_path: Path, value: object) -> None:
    section = _read(tmp_path, {"init_code": 0, "gpus": [dict.fromkeys(RTX_4090, value)]})
    assert section.gpus is not None
    assert section.gpus[0].index == 0
    assert section.gpus[0].memory_total_bytes is None
    assert _read(tmp_path, dict.fromkeys(("init_code", "gpus", "cuda_version"), value)).cuda is None


def test_a_list_of_gpus_that_is_none(tmp_path: Path) -> None:
    section = _read(tmp_path, {"init_code": 0, "gpus": {"error": 999}})
    assert section.gpus is None
    assert section.problem("gpus") == "NVML: Unknown Error"


@each("number", [10**400, -(10**400), 2**64])
def test_a_number_beyond_64_bits_is_a_problem_of_its_field_alone(number: int) -> None:
    gpu = nvml._gpu(0, {**RTX_4090, "power": number})  # noqa: SLF001
    assert gpu.power_w is None
    assert "out of range" in gpu.problem("power_w")
    assert gpu.power_limit_w == 450
