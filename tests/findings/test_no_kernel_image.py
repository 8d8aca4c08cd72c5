"""A self-test that CUDA refuses for want of code, on a GPU that the tables call fine."""

from typing import Any

from each import each
from rules_machines import A100, CU128, NO_VARIABLES, RTX_5090, UBUNTU, VENV, nvml, packages
from rules_machines import torch_of as torch
from rules_support import TABLES, snapshot
from selftest_facts import failed, ran, result

from gpucheck.engine import Diagnosis, diagnose
from gpucheck.facts.claims import Confidence
from gpucheck.facts.selftests import SelfTests

NEW, OLD = "gpu-too-new-for-torch", "gpu-too-old-for-torch"
BUILD = torch("2.8.0+cu128", "12.8", arch_list=CU128)


def refused(capability: str, test: str = "training-step", code: int = 209) -> SelfTests:
    seen = {"devices": [{"device": "cuda:0", "name": A100, "compute_capability": capability}]}
    first = result("import-torch", device="cpu", data=seen)
    detail = (
        "AcceleratorError: CUDA error: no kernel image is available for execution on the device"
    )
    bad = failed(test, "cuda-error", detail=detail, data={"cuda_code": code})
    return ran(first, result("device-placement"), bad)


def judged(tests: SelfTests, build: Any = BUILD, gpu: str = A100) -> Diagnosis:  # noqa: ANN401
    machine = (build, UBUNTU, VENV, packages(), NO_VARIABLES, nvml(gpu))
    return diagnose(snapshot(*machine, tests), TABLES)


def standing(found: Diagnosis) -> list[str]:
    return sorted(
        finding.slug for finding in found.standing if finding.slug in (NEW, OLD, "selftest-failed")
    )


def test_a_gpu_that_the_list_covers_leaves_both_possible() -> None:
    found = judged(refused("8.0"))
    assert standing(found) == [NEW, OLD]
    for finding in found.findings:
        if finding.slug in (NEW, OLD):
            assert finding.confidence is Confidence.POSSIBLE
            assert NEW in finding.headline
            assert OLD in finding.headline
            assert "selftests.results.2.detail" in [each.fact for each in finding.evidence]
            assert any("--tests training-step" in fix.commands[0] for fix in finding.fixes)


@each(("capability", "slug"), [("5.2", OLD), ("13.0", NEW)])
def test_the_capability_that_torch_sees_tells_which(capability: str, slug: str) -> None:
    found = judged(refused(capability))
    assert standing(found) == [slug]
    (finding,) = [each for each in found.findings if each.slug == slug]
    assert finding.confidence is Confidence.LIKELY
    assert capability in finding.headline


def test_a_build_of_which_no_code_is_known_leaves_both_possible() -> None:
    unread = torch("2.99.0+abc", "12.8")
    assert standing(judged(refused("8.0"), unread)) == [NEW, OLD]


def test_what_the_tables_explain_already_is_said_once() -> None:
    old_build = torch("2.6.0+cu124", "12.4", arch_list=["sm_80", "sm_90"])
    found = judged(refused("12.0"), old_build, RTX_5090)
    assert standing(found) == [NEW]
    assert "CUDA 12.8 or newer" in next(
        finding.headline for finding in found.standing if finding.slug == NEW
    )


@each(
    "tests",
    [
        refused("8.0", test="jit"),
        refused("8.0", test="onnx-export"),
        refused("8.0", code=700),
        ran(result("training-step")),
    ],
)
def test_another_error_or_a_compiled_extension_does_not(tests: SelfTests) -> None:
    assert not {NEW, OLD}.intersection(standing(judged(tests)))
