import pytest
from each import each
from rules_machines import A100, fine, hit, not_applicable, nvml, nvml_of
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.driver import CLOCK_REASONS, NvmlGpu
from gpucheck.findings.gpu_speed import _TROUBLES

SLUG = "thermal-or-power-throttle"
TROUBLES = tuple(_TROUBLES)  # the words of the probe


def test_the_words_are_the_probes() -> None:
    assert set(TROUBLES) <= set(CLOCK_REASONS)


@each("reason", TROUBLES)
def test_each_trouble_is_told(reason: str) -> None:
    answer = hit(ask(SLUG, nvml(A100, throttle=["sw-power-cap", reason], temperature_c=93)))
    assert "93 °C" in answer.headline
    assert answer.evidence == ("nvml.gpus.0.throttle", "nvml.gpus.0.temperature_c")


@each("reason", sorted(set(CLOCK_REASONS) - set(TROUBLES)))
def test_normal_life_is_fine(reason: str) -> None:
    fine(ask(SLUG, nvml(A100, throttle=[reason])))


def test_the_kind_is_told_before_the_general_word() -> None:
    both = ["hw-slowdown", "hw-power-brake-slowdown"]
    answer = hit(ask(SLUG, nvml(A100, A100, throttle=both)))
    assert "power brake" in answer.headline
    assert "1 more" in answer.headline
    assert "power supply" in answer.fixes[0].text


def test_unknown_is_unknown_but_a_seen_trouble_counts() -> None:
    silent = NvmlGpu(index=0, problems={"throttle": "Not Supported"})
    with pytest.raises(UnknownFactError, match="Not Supported"):
        ask(SLUG, nvml_of([silent]))
    hot = NvmlGpu(index=1, throttle=["hw-thermal-slowdown"])
    hit(ask(SLUG, nvml_of([silent, hot])))
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        ask(SLUG)


def test_no_gpu() -> None:
    not_applicable(ask(SLUG, nvml_of([])))
