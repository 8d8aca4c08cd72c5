import pytest
from each import each
from msgspec.structs import replace
from rule_facts import (
    A100,
    CPU_TORCH,
    CUDA_TORCH,
    DOCKER,
    EMPTY_BUS,
    HOST,
    LINUX,
    NO_TORCH,
    RTX5090,
    WSL2,
    commands,
    cuda_sees,
    hit,
    libcuda,
    nvml,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.driver import CudaDriver, Driver, Nvml
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Judgement

PYTHON = Interpreter(status="ok", executable="/venv/bin/python", version="3.11.7", kind="venv")
CU130 = TorchBuild(
    installed=True, version="2.9.1+cu130", built_for="cuda", cuda="13.0", arch_list=["sm_80"]
)


def judge(*sections: Section) -> Judgement:
    return ask("driver-too-old", *sections)


def test_an_old_driver_for_a_cuda_12_build() -> None:
    served = nvml(A100, release="515.105.01", cuda="11.7")
    found = hit(judge(LINUX, HOST, PYTHON, on_bus(A100), served, CUDA_TORCH))
    assert "515.105.01 (CUDA 11.7) is older than 525" in found.headline
    assert {"nvml.driver_release", "nvml.cuda", "torch.cuda"} <= set(found.evidence)
    assert "nvidia-driver-" in commands(found)
    assert "whl/cu118" in commands(found)


@each(
    ("release", "cuda"),
    [("525.60.13", "12.0"), ("535.54.03", "12.2"), ("610.57.04", "13.3")],
)
def test_minor_versions_are_compatible(release: str, cuda: str) -> None:
    quiet(judge(LINUX, HOST, nvml(A100, release=release, cuda=cuda), CUDA_TORCH))


def test_a_new_major_needs_its_driver() -> None:
    served = nvml(A100, release="570.86.15", cuda="12.8")
    assert "13.0" in hit(judge(LINUX, HOST, served, CU130)).headline


def test_forward_compatibility_counts() -> None:
    served = nvml(A100, release="570.86.15", cuda="12.8")
    compat = CudaDriver(init_code=0, cuda="13.0", device_count=1)
    quiet(judge(LINUX, HOST, served, compat, CU130))


def test_the_cuda_that_is_reported_is_enough() -> None:
    old = CudaDriver(init_code=0, cuda="11.4", device_count=1)
    found = hit(judge(LINUX, HOST, old, CUDA_TORCH))
    assert found.headline.startswith("The driver (CUDA 11.4)")


def test_the_release_alone_where_no_cuda_is_reported() -> None:
    driver = Driver(module_loaded=True, module_release="470.82.01", libcuda=[libcuda("470.82.01")])
    found = hit(judge(LINUX, HOST, on_bus(A100), driver, CUDA_TORCH))
    assert found.evidence[0] == "driver.module_release"


def test_on_wsl_windows_is_updated() -> None:
    old = nvml(A100, release="472.84", cuda="11.4")
    found = hit(judge(WSL2, HOST, old, CUDA_TORCH))
    assert "In Windows, install" in found.fixes[0].text
    assert "525" not in found.headline


def test_in_a_container_it_is_the_host() -> None:
    old = nvml(A100, release="515.105.01", cuda="11.7")
    assert "Or, on the host" in hit(judge(LINUX, DOCKER, old, CUDA_TORCH)).fixes[1].text


def test_a_gpu_that_is_newer_than_the_driver() -> None:
    none_listed = Nvml(init_code=0, driver_release="550.54.14", gpus=[])
    found = hit(judge(LINUX, HOST, on_bus(RTX5090), none_listed, NO_TORCH))
    assert "RTX 5090" in found.headline
    assert "570" in found.headline
    assert "sudo apt-get install -y nvidia-driver-" in commands(found)
    assert "-open" in commands(found)
    hit(judge(LINUX, HOST, on_bus(RTX5090), none_listed, CUDA_TORCH))
    hit(judge(LINUX, HOST, on_bus(RTX5090), none_listed))


def test_a_new_gpu_that_is_served() -> None:
    served = nvml(RTX5090, release="570.86.15", cuda="12.8")
    quiet(judge(LINUX, HOST, on_bus(RTX5090), served, CUDA_TORCH))


@each("torch", [CPU_TORCH, NO_TORCH])
def test_nobody_needs_it(torch: Section) -> None:
    quiet(judge(LINUX, HOST, nvml(A100, release="470.82.01", cuda="11.4"), torch))


def test_no_gpu() -> None:
    quiet(judge(LINUX, HOST, EMPTY_BUS, CUDA_TORCH))


def test_a_cuda_newer_than_the_tables_is_unknown() -> None:
    future = TorchBuild(installed=True, version="9.9.0", built_for="cuda", cuda="99.0")
    with pytest.raises(UnknownFactError, match=r"torch\.cuda"):
        judge(LINUX, HOST, nvml(A100), future)


def test_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.built_for"):
        judge(LINUX, HOST, cuda_sees(A100))
    with pytest.raises(UnknownFactError, match=r"nvml\.driver_release"):
        judge(LINUX, HOST, on_bus(A100), CUDA_TORCH)


def test_the_driver_of_a_board_is_no_desktop_release() -> None:
    """Thor's is called 580.00 and has CUDA 13.0, as its nvidia-smi says."""
    thor = ("NVIDIA Thor", "11.0")
    board = replace(LINUX, machine="aarch64", jetson="Jetson AGX Thor")
    quiet(judge(board, HOST, nvml(thor, release="580.00", cuda=None), CU130))
    found = hit(judge(board, HOST, PYTHON, nvml(thor, release="540.4.0", cuda=None), CU130))
    assert "Driver 540.4.0 (CUDA 12.6) is too old" in found.headline
    assert "580.65.06" not in found.headline + str(found.fixes)
    older = hit(
        judge(LINUX, HOST, PYTHON, on_bus(A100), nvml(A100, release="580.00", cuda=None), CU130)
    )
    assert "older than 580.65.06" in older.headline
