"""cuDNN fails, or is not used, in a self-test on a GPU where nothing else explains it.

Symptoms: "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", CUDNN_STATUS_INTERNAL_ERROR or
CUDNN_STATUS_NOT_INITIALIZED at the first convolution, while a matrix product works. Or there is no
error at all, but convolutions run several times slower than they should, because PyTorch falls back
to its own kernels.

gpucheck itself runs convolutions through cuDNN, in your own Python, so a bug in a model is not the
cause. If gpucheck finds another cause, it reports that one instead: a GPU that this cuDNN has
dropped, a foreign or missing libcudnn, wheels of different versions, no memory left, or a broken
GPU.

Fix: reinstall the cuDNN that this PyTorch requires, or PyTorch together with its cuDNN: pip keeps
a cuDNN wheel whose version is right, whatever its files contain. If that changes nothing, try
the next older or newer build, and report the problem to PyTorch with the output of the self-test.
Until then ``torch.backends.cudnn.enabled = False`` avoids cuDNN, but convolutions become slower.
"""

from msgspec.structs import replace

from gpucheck.advice import Python, TorchFixes
from gpucheck.advice.cuda_libraries import WheelFixes
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Hit, InPreflight, Judgement, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, where
from gpucheck.language import Sentence, in_turn, say

RULE = Rule(
    __name__,
    title=say("cuDNN fails or is not used"),
    severity=Severity.ERROR,
    family="runtime",
    suppressed_by=(
        "ptx-jit-forced",
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
        "driver-too-old",
        "gpu-too-old-for-torch",
        "gpu-too-new-for-torch",
        "torch-mixed-install",
        "cudnn-missing",
        "cudnn-version-mismatch",
        "cuda-library-conflict",
        "cuda-library-missing",
        "nvidia-wheel-mismatch",
        "out-of-memory",
        "gpu-memory-held",
    ),
    preflight=InPreflight(exit_class=1, breaks_node=False),
    observes=True,
)

_FAILS, _NOT_USED = "cudnn-status", "cudnn-not-used"
_AGAIN = "gpucheck selftest --tests cudnn-convolution"
_PROJECT = "nvidia-cudnn"
_REPORT = say(
    "Repeat this test alone. If it fails again, report it to PyTorch with the output of this "
    "command."
)
_WITHOUT_CUDNN = (
    "import torch; torch.backends.cudnn.enabled = False; "
    "print(torch.nn.Conv2d(3, 8, 3).cuda({at})(torch.ones(1, 3, 9, 9).cuda({at})).shape)"
)
"""A convolution as a program runs it that avoids cuDNN: the self-test cannot, it tests cuDNN."""


@RULE.check
def check(  # what failed, and what installs another cuDNN
    tests: SelfTests,
    says: SelfTestSays,
    torch: TorchBuild,
    wheels: WheelFixes,
    reinstall: TorchFixes,
    python: Python,
) -> Judgement:
    """Look for a cuDNN error, or a convolution that did not use cuDNN."""
    if tests.results is None:
        return says.not_run()
    found = says.failed_with(_FAILS) or says.failed_with(_NOT_USED)
    if not found:
        return says.fine("cudnn-convolution")
    path, first = found[0]
    return Hit(
        headline=_headline(first, where(found), says.meaning(first)),
        evidence=(
            f"{path}.detail",
            *(f"{failed_path}.status" for failed_path, _result in found[1:4]),
        ),
        fixes=_fixes(_again(torch, wheels, reinstall), first, python),
        confidence=Confidence.LIKELY,
    )


def _headline(first: SelfTest, places: str, meaning: str) -> Sentence:
    if first.kind == _NOT_USED:
        return say(
            "PyTorch does not use cuDNN on {places}: {detail}", places=places, detail=first.detail
        )
    status = first.data.get("status") or first.detail
    if not meaning:
        return say("cuDNN fails on {places}: {status}", places=places, status=status)
    return say(
        "cuDNN fails on {places}: {status} ({meaning})",
        places=places,
        status=status,
        meaning=meaning,
    )


def _again(torch: TorchBuild, wheels: WheelFixes, reinstall: TorchFixes) -> Fix | None:
    """Return the fix that brings another cuDNN, or the same with new files.

    If the build stays the same, so does its cuDNN wheel: pip finds it installed and leaves it.
    """
    project, offer = wheels.pinned(_PROJECT), reinstall.offer()
    here = ((torch.version or "").partition("+")[0], torch.cuda)
    if project and offer is not None and (offer.torch, offer.cuda) == here:
        again = wheels.reinstall([project])
        damaged = say("The files that are here may be damaged.")
        return replace(again, text=in_turn((again.text, damaged)))
    return reinstall.install(say("it brings the cuDNN that it was built with"))


def _fixes(again: Fix | None, first: SelfTest, python: Python) -> tuple[Fix, ...]:
    renewed = () if again is None else (replace(again, verify=_AGAIN),)
    if first.kind == _NOT_USED:  # it is avoided already
        return renewed or (Fix(text=_REPORT, commands=(f"{_AGAIN} --format json",), verify=_AGAIN),)
    at = whole_number(first.device.partition(":")[2]) or 0
    avoid = Fix(
        text=say(
            "Until then, avoid cuDNN: set torch.backends.cudnn.enabled = False in the program. "
            "Convolutions become slower."
        ),
        verify=python.command("-c", _WITHOUT_CUDNN.format(at=at)),
    )
    return (*renewed, avoid)
