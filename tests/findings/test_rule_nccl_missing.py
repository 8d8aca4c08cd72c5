import pytest
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
    torch_of,
)
from rules_support import ask
from wheel_facts import NCCL_PATH, loads, lost, nccl, torch_291, unreadable, wheels

from gpucheck.facts import UnknownFactError
from gpucheck.facts.libraries import Loading
from gpucheck.facts.system import System
from gpucheck.facts.torch import NvidiaWheels, TorchBuild
from gpucheck.findings.form import Judgement

SLUG = "nccl-missing"


def judge(
    loading: Loading,
    found: NvidiaWheels | None = None,
    torch: TorchBuild | None = None,
    system: System = UBUNTU,
    gpus: int = 1,
) -> Judgement:
    machine = (system, VENV, NO_VARIABLES, nvml(*[A100] * gpus))
    return ask(SLUG, torch or torch_291(), loading, found or wheels(), *machine)


def test_the_wheel_was_removed() -> None:
    answer = hit(judge(loads(missing=[lost("libnccl.so.2")]), wheels({"nvidia-nccl-cu12": ""})))
    assert answer.headline.endswith(
        "which the loader does not find: nvidia-nccl-cu12 is not installed"
    )
    assert answer.evidence == ("loading.missing.0", "nvidia_wheels.pins.2")
    assert commands(answer) == (
        f"{PYTHON} -m pip install --force-reinstall --no-deps nvidia-nccl-cu12==2.27.5",
    )


def test_a_torch_without_pins_gets_no_command() -> None:
    torch = torch_291(pins={})
    answer = hit(judge(loads(missing=[lost("libnccl.so.2")]), NvidiaWheels(pins=[]), torch))
    assert answer.fixes[0].commands == ()


def test_what_only_permissions_hide_is_not_installed_again() -> None:
    answer = hit(judge(loads(missing=[unreadable("libnccl.so.2", NCCL_PATH)])))
    assert "keep this user from reading it" in answer.headline
    assert commands(answer) == (f"chmod -R a+rX {NCCL_PATH.rpartition('/')[0]}",)


def test_any_copy_that_the_loader_finds_is_fine() -> None:
    copy = nccl(path="/usr/lib/x86_64-linux-gnu/libnccl.so.2")
    fine(judge(loads(copy), wheels({"nvidia-nccl-cu12": ""})))
    fine(judge(loads(nccl(), missing=[lost("libnccl-net.so", fatal=False)])))


def test_a_build_that_has_it_inside() -> None:
    not_applicable(judge(loads()))


def test_a_build_without_nccl_matters_to_several_gpus() -> None:
    torch = torch_291(nccl="")
    fine(judge(loads(), torch=torch))
    hit(judge(loads(), torch=torch, gpus=2))


def test_windows_and_cpu_builds_never_have_it() -> None:
    not_applicable(judge(loads(), torch=torch_291(nccl=""), system=WINDOWS, gpus=2))
    not_applicable(judge(loads(), torch=torch_of("2.6.0+cpu"), gpus=2))
    not_applicable(judge(loads(), torch=NO_TORCH))


def test_unknown_where_the_loader_was_not_followed() -> None:
    with pytest.raises(UnknownFactError, match=r"loading\.missing"):
        judge(Loading(problems={"*": "musl"}))
