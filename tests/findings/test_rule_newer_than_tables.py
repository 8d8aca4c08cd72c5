import pytest
from rules_machines import (
    A100,
    NO_TORCH,
    UBUNTU,
    fine,
    hit,
    nvml,
    nvml_of,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.driver import NvmlGpu

SLUG = "newer-than-tables"
TORCH = torch_of("2.6.0+cu124", "12.4")


def test_a_known_machine_is_fine() -> None:
    fine(ask(SLUG, TORCH, nvml(A100), UBUNTU))
    fine(ask(SLUG, NO_TORCH, nvml(A100, driver="528.33", cuda="12.0")))
    fine(ask(SLUG, NO_TORCH))


def test_a_windows_number_above_its_branch_is_known() -> None:
    fine(ask(SLUG, NO_TORCH, nvml(A100, driver="617.12", cuda="13.4")))


def test_a_new_driver_and_its_cuda() -> None:
    answer = hit(ask(SLUG, TORCH, nvml(A100, driver="700.10.05", cuda="14.1")))
    assert "driver 700.10.05" in answer.headline
    assert "CUDA 14.1" in answer.headline
    assert answer.evidence == ("nvml.driver_release", "nvml.cuda")


def test_a_new_gpu() -> None:
    gpus = nvml_of([NvmlGpu(index=0, device_name="NVIDIA R900", compute_capability="15.0")])
    answer = hit(ask(SLUG, TORCH, gpus))
    assert "NVIDIA R900" in answer.headline
    assert "nvml.gpus.0.compute_capability" in answer.evidence


def test_a_geforce_whose_name_is_of_a_later_generation() -> None:
    gpus = nvml_of([NvmlGpu(index=0, device_name="NVIDIA GeForce RTX 6090")])
    answer = hit(ask(SLUG, TORCH, gpus))
    assert "RTX 6090" in answer.headline
    assert "gpucheck tables update" in answer.fixes[0].text
    older = nvml_of([NvmlGpu(index=0, device_name="NVIDIA GeForce RTX 3095")])
    fine(ask(SLUG, TORCH, older))


def test_a_new_torch() -> None:
    answer = hit(ask(SLUG, torch_of("3.0.0+cu150", "15.0"), UBUNTU))
    assert "torch 3.0.0+cu150" in answer.headline
    assert "CUDA 15.0 of torch" in answer.headline


def test_a_nightly_is_called_a_development_build() -> None:
    nightly = torch_of("3.0.0.dev20261120+cu132", "13.2")
    assert "development build" in hit(ask(SLUG, nightly)).headline


def test_an_old_development_build_is_not_new() -> None:
    fine(ask(SLUG, torch_of("2.6.0a0+ecf3bae40a.nv25.01", "12.8")))


def test_nothing_known_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.installed"):
        ask(SLUG)
