"""A GPU is far slower than others of the same model in this machine.

Symptoms: one rank is always the last, and every step takes as long as the slowest GPU needs.

When it is reported: gpucheck compares the self-tests of GPUs of one model that ran at the same
time, from ``--level standard`` on. It takes the load of ``sustained`` if that test ran, otherwise
matrix products, in the format in which a GPU compares best with the others. Below 50 % of their
median it is an error, below 80 % a warning. A GPU on which another process computes is not judged.

If this shows nothing, each GPU is compared with the rates that were published for its board. This
comparison never blames a GPU, because published rates come from other sizes, releases and power
limits. Below half of the highest rate you get a note, which changes neither the verdict nor the
exit status. The share of the vendor's peak is among the measurements of the self-tests (``-v``,
JSON). Healthy boards reach 58 % to 94 % of it with their best shape, so it gives no usable
threshold.

Heat and power (thermal-or-power-throttle), a PCIe link with too few lanes (pcie-link-degraded), or
another process on the GPU (gpu-memory-held) are reported instead if they are seen.

``gpucheck preflight`` compares every GPU of the job with the median of its model, and with its own
baseline if one was saved. A slow GPU is measured again before it is named. Copies of pinned memory
are compared with the same slot of other nodes. If there are no other nodes, less than half of the
median is a warning, and less than a quarter an error. Ranks on the CPU are reported below 40 %
only.

Fix: compare ``nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER`` of this GPU and of a fast one
under the same load. Swap the slots of the two cards to find out whether the card or the slot is
slow. After a note, check whether a power limit, locked clocks, an MPS share or the program of
another container slows the GPU down: none of these is a fault.
"""

from gpucheck.derived.selftest_results import BoardRates, Published, SameModel, Speed
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, Nvml
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.language import say, say_many

_LOOK = "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER"

RULE = Rule(
    __name__,
    title=say("a GPU is much slower than it should be"),
    severity=Severity.WARNING,
    family="runtime",
    concern="hardware",
    suppressed_by=("thermal-or-power-throttle", "pcie-link-degraded", "gpu-memory-held"),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=5,
        fix=say("Compare its clocks, temperature and power with those of a fast GPU under load."),
        commands=(_LOOK,),
        breaks_node=True,
    ),
    # It computes right values. A job of many GPUs may leave it out; others lose little by it.
    on_gpu=OnGpu("watch", say("it computes right values, but much slower than its peers")),
)

# Shares of the median. Healthy GPUs of one model in one machine differ by 5 % (docs/evidence.md,
# The speed of healthy GPUs). Chosen: four times that is worth a look; half is no chance.
_ERROR, _WARNING = 0.5, 0.8
_NOTE = 0.5
"""The share of the published rate below which a GPU is slow. It is half, because 8192 is not the
best shape of every board, and because a lower power limit may be set."""
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
    slow = [speed for speed in speeds if speed.share < _WARNING and speed.device not in busy]
    if slow:
        return _slower_than_peers(sorted(slow, key=lambda speed: speed.share))
    published = boards.published()
    low = [speed for speed in published if speed.share < _NOTE and speed.device not in busy]
    if low:
        return _far_below(min(low, key=lambda speed: speed.share))
    if speeds:
        return Fine(say("no GPU is much slower than the others of its model"))
    if published:
        first = published[0]
        return Fine(
            say(
                "{device} reaches {share:.0%} of the highest rate that was published for {model}",
                device=first.device,
                share=first.share,
                model=first.model,
            )
        )
    return NotApplicable(
        say(
            "there is nothing to compare: this needs --level standard, and two GPUs of one model "
            "or a published rate of this board"
        )
    )


def _slower_than_peers(slow: list[Speed]) -> Hit:
    first = slow[0]
    headline = say_many(
        first.others,
        "{device} ({model}) reaches {share:.0%} of what the other GPU of its model reaches: "
        "{value:.4g} against {peers:.4g} TFLOP/s ({rate})",
        "{device} ({model}) reaches {share:.0%} of what {count} others of its model reach: "
        "{value:.4g} against {peers:.4g} TFLOP/s ({rate})",
        device=first.device,
        model=first.model,
        share=first.share,
        value=first.value,
        peers=first.peers,
        rate=first.rate,
    )
    more = len(slow) - 1
    return Hit(
        headline=say_many(
            more,
            "{headline} (and {count} more GPU)",
            "{headline} (and {count} more GPUs)",
            headline=headline,
        )
        if more
        else headline,
        evidence=tuple(f"{speed.path}.measurements" for speed in slow[:4]),
        fixes=(
            Fix(
                text=say(
                    "Compare its clocks, temperature and power with those of a fast GPU under load."
                ),
                commands=(_LOOK,),
                verify=_VERIFY,
            ),
        ),
        severity=Severity.ERROR if first.share < _ERROR else Severity.WARNING,
        gpus=RULE.names(speed.device for speed in slow),
    )


def _far_below(low: Published) -> Hit:
    return Hit(
        headline=say(
            "{device} ({model}) multiplies bf16 matrices at {value:.4g} TFLOP/s, {share:.0%} of "
            "the highest rate that was published for this board ({best:.4g})",
            device=low.device,
            model=low.model,
            value=low.value,
            share=low.share,
            best=low.best,
        ),
        evidence=(f"{low.path}.measurements",),
        fixes=(
            Fix(
                text=say(
                    "Check whether a power limit, locked clocks or another program slows it down."
                ),
                commands=(_LOOK, "nvidia-smi"),
                verify=_VERIFY,
            ),
        ),
        severity=Severity.INFO,
        confidence=Confidence.POSSIBLE,
        rows=((f"{low.path}.measurements", low.row),),
    )


def _busy(cuda: CudaDriver, nvml: Nvml) -> set[str]:
    """Return the CUDA devices on which another process computes."""
    by_uuid = {gpu.uuid: gpu for gpu in nvml.gpus or () if gpu.uuid}
    found = set()
    for at, device in enumerate(cuda.devices or ()):
        gpu = by_uuid.get(device.uuid or "")
        if gpu is not None and any(process.kind == "compute" for process in gpu.processes or ()):
            found.add(f"cuda:{at}")
    return found
