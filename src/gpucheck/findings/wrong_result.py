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

``gpucheck preflight`` adds an all-reduce in which every rank contributes a power of two. If the
contribution of a rank is missing or counted twice, the sum identifies the rank.

Fix: repeat the test on that GPU alone. If it is wrong again and other GPUs of its model are right,
take the GPU out of service and have it examined. If all are wrong, another build of PyTorch helps.
"""

from gpucheck.advice import TorchFixes
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, repeated, where

_DIAGNOSE = "dcgmi diag -r 3"

RULE = Rule(
    __name__,
    title="a self-test computed wrong values",
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
        title="wrong values",
        fix="Take this GPU out of work and let NVIDIA's diagnostics (of the package "
        "datacenter-gpu-manager) examine it.",
        commands=(_DIAGNOSE,),
        of_ranks=("wrong",),
        of_links=("wrong",),
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
        return NotApplicable(f"no self-test was run: {tests.problem('results')}")
    found = says.failed_with(*_KINDS)
    if not found:
        return says.fine()
    first = found[0][1]
    others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Hit(
        headline=f"The self-test {first.name} computed wrong values on {where(found)}: "
        f"{first.detail}{others}",
        evidence=tuple(f"{one}.detail" for one, _result in found[:6]),
        fixes=_fixes(found, tests, reinstall),
    )


def _fixes(
    found: list[tuple[str, SelfTest]], tests: SelfTests, reinstall: TorchFixes
) -> tuple[Fix, ...]:
    first = found[0][1]
    again = repeated(first)
    if first.world_size > 1 and first.device.startswith("cuda"):
        return (_apart(again),)
    repeat = Fix(
        text="Repeat it on that device alone, more thoroughly.",
        commands=(f"{again} --level standard",),
        verify=again,
    )
    build = reinstall.install("to see whether a library computes wrongly")
    other = () if build is None else (Fix(text=build.text, commands=build.commands, verify=again),)
    if not first.device.startswith("cuda"):
        return (repeat, *other)
    wrong = {device for _path, result in found for device in result.device.split(",")}
    examine = Fix(
        text=f"Take {', '.join(sorted(wrong))} out of work and let NVIDIA's diagnostics (of the "
        "package datacenter-gpu-manager) examine it.",
        commands=(_DIAGNOSE,),
        verify=again,
    )
    all_wrong = len(tests.devices or ()) > 1 and wrong >= set(tests.devices or ())
    return (repeat, *other, examine) if all_wrong else (repeat, examine, *other)


def _apart(again: str) -> Fix:
    """Return how to find out, after a test of several GPUs, whether a GPU or a link is bad."""
    return Fix(
        text="Test each GPU alone, and the copies between every two, to tell a GPU from a link.",
        commands=("gpucheck selftest --tests memory,cublas-matmul,peer-copy --level standard",),
        verify=again,
    )
