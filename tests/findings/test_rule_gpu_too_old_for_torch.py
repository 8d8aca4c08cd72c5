import pytest
from each import each
from rules_machines import (
    A100,
    CU124,
    CU128,
    GTX_1080,
    NO_TORCH,
    NO_VARIABLES,
    ORIN,
    ORIN_GPU,
    P100,
    RTX_4090,
    RTX_5090,
    UBUNTU,
    V100,
    VENV,
    WINDOWS,
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
from gpucheck.facts.driver import NvmlGpu
from gpucheck.findings.form import Judgement

SLUG = "gpu-too-old-for-torch"
CU130 = torch_of("2.9.1+cu130", "13.0", arch_list=CU128)


def judge(torch: Section, *more: Section) -> Judgement:
    return ask(SLUG, torch, UBUNTU, VENV, packages(), NO_VARIABLES, *more)


def test_cuda_13_has_dropped_the_gtx_1080() -> None:
    answer = hit(judge(CU130, nvml(GTX_1080)))
    assert GTX_1080 in answer.headline
    assert answer.evidence[:2] == ("torch.version", "torch.arch_list")
    assert answer.fixes[0].commands[-1] == (
        f"{VENV.executable} -m pip install torch==2.9.1 "
        "--index-url https://download.pytorch.org/whl/cu126"
    )


def test_on_windows_the_fix_is_the_same_build() -> None:
    answer = hit(ask(SLUG, CU130, WINDOWS, VENV, packages(), NO_VARIABLES, nvml(GTX_1080)))
    assert answer.fixes[0].commands[-1].endswith("/whl/cu126")


def test_a_capability_between_the_codes_was_dropped() -> None:
    build = torch_of("2.0.0", "11.8", arch_list=["sm_50", "sm_70", "sm_80"])
    left_out = hit(judge(build, nvml(GTX_1080)))
    assert "has no code for" in left_out.headline  # it has code for older GPUs: nothing was dropped
    assert "it has code for this GPU" in left_out.fixes[0].text
    gap = torch_of("2.9.0", "13.0", arch_list=["sm_75", "sm_86", "sm_90"])
    hit(judge(gap, nvml(A100)))


@each("gpu", [GTX_1080, P100, V100, A100, RTX_4090])
def test_what_the_build_has_code_for_is_fine(gpu: str) -> None:
    fine(judge(torch_of("2.6.0+cu124", "12.4", arch_list=CU124), nvml(gpu)))


def test_a_gpu_that_is_too_new_is_not_too_old() -> None:
    fine(judge(torch_of("2.6.0+cu124", "12.4", arch_list=CU124), nvml(RTX_5090)))


def test_several_gpus_of_one_model_are_counted() -> None:
    answer = hit(judge(CU130, nvml(V100, V100)))
    assert answer.headline.endswith(f"no longer has code for 2 x {V100}, compute capability 7.0")
    assert "it still has code for these GPUs" in answer.fixes[0].text


def test_each_gpu_is_judged() -> None:
    answer = hit(judge(CU130, nvml(P100, A100)))
    assert "GPU 1 (NVIDIA A100-SXM4-80GB) still works" in answer.headline
    assert f"GPU 1 ({A100}) still works" in answer.headline
    assert "cu126" in answer.fixes[0].commands[-1]
    assert answer.fixes[1].commands[-1] == "export CUDA_VISIBLE_DEVICES=1"


def test_no_wheel_serves_both_ends_and_conda_forge_does() -> None:
    answer = hit(judge(CU130, nvml(P100, RTX_5090)))
    assert "pytorch-gpu=2.13.0 cuda-version=12.9" in answer.fixes[0].commands[0]
    assert "export CUDA_VISIBLE_DEVICES=1" in answer.fixes[1].commands


def test_the_table_answers_for_an_official_build() -> None:
    answer = hit(judge(torch_of("2.9.1+cu130", "13.0"), nvml(GTX_1080)))
    assert answer.evidence[:2] == ("torch.version", "torch.cuda")


def test_a_list_that_is_not_confirmed_condemns_no_gpu() -> None:
    build = torch_of("2.9.1+cu128", "12.8")
    with pytest.raises(UnknownFactError, match=r"whether this build has code for GPU 0"):
        ask(SLUG, build, WINDOWS, NO_VARIABLES, nvml(GTX_1080))
    hit(judge(build, nvml(GTX_1080)))


def test_a_compiler_that_dropped_the_gpu_decides_without_a_list() -> None:
    k80 = nvml_of([NvmlGpu(index=0, device_name="Tesla K80", compute_capability="3.7")])
    hit(ask(SLUG, torch_of("2.14.0+cu126", "12.6"), WINDOWS, NO_VARIABLES, packages(), k80))
    hit(judge(torch_of("2.4.0", "13.0", installer="conda"), nvml(GTX_1080)))


def test_a_dropped_gpu_of_cudnn_is_told_as_such() -> None:
    build = torch_of("2.9.1+cu126", "12.6", arch_list=CU124, cudnn="9.11.0.98")
    answer = hit(judge(build, nvml(GTX_1080)))
    assert "cuDNN 9.11.0.98" in answer.headline
    assert answer.evidence[:2] == ("torch.cudnn", "torch.cuda")


@each("cudnn", [None, "", "9.10.2.21", "9.99.0"])
def test_another_cudnn_is_fine(cudnn: str | None) -> None:
    build = torch_of("2.9.1+cu126", "12.6", arch_list=CU124, cudnn=cudnn)
    gpu = A100 if cudnn == "9.99.0" else GTX_1080
    fine(judge(build, nvml(gpu)))


def test_what_it_has_nothing_to_say_about() -> None:
    not_applicable(judge(NO_TORCH))
    not_applicable(judge(torch_of("2.6.0+cpu"), nvml(GTX_1080)))
    build = torch_of("2.10.0", "12.8", arch_list=["sm_80", "sm_90", "sm_100"])
    not_applicable(ask(SLUG, build, ORIN, NO_VARIABLES, nvml(ORIN_GPU)))
    with pytest.raises(UnknownFactError, match=r"torch\.built_for"):
        judge(torch_of("2.6.0", built_for=None))
