"""nvidia-smi's words, of many releases."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from each import each
from support import machine

from gpucheck.facts.driver import NvidiaSmi, Nvml
from gpucheck.machine import Host
from gpucheck.probes import nvidia_smi

SMI = "/usr/bin/nvidia-smi"
QUERY = f"{SMI} --query-gpu=driver_version,name --format=csv,noheader"
VERSION = f"{SMI} --version"

SILENT = Nvml(library_found=True, init_code=999, problems={"*": "NVML: it did not start"})

VERSION_R550 = """\
NVIDIA-SMI version  : 550.54.14
NVML version        : 550.54
DRIVER version      : 550.54.14
CUDA Version        : 12.4
"""
VERSION_R610 = """\
NVIDIA-SMI version  : 610.57.04
NVML version        : 610.57
KMD version         : 610.57.04
CUDA UMD version    : 13.3
"""
VERSION_R610_BOTH = """\
NVIDIA-SMI version  : 610.57.04
KMD version         : 610.57.04
CUDA Version        : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]
"""
BANNER_R535 = """\
Tue Nov 12 10:01:02 2024
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.54.03              Driver Version: 535.54.03    CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
"""
BANNER_R610 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.57.04        KMD Version: 610.57.04      CUDA UMD Version: 13.3          |
+-----------------------------------------+------------------------+----------------------+
"""
BANNER_WSL = """\
| NVIDIA-SMI 560.35.02              Driver Version: 560.94         CUDA Version: 12.6     |
"""
BANNER_NO_LIBCUDA = """\
| NVIDIA-SMI 535.161.08             Driver Version: 535.161.08   CUDA Version: N/A      |
"""
MISMATCH = """\
Failed to initialize NVML: Driver/library version mismatch
NVML library version: 550.90
"""
NO_DRIVER = """\
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. \
Make sure that the latest NVIDIA driver is installed and running.

"""
TOO_OLD = {
    "status": 1,
    "out": "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n",
}


def _host(tmp_path: Path, commands: Mapping[str, Mapping[str, Any]]) -> Host:
    return machine(tmp_path, host={"which": {"nvidia-smi": SMI}}, commands=commands)


def _ask(tmp_path: Path, commands: Mapping[str, Mapping[str, Any]]) -> NvidiaSmi:
    return nvidia_smi.collect(_host(tmp_path, commands), SILENT)


def test_query_and_version(tmp_path: Path) -> None:
    rows = "550.54.14, NVIDIA H100 80GB HBM3\n" * 2
    section = _ask(tmp_path, {QUERY: {"out": rows}, VERSION: {"out": VERSION_R550}})
    assert (section.found, section.asked, section.exit_status) == (True, True, 0)
    assert section.message == ""
    assert section.driver_release == "550.54.14"
    assert section.cuda == "12.4"
    assert section.gpu_names == ["NVIDIA H100 80GB HBM3"] * 2
    assert section.source("cuda") == VERSION
    assert section.problems == {}


@each("text", [VERSION_R610, VERSION_R610_BOTH])
def test_the_dialect_of_r610(tmp_path: Path, text: str) -> None:
    no_field = {"status": 2, "out": 'Field "driver_version" is not a valid field to query.\n\n'}
    section = _ask(tmp_path, {QUERY: no_field, VERSION: {"out": text}})
    assert section.driver_release == "610.57.04"
    assert section.cuda == "13.3"
    assert section.message == ""
    assert section.gpu_names is None


@each(
    ("banner", "release", "cuda"),
    [
        (BANNER_R535, "535.54.03", "12.2"),
        (BANNER_R610, "610.57.04", "13.3"),
        (BANNER_WSL, "560.94", "12.6"),
        (BANNER_NO_LIBCUDA, "535.161.08", None),
    ],
)
def test_the_table_is_the_last_resort(
    tmp_path: Path, banner: str, release: str, cuda: str | None
) -> None:
    section = _ask(tmp_path, {QUERY: TOO_OLD, VERSION: TOO_OLD, SMI: {"out": banner}})
    assert section.driver_release == release
    assert section.cuda == cuda
    assert section.message == ""


@each(
    ("status", "text", "first_line"),
    [
        (18, MISMATCH, "Failed to initialize NVML: Driver/library version mismatch"),
        (9, NO_DRIVER, "NVIDIA-SMI has failed because it couldn't communicate"),
        (
            255,
            "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\n",
            "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error",
        ),
        (
            12,
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n",
            "NVIDIA-SMI couldn't find libnvidia-ml.so library",
        ),
    ],
)
@each("stream", ["out", "err"])
def test_complaints(tmp_path: Path, status: int, text: str, first_line: str, stream: str) -> None:
    answer = {"status": status, stream: text}
    section = _ask(tmp_path, {QUERY: answer, VERSION: answer, SMI: answer})
    assert section.exit_status == status
    assert section.message is not None
    assert section.message.startswith(first_line)
    assert section.driver_release is None
    assert section.problem("driver_release").startswith(QUERY.rpartition(" ")[0][:20])
    assert section.gpu_names is None


