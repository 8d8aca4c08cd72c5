"""Two ranks of one job use the same GPU, which NCCL refuses.

Every rank must have a GPU of its own. Without ``torch.cuda.set_device(LOCAL_RANK)`` all ranks of a
node use GPU 0. With more processes than GPUs some must share.

Symptoms: "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000", then
"ncclInvalidUsage".

Another cause is a scheduler that binds each task to one GPU (Slurm with --gpus-per-task) together
with a script that calls set_device(LOCAL_RANK): the two contradict each other.

``gpucheck preflight`` compares the UUIDs of all ranks and names those that share a GPU.

Fix: start one process per GPU (``torchrun --nproc-per-node`` at most the number of GPUs), call
set_device before the first collective, and use the same CUDA_VISIBLE_DEVICES for all ranks of a
node.
"""

from gpucheck.derived.selftest_results import NcclControl
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("two ranks use the same GPU"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say(
            "Start one process for each GPU. Let either the launcher bind each process to its own "
            "GPU, or the program choose it by LOCAL_RANK, not both."
        ),
    ),
)


@RULE.check
def check(tests: SelfTests, nccl: NcclControl) -> Judgement | None:
    """Look at what NCCL said in a self-test."""
    if tests.results is None:
        return None
    found = nccl.duplicate()
    if found is None:
        return NotApplicable(say("no self-test found two ranks on one GPU"))
    path, (first_rank, other_rank), device = found
    return Hit(
        headline=say(
            "Ranks {one} and {other} use the same GPU (CUDA device {device}), which NCCL refuses",
            one=first_rank,
            other=other_rank,
            device=device,
        ),
        evidence=(f"{path}.detail",),
        fixes=(
            Fix(
                text=say(
                    "Start one process for each GPU, give all ranks of a machine the same "
                    "CUDA_VISIBLE_DEVICES, and choose the GPU before the first collective: {code}.",
                    code='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
                ),
                verify="gpucheck selftest --tests all-reduce",
            ),
        ),
    )
