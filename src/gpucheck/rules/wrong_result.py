"""A self-test computed wrong values.

gpucheck multiplies, convolves, copies and sums numbers whose results it knows, and compares every
value with a computation in double precision on the CPU. The bounds follow from the arithmetic of
the data type (``gpucheck selftest -v`` shows each with its figure): a result outside them is not
rounding. Training on such a machine gives losses that jump or become NaN, or models that are
quietly worse. A training whose loss does not fall, or that does not give the same bits twice where
deterministic algorithms are asked for, counts as well.

Causes: a GPU or its memory that is failing, above all when only one of several alike is wrong, or
the wrong values come and go; a link between GPUs that corrupts data (then only the tests of several
GPUs fail); a library that computes wrongly on this kind of GPU, when all of that kind are wrong in
the same way.

``gpucheck preflight`` adds an all-reduce in which every rank contributes a power of two: a sum that
lacks one, or has one twice, names the rank.

Cure: repeat the test on that GPU alone. If it is wrong again and its like are right, take it out of
work and have it examined; if all are wrong, another build of PyTorch helps.
"""

from gpucheck.findings import Fix, Hit, Judgement, NotApplicable, Severity
from gpucheck.fixes import TorchRemedies
from gpucheck.probes.selftests import SelfTest, SelfTests
from gpucheck.rules import InPreflight, Rule
from gpucheck.rules.witnesses.selftest_says import SelfTestSays, repeated, where

_DIAGNOSE = "dcgmi diag -r 3"

RULE = Rule(
    __name__,
    title="a self-test computed wrong values",
    severity=Severity.ERROR,
    family="runtime",
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
def check(tests: SelfTests, says: SelfTestSays, reinstall: TorchRemedies) -> Judgement:
    """Any result that is wrong in its values."""
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
    found: list[tuple[str, SelfTest]], tests: SelfTests, reinstall: TorchRemedies
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
    """Return how to tell a GPU from a link, after a test of several GPUs."""
    return Fix(
        text="Test each GPU alone, and the copies between every two, to tell a GPU from a link.",
        commands=("gpucheck selftest --tests memory,cublas-matmul,peer-copy --level standard",),
        verify=again,
    )
