"""The GPU ran out of memory.

Symptoms: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total
capacity of 23.64 GiB of which ..."; "CUDA error: out of memory" already when CUDA starts;
CUBLAS_STATUS_ALLOC_FAILED; CUDNN_STATUS_ALLOC_FAILED.

In a program this usually means what it says: model, batch and optimiser state are larger than the
GPU. The self-tests take at most 256 MiB at their quick level. If even they run out of memory,
another process holds it, which is reported as gpu-memory-held.

Fix for the machine: check which processes hold the memory, and end those left over. Fix for a
program: use a smaller batch, gradient accumulation, mixed precision or activation checkpointing;
and ``PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`` if the message reports much memory that is
"reserved but unallocated".
"""

from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import Nvml
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Hit, Judgement, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, where
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a GPU ran out of memory"),
    severity=Severity.ERROR,
    family="runtime",
    suppressed_by=("gpu-memory-held", "compute-mode-exclusive"),
)

_SLUG = "out-of-memory"
_OTHER_GPU = Fix(text=say("Or use another GPU: set CUDA_VISIBLE_DEVICES to one that is free."))


@RULE.check
def check(tests: SelfTests, says: SelfTestSays, nvml: Nvml) -> Judgement:
    """Look for a self-test that ran out of memory, or whose library could not allocate."""
    if tests.results is None:
        return says.not_run()
    found = says.failed_with(_SLUG) or [
        (path, result)
        for path, result in tests.wrong()
        if says.stands_for(result)[:1] == (_SLUG,) and says.code(result) is not None
    ]
    if not found:
        return says.fine()
    first = found[0][1]
    return Hit(
        headline=say(
            "The self-test {name} ran out of memory on {where}: {detail}",
            name=first.name,
            where=where(found),
            detail=first.detail,
        ),
        evidence=tuple(f"{path}.detail" for path, _result in found[:6]),
        fixes=(
            Fix(
                text=say(
                    "Check which processes hold GPU memory, and end those that are left over."
                ),
                commands=("nvidia-smi", "sudo fuser -v /dev/nvidia*"),
            ),
            *(() if nvml.gpus is not None and len(nvml.gpus) == 1 else (_OTHER_GPU,)),
        ),
        confidence=Confidence.CERTAIN if first.kind == _SLUG else Confidence.LIKELY,
    )
