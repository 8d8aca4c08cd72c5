"""Answers that other tools get wrong on ordinary machines: what gpucheck says there.

Most of these cases are test machines (``tests/machines``); here are the ones that need no
files, each named after the mistake.
"""

import msgspec
from each import each
from rule_facts import cuda_fails, loaded, nvml
from working_machine import (
    CPU_BUILD,
    CU128,
    CUDA_BUILD,
    UBUNTU,
    VENV,
    commands,
    findings_and_fixes,
    report,
    serving,
    torch,
)

from gpucheck.facts.driver import Driver, NvidiaSmi, Nvml
from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.system import Container, Environment, Pci
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.output.json_text import render

replace = msgspec.structs.replace
A100 = ("NVIDIA A100-SXM4-80GB", "8.0")
H100 = ("NVIDIA H100 80GB HBM3", "9.0")
B300 = ("NVIDIA B300 SXM6 AC", "10.3")
GB10 = ("NVIDIA GB10", "12.1")
L4 = ("NVIDIA L4", "8.9")
P40 = ("Tesla P40", "6.1")
GTX_1080_TI = ("NVIDIA GeForce GTX 1080 Ti", "6.1")
RTX_5090 = ("NVIDIA GeForce RTX 5090", "12.0")
CU124 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU130 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
NO_TORCH = TorchBuild(installed=False, installs=[], leftovers=[])


def test_three_failures_of_nvidia_smi_have_three_causes() -> None:
    """4.1.6, 4.1.7: each of them became "no driver, install one", or "reinstall the driver"."""
    mismatch = report(
        *serving(H100),
        Nvml(library_found=True, init_code=18),
        cuda_fails(803),
        loaded("580.95.05", library="580.105.08"),
        NvidiaSmi(found=True, message="Failed to initialize NVML: Driver/library version mismatch"),
    )
    unloaded = report(
        *serving(H100),
        Nvml(library_found=True, init_code=9),
        cuda_fails(100),
        replace(loaded("580.95.05"), module_loaded=False),
        NvidiaSmi(found=True, message="it couldn't communicate with the NVIDIA driver"),
    )
    dropped = report(
        *serving(GTX_1080_TI),
        Nvml(library_found=True, init_code=0, driver_release="595.45.04", gpus=[]),
        cuda_fails(100),
        loaded("595.45.04"),
        NvidiaSmi(found=True, message="No devices were found"),
    )
    causes = [found.root_causes for found in (mismatch, unloaded, dropped)]
    assert causes == [
        ("driver-library-mismatch",),
        ("kernel-module-not-loaded",),
        ("driver-dropped-gpu",),
    ]
    assert "sudo reboot" in commands(mismatch)
    assert "apt-get" not in commands(mismatch) + commands(unloaded)


def test_an_environment_of_uv_has_no_pip_and_is_read_all_the_same() -> None:
    """4.1.10: "Could not collect"."""
    uv = replace(VENV, kind="uv", has_pip=False)
    found = report(uv, torch("2.8.0+cu128", "12.8", CU128, installer="uv"), *serving(H100))
    assert found.verdict == "healthy", findings_and_fixes(found)


@each(
    ("release", "driver_cuda", "version", "cuda"),
    [
        ("535.183.01", "12.2", "2.6.0+cu124", "12.4"),
        ("470.256.02", "11.4", "2.6.0+cu118", "11.8"),
        ("560.35.03", "12.6", "2.8.0+cu129", "12.9"),
        ("565.57.01", "12.7", "2.8.0+cu128", "12.8"),
        ("595.45.04", "13.2", "2.14.0+cu132", "13.2"),
        ("580.95.05", "13.0", "2.14.0+cu132", "13.2"),
        ("650.12", "14.0", "2.14.0+cu132", "13.2"),
    ],
)
def test_a_driver_of_the_same_cuda_major_is_enough(
    release: str, driver_cuda: str, version: str, cuda: str
) -> None:
    """4.2.12, 13, 16, 17, 18: "CRITICAL CONFLICT: driver supports up to ..."."""
    build = torch(version, cuda, CU130)
    found = report(build, *serving(A100, release=release, cuda=driver_cuda))
    assert found.verdict == "healthy", findings_and_fixes(found)


@each(
    ("release", "driver_cuda", "index"),
    [("470.256.02", "11.4", "cu118"), ("515.105.01", "11.7", "cu118"), ("525.147.05", "12.0", "")],
)
def test_the_newest_build_that_an_old_driver_runs(
    release: str, driver_cuda: str, index: str
) -> None:
    """4.2.14: builds of years ago, although newer ones run there."""
    build = torch("2.9.1+cu130", "13.0", CU130)
    found = report(build, *serving(A100, release=release, cuda=driver_cuda))
    assert found.root_causes == ("driver-too-old",)
    assert f"/whl/{index or 'cu12'}" in commands(found)
    assert "torch==1." not in commands(found)
    assert "torch==2.0" not in commands(found)


