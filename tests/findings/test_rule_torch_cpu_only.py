import pytest
from each import each
from rule_facts import (
    A100,
    CPU_TORCH,
    CUDA_TORCH,
    DOCKER,
    EMPTY_BUS,
    GT710,
    HOST,
    LINUX,
    NO_LIBCUDA,
    NO_TORCH,
    NO_VARIABLES,
    WINDOWS,
    commands,
    cuda_fails,
    cuda_sees,
    hit,
    nvml,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter
from gpucheck.findings.form import Judgement

PYTHON = Interpreter(status="ok", executable="/venv/bin/python", version="3.11.7", kind="venv")
SERVED = nvml(A100, release="550.54.14", cuda="12.4")


def judge(*sections: Section) -> Judgement:
    return ask("torch-cpu-only", *sections)


def test_a_cpu_build_beside_a_gpu() -> None:
    found = hit(judge(LINUX, HOST, PYTHON, SERVED, CPU_TORCH))
    assert "2.6.0+cpu" in found.headline
    assert "A100" in found.headline
    assert {"torch.built_for", "nvml.gpus"} <= set(found.evidence)
    assert "/venv/bin/python -m pip uninstall -y torch" in commands(found)
    assert "--index-url https://download.pytorch.org/whl/cu1" in commands(found)


def test_windows() -> None:
    hit(judge(WINDOWS, HOST, PYTHON, SERVED, CPU_TORCH))


def test_a_machine_without_wheels_gets_no_command() -> None:
    power = System(os="linux", wsl=0, jetson="", machine="ppc64le")
    found = hit(judge(power, HOST, PYTHON, SERVED, CPU_TORCH))
    assert commands(found) == ""
    assert found.fixes[0].text


@each(
    "sections",
    [
        (EMPTY_BUS, CPU_TORCH),
        (SERVED, CUDA_TORCH),
        (SERVED, NO_TORCH),
        (SERVED, CPU_TORCH, Request(gpus=0)),
    ],
)
def test_a_cpu_build_is_right_or_none(sections: tuple[Section, ...]) -> None:
    quiet(judge(LINUX, HOST, *sections))


def test_a_container_without_the_gpu_of_its_host() -> None:
    absent = Nvml(library_found=False)
    quiet(judge(LINUX, DOCKER, on_bus(A100), absent, NO_LIBCUDA, CPU_TORCH))


def test_a_gpu_for_which_no_build_has_code() -> None:
    quiet(judge(LINUX, HOST, PYTHON, nvml(GT710, release="470.256.02", cuda="11.4"), CPU_TORCH))


def test_a_mask_does_not_make_a_cpu_build_right() -> None:
    mask = Environment(variables={"CUDA_VISIBLE_DEVICES": ""})
    hit(judge(LINUX, HOST, PYTHON, SERVED, cuda_fails(100), mask, CPU_TORCH))
    hit(judge(LINUX, HOST, PYTHON, SERVED, cuda_sees(A100), NO_VARIABLES, CPU_TORCH))


def test_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.built_for"):
        judge(LINUX, HOST, SERVED)
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        judge(LINUX, HOST, CPU_TORCH)
