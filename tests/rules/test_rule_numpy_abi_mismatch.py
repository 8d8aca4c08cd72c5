import pytest
from rules_machines import (
    NO_TORCH,
    PYTHON,
    UBUNTU,
    VENV,
    WINDOWS,
    commands,
    fine,
    hit,
    not_applicable,
    packages,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.findings import Judgement
from gpucheck.probes.system import System

SLUG = "numpy-abi-mismatch"


def judge(torch: str, numpy: str, system: Section = UBUNTU) -> Judgement:
    return ask(SLUG, torch_of(torch, "12.1"), packages(numpy=numpy), VENV, system)


@pytest.mark.parametrize("torch", ["2.2.2+cu121", "2.1.0", "1.13.1+cu117"])
def test_an_old_torch_needs_numpy_1(torch: str) -> None:
    answer = hit(judge(torch, "2.1.3"))
    assert commands(answer) == (f"{PYTHON} -m pip install 'numpy<2'",)
    assert answer.evidence == ("torch.version", "packages.distributions.0.version")


@pytest.mark.parametrize(("torch", "numpy"), [("2.3.0", "2.1.3"), ("2.2.2", "1.26.4")])
def test_what_works_is_fine(torch: str, numpy: str) -> None:
    fine(judge(torch, numpy))


def test_windows_came_later_and_quotes_otherwise() -> None:
    assert commands(judge("2.3.1", "2.0.0", WINDOWS)) == (f'{PYTHON} -m pip install "numpy<2"',)
    fine(judge("2.4.1", "2.0.0", WINDOWS))


def test_a_build_no_table_has_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.version"):
        judge("2.2.0a0+81ea7a4", "2.0.0")


def test_unknown_facts_are_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"packages\.distributions"):
        ask(SLUG, torch_of("2.2.2", "12.1"))
    with pytest.raises(UnknownFactError, match=r"system\.os"):
        judge("2.2.2", "2.0.0", System())


def test_what_it_has_nothing_to_say_about() -> None:
    not_applicable(ask(SLUG, NO_TORCH))
    not_applicable(ask(SLUG, torch_of("2.2.2", "12.1"), packages()))
    not_applicable(judge("2.2.2", "2.0.0", System(os="macos")))
    conda = torch_of("2.2.2", "12.1", installer="conda")
    not_applicable(ask(SLUG, conda, packages(numpy="2.0.0"), UBUNTU))
