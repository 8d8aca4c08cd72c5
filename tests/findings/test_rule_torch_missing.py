import msgspec
import pytest
from each import each
from rules_machines import (
    GTX_1080,
    NO_TORCH,
    NO_VARIABLES,
    PYTHON,
    RTX_4090,
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
from gpucheck.facts.request import Request
from gpucheck.facts.system import Pci
from gpucheck.facts.torch import Interpreter, OtherInterpreter, TorchBuild, TorchInstall
from gpucheck.findings.form import Judgement

SLUG = "torch-missing"
NO_GPU = Pci(gpus=[], jetson_gpu="")


def missing(*more: Section, interpreter: Interpreter = VENV) -> Judgement:
    return ask(SLUG, NO_TORCH, interpreter, NO_VARIABLES, packages(), *more)


def test_an_installed_torch_is_not_missing() -> None:
    fine(ask(SLUG, torch_of("2.6.0+cu124", "12.4"), VENV))


def test_a_torch_described_without_an_interpreter_is_not_missing() -> None:
    fine(ask(SLUG, torch_of("2.6.0+cu124", "12.4")))


def test_it_names_the_python_that_was_asked() -> None:
    answer = hit(missing(UBUNTU, NO_GPU))
    assert PYTHON in answer.headline
    assert answer.evidence == ("torch.installed", "interpreter.executable")


@each("status", ["not-found", "timed-out", "signal", "too-old"])
def test_a_python_that_could_not_be_asked_is_unknown(status: str) -> None:
    target = msgspec.convert(
        {"status": status, "problems": {"executable": "no Python on PATH"}}, Interpreter
    )
    with pytest.raises(UnknownFactError, match="no Python on PATH") as unknown:
        ask(SLUG, target)
    assert unknown.value.fact == "interpreter.executable"


def test_without_any_target_it_is_unknown() -> None:
    nowhere = Interpreter(problems={"*": "no python3 on PATH"})
    with pytest.raises(UnknownFactError, match="no python3 on PATH"):
        ask(SLUG, nowhere)


def test_nothing_known_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.installed"):
        ask(SLUG)


def test_without_a_gpu_the_cpu_build_is_offered() -> None:
    (command,) = commands(missing(UBUNTU, NO_GPU))
    assert command.startswith(f"{PYTHON} -m pip install torch==")
    assert command.endswith(" --index-url https://download.pytorch.org/whl/cpu")


def test_a_host_that_only_submits_gets_the_cpu_build_in_spite_of_its_gpu() -> None:
    (command,) = commands(missing(UBUNTU, nvml(RTX_4090), Request(gpus=0)))
    assert command.endswith("/whl/cpu")


def test_on_windows_the_cpu_build_is_named_too() -> None:
    (command,) = commands(missing(WINDOWS, Request(gpus=0)))
    assert command.startswith(f"{PYTHON} -m pip install torch==")
    assert command.endswith("/whl/cpu")


def test_with_a_gpu_a_build_that_serves_it_is_offered() -> None:
    (command,) = commands(missing(UBUNTU, nvml(GTX_1080)))
    assert command.endswith("--index-url https://download.pytorch.org/whl/cu126")


def test_a_system_python_gets_a_virtual_environment() -> None:
    system_python = msgspec.structs.replace(
        VENV, executable="/usr/bin/python3", kind="system", externally_managed=True, prefix="/usr"
    )
    assert commands(missing(UBUNTU, NO_GPU, interpreter=system_python))[:3] == (
        "sudo apt-get update",
        "sudo apt-get install -y python3-venv",
        "/usr/bin/python3 -m venv ~/gpu-env",
    )


def test_another_python_that_has_torch_comes_first() -> None:
    other = OtherInterpreter(executable="/opt/conda/bin/python", torch="2.9.1+cu128")
    target = msgspec.structs.replace(VENV, others=[other])
    answer = hit(missing(UBUNTU, NO_GPU, interpreter=target))
    assert answer.fixes[0].commands == ("gpucheck --python /opt/conda/bin/python",)
    assert "2.9.1+cu128" in answer.fixes[0].text
    assert "pip install torch" in answer.fixes[1].commands[0]
    assert "interpreter.others" in answer.evidence


def test_another_python_whose_torch_has_no_version_is_named_too() -> None:
    other = OtherInterpreter(executable="/opt/conda/bin/python")
    target = msgspec.structs.replace(VENV, others=[other])
    assert "it has torch. " in hit(missing(UBUNTU, NO_GPU, interpreter=target)).fixes[0].text


def test_where_no_command_is_sure_a_page_is_named() -> None:
    alpine = msgspec.structs.replace(UBUNTU, libc="musl", glibc="", distribution="alpine")
    answer = hit(missing(alpine, NO_GPU))
    assert answer.fixes[0].commands == ()
    assert "https://pytorch.org/" in answer.fixes[0].text


def test_an_unknown_gpu_gets_no_guessed_command() -> None:
    assert commands(missing(UBUNTU, Pci(problems={"*": "no /sys"}))) == ()


def test_the_python_of_gpucheck_is_perhaps_not_the_one_that_is_meant() -> None:
    active = "the active virtual environment"
    own = msgspec.structs.replace(VENV, has_gpucheck=True, chosen_by=active)
    answer = hit(missing(UBUNTU, NO_GPU, interpreter=own))
    assert f"{PYTHON}, where gpucheck itself is installed" in answer.headline
    first, second = answer.fixes
    assert "name it: gpucheck --python PATH" in first.text
    assert second.commands
    named = msgspec.structs.replace(own, chosen_by="--python")
    answer = hit(missing(UBUNTU, NO_GPU, interpreter=named))
    assert "where gpucheck itself" not in answer.headline
    assert len(answer.fixes) == 1


def test_a_torch_that_a_file_hides_is_not_missing() -> None:
    own = TorchInstall(path="/home/ada/work/torch.py", kind="module")
    there = TorchInstall(path="/v/site-packages/torch/__init__.py", kind="package")
    hidden = TorchBuild(installed=False, installs=[own, there], leftovers=[])
    judged = ask(SLUG, hidden, VENV, NO_VARIABLES, packages(), UBUNTU, NO_GPU)
    assert not_applicable(judged).reason.endswith("/home/ada/work/torch.py hides it")
    alone = TorchBuild(installed=False, installs=[own], leftovers=[])
    hit(ask(SLUG, alone, VENV, NO_VARIABLES, packages(), UBUNTU, NO_GPU))
