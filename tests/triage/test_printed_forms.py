"""The forms that nvidia-smi and its like print, of five generations, MIG, vGPU, WSL and Jetsons.

Each file in ``printed`` is one output of a healthy machine, in our own words and figures.
"""

import functools
from pathlib import Path
from typing import Any

from each import each

from gpucheck import triage
from gpucheck.engine import Report
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.system import System

FOLDER = Path(__file__).parent / "printed"
TEXTS = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.txt"))}
TELL_NOTHING = (
    "help_query_gpu", "help_query_gpu_r384", "help_query_gpu_r610", "jetson_release",
    "kernel_jetson", "tegrastats",
)  # fmt: skip
"""They show no GPU that a driver serves: whether PyTorch works there is open."""
MIB = 2**20


@each("name", TEXTS)
def test_a_healthy_output_is_healthy_and_names_nothing(name: str) -> None:
    report = judged(TEXTS[name])
    assert report.root_causes == ()
    assert report.verdict == ("unknown" if name in TELL_NOTHING else "healthy")


@each("margin", ["    ", "\t", " " * 10], shards=2)
@each("name", TEXTS)
def test_a_margin_changes_nothing(name: str, margin: str) -> None:
    lines = TEXTS[name].splitlines()
    text = "".join(f"{margin}{line}\n" if line else "\n" for line in lines)
    plain, shown = judged(TEXTS[name]), triage(text)
    assert (shown.verdict, shown.root_causes) == (plain.verdict, ())
    assert len(shown.snapshot.get(Nvml).gpus or []) == len(gpus_of(TEXTS[name]))


@functools.cache
def judged(text: str) -> Report:
    return triage(text)


def gpus_of(text: str) -> list[NvmlGpu]:
    return judged(text).snapshot.get(Nvml).gpus or []


@each(
    ("name", "expected"),
    [
        ("table_mig_r535", {"mig_enabled": True, "memory_total_bytes": 40960 * MIB}),
        ("table_mig_r580", {"pci_address": "0009:01:00.0", "mig_enabled": True}),
        ("table_vgpu_guest", {"device_name": "GRID T4-16Q", "ecc_uncorrected": 0}),
        ("table_wsl", {"pci_address": "0000:01:00.0", "memory_total_bytes": 8188 * MIB}),
        ("table_jetson", {"device_name": "Orin (nvgpu)", "compute_capability": "8.7"}),
        ("q_mig_r570", {"memory_total_bytes": 24576 * MIB, "rows_failed": False, "throttle": []}),
        ("q_r418", {"ecc_uncorrected": 0, "pages_pending": False, "throttle": ["gpu-idle"]}),
        ("q_r340", {"temperature_c": 51, "memory_total_bytes": 1023 * MIB}),
        ("q_vgpu_guest", {"device_name": "NVIDIA L40S-24C", "temperature_c": None}),
        ("q_wsl", {"pcie_generation": 1, "power_limit_w": 55.0, "temperature_c": 43}),
        ("xml_r340", {"temperature_c": 51, "memory_total_bytes": 1023 * MIB}),
        ("xml_r418", {"ecc_uncorrected": 0, "pages_pending": False, "throttle": ["gpu-idle"]}),
        (
            "xml_mig_r570",
            {"memory_total_bytes": 24576 * MIB, "rows_failed": False, "power_w": 31.12},
        ),
        ("xml_vgpu_guest", {"device_name": "NVIDIA L40S-24C", "ecc_uncorrected": 0}),
        ("xml_wsl", {"pcie_generation": 1, "power_limit_w": 55.0, "temperature_c": 43}),
        ("vgpu_host", {"pci_address": "0000:3d:00.0", "memory_total_bytes": None}),
        ("dmon_r390", {"power_w": 56, "temperature_c": 41}),
        ("dmon_r418", {"power_w": 27, "temperature_c": 36}),
        ("dmon_r525", {"power_w": 291, "temperature_c": 61}),
        ("dmon_r580", {"power_w": 642, "temperature_c": 58}),
        ("nvlink_p100", {"nvlinks": [True] * 4}),
        ("nvlink_a100", {"nvlinks": [True] * 12}),
        ("nvlink_b200", {"nvlinks": [True] * 18}),
        ("query_gpu_wide", {"mig_enabled": False, "pcie_width": 16, "ecc_uncorrected": 0}),
    ],
)
def test_what_is_printed_of_the_first_gpu_is_read(name: str, expected: dict[str, Any]) -> None:
    first = gpus_of(TEXTS[name])[0]
    assert {field: getattr(first, field) for field in expected} == expected


