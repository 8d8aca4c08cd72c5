"""A self-test failed, and no cause for it was found.

gpucheck imports torch in your Python and runs computations on each GPU, in separate processes. A
test that raises an exception, crashes, or does not finish in time shows that programs will meet the
same problem, even if every version and every file looks right. This finding is reported only if
nothing else explains the failure.

Symptoms: the line of the finding shows the test, the device, the step at which it failed (the
stage) and the error. ``gpucheck selftest -v`` repeats the test with everything that was measured;
``--format json`` has the last frames of the Python stack, also for a test that was stopped while it
hung.

Four kinds of failure are reported here and not as wrong values, because repeating the test or
examining the GPU would not help:
- An operation that was requested on one device ran on another (wrong-device).
- Tensors on two devices were added without an error (devices-mixed).
- One PiB of memory was granted (out-of-memory-not-raised).
- Memory stayed in use after it was released (memory-not-returned).

They show that something modified torch at its start, or that another library installed an
allocator.

A test that was only cut short by the time limit of the whole run is a warning: set a larger
``--timeout``.

Fix: look up the error under "It usually means", if there is such a line; otherwise repeat that test
alone, and report it with the JSON.
"""

from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, repeated

RULE = Rule(
    __name__,
    title="a self-test went wrong, and no cause was found",
    severity=Severity.ERROR,
    family="runtime",
    suppressed_by=(
        "no-nvidia-gpu",
        "driver-missing",
        "kernel-module-not-loaded",
        "driver-library-mismatch",
        "driver-too-old",
        "driver-dropped-gpu",
        "device-nodes-missing",
        "device-permission",
        "fabric-manager-down",
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
        "forward-compat-unsupported",
        "libcuda-stub-loaded",
        "wsl-driver-problem",
        "container-no-gpu",
        "container-cuda-requirement",
        "visible-devices-hides-gpus",
        "mig-misconfigured",
        "compute-mode-exclusive",
        "torch-missing",
        "torch-rocm-or-other-build",
        "gpu-too-new-for-torch",
        "gpu-too-old-for-torch",
        "torch-mixed-install",
        "torch-import-broken",
        "numpy-abi-mismatch",
        "system-library-too-old",
        "cudnn-missing",
        "cudnn-version-mismatch",
        "cuda-library-conflict",
        "cuda-library-missing",
        "nvidia-wheel-mismatch",
        "out-of-memory",
        "gpu-memory-held",
        "host-out-of-memory",
        "compiler-missing",
        "toolkit-missing",
        "nccl-missing",
        "nccl-version-mismatch",
        "nccl-duplicate-gpu",
        "nccl-p2p-broken",
        "nccl-transport-broken",
        "nccl-network-interface",
        "nccl-infiniband",
        "nccl-timeout",
        "rank-missing",
        "rank-hangs",
        "rank-crashed",
        "shm-too-small",
        "rendezvous-failed",
        "thermal-or-power-throttle",
        "gpu-slow",
    ),
    preflight=InPreflight(exit_class=1),
)

_OTHERS = (
    "cudnn-status", "cudnn-not-used", "cublas-status", "out-of-memory",
    "wrong-value", "not-finite", "wrong-shape", "wrong-dtype", "not-deterministic",
    "loss-not-falling", "compiler-missing",
)  # fmt: skip
"""Kinds of failure that have a finding of their own."""
_CUT_SHORT = "run-limit"


@RULE.check
def check(tests: SelfTests, says: SelfTestSays) -> Judgement:
    """Look for a failed self-test that no other rule explains."""
    if tests.results is None:
        return NotApplicable(f"no self-test was run: {tests.problem('results')}")
    found = [one for one in tests.wrong() if not _has_its_own(one[1])]
    if not found:
        return says.fine()
    first = min((result for _path, result in found), key=lambda one: one.kind == _CUT_SHORT)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    cut_short = first.kind == _CUT_SHORT
    return Hit(
        headline=f"The self-test {first.name} {_how(first)} on {first.place}: {first.detail}{more}",
        evidence=tuple(f"{one}.detail" for one, _result in found[:6]),
        fixes=_fixes(first, says),
        severity=Severity.WARNING if cut_short else None,
        confidence=Confidence.POSSIBLE if cut_short else Confidence.CERTAIN,
    )


def _has_its_own(result: SelfTest) -> bool:
    return result.is_import or result.kind in _OTHERS


def _how(result: SelfTest) -> str:
    return {"timed-out": "did not end", "crashed": "crashed"}.get(result.status, "failed")


def _fixes(first: SelfTest, says: SelfTestSays) -> tuple[Fix, ...]:
    again = repeated(first)
    if first.kind == _CUT_SHORT:
        return (Fix(text="Give it more time.", commands=(f"{again} --timeout 900",), verify=again),)
    slugs, meaning = says.stands_for(first), says.meaning(first)
    usual = Fix(
        text=f"It usually means: {meaning or 'one of these findings'}. Look it up.",
        commands=tuple(f"gpucheck explain {slug}" for slug in slugs),
        verify=again,
    )
    report = Fix(
        text="Repeat it alone; if it stays, report it to PyTorch with what this prints.",
        commands=(f"{again} --format json",),
        verify=again,
    )
    return (usual, report) if slugs or meaning else (report,)
