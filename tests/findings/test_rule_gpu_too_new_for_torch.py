import msgspec
import pytest
from each import each
from rules_machines import (
    A100,
    B300,
    CU124,
    CU128,
    GB10,
    GTX_1080,
    NO_TORCH,
    NO_VARIABLES,
    ORIN,
    ORIN_GPU,
    RTX_4090,
    RTX_5090,
    UBUNTU,
    VENV,
    fine,
    hit,
    not_applicable,
    nvml,
    nvml_of,
    packages,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import CudaDevice, CudaDriver, NvmlGpu
from gpucheck.facts.system import Environment, Pci
from gpucheck.findings.form import Judgement

SLUG = "gpu-too-new-for-torch"
TORCH = torch_of("2.6.0+cu124", "12.4", arch_list=CU124)


def judge(torch: Section, *more: Section) -> Judgement:
    return ask(SLUG, torch, UBUNTU, VENV, packages(), NO_VARIABLES, *more)


def test_an_rtx_5090_is_too_new_for_cu124() -> None:
    answer = hit(judge(TORCH, nvml(RTX_5090)))
    assert RTX_5090 in answer.headline
    assert "12.0" in answer.headline
    assert "CUDA 12.8 or newer" in answer.headline
    assert answer.evidence == (
        "torch.version",
        "torch.arch_list",
        "nvml.gpus.0.device_name",
        "nvml.gpus.0.compute_capability",
    )
    remove, install = answer.fixes[0].commands
    assert "uninstall" in remove
    assert "--index-url https://download.pytorch.org/whl/cu1" in install


def test_the_build_that_is_offered_has_code_for_it() -> None:
    install = hit(judge(TORCH, nvml(RTX_5090))).fixes[0].commands[-1]
    assert not install.endswith(("cu124", "cu126"))


@each(
    ("gpu", "arch_list"),
    [
        (RTX_4090, ["sm_80", "sm_86"]),
        (RTX_4090, ["sm_80"]),
        (GB10, CU128),
        (B300, CU128),
        (A100, CU124),
        (RTX_5090, CU128),
        (RTX_5090, ["sm_90", "compute_90"]),
    ],
)
def test_code_of_a_lower_minor_or_ptx_is_enough(gpu: str, arch_list: list[str]) -> None:
    fine(judge(torch_of("2.8.0+cu128", "12.8", arch_list=arch_list), nvml(gpu)))


def test_ptx_of_one_architecture_only_is_not_enough() -> None:
    build = torch_of("2.8.0+cu124", "12.4", arch_list=["sm_90a", "compute_90a"])
    hit(judge(build, nvml(RTX_5090)))


def test_ptx_newer_than_the_driver_is_refused() -> None:
    build = torch_of("2.8.0+cu128", "12.8", arch_list=["sm_80", "compute_80"])
    answer = hit(judge(build, nvml("NVIDIA H100 80GB HBM3", driver="535.104.05", cuda="12.2")))
    assert answer.confidence is Confidence.LIKELY
    assert "PTX" in answer.headline
    assert "nvml.cuda" in answer.evidence


def test_an_old_gpu_is_not_too_new() -> None:
    fine(judge(torch_of("2.9.1+cu130", "13.0", arch_list=CU128), nvml(GTX_1080)))


def test_each_gpu_is_judged_and_the_others_are_named() -> None:
    answer = hit(judge(TORCH, nvml(A100, RTX_5090)))
    assert "GPU 0 (NVIDIA A100-SXM4-80GB) still works" in answer.headline
    assert f"GPU 0 ({A100}) still works" in answer.headline
    assert answer.evidence[2:] == ("nvml.gpus.1.device_name", "nvml.gpus.1.compute_capability")
    assert answer.fixes[-1].commands == (
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        "export CUDA_VISIBLE_DEVICES=0",
    )


def test_a_gpu_that_is_hidden_does_not_count() -> None:
    seen = CudaDriver(
        init_code=0,
        cuda="13.0",
        device_count=1,
        devices=[CudaDevice(device_name=A100, compute_capability="8.0")],
    )
    fine(judge(TORCH, nvml(A100, RTX_5090), seen))
    masked = Environment(variables={"CUDA_VISIBLE_DEVICES": "GPU-00000000"})
    fine(ask(SLUG, TORCH, UBUNTU, VENV, nvml(A100, RTX_5090), masked))


def test_an_unclear_choice_of_gpus_is_unknown_unless_all_are_alike() -> None:
    masked = Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})
    with pytest.raises(UnknownFactError, match="does not show which"):
        ask(SLUG, TORCH, UBUNTU, VENV, nvml(A100, RTX_5090), masked)
    hit(ask(SLUG, TORCH, UBUNTU, VENV, nvml(GB10, RTX_5090), packages(), masked))