@each(
    ("name", "count"),
    [
        ("pmon_r535", 2),
        ("topo_k80", 3),
        ("topo_dgx1", 4),
        ("topo_b200", 2),
        ("topo_h100", 2),
        ("topo_grace", 2),
        ("topo_p2p", 3),
        ("topo_p2p_write", 2),
        ("nvlink_old", 3),
    ],
)
def test_every_gpu_is_counted(name: str, count: int) -> None:
    assert len(gpus_of(TEXTS[name])) == count


@each(
    ("name", "sizes"),
    [
        ("table_mig_r535", [19968 * MIB, 9856 * MIB]),
        ("table_mig_r580", [47616 * MIB]),
        ("q_mig_r570", [11968 * MIB]),
        ("xml_mig_r570", [11968 * MIB, 5952 * MIB]),
        ("mig_commands", [None, None]),
    ],
)
def test_instances_are_read(name: str, sizes: list[int | None]) -> None:
    text = TEXTS[name]
    for shown in (text, f"{text}\n{text}"):  # whoever prints a table twice has no more of them
        instances = gpus_of(shown)[0].mig_devices or []
        assert [mig_device.memory_total_bytes for mig_device in instances] == sizes


def test_mig_without_an_instance_is_named() -> None:
    lines = TEXTS["table_mig_r580"].splitlines()
    first = next(at for at, line in enumerate(lines) if "29464MiB" in line)
    lines[first : first + 2] = [f"|  {'No MIG devices found':87}|"]
    text = "\n".join(lines)
    assert gpus_of(text)[0].mig_devices == []
    assert triage(text).root_causes == ("mig-misconfigured",)


def test_instances_that_were_created_are_no_complaint() -> None:
    made = "Successfully created {} ID {} on GPU 0 using profile MIG 3g.20gb (ID {})\n"
    text = "".join(made.format(kind, 2, 9) for kind in ("GPU instance", "compute instance"))
    assert (
        triage(f"$ nvidia-smi mig -cgi 9 -C\n{text}No running processes found\n").root_causes == ()
    )


def test_boards_without_a_bridge_have_no_active_link() -> None:
    assert gpus_of(TEXTS["nvlink_old"])[2].nvlinks == [False]


def test_a_gpu_on_a_baseboard_without_an_active_link_counts_where_something_fails() -> None:
    text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-01)\n{}\nthe job on this HGX node is slow\n"
    none = "NVML: Unable to retrieve NVLink information as all links are inActive"
    assert triage(text.format(none)).root_causes == ("nvlink-down",)
    assert triage(text.format("\t Link 0: 26.562 GB/s")).root_causes == ()


def test_a_part_of_a_gpu_with_errors_does_not_hide_those_of_the_gpu() -> None:
    text = TEXTS["q_mig_r570"].replace(
        "DRAM Uncorrectable            : 0\n        Aggregate",
        "DRAM Uncorrectable            : 4\n        Aggregate",
    )
    assert gpus_of(text)[0].ecc_uncorrected == 4
    assert triage(text).root_causes == ("gpu-hardware-fault",)


def test_old_totals_of_errors_count() -> None:
    head, volatile, rest = TEXTS["q_r418"].partition("        Volatile\n")
    single, double, after = rest.partition("            Double Bit\n")
    broken = after.replace("Total               : 0", "Total               : 2", 1)
    report = triage(f"{head}{volatile}{single}{double}{broken}")
    assert report.root_causes == ("gpu-hardware-fault",)


def test_a_jetson_is_known_by_what_its_programs_print() -> None:
    systems = {
        name: triage(TEXTS[name]).snapshot.get(System)
        for name in ("tegrastats", "table_jetson", "jetson_release")
    }
    assert all(system.jetson for system in systems.values())
    assert systems["table_jetson"].l4t == "36.4.4"
    assert systems["jetson_release"].l4t == "38.2.0"


@each(
    "prompt",
    ["me@box:~$ ", "[me@box dir]$ ", "(env) root@box:/data# ", "me@box:/usr/lib$ "],
)
def test_a_command_after_a_prompt_is_no_complaint(prompt: str) -> None:
    text = f"{prompt}grep -c 'CUDA driver version is insufficient' run.log\n0\n"
    assert triage(text).root_causes == ()
