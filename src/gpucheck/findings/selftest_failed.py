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

The tests ``onnx-export`` and ``tensorrt`` run only if you name them. If ONNX Runtime could not load
the provider that the test asked for (provider-not-loaded), the line of the finding has the words of
the dynamic loader. ONNX Runtime itself would print a warning and compute on the CPU.

If what ``jit`` compiles cannot be loaded because /tmp is mounted with ``noexec`` (mounted-noexec),
torch.compile and every extension that is built at run time fail as well. TMPDIR leads them to
another folder.

A test that was only cut short by the time limit of the whole run is a warning: set a larger
``--timeout``.

Fix: if gpucheck says what the error usually means, look it up. Otherwise repeat that test alone,
and report it with the JSON.
"""

from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, OnGpu, Rule
from gpucheck.findings.witnesses.selftest_says import OTHER_RUNTIMES, SelfTestSays, repeated
from gpucheck.language import Sentence, and_more, say

RULE = Rule(
    __name__,
    title=say("a self-test failed, and no cause was found"),
    severity=Severity.ERROR,
    family="runtime",
    suppressed_by=(
        "ptx-jit-forced",
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
    on_gpu=OnGpu(
        "drain",
        say("a self-test fails on it that another GPU of its model passes"),
        is_by_peers=True,
    ),
)

_OTHERS = (
    "cudnn-status", "cudnn-not-used", "cublas-status", "out-of-memory",
    "wrong-value", "not-finite", "wrong-shape", "wrong-dtype", "not-deterministic",
    "loss-not-falling", "compiler-missing",
)  # fmt: skip
"""Kinds of failure that have a finding of their own."""
CUT_SHORT = "run-limit"
"""The kind of a self-test that the time limit of the whole run ended."""
_NOT_LOADED = "provider-not-loaded"
_NOEXEC = "mounted-noexec"
_ELSEWHERE = say(
    "Let programs keep what they compile in a folder from which code may be loaded, and add the "
    "last line to the file with which your shell starts; or mount the file system without noexec."
)
_MAKE_ELSEWHERE = ("mkdir -p ~/.cache/tmp", "export TMPDIR=~/.cache/tmp")
_REPORT = say(
    "Repeat this test alone. If it fails again, report it to PyTorch with the output of this "
    "command."
)
_REPORT_ELSEWHERE = say(
    "Repeat this test alone. If it fails again, report it to the project that the last frames of "
    "the traceback name."
)
_OTHER_BUILD = say(
    "Install the release of ONNX Runtime that is built for the CUDA and the cuDNN of this PyTorch: "
    "it needs the library that the error names."
)
_PRINTED = say(
    "Repeat this test alone: ONNX Runtime prints the reason to the standard error stream."
)


@RULE.check
def check(tests: SelfTests, says: SelfTestSays) -> Judgement:
    """Look for a failed self-test that no other rule explains."""
    if tests.results is None:
        return says.not_run()
    found = [
        numbered_result for numbered_result in tests.wrong() if not _has_its_own(numbered_result[1])
    ]
    if not found:
        return says.fine()
    first = min((result for _path, result in found), key=lambda result: result.kind == CUT_SHORT)
    cut_short = first.kind == CUT_SHORT
    return Hit(
        headline=and_more(_headline(first), len(found) - 1),
        evidence=tuple(f"{path}.detail" for path, _result in found[:6]),
        fixes=_fixes(first, says),
        severity=Severity.WARNING if cut_short else None,
        confidence=Confidence.POSSIBLE if cut_short else Confidence.CERTAIN,
        gpus=() if cut_short else RULE.names(says.unlike_peers(found)),
    )


def _has_its_own(result: SelfTest) -> bool:
    return result.is_import or result.kind in _OTHERS


def _headline(first: SelfTest) -> Sentence:
    of = {"name": first.name, "place": first.place, "detail": first.detail}
    if first.status == "timed-out":
        return say("The self-test {name} did not end on {place}: {detail}", **of)
    if first.status == "crashed":
        return say("The self-test {name} crashed on {place}: {detail}", **of)
    return say("The self-test {name} failed on {place}: {detail}", **of)


def _fixes(first: SelfTest, says: SelfTestSays) -> tuple[Fix, ...]:
    again = repeated(first)
    if first.kind == CUT_SHORT:
        return (
            Fix(
                text=say("Give the self-tests more time."),
                commands=(f"{again} --timeout 900",),
                verify=again,
            ),
        )
    if first.kind == _NOT_LOADED:
        return (_provider(first, again),)
    if first.kind == _NOEXEC:
        return (Fix(text=_ELSEWHERE, commands=_MAKE_ELSEWHERE, verify=again),)
    slugs, meaning = says.stands_for(first), says.meaning(first)
    usual = Fix(
        text=say("This error usually means: {meaning}. Look it up.", meaning=meaning)
        if meaning
        else say("This error usually comes from one of these causes. Look them up."),
        commands=tuple(f"gpucheck explain {slug}" for slug in slugs),
        verify=again,
    )
    report = Fix(
        text=_REPORT_ELSEWHERE if first.name in OTHER_RUNTIMES else _REPORT,
        commands=(f"{again} --format json",),
        verify=again,
    )
    return (usual, report) if slugs or meaning else (report,)


def _provider(first: SelfTest, again: str) -> Fix:
    """Return what helps if ONNX Runtime has not loaded the provider that was asked for."""
    if first.data.get("loader"):
        return Fix(text=_OTHER_BUILD, verify=again)
    return Fix(text=_PRINTED, commands=(f"{again} --format json",), verify=again)
