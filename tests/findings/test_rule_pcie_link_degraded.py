import msgspec
import pytest
from each import each
from rules_machines import UBUNTU, fine, hit, not_applicable
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.system import Pci, PciGpu
from gpucheck.findings.form import Judgement

SLUG = "pcie-link-degraded"


def gpu(width: int | None, card: int | None, port: int | None) -> PciGpu:
    return PciGpu(
        address="0000:01:00.0",
        product="NVIDIA A100",
        link_width=width,
        link_width_max=card,
        port_width_max=port,
        link_speed=2.5,
        link_speed_max=16.0,
        problems={"port_width_max": "no such file"},
    )


def judge(*gpus: PciGpu) -> Judgement:
    return ask(SLUG, Pci(gpus=list(gpus)), UBUNTU)


def test_lost_lanes_are_told() -> None:
    answer = hit(judge(gpu(16, 16, 16), gpu(4, 16, 16)))
    assert "4 of 16" in answer.headline
    assert answer.evidence == tuple(
        f"pci.gpus.1.{field}" for field in ("link_width", "link_width_max", "port_width_max")
    )
    assert answer.confidence is Confidence.CERTAIN


@each("lanes", [(16, 16, 16), (8, 16, 8), (8, 8, 16)])
def test_what_card_and_slot_allow_is_fine(lanes: tuple[int, int, int]) -> None:
    fine(judge(gpu(*lanes)))


@each("lanes", [(8, 16, None), (None, 16, 16), (8, None, 16)])
def test_an_unknown_width_is_unknown(lanes: tuple[int | None, int | None, int | None]) -> None:
    with pytest.raises(UnknownFactError, match=r"pci\.gpus\.0\."):
        judge(gpu(*lanes))


def test_the_reason_is_the_probes() -> None:
    with pytest.raises(UnknownFactError, match="no such file"):
        judge(gpu(8, 16, None))


def test_in_a_virtual_machine_it_is_only_possible() -> None:
    vm = msgspec.structs.replace(UBUNTU, virtualization="kvm")
    answer = hit(ask(SLUG, Pci(gpus=[gpu(8, 16, 16)]), vm))
    assert answer.confidence is Confidence.POSSIBLE
    assert "host" in answer.fixes[0].text


def test_no_gpu_and_no_answer() -> None:
    not_applicable(judge())
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        ask(SLUG)
