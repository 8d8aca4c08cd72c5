import msgspec
import pytest
from each import each
from rule_facts import (
    CPU_TORCH,
    CUDA_TORCH,
    HOST,
    LINUX,
    NO_TORCH,
    NO_VARIABLES,
    commands,
    hit,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.libraries import Toolkit, Toolkits
from gpucheck.facts.request import Request
from gpucheck.findings.form import Judgement

TORCH = msgspec.structs.replace(CUDA_TORCH, cuda="12.8")
BUILD = Request(purpose="build")


def toolkit(version: str, *others: Toolkit) -> Toolkits:
    path = f"/usr/local/cuda-{version}"
    return Toolkits(
        toolkits=[Toolkit(path=path, version=version, has_nvcc=True), *others],
        selected=path,
        selected_version=version,
    )


def judge(*sections: Section) -> Judgement:
    return ask("toolkit-torch-mismatch", LINUX, HOST, NO_VARIABLES, *sections)


def test_another_major_release_is_information_where_nothing_is_compiled() -> None:
    found = hit(judge(TORCH, toolkit("13.0")))
    assert found.severity is None
    assert "matters only if" in found.headline


def test_it_is_an_error_where_something_is() -> None:
    found = hit(judge(TORCH, toolkit("13.0"), BUILD))
    assert found.severity is Severity.ERROR
    assert "CUDA 12.8" in found.fixes[0].text


def test_a_fitting_toolkit_beside_it_is_pointed_at() -> None:
    other = Toolkit(path="/opt/cuda-12.6", version="12.6", has_nvcc=True)
    found = hit(judge(TORCH, toolkit("13.0", other), BUILD))
    assert commands(found) == "export CUDA_HOME=/opt/cuda-12.6"


@each("version", ["12.8", "12.0", "12.9.1"])
def test_another_minor_release_is_fine(version: str) -> None:
    quiet(judge(TORCH, toolkit(version), BUILD))


def test_without_torch_a_cuda_build_or_a_toolkit_there_is_nothing_to_compare() -> None:
    for torch in (CPU_TORCH, NO_TORCH):
        quiet(judge(torch, toolkit("13.0")))
    quiet(judge(TORCH, Toolkits(toolkits=[], selected="")))


def test_a_toolkit_of_unknown_version_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match="selected_version"):
        judge(TORCH, Toolkits(toolkits=[], selected="/opt/cuda"))
