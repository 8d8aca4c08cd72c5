"""A GPU is far slower than others of the same model in this machine.

What one sees: one rank is always the last, and every step takes as long as the slowest GPU needs.

gpucheck compares the self-tests of GPUs of one model that ran at the same time, from ``--level
standard`` on: the load of ``sustained`` where it was run, else products of matrices, in the format
in which a GPU does best against the others. It is an error under 50 % and a warning under 80 % of
their median; a figure without anything to compare it with says nothing, and a GPU on which another
process computes is not judged.

Heat and power (thermal-or-power-throttle), a PCIe link with too few lanes (pcie-link-degraded),
or another process on the GPU (gpu-memory-held) are told in place of this where they are seen.

Cure: look at ``nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER`` of this GPU and of a fast
one under the same load; swap the two cards' slots to tell the card from the slot.
"""

from gpucheck.findings import Fine, Fix, Hit, Judgement, NotApplicable, Severity
from gpucheck.probes.cuda_driver import CudaDriver
from gpucheck.probes.nvml import Nvml
from gpucheck.probes.selftests import SelfTests
from gpucheck.rules import Rule
from gpucheck.views.same_model import SameModel, Speed

RULE = Rule(
    title="a GPU is much slower than it should be",
    severity=Severity.WARNING,
    family="runtime",
    yields_to=("thermal-or-power-throttle", "pcie-link-degraded", "gpu-memory-held"),
)

_ERROR, _WARNING = 0.5, 0.8


@RULE.check
def check(tests: SelfTests, same: SameModel, cuda: CudaDriver, nvml: Nvml) -> Judgement:
    """Compare each GPU with the median of the others of its model."""
    if tests.results is None:
        return NotApplicable("only a program's output shows it: give it to gpucheck triage")
    speeds = same.speeds()
    if not speeds:
        return NotApplicable(
            "nothing to compare: it needs --level standard and two GPUs of one model"
        )
    busy = _busy(cuda, nvml)
    slow = sorted(
        (one for one in speeds if one.share < _WARNING and one.device not in busy),
        key=lambda one: one.share,
    )
    if not slow:
        return Fine("no GPU is much slower than the others of its model")
    first = slow[0]
    more = f" (and {len(slow) - 1} more)" if len(slow) > 1 else ""
    return Hit(
        headline=f"{first.device} ({first.model}) reaches {first.share:.0%} of what "
        f"{_others(first)} of its model reach: {first.value:.4g} against {first.peers:.4g} "
        f"TFLOP/s ({first.rate}){more}",
        evidence=tuple(f"{one.path}.measurements" for one in slow[:4]),
        fixes=(
            Fix(
                text="Look at its clocks, temperature and power beside a fast one's, under load.",
                commands=("nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER",),
                verify="gpucheck selftest --tests cublas-matmul,sustained --level stress",
            ),
        ),
        severity=Severity.ERROR if first.share < _ERROR else Severity.WARNING,
    )


def _others(speed: Speed) -> str:
    return "the other one" if speed.others == 1 else f"{speed.others} others"


def _busy(cuda: CudaDriver, nvml: Nvml) -> set[str]:
    """Return the CUDA devices on which another process computes."""
    by_uuid = {gpu.uuid: gpu for gpu in nvml.gpus or () if gpu.uuid}
    found = set()
    for at, device in enumerate(cuda.devices or ()):
        gpu = by_uuid.get(device.uuid or "")
        if gpu is not None and any(one.kind == "compute" for one in gpu.processes or ()):
            found.add(f"cuda:{at}")
    return found
