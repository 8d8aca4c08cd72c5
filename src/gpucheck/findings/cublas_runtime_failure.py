"""cuBLAS fails in a self-test on a GPU where nothing else explains it.

Symptoms: "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm(...)",
CUBLAS_STATUS_NOT_INITIALIZED or CUBLAS_STATUS_INVALID_VALUE at the first matrix product or linear
layer.

In programs these errors usually have another cause: an earlier kernel with an index out of range,
or no memory left. gpucheck multiplies small matrices in a fresh process, which rules out both. If
gpucheck finds another cause, it reports that one instead: an older libcublas or libcublasLt loaded
in place of the wheel's, wheels of different versions, a driver that is too old, or a broken GPU.

Fix: reinstall PyTorch together with the cuBLAS that it was built for, and remove the folders of
other CUDA versions from LD_LIBRARY_PATH.
"""

from gpucheck.advice import TorchFixes
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, where
from gpucheck.language import Sentence, say

RULE = Rule(
    __name__,
    title=say("cuBLAS fails"),
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
        "cuda-library-conflict",
        "cuda-library-missing",
        "nvidia-wheel-mismatch",
        "out-of-memory",
        "gpu-memory-held",
    ),
    preflight=InPreflight(exit_class=1, breaks_node=False),
    observes=True,
)

_AGAIN = "gpucheck selftest --tests cublas-matmul"


@RULE.check
def check(tests: SelfTests, says: SelfTestSays, reinstall: TorchFixes) -> Judgement:
    """Look for a cuBLAS error in any self-test."""
    if tests.results is None:
        return says.not_run()
    found = says.failed_with("cublas-status")
    if not found:
        return says.fine("cublas-matmul")
    path, first = found[0]
    again = reinstall.install(say("it brings the cuBLAS that it was built with"))
    report = Fix(
        text=say(
            "If the error stays, try the next older or newer build of PyTorch, and report it to "
            "PyTorch with the output of the self-test."
        ),
        commands=(f"{_AGAIN} --format markdown",),
        verify=_AGAIN,
    )
    fresh = () if again is None else (Fix(text=again.text, commands=again.commands, verify=_AGAIN),)
    return Hit(
        headline=_headline(
            where(found), first.data.get("status") or first.detail, says.meaning(first)
        ),
        evidence=(
            f"{path}.detail",
            *(f"{failed_path}.status" for failed_path, _result in found[1:4]),
        ),
        fixes=(*fresh, report),
        confidence=Confidence.LIKELY,
    )


def _headline(places: str, status: str, meaning: str) -> Sentence:
    if not meaning:
        return say("cuBLAS fails on {places}: {status}", places=places, status=status)
    return say(
        "cuBLAS fails on {places}: {status} ({meaning})",
        places=places,
        status=status,
        meaning=meaning,
    )