def test_the_library_in_a_complaint_is_not_taken_for_the_driver(tmp_path: Path) -> None:
    section = _ask(tmp_path, {QUERY: {"status": 18, "out": MISMATCH}})
    assert section.driver_release is None
    assert section.cuda is None


def test_no_devices_is_an_empty_list(tmp_path: Path) -> None:
    section = _ask(
        tmp_path,
        {QUERY: {"status": 6, "out": "No devices were found\n"}, VERSION: {"out": VERSION_R550}},
    )
    assert section.message == "No devices were found"
    assert section.gpu_names == []
    assert section.driver_release == "550.54.14"


def test_a_lost_gpu_makes_the_list_of_names_unknown(tmp_path: Path) -> None:
    out = (
        "535.54.03, NVIDIA A100-SXM4-80GB\n"
        "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  "
        "Reboot the system to recover this GPU\n"
    )
    section = _ask(tmp_path, {QUERY: {"status": 15, "out": out}})
    assert section.driver_release == "535.54.03"
    assert section.gpu_names is None
    assert "GPU is lost" in section.problem("gpu_names")


def test_a_warning_below_the_rows_is_kept(tmp_path: Path) -> None:
    out = "535.54.03, Tesla V100\nWARNING: infoROM is corrupted at gpu 0000:3B:00.0\n"
    section = _ask(tmp_path, {QUERY: {"out": out}})
    assert section.message == "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"
    assert section.gpu_names == ["Tesla V100"]


def test_values_in_brackets_are_no_values(tmp_path: Path) -> None:
    section = _ask(tmp_path, {QUERY: {"out": "[N/A], [Unknown Error]\n"}})
    assert section.driver_release is None
    assert section.gpu_names is None


def test_a_query_that_hangs_is_the_last_one(tmp_path: Path) -> None:
    section = _ask(
        tmp_path, {QUERY: {"problem": "no answer in time, killed"}, VERSION: {"out": VERSION_R550}}
    )
    assert (section.found, section.asked) == (True, True)
    assert section.driver_release is None
    assert "no answer in time, killed" in section.problem("message")


def test_it_is_not_asked_when_nvml_has_answered(tmp_path: Path) -> None:
    section = nvidia_smi.collect(_host(tmp_path, {}), Nvml(driver_release="550.54.14"))
    assert (section.found, section.asked) == (True, False)
    assert section.problem("driver_release") == "not asked: NVML has answered"


def test_it_is_not_asked_when_nvml_hangs(tmp_path: Path) -> None:
    hung = Nvml(problems={"*": "timed-out: no answer from nvmlInit within 30 s"})
    section = nvidia_smi.collect(_host(tmp_path, {QUERY: {"out": "550.54.14, H100"}}), hung)
    assert (section.found, section.asked) == (True, False)
    assert "timed-out" in section.problem("driver_release")


def test_it_is_asked_when_nvml_crashed(tmp_path: Path) -> None:
    crashed = Nvml(problems={"*": "crashed: killed by SIGSEGV in nvmlInit"})
    section = nvidia_smi.collect(
        _host(tmp_path, {QUERY: {"out": "550.54.14, NVIDIA H100 NVL"}}), crashed
    )
    assert section.driver_release == "550.54.14"


def test_there_is_none(tmp_path: Path) -> None:
    section = nvidia_smi.collect(machine(tmp_path), Nvml(library_found=False))
    assert (section.found, section.asked) == (False, False)
    assert section.problem("driver_release") == "there is no nvidia-smi"


def test_wsl_keeps_it_off_the_path(tmp_path: Path) -> None:
    place = "/usr/lib/wsl/lib/nvidia-smi"
    host = machine(
        tmp_path,
        files={place: ""},
        commands={place: {"out": BANNER_WSL}},
    )
    section = nvidia_smi.collect(host, SILENT)
    assert section.found is True
    assert section.source("found") == place


def test_windows_has_it_in_system32(tmp_path: Path) -> None:
    place = r"C:\Windows\System32\nvidia-smi.exe"
    query = QUERY.replace(SMI, place)
    host = machine(
        tmp_path,
        host={"identity": {"os": "windows"}, "stat": {place: {"kind": "file"}}},
        commands={query: {"out": "561.09, NVIDIA GeForce RTX 4070\r\n"}},
    )
    section = nvidia_smi.collect(host, SILENT)
    assert section.driver_release == "561.09"
    assert section.gpu_names == ["NVIDIA GeForce RTX 4070"]


@each(
    "text",
    [
        "\x00" * 5000,
        "," * 5000,
        "driver version: " * 3000,
        "9" * 9999,
        "1.1.1.1.1.1, x\n" * 9000,
    ],
)
def test_nonsense_is_bounded_and_not_believed(tmp_path: Path, text: str) -> None:
    answer = {"out": text}
    section = _ask(tmp_path, {QUERY: answer, VERSION: answer, SMI: answer})
    assert section.driver_release is None
    assert section.message is not None
    assert len(section.message) <= 3 * 400 + 2
