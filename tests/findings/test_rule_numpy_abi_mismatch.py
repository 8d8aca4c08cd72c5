import msgspec
import pytest
from each import each
from rules_machines import (
    A100,
    NO_TORCH,
    NO_VARIABLES,
    PYTHON,
    UBUNTU,
    VENV,
    WINDOWS,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
    packages,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.system import System
from gpucheck.findings.form import Judgement

SLUG = "numpy-abi-mismatch"


def judge(torch: str, numpy: str, system: Section = UBUNTU) -> Judgement:
    return ask(SLUG, torch_of(torch, "12.1"), packages(numpy=numpy), VENV, system)


@each("torch", ["2.2.2+cu121", "2.1.0", "1.13.1+cu117"])
def test_an_old_torch_needs_numpy_1(torch: str) -> None:
    answer = hit(judge(torch, "2.1.3"))
    assert commands(answer) == (f"{PYTHON} -m pip install 'numpy<2'",)
    assert answer.evidence == ("torch.version", "packages.distributions.0.version")


@each(("torch", "numpy"), [("2.3.0", "2.1.3"), ("2.2.2", "1.26.4")])
def test_what_works_is_fine(torch: str, numpy: str) -> None:
    fine(judge(torch, numpy))


def test_windows_came_later_and_quotes_otherwise() -> None:
    assert commands(judge("2.3.1", "2.0.0", WINDOWS)) == (f'{PYTHON} -m pip install "numpy<2"',)
    fine(judge("2.4.1", "2.0.0", WINDOWS))


def test_a_python_that_pip_may_not_change_gets_an_environment() -> None:
    debian = msgspec.structs.replace(
        VENV, executable="/usr/bin/python3", kind="system", externally_managed=True
    )
    found = packages(numpy="2.1.3", torchvision="0.16.0")
    answer = ask(SLUG, torch_of("2.1.0", "12.1"), found, debian, UBUNTU, nvml(A100), NO_VARIABLES)
    _update, _apt, make, install, numpy = commands(answer)
    assert make == "/usr/bin/python3 -m venv ~/gpu-env"
    assert install.startswith("~/gpu-env/bin/pip install torch==")
    assert " torchvision==" in install
    assert numpy.startswith("~/gpu-env/bin/pip install ")
    assert not any(command.startswith("/usr/bin/python3 -m pip") for command in commands(answer))


@each(
    ("python", "torch", "numpy"), [("3.11.2", "2.1.0", "'numpy<2'"), ("3.13.1", "2.15.0", "numpy")]
)
def test_the_numpy_of_an_environment_fits_its_torch(python: str, torch: str, numpy: str) -> None:
    """The old torch has no wheel for Python 3.13, nor has NumPy 1: both are new there."""
    debian = msgspec.structs.replace(VENV, version=python, kind="system", externally_managed=True)
    found = packages(numpy="2.1.3")
    answer = ask(SLUG, torch_of("2.1.0", "12.1"), found, debian, UBUNTU, nvml(A100), NO_VARIABLES)
    *_, install, last = commands(answer)
    assert f" torch=={torch} " in install
    assert last == f"~/gpu-env/bin/pip install {numpy}"


def test_where_no_build_is_known_recommend_is_asked() -> None:
    debian = msgspec.structs.replace(VENV, kind="system", externally_managed=True)
    answer = ask(SLUG, torch_of("2.1.0", "12.1"), packages(numpy="2.1.3"), debian, UBUNTU)
    assert commands(answer)[-1] == "gpucheck recommend --python ~/gpu-env/bin/python"


def test_a_build_no_table_has_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.version") as unknown:
        judge("2.2.0a0+81ea7a4", "2.0.0")
    assert unknown.value.reason == "whether torch 2.2.0a0+81ea7a4 works with NumPy 2 is not known"


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
