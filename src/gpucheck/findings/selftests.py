"""Self-tests that failed: in cuBLAS, in cuDNN, or without a known cause."""

from msgspec.structs import replace

from gpucheck.advice import Python, TorchFixes
from gpucheck.advice.cuda_libraries import WheelFixes
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Hit, InPreflight, Judgement, OnGpu, Rule
from gpucheck.findings.witnesses.selftest_says import OTHER_RUNTIMES, SelfTestSays, repeated, where
from gpucheck.language import Sentence, and_more, in_turn, say

SELFTEST_FAILED = Rule(
    "selftest-failed",
    page="""\
A self-test failed, and no cause for it was found.

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
""",
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


@SELFTEST_FAILED.check
def check_selftest_failed(tests: SelfTests, says: SelfTestSays) -> Judgement:
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
        gpus=() if cut_short else SELFTEST_FAILED.names(says.unlike_peers(found)),
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


CUBLAS_RUNTIME_FAILURE = Rule(
    "cublas-runtime-failure",
    page="""\
cuBLAS fails in a self-test on a GPU where nothing else explains it.

Symptoms: "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm(...)",
CUBLAS_STATUS_NOT_INITIALIZED or CUBLAS_STATUS_INVALID_VALUE at the first matrix product or linear
layer.

In programs these errors usually have another cause: an earlier kernel with an index out of range,
or no memory left. gpucheck multiplies small matrices in a fresh process, which rules out both. If
gpucheck finds another cause, it reports that one instead: an older libcublas or libcublasLt loaded
in place of the wheel's, wheels of different versions, a driver that is too old, or a broken GPU.

Fix: reinstall PyTorch together with the cuBLAS that it was built for, and remove the folders of
other CUDA versions from LD_LIBRARY_PATH.
""",
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


@CUBLAS_RUNTIME_FAILURE.check
def check_cublas_runtime_failure(
    tests: SelfTests, says: SelfTestSays, reinstall: TorchFixes
) -> Judgement:
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
        headline=_cublas_runtime_failure_headline(
            where(found), first.data.get("status") or first.detail, says.meaning(first)
        ),
        evidence=(
            f"{path}.detail",
            *(f"{failed_path}.status" for failed_path, _result in found[1:4]),
        ),
        fixes=(*fresh, report),
        confidence=Confidence.LIKELY,
    )


def _cublas_runtime_failure_headline(places: str, status: str, meaning: str) -> Sentence:
    if not meaning:
        return say("cuBLAS fails on {places}: {status}", places=places, status=status)
    return say(
        "cuBLAS fails on {places}: {status} ({meaning})",
        places=places,
        status=status,
        meaning=meaning,
    )


CUDNN_RUNTIME_FAILURE = Rule(
    "cudnn-runtime-failure",
    page="""\
cuDNN fails, or is not used, in a self-test on a GPU where nothing else explains it.

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
""",
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
_CUDNN_RUNTIME_FAILURE_AGAIN = "gpucheck selftest --tests cudnn-convolution"
_PROJECT = "nvidia-cudnn"
_WITHOUT_CUDNN = (
    "import torch; torch.backends.cudnn.enabled = False; "
    "print(torch.nn.Conv2d(3, 8, 3).cuda({at})(torch.ones(1, 3, 9, 9).cuda({at})).shape)"
)
"""A convolution as a program runs it that avoids cuDNN: the self-test cannot, it tests cuDNN."""


@CUDNN_RUNTIME_FAILURE.check
def check_cudnn_runtime_failure(  # what failed, and what installs another cuDNN
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
        headline=_cudnn_runtime_failure_headline(first, where(found), says.meaning(first)),
        evidence=(
            f"{path}.detail",
            *(f"{failed_path}.status" for failed_path, _result in found[1:4]),
        ),
        fixes=_cudnn_runtime_failure_fixes(_again(torch, wheels, reinstall), first, python),
        confidence=Confidence.LIKELY,
    )


def _cudnn_runtime_failure_headline(first: SelfTest, places: str, meaning: str) -> Sentence:
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


def _cudnn_runtime_failure_fixes(
    again: Fix | None, first: SelfTest, python: Python
) -> tuple[Fix, ...]:
    renewed = () if again is None else (replace(again, verify=_CUDNN_RUNTIME_FAILURE_AGAIN),)
    if first.kind == _NOT_USED:  # it is avoided already
        return renewed or (
            Fix(
                text=_REPORT,
                commands=(f"{_CUDNN_RUNTIME_FAILURE_AGAIN} --format json",),
                verify=_CUDNN_RUNTIME_FAILURE_AGAIN,
            ),
        )
    at = whole_number(first.device.partition(":")[2]) or 0
    avoid = Fix(
        text=say(
            "Until it works again, do without cuDNN: set torch.backends.cudnn.enabled = False in "
            "the program. Convolutions become slower."
        ),
        verify=python.command("-c", _WITHOUT_CUDNN.format(at=at)),
    )
    return (*renewed, avoid)
