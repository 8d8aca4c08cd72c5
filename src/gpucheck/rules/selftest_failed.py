"""A self-test went wrong, and no cause for it was found.

gpucheck imports torch in your Python and has it compute on each GPU, in processes of its own. One
that raised an exception, crashed, or did not end in time shows that programs will meet the same,
even where every version and every file looks right. This finding stands only while nothing else
explains the failure.

What you see is in the line itself: the test, the device, the step at which it happened (the stage)
and the error. ``gpucheck selftest -v`` repeats it with everything that was measured; ``--format
json`` has the last frames of the Python stack, also of a test that was stopped while it hung.

Four kinds of failure are told here and not as wrong values, because repeating them or examining the
GPU leads nowhere: what was asked of one device ended on another (wrong-device), tensors of two
devices were added without a refusal (devices-mixed), one PiB of memory was granted
(out-of-memory-not-raised), or memory stayed taken after it was released (memory-not-returned). They
show a torch that something has changed at its start, or an allocator that another library put in.

A test that was only cut short by the time limit of the whole run is a warning: say a larger
``--timeout``.

Cure: look up the error under "It usually means", if such a line is there; else repeat that test
alone, and report it with the JSON.
"""

from gpucheck.findings import Confidence, Fix, Hit, Judgement, NotApplicable, Severity
from gpucheck.probes.selftests import SelfTest, SelfTests
from gpucheck.rules import InPreflight, Rule
from gpucheck.rules.witnesses.selftest_says import SelfTestSays, repeated

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
"""Kinds that have a finding of their own."""
_CUT_SHORT = "run-limit"


@RULE.check
def check(tests: SelfTests, says: SelfTestSays) -> Judgement:
    """Any result that went wrong in a way that no other rule is about."""
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
