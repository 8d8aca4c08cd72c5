from each import each
from msgspec.structs import replace
from rule_facts import (
    CPU_TORCH,
    CUDA_TORCH,
    EMPTY_BUS,
    HOST,
    LINUX,
    NO_VARIABLES,
    commands,
    cuda_sees,
    hit,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section
from gpucheck.facts.claims import Severity
from gpucheck.facts.libraries import Toolkit, Toolkits
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import Distribution, Packages
from gpucheck.findings.form import Judgement

RTX4090 = ("NVIDIA GeForce RTX 4090", "8.9")
RTX3090 = ("NVIDIA GeForce RTX 3090", "8.6")
RTX5090 = ("NVIDIA GeForce RTX 5090", "12.0")
V100 = ("Tesla V100", "7.0")
BUILD = Request(purpose="build")
TORCH117 = replace(
    CUDA_TORCH, version="2.0.1+cu117", cuda="11.7", arch_list=["sm_70", "sm_80", "sm_86", "sm_90"]
)
TORCH118 = replace(TORCH117, version="2.0.1+cu118", cuda="11.8")


def toolkit(version: str, *others: Toolkit) -> Toolkits:
    path = f"/usr/local/cuda-{version}"
    here = Toolkit(path=path, version=version, has_nvcc=True)
    return Toolkits(toolkits=[here, *others], selected=path, selected_version=version)


def judge(gpu: tuple[str, str], tools: Toolkits, torch: Section, **more: Section) -> Judgement:
    sections = {"env": NO_VARIABLES, "request": BUILD, **more}
    return ask(
        "toolkit-gpu-unsupported", LINUX, HOST, tools, torch, on_bus(gpu), cuda_sees(gpu),
        *sections.values(),
    )  # fmt: skip


def test_an_nvcc_older_than_the_gpu() -> None:
    found = hit(judge(RTX4090, toolkit("11.7"), TORCH118))
    assert "cannot compile for compute capability 8.9 (Ada)" in found.headline
    assert "CUDA 11.8 was the first to support" in found.headline
    assert "CUDA 11.8, which this PyTorch was built with" in found.fixes[0].text
    assert "export TORCH_CUDA_ARCH_LIST=8.6" in commands(found)
    assert found.severity is Severity.ERROR


def test_a_toolkit_that_fits_is_pointed_at() -> None:
    there = Toolkit(path="/opt/cuda-11.8", version="11.8", has_nvcc=True)
    foreign = Toolkit(path="/opt/cuda-12.4", version="12.4", has_nvcc=True)
    found = hit(judge(RTX4090, toolkit("11.7", foreign, there), TORCH118))
    assert "export CUDA_HOME=/opt/cuda-11.8" in commands(found)
    assert "12.4" not in commands(found)


def test_an_nvcc_that_dropped_the_gpu() -> None:
    torch = replace(CUDA_TORCH, version="2.9.1+cu128", cuda="12.8", arch_list=["sm_70", "sm_120"])
    found = hit(judge(V100, toolkit("13.0"), torch))
    assert "CUDA 12.9 was the last to support" in found.headline


@each(("gpu", "version"), [(RTX3090, "11.7"), (RTX4090, "11.8")])
def test_an_nvcc_that_knows_the_gpu(gpu: tuple[str, str], version: str) -> None:
    quiet(judge(gpu, toolkit(version), TORCH118))


def test_torch_compiles_for_nothing_newer_than_its_own_code() -> None:
    torch = replace(CUDA_TORCH, version="2.5.1+cu124", cuda="12.4", arch_list=["sm_80", "sm_90"])
    quiet(judge(RTX5090, toolkit("12.4"), torch))


def test_the_list_of_the_user_decides() -> None:
    listed = {"TORCH_CUDA_ARCH_LIST": "8.0;8.6+PTX"}
    quiet(judge(RTX4090, toolkit("11.7"), TORCH118, env=Environment(variables=listed)))
    wrong = Environment(variables={"TORCH_CUDA_ARCH_LIST": "8.0 10.0a"})
    found = hit(judge(RTX4090, toolkit("12.4"), TORCH118, env=wrong))
    assert "compute capability 10.0a" in found.headline
    assert "environment.variables.TORCH_CUDA_ARCH_LIST" in found.evidence


def test_nothing_to_compile_or_to_compile_for() -> None:
    quiet(judge(RTX4090, toolkit("11.7"), TORCH118, request=Request()))
    quiet(judge(RTX4090, toolkit("11.7"), CPU_TORCH))
    quiet(judge(RTX4090, Toolkits(toolkits=[], selected="", selected_version=""), TORCH118))
    quiet(
        ask("toolkit-gpu-unsupported", LINUX, HOST, toolkit("11.7"), TORCH118, BUILD, EMPTY_BUS,
            NO_VARIABLES, cuda_sees())
    )  # fmt: skip


def test_a_package_that_compiles_when_it_is_used() -> None:
    found = [Distribution(project="deepspeed", version="0.17.0")]
    packages = Packages(distributions=found, conda_packages=[])
    answer = hit(judge(RTX4090, toolkit("11.7"), TORCH118, request=Request(), packages=packages))
    assert answer.severity is Severity.WARNING
    assert "deepspeed compiles CUDA code when it is used" in answer.headline
