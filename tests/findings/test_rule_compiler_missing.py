from msgspec.structs import replace
from rule_facts import (
    A100,
    CUDA_TORCH,
    EMPTY_BUS,
    HOST,
    LINUX,
    MAC,
    NO_VARIABLES,
    WINDOWS,
    commands,
    hit,
    on_bus,
    quiet,
)
from rules_support import ask
from selftest_facts import failed, ran

from gpucheck.facts import Section
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.libraries import Compiler, Toolkits
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import Distribution, Interpreter, Packages
from gpucheck.findings.form import Judgement

BUILD = Request(purpose="build")
PYTHON = Interpreter(status="ok", version="3.11.7", base_prefix="/usr")
NONE = Toolkits(toolkits=[], compilers=[], python_headers=True)
VLLM = Packages(distributions=[Distribution(project="vllm", version="0.11.0")], conda_packages=[])


def with_compilers(*commands_: str, headers: bool | None = True) -> Toolkits:
    found = [
        Compiler(command=command, path=f"/usr/bin/{command}", version="13.2.0")
        for command in commands_
    ]
    return Toolkits(toolkits=[], compilers=found, python_headers=headers)


def judge(*more: Section) -> Judgement:
    usual = {
        section.name: section
        for section in (LINUX, HOST, NO_VARIABLES, CUDA_TORCH, PYTHON, on_bus(A100))
    }
    sections = {**usual, **{section.name: section for section in more}}
    return ask("compiler-missing", *sections.values())


def test_building_without_a_compiler() -> None:
    found = hit(judge(BUILD, NONE))
    assert "there is no C compiler on PATH" in found.headline
    assert commands(found) == "sudo apt-get update\nsudo apt-get install -y gcc g++"
    assert found.severity is Severity.ERROR


def test_it_is_verified_by_the_same_question() -> None:
    asked = hit(judge(BUILD, with_compilers("gcc", "g++", headers=False)))
    assert [fix.verify for fix in asked.fixes] == ["gpucheck --for build"]
    assert [fix.verify for fix in hit(judge(VLLM, NONE)).fixes] == ["gpucheck"]


def test_building_with_a_c_compiler_alone() -> None:
    found = hit(judge(BUILD, with_compilers("gcc", "cc")))
    assert "no C++ compiler" in found.headline


def test_building_without_the_headers_of_python() -> None:
    found = hit(judge(BUILD, with_compilers("gcc", "g++", headers=False)))
    assert "Python.h of Python 3.11.7 is missing" in found.headline
    assert commands(found) == "sudo apt-get update\nsudo apt-get install -y python3.11-dev"
    moved = hit(
        judge(BUILD, with_compilers("gcc", "g++", headers=False), replace(PYTHON, base_prefix="/p"))
    )
    assert commands(moved) == ""


def test_a_package_that_goes_through_triton() -> None:
    found = hit(judge(VLLM, NONE))
    assert "vllm runs kernels of Triton" in found.headline
    assert found.severity is Severity.WARNING
    assert found.confidence is Confidence.LIKELY
    quiet(judge(VLLM, with_compilers("gcc")))
    quiet(judge(VLLM, NONE, EMPTY_BUS))
    quiet(judge(VLLM, NONE, replace(CUDA_TORCH, built_for="cpu")))


def test_a_package_that_compiles_without_triton() -> None:
    found = Distribution(project="deepspeed", version="0.17.0")
    packages = Packages(distributions=[found], conda_packages=[])
    assert "deepspeed compiles C++ code when it is used" in hit(judge(packages, NONE)).headline


def test_what_is_there_is_fine() -> None:
    quiet(judge(BUILD, with_compilers("gcc", "g++")))
    quiet(judge(BUILD, with_compilers("clang", "clang++", headers=None)))
    quiet(judge(BUILD, NONE, Environment(variables={"CC": "/opt/bin/gcc"})))


def test_a_described_gcc_stands_for_both_languages() -> None:
    described = Toolkits(toolkits=[], compilers=[Compiler(command="gcc", version="13.2")])
    quiet(judge(BUILD, described))


def test_nothing_is_compiled_here() -> None:
    quiet(judge(NONE))
    quiet(judge(BUILD, NONE, WINDOWS))


def test_a_mac_is_told_of_apples_tools() -> None:
    assert commands(hit(judge(BUILD, NONE, MAC))) == "xcode-select --install"


def test_what_the_self_test_lacked() -> None:
    """It counts though nothing says that something is to be compiled, and a compiler is there."""
    lacked = ran(failed("jit", "compiler-missing", data={"wanted": "a C compiler"}))
    found = hit(judge(with_compilers("gcc", "g++"), lacked))
    assert found.headline == (
        "The self-test jit could not compile on cuda:0: a C compiler is missing"
    )
    assert commands(found) == "sudo apt-get update\nsudo apt-get install -y gcc g++"
    assert found.fixes[0].verify == "gpucheck selftest --tests jit --device cuda:0"
    assert found.severity is None, "the rule's own: an error"


def test_the_headers_that_the_self_test_lacked() -> None:
    lacked = ran(failed("jit", "compiler-missing", data={"wanted": "Python.h"}))
    assert (
        commands(hit(judge(NONE, lacked)))
        == "sudo apt-get update\nsudo apt-get install -y python3.11-dev"
    )


def test_windows_is_told_of_visual_studio() -> None:
    lacked = ran(failed("jit", "compiler-missing", data={"wanted": "a C compiler"}))
    found = hit(judge(NONE, lacked, WINDOWS))
    assert "Visual Studio" in found.fixes[0].text
    assert commands(found) == ""


def named(variables: dict[str, str], *in_vain: str) -> Judgement:
    toolkits = replace(with_compilers("gcc", "g++"), named_in_vain=list(in_vain))
    return judge(BUILD, Environment(variables=variables), toolkits)


def test_a_variable_that_names_no_compiler() -> None:
    found = hit(named({"CC": "gcc-4.4", "CXX": "/no/g++"}, "CC", "CXX"))
    assert "CC=gcc-4.4 and CXX=/no/g++: there is no such program" in found.headline
    assert found.fixes[0].commands == ("unset CC", "unset CXX")
    assert found.severity is Severity.ERROR


def test_a_variable_that_names_a_compiler() -> None:
    quiet(named({"CC": "gcc"}))


def test_building_without_setuptools() -> None:
    python = replace(PYTHON, executable="/v/bin/python", has_pip=True, externally_managed=False)
    found = hit(judge(BUILD, python, replace(with_compilers("gcc", "g++"), setuptools=False)))
    assert found.fixes[0].commands == ("/v/bin/python -m pip install setuptools",)
    assert found.fixes[0].verify == "gpucheck --python /v/bin/python --for build"
    assert found.severity is Severity.WARNING


def test_building_where_setuptools_is_or_is_not_known() -> None:
    for there in (True, None):
        quiet(judge(BUILD, replace(with_compilers("gcc", "g++"), setuptools=there)))
