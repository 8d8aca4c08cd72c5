"""ptx-jit-forced: a variable that leaves a build without PTX no code for any GPU."""

import pytest
from rules_machines import (
    CU124,
    NO_TORCH,
    RTX_4090,
    UBUNTU,
    VENV,
    fine,
    hit,
    not_applicable,
    nvml,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

SLUG = "ptx-jit-forced"
TORCH = torch_of("2.6.0+cu124", "12.4", arch_list=CU124)


def judge(value: str | None, torch: Section = TORCH) -> Judgement:
    variables = {} if value is None else {"CUDA_FORCE_PTX_JIT": value}
    return ask(SLUG, UBUNTU, VENV, torch, nvml(RTX_4090), Environment(variables=variables))


def test_a_build_without_ptx() -> None:
    found = hit(judge("1"))
    assert "the machine code in PyTorch 2.6.0+cu124 (CUDA 12.4)" in found.headline
    assert "no PTX that the driver could compile for GPU 0" in found.headline
    assert found.fixes[0].commands == ("unset CUDA_FORCE_PTX_JIT",)


def test_ptx_for_a_newer_gpu_serves_none_that_is_older() -> None:
    found = hit(judge("1", torch_of("2.9.1+cu128", "12.8", arch_list=["sm_89", "compute_120"])))
    assert "no PTX that the driver could compile for GPU 0" in found.headline


def test_other_values_and_builds_are_fine() -> None:
    for value in (None, "0", ""):
        fine(judge(value))
    fine(judge("1", torch_of("2.6.0", "12.4", arch_list=[*CU124, "compute_80"])))
    not_applicable(judge("1", NO_TORCH))


def test_an_environment_that_nobody_has_seen_is_unknown() -> None:
    with pytest.raises(UnknownFactError):
        ask(SLUG, UBUNTU, VENV, TORCH, nvml(RTX_4090), Environment(problems={"*": "not asked"}))
