"""A self-test computed wrong values.

gpucheck multiplies, convolves, copies and sums numbers with known results, and compares every value
with a computation in double precision on the CPU. The tolerances follow from the arithmetic of the
data type (``gpucheck selftest -v`` shows each with its value): a result outside them is not a
rounding error. A training run whose loss does not decrease, or that does not give bitwise identical
results with deterministic algorithms, counts as well.

Symptoms: losses that jump or become NaN, or models that silently get worse.

Causes:
- A GPU or its memory fails. This is most likely if only one of several GPUs of a model is wrong, or
  if the wrong values come and go.
- A link between GPUs corrupts data. Then only the tests of several GPUs fail.
- A library computes wrongly on this kind of GPU. Then all GPUs of that kind are wrong in the same
  way.
- Another runtime than PyTorch computes wrongly: in ``onnx-export`` that is ONNX Runtime, and in
  ``tensorrt`` it is TensorRT. Then PyTorch itself is right on the same GPU.

``gpucheck preflight`` adds an all-reduce in which every rank contributes a power of two. If the
contribution of a rank is missing or counted twice, the sum identifies the rank.

Fix: repeat the test on that GPU alone. If it is wrong again and other GPUs of its model are right,
take the GPU out of service and have it examined. If all are wrong, another build of PyTorch helps.
"""

from gpucheck.advice import TorchFixes
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, OnGpu, Rule
from gpucheck.findings.witnesses.selftest_says import (
    OTHER_RUNTIMES,
    SelfTestSays,
    repeated,
    run_tests,
    where,
)
from gpucheck.language import and_more, in_series, say

_DIAGNOSE = "dcgmi diag -r 3"

RULE = Rule(
    __name__,
    title=say("a self-test computed wrong values"),
    severity=Severity.ERROR,
    family="runtime",
    concern="hardware",
    suppressed_by=(
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
        "nccl-p2p-broken",
        "nccl-transport-broken",
        "cuda-library-conflict",
        "nvidia-wheel-mismatch",
    ),
    preflight=InPreflight(
        exit_class=1,
        title=say("wrong values"),
        fix=say(
            "Take this GPU out of service and examine it with NVIDIA's diagnostics (package "
            "datacenter-gpu-manager)."
        ),
        commands=(_DIAGNOSE,),
        of_ranks=("wrong",),
        of_links=("wrong",),
    ),
    on_gpu=OnGpu(
        "drain",
        say("it computes wrong values where another GPU of its model does not"),
        is_by_peers=True,
    ),
)

_KINDS = (
    "wrong-value", "not-finite", "wrong-shape", "wrong-dtype", "not-deterministic",
    "loss-not-falling",
)  # fmt: skip


@RULE.check
def check(tests: SelfTests, says: SelfTestSays, reinstall: TorchFixes) -> Judgement:
    """Look for a self-test whose values are wrong."""
    if tests.results is None:
        return says.not_run()
    found = says.failed_with(*_KINDS)
    if not found:
        return says.fine()
    first = found[0][1]
    return Hit(
        headline=and_more(
            say(
                "The self-test {name} computed wrong values on {where}: {detail}",
                name=first.name,
                where=where(found),
                detail=first.detail,
            ),
            len(found) - 1,
        ),
        evidence=tuple(f"{path}.detail" for path, _result in found[:6]),
        fixes=_fixes(found, tests, reinstall),
        gpus=RULE.names(says.unlike_peers(found)),
    )


def _fixes(
    found: list[tuple[str, SelfTest]], tests: SelfTests, reinstall: TorchFixes
) -> tuple[Fix, ...]:
    first = found[0][1]
    again = repeated(first)
    if first.world_size > 1 and first.device.startswith("cuda"):
        return (_apart(again),)
    if first.name in OTHER_RUNTIMES:
        return _by_another_runtime(first, again)
    repeat = Fix(
        text=say("Repeat the test more thoroughly on that device alone."),
        commands=(f"{again} --level standard",),
        verify=again,
    )
    build = reinstall.install(say("to find out whether a library computes wrongly"))
    other = () if build is None else (Fix(text=build.text, commands=build.commands, verify=again),)
    if not first.device.startswith("cuda"):
        return (repeat, *other)
    wrong = {device for _path, result in found for device in result.device.split(",")}
    examine = Fix(
        text=say(
            "Take {devices} out of service and examine it with NVIDIA's diagnostics (package "
            "datacenter-gpu-manager).",
            devices=in_series(sorted(wrong)),
        ),
        commands=(_DIAGNOSE,),
        verify=again,
    )
    all_wrong = len(tests.devices or ()) > 1 and wrong >= set(tests.devices or ())
    return (repeat, *other, examine) if all_wrong else (repeat, examine, *other)


def _by_another_runtime(first: SelfTest, again: str) -> tuple[Fix, ...]:
    """Return how to find out whether a library or the GPU is at fault: torch computes the same."""
    own = run_tests("cublas-matmul,cudnn-convolution", "--device", first.device)
    return (
        Fix(
            text=say(
                "Let only PyTorch compute on the same device. If its results are right, the other "
                "runtime or the export is at fault, not the device: report it to that project."
            ),
            commands=(own,),
            verify=again,
        ),
    )


def _apart(again: str) -> Fix:
    """Return how to find out, after a test of several GPUs, whether a GPU or a link is bad."""
    return Fix(
        text=say(
            "Test each GPU alone, and the copies between each pair, to find out whether a GPU or a "
            "link is at fault."
        ),
        commands=("gpucheck selftest --tests memory,cublas-matmul,peer-copy --level standard",),
        verify=again,
    )
