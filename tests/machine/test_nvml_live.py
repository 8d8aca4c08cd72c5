"""The real nvidia-ml-py over a fake driver library, in a child as the collector runs it."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes_build import ask_fake, build_fake
from windows_support import as_on_windows

from gpucheck.machine import LiveHost
from gpucheck.machine import nvml as nvml_host

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake("nvml", tmp_path_factory.mktemp("nvml")).parent


@pytest.fixture(scope="module")
def old_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake("nvml", tmp_path_factory.mktemp("old"), old=True).parent


def _section(driver: Path, **env: str) -> dict[str, Any]:
    done = ask_fake("nvml", driver, env)
    assert done["status"] == "ok", done["problem"]
    section: dict[str, Any] = done["result"]
    return section


def test_eight_gpus_are_read_whole(driver: Path) -> None:
    section = _section(driver)
    assert section["library_found"] is True
    assert section["init_code"] == 0
    assert section["init_message"] == ""
    assert section["driver_release"] == "580.95.05"
    assert section["cuda"] == "13.0"
    assert section["problems"] == {}
    gpus = section["gpus"]
    assert [gpu["index"] for gpu in gpus] == list(range(8))
    assert [gpu["pci_address"] for gpu in gpus][:3] == [
        "0000:19:00.0",
        "0000:3b:00.0",
        "0000:4c:00.0",
    ]
    assert len({gpu["uuid"] for gpu in gpus}) == 8
    assert all(gpu["problems"] == {"pages_pending": "NVML: Not Supported"} for gpu in gpus)
    first = gpus[0]
    assert first["device_name"] == "NVIDIA H100 80GB HBM3"
    assert first["compute_capability"] == "9.0"
    assert first["memory_total_bytes"] == 85520809984
    assert first["memory_used_bytes"] == 557842432
    assert first["memory_free_bytes"] == 85520809984 - 557842432 - 650969088
    assert first["processes"] == []
    assert first["ecc_enabled"] is True
    assert (first["mig_enabled"], first["mig_pending"], first["mig_devices"]) == (False, False, [])
    assert (first["compute_mode"], first["persistence"]) == ("default", True)
    assert (first["sm_clock_mhz"], first["sm_clock_max_mhz"]) == (345, 1980)
    assert first["throttle"] == ["gpu-idle"]
    assert (first["temperature_c"], first["temperature_slowdown_c"]) == (31, 87)
    assert (first["power_w"], first["power_limit_w"]) == (71.123, 700.0)
    assert first["utilization_percent"] == 4
    assert (first["pcie_generation"], first["pcie_generation_max"]) == (5, 5)
    assert (first["pcie_width"], first["pcie_width_max"]) == (16, 16)
    assert first["nvlinks"] == [True] * 18
    assert (first["fabric_state"], first["fabric_status"]) == ("completed", 0)
    assert (first["fabric_cluster"], first["fabric_clique"]) == ("c1" * 16, 32766)
    assert (first["fabric_faults"], first["c2c"]) == ([], True)
    assert (first["vbios"], first["inforom"]) == ("96.00.74.00.01", "G520.0200.00.05")
    assert first["power_limit_default_w"] == 700.0
    assert (first["application_clock_mhz"], first["application_clock_default_mhz"]) == (1980, 1980)
    assert first["ecc_after_reset"] is True


@pytest.mark.parametrize(
    ("mask", "faults"),
    [
        ("0x51a9", ["degraded-bandwidth"]),
        ("0x519a", ["route-unhealthy"]),
        ("0x95aa", ["incorrect-configuration", "fabric-manager-disconnected"]),
        ("0x0", []),  # of a GPU that cannot say
    ],
)
def test_what_is_wrong_with_the_fabric(driver: Path, mask: str, faults: list[str]) -> None:
    gpu = _section(driver, FAKE_NVML_HEALTH=mask, FAKE_NVML_GPUS="1")["gpus"][0]
    assert gpu["fabric_faults"] == faults


def test_the_gpu_with_errors_and_the_slowed_one_are_told_apart(driver: Path) -> None:
    gpus = _section(driver)["gpus"]
    ill = gpus[5]
    assert (ill["ecc_corrected"], ill["ecc_uncorrected"], ill["ecc_uncorrected_ever"]) == (12, 3, 7)
    assert (ill["rows_remapped_uncorrected"], ill["rows_pending"], ill["rows_failed"]) == (
        1,
        True,
        False,
    )
    assert [gpu["ecc_uncorrected"] for gpu in gpus].count(0) == 7
    assert gpus[4]["throttle"] == ["hw-slowdown", "hw-thermal-slowdown"]
    assert gpus[2]["pcie_width"] == 8
    assert gpus[6]["nvlinks"] == [True] * 17 + [False]


def test_a_process_is_named_without_its_folder_and_arguments(driver: Path) -> None:
    processes = _section(driver)["gpus"][1]["processes"]
    assert len(processes) == 1
    assert processes[0]["pid"] == 4242
    assert processes[0]["used_bytes"] == 1073741824
    assert processes[0]["kind"] == "compute"
    assert processes[0]["process_name"] == "python3.11"


def test_an_unsupported_call_leaves_only_its_field_unknown(driver: Path) -> None:
    section = _section(
        driver, FAKE_NVML_UNSUPPORTED="nvmlDeviceGetPowerUsage,nvmlDeviceGetTotalEccErrors"
    )
    assert section["problems"] == {}
    for gpu in section["gpus"]:
        assert set(gpu["problems"]) == {
            "pages_pending",
            "power_w",
            "ecc_corrected",
            "ecc_uncorrected",
            "ecc_uncorrected_ever",
        }
        assert gpu["power_w"] is None
        assert gpu["problems"]["power_w"] == "NVML: Not Supported"
        assert gpu["power_limit_w"] == 700.0


def test_a_hang_is_killed_and_named(driver: Path) -> None:
    done = ask_fake("nvml", driver, {"FAKE_NVML": "hang"}, deadline=1.0)
    assert done["status"] == "timed-out"
    assert "nvmlDeviceGetMemoryInfo of GPU 3" in done["problem"]
    assert done["seconds"] < 5


def test_a_hang_at_the_start_is_named(driver: Path) -> None:
    env = {"FAKE_NVML": "hang", "FAKE_NVML_AT": "nvmlInitWithFlags"}
    done = ask_fake("nvml", driver, env, deadline=1.0)
    assert done["status"] == "timed-out"
    assert "from nvmlInit " in done["problem"]


def test_a_crash_names_the_signal_and_the_step(driver: Path) -> None:
    env = {"FAKE_NVML": "crash", "FAKE_NVML_AT": "nvmlDeviceGetUUID", "FAKE_NVML_GPU": "2"}
    done = ask_fake("nvml", driver, env)
    assert done["status"] == "crashed"
    assert done["problem"] == "killed by SIGSEGV in nvmlDeviceGetUUID of GPU 2"


def test_library_and_module_differ(driver: Path) -> None:
    section = _section(driver, FAKE_NVML="mismatch")
    assert section["library_found"] is True
    assert section["init_code"] == 18
    assert section["init_message"] == "Driver/library version mismatch"
    assert section["driver_release"] is None
    assert section["gpus"] is None
    assert section["problems"]["gpus"] == (
        "NVML: it did not start: Driver/library version mismatch"
    )


def test_module_not_loaded(driver: Path) -> None:
    section = _section(driver, FAKE_NVML="notloaded")
    assert (section["init_code"], section["init_message"]) == (9, "Driver Not Loaded")


def test_a_gpu_without_a_handle_is_lost_and_the_others_are_read(driver: Path) -> None:
    gpus = _section(driver, FAKE_NVML="lost")["gpus"]
    assert [gpu["lost"] for gpu in gpus] == [at == 3 for at in range(8)]
    assert gpus[3]["handle_code"] == 15
    assert gpus[3]["device_name"] is None
    assert gpus[3]["problems"]["device_name"] == "NVML: it gives no handle of this GPU: GPU is lost"
    assert gpus[4]["device_name"] == "NVIDIA H100 80GB HBM3"


def test_a_gpu_that_goes_while_it_is_asked_is_lost(driver: Path) -> None:
    gpus = _section(driver, FAKE_NVML="dying")["gpus"]
    assert [gpu["lost"] for gpu in gpus] == [at == 3 for at in range(8)]
    assert gpus[3]["handle_code"] == 0
    assert gpus[3]["device_name"] == "NVIDIA H100 80GB HBM3"
    assert gpus[3]["problems"]["temperature_c"] == "NVML: GPU is lost"


def test_mig_instances_are_listed(driver: Path) -> None:
    gpus = _section(driver, FAKE_NVML_MIG="0", FAKE_NVML_GPUS="2")["gpus"]
    assert gpus[0]["mig_enabled"] is True
    devices = gpus[0]["mig_devices"]
    assert [device["device_name"] for device in devices] == [
        "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    ] * 2
    assert all(device["uuid"].startswith("MIG-") for device in devices)
    assert devices[0]["memory_total_bytes"] == 42144366592
    assert gpus[0]["nvlinks"] is None
    assert gpus[0]["problems"]["nvlinks"] == "NVML: it does not report them in MIG mode"
    assert gpus[1]["mig_devices"] == []


def test_an_old_driver_lacks_only_what_is_newer_than_it(old_driver: Path) -> None:
    section = _section(old_driver)
    assert section["driver_release"] == "450.248.02"
    assert section["cuda"] == "11.0"
    gpu = section["gpus"][1]
    assert set(gpu["problems"]) == {
        "pages_pending",
        "rows_remapped_uncorrected",
        "rows_pending",
        "rows_failed",
        "fabric_state",
        "fabric_status",
        "fabric_cluster",
        "fabric_clique",
        "fabric_faults",
    }
    assert gpu["problems"]["rows_failed"].startswith("NVML: Function Not Found")
    assert gpu["memory_free_bytes"] == 85520809984 - 1610612736
    assert gpu["throttle"] == ["gpu-idle"]
    assert gpu["temperature_c"] == 31
    assert gpu["processes"][0]["pid"] == 4242


def test_an_old_driver_in_the_other_functions_place_reports_the_real_error(driver: Path) -> None:
    env = (
        "nvmlDeviceGetCurrentClocksEventReasons,nvmlDeviceGetCurrentClocksThrottleReasons,"
        "nvmlDeviceGetGpuFabricInfo,nvmlDeviceGetGpuFabricInfoV,nvmlDeviceGetMigMode"
    )
    gpu = _section(driver, FAKE_NVML_UNSUPPORTED=env, FAKE_NVML_GPUS="1")["gpus"][0]
    assert gpu["problems"]["throttle"] == "NVML: Not Supported"
    assert gpu["fabric_state"] == "not-supported"
    assert gpu["mig_enabled"] is False


def test_a_file_that_is_no_library_is_there_but_does_not_load(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the loader of Linux")
    (tmp_path / "libnvidia-ml.so.1").touch()
    library = str(tmp_path / "libnvidia-ml.so.1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvml_host, "LIBRARY", library)
        patch.setattr(nvml_host, "WSL_LIBRARY", str(tmp_path / "none"))
        answer = nvml_host.ask(LiveHost())
    assert answer.value is not None
    assert answer.value["library_found"] is True
    assert answer.value["init_code"] == 12
    assert "file too short" in answer.value["init_message"]


@pytest.mark.skipif(sys.platform == "win32", reason="nvidia-ml-py finds nvml.dll itself")
def test_without_the_library_nvidia_ml_py_is_not_even_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nvml_host, "LIBRARY", "libnvidia-ml-of-nobody.so.1")
    monkeypatch.setattr(nvml_host, "WSL_LIBRARY", str(tmp_path / "none"))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    answer = nvml_host.ask(LiveHost())
    assert answer.value is None
    assert answer.missing
    assert "libnvidia-ml-of-nobody.so.1" in answer.problem


def test_wsl_keeps_its_library_where_the_loader_does_not_look(
    monkeypatch: pytest.MonkeyPatch, driver: Path
) -> None:
    monkeypatch.setattr(nvml_host, "LIBRARY", "libnvidia-ml-of-nobody.so.1")
    monkeypatch.setattr(nvml_host, "WSL_LIBRARY", str(driver / "libnvidia-ml.so.1"))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    answer = nvml_host.ask(LiveHost())
    assert answer.value is not None
    assert answer.value["library_found"] is True
    assert "nvidia-ml-py cannot be imported" in answer.value["init_code"]["error"]


@pytest.mark.parametrize(
    ("words", "windows", "name"),
    [
        ("/usr/bin/python3", False, "python3"),
        ("python train.py --api-key secret", False, "python"),
        ("/opt/google/chrome/chrome --type=gpu-process --user=ann", False, "chrome"),
        ("", False, ""),
        (r"C:\Program Files\Some App\some app.exe", True, "some app.exe"),
        ("C:/games/game.exe", True, "game.exe"),
    ],
)
def test_only_the_base_name_of_a_program_is_kept(words: str, windows: bool, name: str) -> None:  # noqa: FBT001  # a parameter of the table above
    assert nvml_host.program(words, windows=windows) == name


def test_on_windows_the_library_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []

    class NotThere(Exception):  # noqa: N818  # as NVMLError
        value = 12

    def init() -> None:
        raise NotThere

    nvml = as_on_windows(monkeypatch, nvml_host)
    host = LiveHost()
    monkeypatch.setattr(host, "stage", stages.append)
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=NotThere, nvmlInit=init))
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        answer = nvml.ask(host)
    assert stages == ["loading nvml.dll", "nvmlInit"]
    assert (answer.missing, answer.problem) == (True, "no nvml.dll")