def test_no_build_of_cuda_11_is_given_to_a_driver_that_is_older() -> None:
    """4.2.15: R440 supports CUDA up to 10.2, and a command for cu117 was printed."""
    build = torch("1.13.1+cu117", "11.7", CU124)
    v100 = ("Tesla V100-SXM2-32GB", "7.0")
    found = report(build, *serving(v100, release="440.33.01", cuda="10.2"))
    assert "10.2" in findings_and_fixes(found)
    assert "/whl/cu1" not in commands(found)


def test_text_json_and_exit_status_say_the_same() -> None:
    """4.2.19: a critical conflict in the text, success in the JSON, exit status 0."""
    found = report(
        torch("2.9.1+cu130", "13.0", CU130), *serving(H100, release="535.183.01", cuda="12.2")
    )
    document = msgspec.json.decode(render(found))
    assert document["verdict"] == found.verdict == "broken"
    assert document["root_causes"] == list(found.root_causes) == ["driver-too-old"]
    assert found.exit_status("error") == 1


@each(
    ("card", "arch_list", "cuda"),
    [
        (L4, CU124, "12.4"),
        (P40, ["sm_60", "sm_70", "sm_80"], "12.6"),
        (B300, CU130, "13.0"),
        (GB10, CU130, "13.0"),
    ],
)
def test_code_for_a_lower_minor_runs(
    card: tuple[str, str], arch_list: list[str], cuda: str
) -> None:
    """4.2.20: "architecture mismatch, install a nightly"."""
    found = report(torch(f"2.9.1+cu{cuda.replace('.', '')}", cuda, arch_list), *serving(card))
    assert found.verdict == "healthy", findings_and_fixes(found)


@each("build", [torch("2.9.1+cu130", "13.0", CU130), CUDA_BUILD])
def test_pascal_gets_a_build_that_has_its_code(build: TorchBuild) -> None:
    """4.2.21, 24: no nightly will ever have it, and no tool may be silent."""
    found = report(build, *serving(GTX_1080_TI))
    assert found.root_causes == ("gpu-too-old-for-torch",)
    assert "/whl/cu126" in commands(found)
    assert "nightly" not in commands(found) + findings_and_fixes(found)


@each("release", ["580.95.05", "550.144.03"])
def test_a_first_install_on_pascal(release: str) -> None:
    """4.2.22, 27: the install command itself made the fault."""
    cuda = "13.0" if release.startswith("580") else "12.4"
    found = report(NO_TORCH, *serving(GTX_1080_TI, release=release, cuda=cuda))
    assert found.root_causes == ("torch-missing",)
    assert "/whl/cu126" in commands(found)


def test_a_first_install_on_a_new_driver() -> None:
    """4.2.27: a table without the newest CUDA offered an older one for ever."""
    found = report(NO_TORCH, *serving(RTX_5090, release="610.57.04", cuda="13.3"))
    assert "/whl/cu13" in commands(found)


def test_blackwell_with_builds_before_it() -> None:
    """4.2.23, 24: the fix named indexes that carry no sm_120."""
    found = report(torch("2.5.1+cu124", "12.4", CU124), *serving(RTX_5090))
    assert found.root_causes == ("gpu-too-new-for-torch",)
    assert "cu124" not in commands(found)
    assert "cu126" not in commands(found)
    assert "/whl/cu1" in commands(found)


@each("cards", [(H100, GTX_1080_TI), (GTX_1080_TI, H100)])
def test_the_second_gpu_counts_too(cards: tuple[tuple[str, str], ...]) -> None:
    """4.2.25: "compatible", after a look at GPU 0."""
    found = report(torch("2.9.1+cu130", "13.0", CU130), *serving(*cards))
    assert found.root_causes == ("gpu-too-old-for-torch",)
    assert "GTX 1080 Ti" in findings_and_fixes(found)
    assert "/whl/cu126" in commands(found)


def test_code_of_one_architecture_is_no_ptx_for_the_next() -> None:
    """4.2.26: compute_90a was counted as PTX that a newer GPU can use."""
    alone = torch("2.9.1+cu126", "12.6", ["sm_80", "sm_90", "compute_90a"])
    assert report(alone, *serving(RTX_5090)).root_causes == ("gpu-too-new-for-torch",)
    portable = torch("2.9.1+cu126", "12.6", ["sm_80", "sm_90", "compute_90"])
    assert report(portable, *serving(RTX_5090)).verdict == "healthy"


def test_a_cpu_build_beside_a_gpu_decides_the_verdict() -> None:
    """4.3.28, 34: a crash; or "usable with warnings"."""
    found = report(CPU_BUILD, *serving(H100))
    assert (found.verdict, found.root_causes) == ("broken", ("torch-cpu-only",))
    assert "/whl/cu1" in commands(found)


