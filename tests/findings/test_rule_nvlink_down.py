import pytest
from rules_machines import A100, H100, fine, hit, not_applicable, nvml_of
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.driver import NvmlGpu
from gpucheck.facts.system import Pci
from gpucheck.findings.form import Judgement

SLUG = "nvlink-down"


def gpu(index: int, up: int, of: int = 18, name: str = H100) -> NvmlGpu:
    return NvmlGpu(index=index, device_name=name, nvlinks=[at < up for at in range(of)])


def judge(*gpus: NvmlGpu, switches: int = 0) -> Judgement:
    return ask(SLUG, nvml_of(list(gpus)), Pci(nvswitches=switches))


def test_fewer_links_than_the_peers_are_told() -> None:
    answer = hit(judge(gpu(0, 18), gpu(1, 17), gpu(2, 18)))
    assert answer.headline.startswith("GPU 1 ")
    assert "17 of 18" in answer.headline
    assert answer.evidence == ("nvml.gpus.1.nvlinks", "nvml.gpus.0.nvlinks")


def test_no_link_at_all_is_a_loss_behind_switches_only() -> None:
    fine(judge(gpu(0, 12, 12, A100), gpu(1, 12, 12, A100), gpu(2, 0, 12, A100)))
    hit(judge(gpu(0, 18), gpu(1, 0), switches=4))


def test_without_a_majority_nobody_knows_who_has_lost_links() -> None:
    fine(judge(gpu(0, 18), gpu(1, 17)))
    fine(judge(gpu(0, 18), gpu(1, 18), gpu(2, 12), gpu(3, 12)))
    hit(judge(gpu(0, 18), gpu(1, 18), gpu(2, 12)))


def test_peers_that_agree_are_fine() -> None:
    fine(judge(gpu(0, 18), gpu(1, 18)))
    fine(judge(gpu(0, 0, 0), gpu(1, 0, 0)))
    fine(judge(gpu(0, 16), gpu(1, 16)))


def test_other_models_are_no_peers() -> None:
    not_applicable(judge(gpu(0, 18), gpu(1, 12, 12, A100)))
    not_applicable(judge(gpu(0, 17)))
    not_applicable(judge())


def test_unknown_links_are_unknown_but_in_mig_mode() -> None:
    silent = NvmlGpu(index=1, device_name=H100, problems={"nvlinks": "Unknown Error"})
    with pytest.raises(UnknownFactError, match="Unknown Error"):
        judge(gpu(0, 18), silent)
    fine(judge(gpu(0, 18), NvmlGpu(index=1, device_name=H100, mig_enabled=True)))
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        ask(SLUG)
