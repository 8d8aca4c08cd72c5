import time
from dataclasses import dataclass

import msgspec
import pytest
from each import each
from rules_machines import (
    NO_TORCH,
    PYTHON,
    UBUNTU,
    VENV,
    commands,
    fine,
    hit,
    not_applicable,
    torch_of,
)
from rules_support import ask

from gpucheck.derived.wheels import admits
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.torch import Distribution, Packages, TorchBuild
from gpucheck.findings.form import Judgement

SLUG = "package-pin-conflict"
TORCH = torch_of("2.6.0+cu124", "12.4")


@dataclass
class Package:
    """An installed package and what it requires."""

    name: str
    version: str
    requires: dict[str, str] | None = None
    installer: str = "pip"


def judge(*found: Package, torch: TorchBuild = TORCH) -> Judgement:
    distributions = [
        Distribution(
            project=package.name,
            version=package.version,
            requirements=package.requires,
            installer=package.installer,
        )
        for package in found
    ]
    return ask(SLUG, torch, Packages(distributions=distributions), VENV, UBUNTU)


def test_a_release_for_another_torch() -> None:
    answer = hit(judge(Package("xformers", "0.0.28.post3", {"torch": "==2.5.1"})))
    assert answer.headline == (
        "xformers 0.0.28.post3 requires torch==2.5.1, but torch 2.6.0+cu124 is installed"
    )
    assert answer.severity is None
    assert answer.confidence is Confidence.LIKELY
    assert answer.evidence == ("packages.distributions.0.requirements.torch", "torch.version")
    assert commands(answer) == (
        f"{PYTHON} -m pip install xformers==0.0.29.post3 torch==2.6.0+cu124",
    )
    assert answer.fixes[1].commands == (
        f"{PYTHON} -m pip install xformers==0.0.28.post3 torch==2.5.1",
    )
    assert answer.fixes[0].verify == f"{PYTHON} -m pip check"


def test_for_an_application_torch_is_replaced_first() -> None:
    answer = hit(judge(Package("vllm", "0.7.3", {"torch": "==2.5.1"})))
    assert commands(answer) == (f"{PYTHON} -m pip install vllm==0.7.3 torch==2.5.1",)


def test_where_no_release_is_known_pip_looks_for_one() -> None:
    answer = hit(judge(Package("gsplat", "1.0.0", {"torch": ">=2.8"})))
    assert "gpucheck knows no release of gsplat that accepts torch 2.6.0+cu124" in (
        answer.fixes[0].text
    )
    assert commands(answer) == (f"{PYTHON} -m pip install --upgrade gsplat torch==2.6.0+cu124",)


def test_a_patch_release_apart_is_only_possible() -> None:
    answer = hit(judge(Package("xformers", "0.0.31", {"torch": "==2.6.1"})))
    assert answer.confidence is Confidence.POSSIBLE


def test_what_torch_pins_is_not_replaced() -> None:
    torch = msgspec.structs.replace(TORCH, pins={"triton": "==3.2.0"})
    unsloth = Package("unsloth", "2025.3", {"triton": ">=3.3"})
    answer = hit(judge(unsloth, Package("triton", "3.2.0"), torch=torch))
    assert commands(answer) == (f"{PYTHON} -m pip install --upgrade unsloth torch==2.6.0+cu124",)


def test_torchvision_is_not_taken_from_its_torch() -> None:
    lmdeploy = Package("lmdeploy", "0.18.0", {"torchvision": "<=0.20"})
    answer = hit(judge(lmdeploy, Package("torchvision", "0.21.0")))
    assert commands(answer) == (f"{PYTHON} -m pip install --upgrade lmdeploy torch==2.6.0+cu124",)


def test_what_torch_does_not_pin_is_replaced_as_all_require_it() -> None:
    numba = Package("numba", "0.60", {"numpy": "<2.1,>=1.22"})
    cupy = Package("cupy-cuda12x", "14.2.0", {"numpy": ">=2.0"})
    answer = hit(judge(numba, cupy, Package("numpy", "2.3.1")))
    assert commands(answer) == (f"{PYTHON} -m pip install 'numpy<2.1,>=1.22,>=2.0'",)


