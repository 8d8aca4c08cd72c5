import msgspec
import pytest
from each import each
from rules_machines import (
    A100,
    NO_CONTAINER,
    RTX_4090,
    UBUNTU,
    fine,
    hit,
    not_applicable,
    nvml,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.system import Container, Environment, Pci
from gpucheck.findings.form import Judgement

SLUG = "container-cuda-requirement"
BRANDS = ("unknown", "grid", "tesla", "nvidia", "quadro", "nvidiartx", "vapps")
IMAGE_12_9 = "cuda>=12.9 " + " ".join(
    f"brand={brand},driver>={branch},driver<{branch + 1}"
    for branch in (535, 550, 570)
    for brand in BRANDS
)
"""As NVIDIA's images of CUDA 12.9 have it, shortened."""
R525 = {"driver": "525.147.05", "cuda": "12.0"}
R535 = {"driver": "535.183.01", "cuda": "12.2"}
R575 = {"driver": "575.57.08", "cuda": "12.9"}


def image(requirement: str, *more: Section, variables: dict[str, str] | None = None) -> Judgement:
    container = Container(runtime="docker", requirements=requirement)
    return ask(SLUG, UBUNTU, container, Environment(variables=variables or {}), *more)


@each(
    ("requirement", "driver"),
    [
        ("cuda>=12.4", R575),
        ("cuda>=12.2", R535),
        ("cuda>=12.0", R535),
        (IMAGE_12_9, R575),
        ("cuda>=12.4 brand=tesla,driver>=470,driver<471 driver>=535,driver<536", R535),
        ("cuda>=9.0,cuda!=12.4", R535),
        ("cuda=12.2", R535),
        ("cuda<13", R535),
        ("cuda<=12.2,arch>=7.0", R535),
        ("nonsense cuda>=12.0", R535),
    ],
)
def test_a_requirement_that_is_met(requirement: str, driver: dict[str, str]) -> None:
    fine(image(requirement, nvml(A100, **driver)))


@each(
    ("requirement", "driver"),
    [
        ("cuda>=12.4", R535),
        (IMAGE_12_9, R525),
        ("cuda>=12.4 brand=tesla,driver>=470,driver<471", R535),
        ("cuda>=12.4,driver>=535", R535),
        ("arch>=9.0", R535),
        ("cuda>12.2", R535),
    ],
)
def test_a_requirement_that_is_not_met(requirement: str, driver: dict[str, str]) -> None:
    answer = hit(image(requirement, nvml(A100, **driver)))
    assert f"driver {driver['driver']} supports CUDA up to {driver['cuda']}" in answer.headline
    assert answer.evidence[0] == "container.requirements"


def test_the_fix_is_on_the_host_and_names_the_driver() -> None:
    answer = hit(image(IMAGE_12_9, nvml(A100, **R525)))
    assert "requires a driver for CUDA 12.9 or newer" in answer.headline
    assert "On the host" in answer.fixes[0].text
    assert "575" in answer.fixes[0].text
    assert "image" in answer.fixes[1].text


@each(
    "requirement",
    [
        "cuda>=12.4 nonsense",
        "cuda>=12.4 color=blue",
        "cuda>=banana",
        "cuda>=12.4 brand=tesla,driver>=535,driver<536",
        "cuda>=12.4 brand>tesla",
        "cuda>=12.4 " + "x" * 5000,
        "cuda>=99 " * 500,
        "cuda>=12.4 " + ",".join(["driver>=1"] * 40) + ",((((",
    ],
)
def test_what_cannot_be_judged_is_unknown(requirement: str) -> None:
    with pytest.raises(UnknownFactError, match=r"container\.requirements"):
        image(requirement, nvml(A100, **R535))


def test_a_brand_that_the_name_tells() -> None:
    alternative = "cuda>=12.9 brand=tesla,driver>=535,driver<536"
    hit(image(alternative, nvml(RTX_4090, **R535)))
    fine(image(alternative, nvml("Tesla P100-PCIE-16GB", **R535)))
    unknown_brand = "cuda>=12.9 brand=unknown,driver>=535,driver<536"
    with pytest.raises(UnknownFactError):
        image(unknown_brand, nvml(RTX_4090, **R535))


def test_an_unknown_driver_is_unknown() -> None:
    with pytest.raises(UnknownFactError):
        image("cuda>=12.4")


def test_disabled_or_without_requirement_or_container_nothing_is_said() -> None:
    old = nvml(A100, **R525)
    off = {"NVIDIA_DISABLE_REQUIRE": "true"}
    fine(image("cuda>=12.9", old, variables=off))
    hit(image("cuda>=12.9", old, variables={"NVIDIA_DISABLE_REQUIRE": "false"}))
    not_applicable(image("", old))
    bare = msgspec.structs.replace(NO_CONTAINER, requirements="cuda>=12.9")
    not_applicable(ask(SLUG, UBUNTU, bare, old))
    not_applicable(image("cuda>=12.9", Pci(gpus=[], jetson_gpu="")))


def test_nothing_known_is_unknown() -> None:
    with pytest.raises(UnknownFactError):
        ask(SLUG)


def test_a_container_that_has_started_is_judged_by_its_torch() -> None:
    started = CudaDriver(init_code=0, cuda="12.2", device_count=1)
    old = nvml(A100, **R535)
    fine(image("cuda>=12.9", old, started, torch_of("2.6.0+cu124", "12.4")))
    fine(image("cuda>=12.9", old, started))
    hit(image("cuda>=13.0", old, started, torch_of("2.9.1+cu130", "13.0")))
