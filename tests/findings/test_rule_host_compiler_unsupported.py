import pytest
from each import each
from msgspec.structs import replace
from rule_facts import (
    CPU_TORCH,
    CUDA_TORCH,
    HOST,
    LINUX,
    NO_VARIABLES,
    WINDOWS,
    commands,
    hit,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.libraries import Compiler, Toolkits
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment, PackageManager
from gpucheck.findings.form import Judgement

BUILD = Request(purpose="build")
TORCH = replace(CUDA_TORCH, version="2.9.1+cu128", cuda="12.8")


def tools(cuda: str, *compilers: tuple[str, str]) -> Toolkits:
    return Toolkits(
        toolkits=[],
        selected=f"/usr/local/cuda-{cuda}" if cuda else "",
        selected_version=cuda,
        compilers=[
            Compiler(command=command, path=f"/usr/bin/{command}", version=version)
            for command, version in compilers
        ],
    )


def judge(here: Toolkits, torch: Section = TORCH, **more: Section) -> Judgement:
    sections = {"system": LINUX, "env": NO_VARIABLES, "request": BUILD, **more}
    return ask("host-compiler-unsupported", HOST, here, torch, *sections.values())


def test_a_gcc_newer_than_nvcc_takes() -> None:
    found = hit(judge(tools("12.8", ("gcc", "15.1.0"))))
    assert (
        "gcc 15.1.0 is too new for nvcc of CUDA 12.8, which supports gcc up to 14" in found.headline
    )
    assert "export CC=gcc-14" in commands(found)
    assert "sudo apt-get install -y gcc-14 g++-14" in commands(found)


@each(
    ("manager", "installs"),
    [("zypper", "sudo zypper install -y gcc14 gcc14-c++"), ("dnf", ""), ("pacman", "")],
)
def test_a_compiler_is_installed_by_its_name_in_the_distribution(
    manager: PackageManager, installs: str
) -> None:
    system = replace(LINUX, package_manager=manager)
    found = hit(judge(tools("12.8", ("gcc", "15.1.0")), system=system))
    first = found.fixes[0].commands[0]
    assert first == (installs or "export CC=gcc-14")


def test_a_gcc_that_nvcc_takes_and_torch_refuses() -> None:
    torch = replace(TORCH, version="2.11.0+cu128")
    found = hit(judge(tools("12.8", ("gcc", "14.2.0")), torch))
    assert "torch 2.11.0+cu128 for CUDA 12.8 refuses gcc 14" in found.headline
    assert "below 14" in found.headline
    assert "gcc-13" in commands(found)


def test_a_gcc_too_old_for_torch() -> None:
    torch = replace(TORCH, version="2.13.0+cu128")
    found = hit(judge(tools("12.8", ("gcc", "9.4.0")), torch))
    assert "too old for torch 2.13.0+cu128, which needs C++20: gcc 10 or newer" in found.headline
    cpu = replace(CPU_TORCH, version="2.13.0+cpu")
    hit(judge(tools("", ("gcc", "9.4.0")), cpu))


@each(
    ("torch", "refused", "taken"),
    [("2.9.1", "8.5.0", "9.1.0"), ("2.11.0", "8.5.0", "9.4.0"), ("2.12.1", "9.4.0", "10.2.1")],
)
def test_the_oldest_gcc_by_release_of_torch(torch: str, refused: str, taken: str) -> None:
    torch_build = replace(TORCH, version=f"{torch}+cu128")
    found = hit(judge(tools("12.8", ("gcc", refused)), torch_build))
    assert f"gcc {refused} is too old for torch {torch}+cu128" in found.headline
    assert f"gcc {taken.partition('.')[0]} or newer" in found.headline
    quiet(judge(tools("12.8", ("gcc", taken)), torch_build))


def test_an_old_torch_takes_an_old_gcc() -> None:
    quiet(judge(tools("11.8", ("gcc", "7.5.0")), replace(TORCH, version="2.1.2", cuda="11.8")))


@each(
    ("cuda", "version"), [("12.8", "13.3.0"), ("12.8", "9.4.0"), ("13.0", "15.1"), ("12.4", "12.2")]
)
def test_a_gcc_that_both_take(cuda: str, version: str) -> None:
    quiet(judge(tools(cuda, ("gcc", version))))


def test_a_clang_newer_than_nvcc_takes() -> None:
    hit(judge(tools("12.4", ("clang", "19.1.0"))))
    quiet(judge(tools("12.4", ("clang", "16.0.0"))))


def test_the_compiler_that_a_variable_names_counts() -> None:
    here = tools("12.8", ("gcc", "15.1.0"))
    quiet(judge(here, env=Environment(variables={"CC": "/usr/bin/gcc-13"})))
    hit(judge(tools("12.8", ("gcc", "13.1")), env=Environment(variables={"CC": "gcc-15"})))
    with pytest.raises(UnknownFactError, match="CC"):
        judge(here, env=Environment(variables={"CC": "/opt/cross/bin/mycc"}))


@each(
    "variables",
    [
        {"NVCC_PREPEND_FLAGS": "-allow-unsupported-compiler", "TORCH_DONT_CHECK_COMPILER_ABI": "1"},
        {"NVCC_APPEND_FLAGS": "-ccbin /usr/bin/gcc-12", "TORCH_DONT_CHECK_COMPILER_ABI": "ON"},
    ],
)
def test_bounds_that_were_lifted(variables: dict[str, str]) -> None:
    quiet(judge(tools("12.8", ("gcc", "15.1.0")), env=Environment(variables=variables)))


def test_visual_c() -> None:
    here = tools("12.4", ("cl", "1951"))
    found = hit(judge(here, system=WINDOWS))
    assert "_MSC_VER 1951" in found.headline
    quiet(judge(tools("12.4", ("cl", "1939")), system=WINDOWS))
    quiet(judge(tools("", ("cl", "1939")), system=WINDOWS))


def test_nothing_to_compile_and_no_compiler() -> None:
    quiet(judge(tools("12.8", ("gcc", "15.1.0")), request=Request()))
    quiet(judge(tools("12.8")))
    quiet(judge(tools("", ("gcc", "15.1.0")), CPU_TORCH))