def test_an_older_cudnn_than_jax_uses_may_be_replaced_although_torch_pins_it() -> None:
    torch = msgspec.structs.replace(TORCH, pins={"nvidia-cudnn-cu12": "==9.1.0.70"})
    jax = Package("jax-cuda12-plugin", "0.10.2", {"nvidia-cudnn-cu12": "<10.0,>=9.8"})
    answer = hit(judge(jax, Package("nvidia-cudnn-cu12", "9.1.0.70"), torch=torch))
    assert commands(answer) == (f"{PYTHON} -m pip install 'nvidia-cudnn-cu12<10.0,>=9.8'",)
    assert "pip then prints an ERROR, because torch pins another release" in answer.fixes[0].text
    assert answer.fixes[0].verify.startswith("gpucheck")


def test_a_newer_cuda_library_of_the_same_major_is_fine() -> None:
    pinned = Package("tensorrt-llm", "1.0", {"nvidia-cublas-cu12": "==12.4.5.8"})
    fine(judge(pinned, Package("nvidia-cublas-cu12", "12.9.1.4")))
    hit(judge(pinned, Package("nvidia-cublas-cu12", "12.1.3.1")))
    hit(judge(pinned, Package("nvidia-cublas-cu12", "13.0.0.1")))


def test_what_belongs_to_other_findings_or_to_conda_is_left_out() -> None:
    conda = Package("xformers", "0.0.28", {"torch": "==2.5.1"}, installer="conda")
    fine(judge(Package("torchvision", "0.20.1", {"torch": "==2.5.1"}), conda))
    not_applicable(judge(conda))
    not_applicable(judge(Package("torch", "2.6.0", {"triton": "==3.2.0"})))


def test_only_the_copy_that_an_import_takes_counts() -> None:
    first = Package("xformers", "0.0.29.post3", {"torch": "==2.6.0"})
    fine(judge(first, Package("xformers", "0.0.28", {"torch": "==2.5.1"})))


def test_the_pre_releases_of_nvidias_images_count_as_the_release() -> None:
    image = torch_of("2.6.0a0+ecf3bae40a.nv25.01", "12.8")
    fine(judge(Package("accelerate", "1.4.0", {"torch": ">=2.6.0"}), torch=image))
    hit(judge(Package("xformers", "0.0.28", {"torch": "==2.5.1"}), torch=image))


def test_without_torch_or_requirements_nothing_is_judged() -> None:
    not_applicable(judge(Package("vllm", "0.7.3", {"torch": "==2.5.1"}), torch=NO_TORCH))
    not_applicable(judge(Package("vllm", "0.7.3")))


def test_what_is_installed_may_be_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"packages\.distributions"):
        ask(SLUG, TORCH, Packages(), VENV, UBUNTU)


@each(
    ("specifier", "version", "answer"),
    [
        ("==2.6.0", "2.6.0+cu124", True),
        (">=2.4,<2.6", "2.6.0", False),
        ("~=2.5", "2.6.1", True),
        ("==2.6.*", "2.6.1", True),
        ("!=2.6.0", "2.6.0", False),
        ("==2.7.4.post1", "2.7.4.post1", True),
        (">=2.7.4.post1", "2.7.4", False),
        ("==2.6.0+cu118", "2.6.0+cu124", False),
        (">=2.16", "2.16.0.dev20261101+cu132", True),
        ("=!=;;", "2.6.0", None),
        (">=2", "unknown", None),
    ],
)
def test_versions(specifier: str, version: str, answer: bool | None) -> None:  # noqa: FBT001  # a parameter of the test
    assert admits(specifier, version) is answer


def test_packages_are_not_each_compared_with_all() -> None:
    many = [Package(f"p{n}", "1.0", {f"p{n + 1}": ">=1.0"}) for n in range(40_000)]
    began = time.process_time()
    fine(judge(*many))
    assert time.process_time() - began < 12


@each(
    ("specifier", "version"), [(f"<{'9' * 4999}", "1.0"), ("<2", "9" * 4999), ("==1.*,<2", "1.x")]
)
def test_a_number_that_python_does_not_convert_is_no_version(specifier: str, version: str) -> None:
    assert admits(specifier, version) is None
    owner = Package("xformers", "0.0.30", {"numpy": specifier})
    fine(judge(owner, Package("numpy", version)))
