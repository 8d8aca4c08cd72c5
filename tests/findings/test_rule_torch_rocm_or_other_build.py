import msgspec
import pytest
import test_machines
from each import each
from rules_machines import (
    CU128,
    NO_TORCH,
    NO_VARIABLES,
    ORIN,
    ORIN_GPU,
    RTX_4090,
    UBUNTU,
    VENV,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
    packages,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.request import Request
from gpucheck.facts.system import Pci

SLUG = "torch-rocm-or-other-build"
ROCM = torch_of("2.6.0+rocm6.2.4", built_for="rocm", hip="6.2.41134")
BOX = (UBUNTU, VENV, NO_VARIABLES, packages())


def test_a_rocm_build_on_an_nvidia_gpu_is_wrong() -> None:
    answer = hit(ask(SLUG, ROCM, nvml(RTX_4090), Pci(other_display_vendors=[]), *BOX))
    assert answer.severity is None
    assert "ROCm" in answer.headline
    assert RTX_4090 in answer.headline
    assert "uninstall -y torch" in answer.fixes[0].commands[0]
    assert "torch==2.6.0" in answer.fixes[0].commands[1]


def test_an_xpu_build_is_wrong_too() -> None:
    xpu = torch_of("2.6.0+xpu", built_for="xpu")
    assert "XPU" in hit(ask(SLUG, xpu, nvml(RTX_4090), *BOX)).headline


@each(("built_for", "vendor"), [("rocm", "amd"), ("xpu", "intel")])
def test_with_that_vendors_gpu_it_is_only_a_warning(built_for: str, vendor: str) -> None:
    build = torch_of("2.6.0", built_for=built_for)
    answer = hit(ask(SLUG, build, nvml(RTX_4090), Pci(other_display_vendors=[vendor]), *BOX))
    assert answer.severity is Severity.WARNING


def test_without_an_nvidia_gpu_it_is_fine() -> None:
    fine(ask(SLUG, ROCM, UBUNTU, Pci(gpus=[], jetson_gpu="")))


def test_a_host_that_uses_no_gpu_is_fine() -> None:
    fine(ask(SLUG, ROCM, nvml(RTX_4090), UBUNTU, Request(gpus=0)))


def test_an_unreadable_bus_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        ask(SLUG, ROCM, UBUNTU)


def test_cpu_and_cuda_builds_are_others_business() -> None:
    fine(ask(SLUG, torch_of("2.6.0+cpu"), nvml(RTX_4090), *BOX))
    fine(ask(SLUG, torch_of("2.6.0+cu124", "12.4", arch_list=["sm_86"]), nvml(RTX_4090), *BOX))
    not_applicable(ask(SLUG, NO_TORCH))
    with pytest.raises(UnknownFactError, match=r"torch\.built_for"):
        ask(SLUG)


SERVER_ARM = ["sm_80", "sm_90", "sm_100", "sm_120"]


def test_a_server_build_does_not_run_on_a_jetson() -> None:
    build = torch_of("2.10.0+cu128", "12.8", arch_list=SERVER_ARM)
    answer = hit(ask(SLUG, build, nvml(ORIN_GPU), ORIN, VENV, NO_VARIABLES))
    assert "ARM servers" in answer.headline
    assert "system.jetson" in answer.evidence
    assert "JetPack" in answer.fixes[0].text


def test_server_builds_of_cuda_13_2_run_on_an_orin_whose_driver_has_it() -> None:
    build = torch_of("2.14.0+cu132", "13.2", arch_list=SERVER_ARM)
    fine(ask(SLUG, build, nvml(ORIN_GPU, cuda="13.2"), ORIN, NO_VARIABLES))
    older = hit(ask(SLUG, build, nvml(ORIN_GPU, cuda="12.6"), ORIN, VENV, NO_VARIABLES))
    assert "ARM servers" in older.headline
    unknown = msgspec.structs.replace(nvml(ORIN_GPU), cuda=None)
    with pytest.raises(UnknownFactError, match="whether this build has code"):
        ask(SLUG, build, unknown, ORIN, NO_VARIABLES)


def test_server_builds_before_cuda_13_2_do_not() -> None:
    build = torch_of("2.14.0+cu130", "13.0", arch_list=SERVER_ARM)
    hit(ask(SLUG, build, nvml(ORIN_GPU, cuda="13.2"), ORIN, VENV, NO_VARIABLES))


def test_the_wheel_for_the_boards_jetpack_is_named_with_its_index() -> None:
    build = torch_of("2.10.0+cu128", "12.8", arch_list=SERVER_ARM)
    board = msgspec.structs.replace(ORIN, l4t="36.4.3")
    python = msgspec.structs.replace(VENV, version="3.10.12")
    served = nvml(ORIN_GPU, cuda="12.6")
    answer = hit(ask(SLUG, build, served, board, python, NO_VARIABLES))
    assert "torch==2.8.0 --index-url https://pypi.jetson-ai-lab.io/jp6/cu126" in " ".join(
        commands(answer)
    )


def test_a_jetson_wheel_on_a_jetson_is_fine() -> None:
    build = torch_of("2.3.0a0+41361538.nv24.6", "12.2", arch_list=["sm_72", "sm_87"])
    fine(ask(SLUG, build, nvml(ORIN_GPU), ORIN, NO_VARIABLES))


def test_a_build_of_pytorchs_index_is_known_by_its_name_on_a_jetson() -> None:
    build = torch_of("2.11.0+cu130", "13.0")
    hit(ask(SLUG, build, nvml(ORIN_GPU, cuda="13.2"), ORIN, VENV, NO_VARIABLES))


def test_unread_code_on_a_jetson_is_unknown() -> None:
    build = torch_of("2.10.0", "12.8")
    with pytest.raises(UnknownFactError, match=r"torch\.arch_list"):
        ask(SLUG, build, nvml(ORIN_GPU), ORIN, NO_VARIABLES)


def test_a_jetson_wheel_on_a_server_is_wrong() -> None:
    build = torch_of("2.3.0a0+nv24.6", "12.2", arch_list=["sm_72", "sm_87"])
    server = msgspec.structs.replace(UBUNTU, machine="aarch64")
    answer = hit(ask(SLUG, build, nvml("NVIDIA H100 80GB HBM3"), server, *BOX[1:]))
    assert "Jetson" in answer.headline
    assert commands(answer)


def test_an_ordinary_mismatch_is_not_called_a_jetson_build() -> None:
    build = torch_of("2.7.0+cu128", "12.8", arch_list=CU128)
    fine(ask(SLUG, build, nvml("NVIDIA GeForce GTX 1080"), *BOX))


def test_the_triton_of_rocm_goes_too() -> None:
    found = packages(**{"pytorch-triton-rocm": "3.1.0", "triton": "3.1.0"})
    answer = hit(ask(SLUG, ROCM, nvml(RTX_4090), *BOX[:-1], found))
    assert "uninstall -y torch pytorch-triton-rocm triton" in answer.fixes[0].commands[0]


def test_a_build_that_does_not_list_the_board_is_only_likely_to_run_on_it() -> None:
    def first_fix(name: str) -> str:
        return test_machines.reported(name).findings[0].fixes[0].text

    assert "should run on this board" in first_fix("jetson-orin-jp721-cu130")
    assert "it runs on this board" in first_fix("jetson-thor-jp71-cu128")
    assert "it runs on this board" in first_fix("jetson-orin-server-wheel")