def test_the_table_answers_for_a_build_that_was_not_read() -> None:
    answer = hit(judge(torch_of("2.6.0+cu124", "12.4"), nvml(RTX_5090)))
    assert answer.evidence[:2] == ("torch.version", "torch.cuda")


@each(
    "torch",
    [
        torch_of("2.6.0+cu118", "11.8"),  # a list that is not confirmed
        torch_of("2.7.0.dev20250310+cu124", "12.4"),
        torch_of("2.99.0+cu126", "12.6"),
        torch_of("1.9.1+cu111", "11.1"),
    ],
)
def test_a_compiler_that_does_not_know_the_gpu_decides_without_a_list(torch: Section) -> None:
    answer = hit(judge(torch, nvml(RTX_5090)))
    assert answer.evidence[:2] == ("torch.version", "torch.cuda")


@each(
    "torch",
    [
        torch_of("2.6.0a0+ecf3bae40a.nv25.01", "12.8"),
        torch_of("2.6.0", "12.8", installer="conda"),
        torch_of("2.99.0+cu128", "12.8"),
    ],
)
def test_builds_that_no_table_has_are_unknown(torch: Section) -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.arch_list"):
        judge(torch, nvml(RTX_5090))


@each("torch", [torch_of("2.6.0", "12.6", installer="conda"), torch_of("2.6.0+abc", "12.4")])
def test_a_build_of_others_may_have_ptx_for_a_gpu_that_its_compiler_does_not_know(
    torch: Section,
) -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.cuda.* whether this build has PTX"):
        judge(torch, nvml(RTX_5090))


def test_an_unknown_capability_is_unknown() -> None:
    gpus = nvml_of([NvmlGpu(index=0, device_name="NVIDIA Graphics Device")])
    with pytest.raises(UnknownFactError, match="compute capability"):
        judge(TORCH, gpus)


def test_what_it_has_nothing_to_say_about() -> None:
    not_applicable(judge(NO_TORCH))
    not_applicable(judge(torch_of("2.6.0+cpu"), nvml(RTX_5090)))
    not_applicable(judge(TORCH, Pci(gpus=[], jetson_gpu="")))
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        judge(TORCH)


def test_a_jetson_is_left_to_its_own_rule() -> None:
    board = nvml_of([NvmlGpu(index=0, device_name=ORIN_GPU, compute_capability="8.7")])
    build = torch_of("2.6.0", "12.4", arch_list=["sm_50"])
    not_applicable(ask(SLUG, build, ORIN, VENV, NO_VARIABLES, board))


def test_no_build_for_every_gpu_is_no_command() -> None:
    future = nvml_of([NvmlGpu(index=0, device_name="NVIDIA R900", compute_capability="15.0")])
    fix = hit(judge(TORCH, future)).fixes[0]
    assert fix.commands == ()
    assert "NVIDIA R900" in fix.text


def test_the_driver_is_counted_in_when_a_build_is_chosen() -> None:
    old_driver = nvml(RTX_5090, driver="570.86.15", cuda="12.8")
    install = hit(judge(TORCH, old_driver)).fixes[0].commands[-1]
    assert install.endswith(("cu128", "cu129"))


def test_on_windows_the_variables_are_set_the_windows_way() -> None:
    windows = msgspec.structs.replace(UBUNTU, os="windows", libc=None, glibc=None)
    answer = hit(ask(SLUG, TORCH, windows, VENV, packages(), NO_VARIABLES, nvml(A100, RTX_5090)))
    assert answer.fixes[-1].commands == (
        "$env:CUDA_DEVICE_ORDER = 'PCI_BUS_ID'",
        'set "CUDA_DEVICE_ORDER=PCI_BUS_ID"',
        "$env:CUDA_VISIBLE_DEVICES = '0'",
        'set "CUDA_VISIBLE_DEVICES=0"',
    )
