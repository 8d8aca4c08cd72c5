import pytest
from rules_machines import (
    A100,
    DOCKER,
    NO_CONTAINER,
    RTX_4090,
    UBUNTU,
    WINDOWS,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
    nvml_of,
)
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.driver import NvmlGpu

SLUG = "gpu-memory-pending-repair"
GOOD = NvmlGpu(index=0, device_name=A100, rows_pending=False, pages_pending=None)
BAD = NvmlGpu(index=1, device_name=A100, rows_pending=True)


def test_a_pending_row_remap_is_told() -> None:
    answer = hit(ask(SLUG, nvml_of([GOOD, BAD]), UBUNTU, NO_CONTAINER))
    assert answer.headline.startswith("Row remapping is pending on GPU 1:")
    assert answer.evidence == ("nvml.gpus.1.rows_pending",)
    assert commands(answer) == ("sudo nvidia-smi --gpu-reset -i 1",)
    assert commands(answer, 1) == ("sudo reboot",)


def test_a_pending_page_retirement_is_told() -> None:
    v100 = NvmlGpu(index=0, pages_pending=True)
    answer = hit(ask(SLUG, nvml_of([v100]), WINDOWS, NO_CONTAINER))
    assert answer.evidence == ("nvml.gpus.0.pages_pending",)
    assert commands(answer) == ("nvidia-smi --gpu-reset -i 0",)


def test_a_container_leaves_it_to_the_host() -> None:
    answer = hit(ask(SLUG, nvml_of([BAD]), UBUNTU, DOCKER))
    assert all(fix.commands == () for fix in answer.fixes)


def test_nothing_pending_is_fine() -> None:
    fine(ask(SLUG, nvml_of([GOOD])))


def test_a_card_without_such_repairs_is_fine() -> None:
    problems = dict.fromkeys(("rows_pending", "pages_pending"), "NVML: Not Supported")
    fine(ask(SLUG, nvml(RTX_4090, problems=problems)))


def test_unknown_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match="GPU is lost"):
        ask(SLUG, nvml(A100, problems={"*": "GPU is lost"}))
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        ask(SLUG)


def test_no_gpu() -> None:
    not_applicable(ask(SLUG, nvml_of([])))
