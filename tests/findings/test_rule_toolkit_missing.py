import pytest
from each import each
from rule_facts import (
    CPU_TORCH,
    CUDA_TORCH,
    HOST,
    LINUX,
    NO_TORCH,
    NO_VARIABLES,
    hit,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.libraries import Toolkit, Toolkits
from gpucheck.facts.request import Request
from gpucheck.facts.torch import Interpreter
from gpucheck.findings.form import Judgement

BUILD = Request(purpose="build")
NONE = Toolkits(toolkits=[], selected="")


def judge(*sections: Section) -> Judgement:
    return ask("toolkit-missing", LINUX, HOST, NO_VARIABLES, *sections)


def test_building_without_a_toolkit_is_an_error() -> None:
    found = hit(judge(BUILD, NONE, CUDA_TORCH))
    assert f"CUDA {CUDA_TORCH.cuda}" in found.fixes[-1].text
    assert found.fixes[-1].verify == "gpucheck --for build"


def test_a_toolkit_that_is_not_selected_is_pointed_at() -> None:
    there = Toolkit(path="/opt/cuda-12.4", version="12.4", has_nvcc=True)
    headers = Toolkit(path="/opt/half", version="12.4", has_nvcc=False)
    found = hit(judge(BUILD, Toolkits(toolkits=[headers, there], selected=""), CUDA_TORCH))
    point, install = found.fixes
    assert point.commands == ("export CUDA_HOME=/opt/cuda-12.4",)
    assert "but not the driver" in install.text
    assert "cuda-toolkit-12-4" in install.text
    assert install.commands == ("export CUDA_HOME=/usr/local/cuda-12.4",)


def test_conda_is_told_of_its_package() -> None:
    found = hit(judge(BUILD, NONE, CUDA_TORCH, Interpreter(status="ok", kind="conda")))
    assert "channel nvidia" in found.fixes[-1].text


@each(
    "sections",
    [
        (NONE, CUDA_TORCH),
        (BUILD, NONE, CPU_TORCH),
        (BUILD, NONE, NO_TORCH),
        (BUILD, Toolkits(toolkits=[], selected="/usr/local/cuda"), CUDA_TORCH),
    ],
)
def test_nothing_to_compile_or_a_toolkit_is_fine(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_toolkits_that_could_not_be_read_are_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"toolkits\.selected"):
        judge(BUILD, CUDA_TORCH)
