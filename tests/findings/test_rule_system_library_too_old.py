import msgspec
import pytest
from rules_machines import (
    GTX_1080,
    NO_TORCH,
    NO_VARIABLES,
    UBUNTU,
    VENV,
    WINDOWS,
    fine,
    hit,
    not_applicable,
    nvml,
    packages,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Judgement

SLUG = "system-library-too-old"
CENTOS_7 = msgspec.structs.replace(
    UBUNTU, distribution="centos", glibc="2.17", glibcxx="3.4.19", package_manager="yum"
)
OLD_PYTHON = msgspec.structs.replace(VENV, glibc="2.17")


def judge(
    torch: TorchBuild,
    system: Section = CENTOS_7,
    interpreter: Interpreter = OLD_PYTHON,
    *more: Section,
) -> Judgement:
    return ask(SLUG, torch, system, interpreter, NO_VARIABLES, packages(), *more)


def test_centos_7_is_too_old_for_torch_2_8() -> None:
    answer = hit(judge(torch_of("2.8.0+cu126", "12.6")))
    assert "2.17" in answer.headline
    assert "2.28" in answer.headline
    assert answer.evidence == ("interpreter.glibc", "torch.version")


def test_the_tag_of_the_wheel_decides() -> None:
    tag = "cp312-cp312-manylinux_2_28_x86_64"
    answer = hit(judge(torch_of("2.5.1", "12.4", wheel_tag=tag)))
    assert answer.evidence == ("interpreter.glibc", "torch.wheel_tag")
    fine(judge(torch_of("2.8.0", "12.8", wheel_tag="cp312-cp312-manylinux_2_17_x86_64")))


def test_a_build_with_its_own_needs() -> None:
    fine(judge(torch_of("2.6.0+cu124", "12.4", wheel_tag="cp312-cp312-linux_x86_64")))
    hit(judge(torch_of("2.6.0+cu126", "12.6", wheel_tag="cp312-cp312-linux_x86_64")))


def test_the_older_release_that_is_offered_fits_this_glibc() -> None:
    torch = torch_of("2.8.0+cu126", "12.6")
    answer = hit(judge(torch, CENTOS_7, OLD_PYTHON, nvml(GTX_1080)))
    assert "torch==2.6.0" in answer.fixes[1].commands[-1]
    assert "/cu124" in answer.fixes[1].commands[-1]  # cu126 of the same release needs glibc 2.28


def test_a_new_system_is_fine() -> None:
    fine(judge(torch_of("2.8.0+cu126", "12.6"), UBUNTU, VENV))


def test_the_interpreters_own_glibc_counts() -> None:
    fine(judge(torch_of("2.8.0+cu126", "12.6"), CENTOS_7, VENV))


def test_conda_and_the_distribution_are_not_judged() -> None:
    not_applicable(judge(torch_of("2.8.0", "12.6", installer="conda")))
    not_applicable(judge(torch_of("2.8.0", "12.6", installer="")))


def test_an_old_cxx_library() -> None:
    old = msgspec.structs.replace(UBUNTU, glibcxx="3.4.21")
    answer = hit(judge(torch_of("2.8.0+cu126", "12.6"), old, VENV))
    assert answer.confidence is Confidence.LIKELY
    assert answer.evidence == ("system.glibcxx", "torch.version")
    assert len(answer.fixes) == 1  # which older build it would run is in no table of builds


def test_a_cxx_library_from_elsewhere_is_not_judged() -> None:
    old = msgspec.structs.replace(UBUNTU, glibcxx="3.4.21")
    conda = msgspec.structs.replace(VENV, kind="conda")
    torch = torch_of("2.8.0+cu126", "12.6")
    fine(judge(torch, old, conda))
    path = Environment(variables={"LD_LIBRARY_PATH": "/opt/gcc/lib64"})
    fine(ask(SLUG, torch, old, VENV, path))


def test_musl_and_wheels_for_glibc() -> None:
    alpine = msgspec.structs.replace(UBUNTU, libc="musl", glibc="", distribution="alpine")
    wheel = torch_of("2.8.0", "12.8", wheel_tag="cp312-cp312-manylinux_2_28_x86_64")
    assert "musl" in hit(judge(wheel, alpine)).headline
    fine(judge(torch_of("2.8.0", wheel_tag="cp312-cp312-musllinux_1_2_x86_64"), alpine))
    for version in ("2.8.0", "2.8.0+cu128", "2.8.0+cpu"):
        assert "musl" in hit(judge(torch_of(version), alpine)).headline
    with pytest.raises(UnknownFactError, match=r"torch\.wheel_tag"):
        judge(torch_of("2.8.0a0+git12ab"), alpine)


def test_what_no_table_has_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.version"):
        judge(torch_of("2.8.0a0+git", "12.8"))
    arm = msgspec.structs.replace(CENTOS_7, machine="aarch64")
    with pytest.raises(UnknownFactError, match=r"torch\.wheel_tag"):
        judge(torch_of("2.8.0", "12.8"), arm)
    nameless = msgspec.structs.replace(VENV, glibc=None)
    with pytest.raises(UnknownFactError, match=r"system\.glibc"):
        judge(torch_of("2.8.0"), msgspec.structs.replace(UBUNTU, glibc=None), nameless)


def test_what_it_has_nothing_to_say_about() -> None:
    not_applicable(ask(SLUG, NO_TORCH))
    not_applicable(ask(SLUG, torch_of("2.8.0"), WINDOWS))
