"""A GPU is far slower than others of the same model in this machine.

What one sees: one rank is always the last, and every step takes as long as the slowest GPU needs.

gpucheck compares the self-tests of GPUs of one model that ran at the same time, from ``--level
standard`` on: the load of ``sustained`` where it was run, else products of matrices, in the format
in which a GPU does best against the others. It is an error under 50 % and a warning under 80 % of
their median. A GPU on which another process computes is not judged.

Where that shows nothing, each is compared with what was published for its board. This accuses
nobody: the published rates come from other sizes, releases and power limits. Under half of the
highest of them you get a note, which changes neither the verdict nor the exit status. The share of
the vendor's peak is among the measurements of the self-tests (``-v``, JSON); sound boards reach
58 % to 94 % of it with their best shape, so that no line can be drawn there.

Heat and power (thermal-or-power-throttle), a PCIe link with too few lanes (pcie-link-degraded),
or another process on the GPU (gpu-memory-held) are told in place of this where they are seen.

``gpucheck preflight`` compares every GPU of the job with the median of its model, and with its own
baseline where one was saved; a slow one is measured again before it is named. Copies of pinned
memory are compared with the same slot of other nodes; where there are none, under half of the
median is a warning, and under a quarter an error. CPU processes are accused under 40 % only.

Cure: look at ``nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER`` of this GPU and of a fast
one under the same load; swap the two cards' slots to tell the card from the slot. After a note, see
whether a power limit, locked clocks, a share set by MPS or the program of another container holds
the GPU down: none of these is a fault.
"""

from gpucheck.findings import Confidence, Fine, Fix, Hit, Judgement, NotApplicable, Severity
from gpucheck.probes.cuda_driver import CudaDriver
from gpucheck.probes.nvml import Nvml
from gpucheck.probes.selftests import SelfTests
from gpucheck.rules import InPreflight, Rule
from gpucheck.views.board_rates import BoardRates, Published
from gpucheck.views.same_model import SameModel, Speed

_LOOK = "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER"

RULE = Rule(
    __name__,
    title="a GPU is much slower than it should be",
    severity=Severity.WARNING,
    family="runtime",
    suppressed_by=("thermal-or-power-throttle", "pcie-link-degraded", "gpu-memory-held"),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=5,
        fix="Look at its clocks, temperature and power beside a fast one's, under load.",
        commands=(_LOOK,),
        breaks_node=True,
    ),
)

_ERROR, _WARNING = 0.5, 0.8
_NOTE = 0.5
"""Below this share of what was published: half, since 8192 is not the best shape of a board, and
its power limit may be a lower one."""
_VERIFY = "gpucheck selftest --tests cublas-matmul,sustained --level stress"


@RULE.check
def check(
    tests: SelfTests, same: SameModel, boards: BoardRates, cuda: CudaDriver, nvml: Nvml
) -> Judgement | None:
    """Compare each GPU with the median of the others of its model, else with published rates."""
    if tests.results is None:
        return None
    busy = _busy(cuda, nvml)
    speeds = same.speeds()
    slow = [one for one in speeds if one.share < _WARNING and one.device not in busy]
    if slow:
        return _slower_than_peers(sorted(slow, key=lambda one: one.share))
    published = boards.published()
    low = [one for one in published if one.share < _NOTE and one.device not in busy]
    if low:
        return _far_below(min(low, key=lambda one: one.share))
    if speeds:
        return Fine("no GPU is much slower than the others of its model")
    if published:
        first = published[0]
        return Fine(
            f"{first.device} reaches {first.share:.0%} of the highest rate that was published "
            f"for {first.model}"
        )
    return NotApplicable(
        "nothing to compare: it needs --level standard, and two GPUs of one model or a "
        "published rate of this board"
    )


def _slower_than_peers(slow: list[Speed]) -> Hit:
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
                commands=(_LOOK,),
                verify=_VERIFY,
            ),
        ),
        severity=Severity.ERROR if first.share < _ERROR else Severity.WARNING,
    )


def _far_below(low: Published) -> Hit:
    return Hit(
        headline=f"{low.device} ({low.model}) multiplies bf16 matrices at {low.value:.4g} TFLOP/s, "
        f"{low.share:.0%} of the highest rate that was published for this board ({low.best:.4g})",
        evidence=(f"{low.path}.measurements",),
        fixes=(
            Fix(
                text="See whether a power limit, locked clocks or another program holds it down.",
                commands=(_LOOK, "nvidia-smi"),
                verify=_VERIFY,
            ),
        ),
        severity=Severity.INFO,
        confidence=Confidence.POSSIBLE,
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