def test_a_torch_that_cannot_be_read_is_not_missing() -> None:
    """4.3.29: a torch that failed to import was "not installed"."""
    broken = TorchBuild(
        installed=True,
        installs=[],
        problems={"version": "torch/version.py: not Python", "built_for": "not Python"},
    )
    found = report(broken, *serving(H100))
    assert found.verdict == "unknown"
    assert "torch-missing" not in findings_and_fixes(found)


def test_no_toolkit_no_variables_no_system_cudnn() -> None:
    """4.3.30, 31, 4.5.37: the wheel brings what it needs, and nothing is compiled here."""
    bare = Toolkits(toolkits=[])
    build = torch("2.9.1+cu130", "13.0", CU130, cudnn="9.13.0.50")
    found = report(build, *serving(H100), bare, Environment(variables={}))
    assert (found.verdict, findings_and_fixes(found)) == ("healthy", "")


@each("python", ["3.13.1", "3.14.0"])
def test_a_new_python_with_its_wheel(python: str) -> None:
    """4.3.32: "torch supports Python up to 3.12"."""
    new: Interpreter = replace(VENV, version=python)
    found = report(new, torch("2.9.1+cu130", "13.0", CU130), *serving(H100))
    assert found.verdict == "healthy", findings_and_fixes(found)
    assert "torch==2." in commands(report(new, CPU_BUILD, *serving(H100)))


def test_a_mask_that_names_no_gpu() -> None:
    """4.3.33: "compatible", and "no explicit mask"."""
    mask = Environment(variables={"CUDA_VISIBLE_DEVICES": "7"})
    found = report(*serving(H100), cuda_fails(100), mask)
    assert found.root_causes == ("visible-devices-hides-gpus",)
    assert "unset CUDA_VISIBLE_DEVICES" in commands(found)


def test_no_fix_sets_the_library_path_or_installs_cudnn() -> None:
    """4.4.35: the advice that makes the fault."""
    found = [
        report(CPU_BUILD, *serving(H100)),
        report(torch("2.9.1+cu130", "13.0", CU130), *serving(GTX_1080_TI)),
        report(*serving(H100, release="470.57.02", cuda="11.4")),
        report(*serving(H100), cuda_fails(999), Driver(module_loaded=True, uvm_loaded=False)),
    ]
    text = "\n".join(
        findings_and_fixes(report_found) + commands(report_found) for report_found in found
    )
    assert "LD_LIBRARY_PATH" not in text
    assert "cudnn" not in text.lower()
    assert "cuda-toolkit" not in text


def test_a_plain_python_image_with_the_gpu_of_its_host() -> None:
    """4.5.40: "CPU-only base image": the wheel brings its own CUDA."""
    box = Container(
        runtime="docker",
        visible_devices="",
        driver_capabilities="",
        injected=["/dev/nvidia0", "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05"],
    )
    found = report(box, torch("2.9.1+cu130", "13.0", CU130), *serving(H100))
    assert found.verdict == "healthy", findings_and_fixes(found)


def test_a_release_that_no_table_has_is_judged_by_what_the_driver_says() -> None:
    """4.2.16: a table that ends below the driver called it too old."""
    later = nvml(H100, release="700.10.01", cuda="15.1")
    found = report(torch("2.9.1+cu130", "13.0", CU130), *serving(H100), later)
    assert found.verdict == "healthy", findings_and_fixes(found)
    assert "newer-than-tables" in findings_and_fixes(found)


@each(
    ("board", "capability", "arch_list", "cuda", "verdict"),
    [
        ("Orin", "8.7", ["sm_80", "sm_90", "sm_100", "sm_120"], "13.0", "broken"),
        ("Orin", "8.7", ["sm_80", "sm_90", "sm_100", "sm_120"], "13.2", "healthy"),
        ("Orin", "8.7", ["sm_87"], "12.6", "healthy"),
        ("NVIDIA Thor", "11.0", ["sm_80", "sm_90", "sm_100", "sm_120"], "13.0", "broken"),
        ("NVIDIA Thor", "11.0", ["sm_80", "sm_90", "sm_110", "sm_120"], "13.0", "healthy"),
    ],
)
def test_the_gpu_of_a_jetson_has_no_neighbours(
    board: str, capability: str, arch_list: list[str], cuda: str, verdict: str
) -> None:
    """Code of the same major runs on other GPUs, and on a board's only from CUDA 13.2 on."""
    jetson = replace(UBUNTU, machine="aarch64", jetson=f"Jetson AGX {board}", l4t="38.2.0")
    bus = Pci(gpus=[], nvswitches=0, other_display_vendors=[], jetson_gpu="/sys/devices/gpu.0")
    card = (board, capability)
    build = torch(f"2.14.0+cu{cuda.replace('.', '')}", cuda, arch_list)
    found = report(jetson, build, *serving(card, cuda="13.2"), bus)
    assert found.verdict == verdict, findings_and_fixes(found)
    assert found.root_causes in ((), ("torch-rocm-or-other-build",))
    assert ("download.pytorch.org" in commands(found)) == (verdict == "broken")
