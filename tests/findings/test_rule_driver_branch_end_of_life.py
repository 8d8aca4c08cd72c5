import msgspec
import pytest
from each import each
from rules_machines import (
    A100,
    GTX_1080,
    NO_CONTAINER,
    ORIN,
    UBUNTU,
    fine,
    hit,
    not_applicable,
    nvml,
)
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.system import Pci
from gpucheck.findings.form import Judgement

SLUG = "driver-branch-end-of-life"


def judge(driver: str, gpu: str = A100) -> Judgement:
    return ask(SLUG, nvml(gpu, driver=driver, cuda="12.2"), UBUNTU, NO_CONTAINER)


def test_a_branch_past_its_month_is_told() -> None:
    answer = hit(judge("535.288.01"))
    assert "2026-06" in answer.headline
    assert answer.evidence == ("nvml.driver_release",)
    assert answer.fixes[0].commands


def test_the_newer_branch_still_serves_an_old_gpu() -> None:
    commands = " ".join(hit(judge("535.288.01", GTX_1080)).fixes[0].commands)
    assert "nvidia-driver-580" in commands


def test_nixos_has_its_driver_from_its_configuration() -> None:
    nixos = msgspec.structs.replace(UBUNTU, distribution="nixos")
    for gpu, modules in ((A100, "true"), (GTX_1080, "false")):
        old = nvml(gpu, driver="535.288.01", cuda="12.2")
        (fix,) = hit(ask(SLUG, old, nixos, NO_CONTAINER)).fixes
        assert "set hardware.nvidia.package" in fix.text
        assert f"hardware.nvidia.open = {modules}" in fix.text
        assert "https://" not in fix.text, "NVIDIA's installer does not work there"


def test_a_branch_that_nvidia_said_is_over_has_ended_whenever_that_was() -> None:
    answer = hit(judge("565.57.01"))
    assert "stopped supporting by 2025-08" in answer.headline


def test_after_a_new_feature_branch_comes_the_newest_production_branch() -> None:
    answer = hit(judge("590.48.01"))
    assert "stopped supporting by 2026-09" in answer.headline
    assert "595" in " ".join(answer.fixes[0].commands)


def test_a_supported_branch_is_fine() -> None:
    fine(judge("580.95.05"))
    fine(judge("620.70.06"))


@each("driver", ["610.57.04", "615.71.09", "999.10"])
def test_a_branch_without_a_known_end_is_unknown(driver: str) -> None:
    with pytest.raises(UnknownFactError, match=r"nvml\.driver_release"):
        judge(driver)


def test_what_it_has_nothing_to_say_about() -> None:
    not_applicable(ask(SLUG, ORIN, nvml("Orin")))
    not_applicable(ask(SLUG, UBUNTU, Pci(gpus=[], jetson_gpu="")))
    with pytest.raises(UnknownFactError):
        ask(SLUG, UBUNTU)
