"""A GPU or an NVSwitch reports a hardware fault."""

from collections.abc import Iterable, Iterator

import msgspec

from gpucheck.advice import DriverFixes
from gpucheck.derived.gpu_labels import at_pci, gpu_index, gpu_names
from gpucheck.derived.surroundings import Surroundings, scheduler_of
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, KernelLog, Nvml, NvmlGpu, XidEvent
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.findings.witnesses.kernel_log import NvswitchErrors, with_age
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import in_turn, phrase, say, say_many
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors, XidRow, Xids

RULE = Rule(
    "gpu-hardware-fault",
    page="""\
A GPU or an NVSwitch reports a hardware fault.

When it is reported: any of these counts.
- The GPU has had uncorrected ECC errors since the driver was loaded, and no remapping covers them.
- A row remapping failed, which is NVIDIA's criterion for replacing the card.
- The kernel log has an Xid for which NVIDIA's catalogue advises a reset of the GPU (48 double-bit
  ECC error, 95 uncontained error, 119 and 120 GSP errors ...).
- The kernel log, or the Fabric Manager's own log since this boot, has a fatal SXid: an error of an
  NVSwitch, which resets together with the GPUs. What is in both counts once.
- A program fails, and the kernel log has a contained memory error (94), which ended it.
- NVML reports "GPU requires reset".

Symptoms: programs fail with "CUDA error: uncorrectable ECC error encountered" (214) or
"uncorrectable NVLink error" (220), or hang.

Corrected errors are not a fault, nor are Xids that a program causes itself (13, 31, 43 ...), nor
SXids that are not fatal; one that stalls a GPU (12028) is a warning. SXid 20034 also follows when a
GPU at the other end of a link was reset, so it is only a warning where CUDA starts. On a
GPU that answers, an Xid from long ago or from an unknown time is only a warning: a reset may have
cleared it since.

Fix: take the GPU out of service, reset it or restart, and run NVIDIA's diagnostics. Replace the
card if the fault comes back, or at once after a failed remapping.
""",
    title=say("a GPU or an NVSwitch reports a hardware fault"),
    severity=Severity.ERROR,
    family="driver",
    concern="hardware",
    suppressed_by=("gpu-fallen-off-bus",),
    needs_gpu=True,
    compat_keys=("xid", "row_remap_failure"),
    preflight=InPreflight(exit_class=1),
    on_gpu=OnGpu("drain", say("it reports a hardware fault that a reset or a restart may clear")),
)
# The only criterion for a replacement here that is NVIDIA's own: a failed remapping is what its RMA
# policy for row remapping counts (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, RMA Policy
# Thresholds for Row-Remapping). Errors that come back after a reset are another, which one look at
# a machine cannot see.
_REPLACE = OnGpu(
    "replace",
    say("a row remapping has failed, which is NVIDIA's criterion for replacing a GPU (RMA policy)"),
)
_BY_XID = OnGpu("drain", say("NVIDIA's Xid catalogue asks for a reset or a restart"))
# nvidia-smi resets the NVSwitches with all GPUs at once, so all of them have to be idle.
_BY_SXID = OnGpu("drain", say("a fatal error of an NVSwitch needs a reset of all GPUs together"))
_OLD = OnGpu(
    "watch", say("its Xid is old or of unknown time, and it answers: it may have been reset since")
)
_CONTAINED = OnGpu(
    "watch", say("the error has ended one program alone: NVIDIA's Xid catalogue asks for no reset")
)

_SLUG = "gpu-hardware-fault"
_OFF_THE_BUS = 79  # Xid 79: the GPU has fallen off the bus
_LONG_AGO = 24 * 3600.0  # chosen: a GPU that answers a day later is no emergency
_MASK = "CUDA_VISIBLE_DEVICES"


@RULE.check
def check(  # noqa: PLR0913, PLR0917  # NVML, CUDA and the log, and the tables of their codes
    nvml: Nvml,
    cuda: CudaDriver,
    log: KernelLog,
    xids: Xids,
    nvml_errors: NvmlErrors,
    cuda_errors: CudaErrors,
    around: Surroundings,
    update: DriverFixes,
    tests: SelfTests,
    says: SelfTestSays,
    environment: Environment,
    nvswitches: NvswitchErrors,
) -> Judgement:
    """Look at what each GPU reports about itself, then at the kernel's log."""
    gpus = nvml.gpus or []
    fatal = _fatal(_of_ours(log, nvml, around), xids, fails=cuda.program_code is not None)
    named = (
        *_named_by_nvml(gpus, nvml_errors),
        *(_named_by_xid(event, gpus, xids) for event in fatal),
    )
    added = [f"selftests.under_load.{at}" for at in _added(tests)]
    named += RULE.names(added)
    for at, gpu in enumerate(gpus):
        name = gpu_names(gpus, [at])
        fault = (
            _failed_remap(at, gpu, name)
            or _uncorrected(at, gpu, name)
            or _code(at, gpu, name, nvml_errors)
        )
        if fault is not None:
            headline, facts = fault
            replace = gpu.rows_failed is True
            return Hit(
                headline=headline,
                evidence=facts,
                fixes=_replaced(
                    gpu_index(gpus, at), _meanwhile(_unnamed(gpus, named), environment, around)
                )
                if replace
                else _fixes(gpu_index(gpus, at), around, update),
                gpus=named,
            )
    row = cuda_errors.error(cuda.init_code or 0)
    if row is not None and _SLUG in row.slugs:
        return Hit(
            headline=say(
                "CUDA does not start: {meaning} (error {code})",
                meaning=phrase(row.meaning or ""),
                code=row.code,
            ),
            evidence=("cuda_driver.init_code",),
            fixes=_fixes(None, around, update),
            gpus=named,
        )
    if seen := says.points_at(_SLUG) or tuple(f"{path}.ecc_uncorrected_added" for path in added):
        return Hit(
            headline=say("A GPU reported a hardware error during the self-tests"),
            evidence=seen,
            fixes=_fixes(None, around, update),
            gpus=(*named, *RULE.names(says.devices_at(_SLUG))),
        )
    if fatal:
        newest = min(fatal, key=lambda event: event.seconds_ago or 0.0)
        hit = _hit_xid(newest, nvml, log.xids or [], xids, around, update)
        return msgspec.structs.replace(hit, gpus=named)
    if of_switch := nvswitches.hit(around, update):
        every = range(len(gpus)) if of_switch.severity is Severity.ERROR else ()
        drained = ((f"nvml.gpus.{at}", _BY_SXID) for at in every)
        return msgspec.structs.replace(of_switch, gpus=(*named, *drained))
    if nvml.gpus == []:
        return NotApplicable(say("NVML lists no GPU"))
    known(nvml.gpus, "nvml.gpus")
    if log.xids is None:
        return Fine(say("no GPU reports a fault; the kernel's log could not be read"))
    return Fine(say("neither a GPU nor the kernel's log reports a fault"))


def _added(tests: SelfTests) -> list[int]:
    """Return the places of the GPUs on which uncorrected memory errors appeared under load."""
    return [at for at, gpu in enumerate(tests.under_load or ()) if gpu.ecc_uncorrected_added]


def _named_by_nvml(gpus: list[NvmlGpu], errors: NvmlErrors) -> Iterator[tuple[str, OnGpu]]:
    for at, gpu in enumerate(gpus):
        path = f"nvml.gpus.{at}"
        if gpu.rows_failed:
            yield path, _REPLACE
        elif _uncorrected(at, gpu, "") or _code(at, gpu, "", errors):
            yield from RULE.names([path])


def _named_by_xid(event: XidEvent, gpus: list[NvmlGpu], xids: Xids) -> tuple[str, OnGpu]:
    row = xids.xid(event.xid or 0)
    if row is not None and not row.is_fatal:
        return event.pci_address or "", _CONTAINED
    return event.pci_address or "", _OLD if _is_old(event, gpus) else _BY_XID


def _is_old(event: XidEvent, gpus: list[NvmlGpu]) -> bool:
    """Whether its GPU answers, and it is from long ago or from an unknown time."""
    answers = any(gpu.pci_address == event.pci_address and not gpu.lost for gpu in gpus)
    ago = event.seconds_ago
    return answers and (ago is None or ago > _LONG_AGO)


def _failed_remap(at: int, gpu: NvmlGpu, name: str) -> tuple[str, tuple[str, ...]] | None:
    if not gpu.rows_failed:
        return None
    return (
        say(
            "{gpu} could not remap a defective row of its memory, which is NVIDIA's criterion for "
            "replacing the card",
            gpu=name,
        ),
        (f"nvml.gpus.{at}.rows_failed",),
    )


def _uncorrected(at: int, gpu: NvmlGpu, name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return uncorrected errors, without those that are or will be covered by a remapping."""
    if not gpu.ecc_uncorrected or gpu.rows_remapped_uncorrected:
        return None
    if gpu.rows_pending or gpu.pages_pending:
        return None

    facts = [f"nvml.gpus.{at}.ecc_uncorrected"]
    if gpu.rows_remapped_uncorrected is not None:
        facts.append(f"nvml.gpus.{at}.rows_remapped_uncorrected")
    return (
        say_many(
            gpu.ecc_uncorrected,
            "{gpu} has {count} uncorrected memory error that no remapping covers",
            "{gpu} has {count} uncorrected memory errors that no remapping covers",
            gpu=name,
        ),
        tuple(facts),
    )


def _code(
    at: int, gpu: NvmlGpu, name: str, errors: NvmlErrors
) -> tuple[str, tuple[str, ...]] | None:
    row = errors.error(gpu.handle_code or 0)
    if row is None or _SLUG not in row.slugs:
        return None
    headline = say(
        "{gpu} answers: {meaning} (NVML error {code})",
        gpu=name,
        meaning=phrase(row.meaning or ""),
        code=row.code,
    )
    return headline, (f"nvml.gpus.{at}.handle_code",)


def _of_ours(log: KernelLog, nvml: Nvml, around: Surroundings) -> list[XidEvent]:
    """In a container, leave out events of host GPUs that it was not given."""
    given = {gpu.pci_address for gpu in nvml.gpus or ()}
    if not around.in_container() or not given or None in given:
        return log.xids or []
    return [event for event in log.xids or () if event.pci_address in given]


def _fatal(events: list[XidEvent], xids: Xids, *, fails: bool) -> list[XidEvent]:
    """Return the Xids for which NVIDIA advises a reset; another rule judges Xid 79.

    Where a program ``fails``, a memory error that needs no reset counts as well.
    """
    return [
        event
        for event in events
        if event.xid is not None
        and event.xid != _OFF_THE_BUS
        and (row := xids.xid(event.xid)) is not None
        and (row.is_fatal or (fails and row.is_of_memory))
    ]


def _hit_xid(  # the event and what it is compared with
    event: XidEvent,
    nvml: Nvml,
    events: list[XidEvent],
    xids: Xids,
    around: Surroundings,
    update: DriverFixes,
) -> Hit:
    row = xids.xid(event.xid or 0)
    gpus = nvml.gpus or []
    at = next((at for at, gpu in enumerate(gpus) if gpu.pci_address == event.pci_address), None)
    where = at_pci([event.pci_address]) if at is None else gpu_names(gpus, [at])
    ago = event.seconds_ago
    headline = say("The kernel's log has {xid} of {gpu}", xid=_named(event, row), gpu=where)
    old = _is_old(event, gpus)
    place = events.index(event)
    index = None if at is None else gpu_index(gpus, at)
    contained = row is not None and not row.is_fatal
    return Hit(
        headline=with_age(headline, ago) if ago else headline,  # 0: "just now" was assumed
        evidence=(f"kernel_log.xids.{place}.xid", f"kernel_log.xids.{place}.message"),
        fixes=_again() if contained else _fixes(index, around, update),
        severity=Severity.WARNING if old else Severity.ERROR,
        confidence=Confidence.POSSIBLE if old else Confidence.LIKELY,
    )


def _named(event: XidEvent, row: XidRow | None) -> str:
    if row is None:
        return f"Xid {event.xid}"
    return say("Xid {xid} ({name})", xid=event.xid, name=phrase(row.short_name))


def _again() -> tuple[Fix, ...]:
    return Fix(
        text=say("Start the program again: the error has ended only that program.")
    ), _diagnose()


def _diagnose() -> Fix:
    return Fix(
        text=say("If it comes back, run NVIDIA's diagnostics (DCGM) and have the card replaced."),
        commands=("dcgmi diag -r 3", "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"),
    )


def _unnamed(gpus: list[NvmlGpu], named: Iterable[tuple[str, OnGpu]]) -> list[NvmlGpu]:
    """Return the GPUs of which no fault is known."""
    bad = {where for where, _ in named}
    return [
        gpu
        for at, gpu in enumerate(gpus)
        if not gpu.lost and not bad & {f"nvml.gpus.{at}", gpu.pci_address}
    ]


def _meanwhile(
    good: list[NvmlGpu], environment: Environment, around: Surroundings
) -> tuple[str, ...]:
    """Return the commands that leave the other GPUs; none where they may be for other users."""
    indices = [gpu.index for gpu in good if gpu.index is not None and not gpu.mig_enabled]
    are_free = environment.variables is not None and environment.get(_MASK) is None
    if not indices or len(indices) < len(good) or not are_free or scheduler_of(environment):
        return ()
    return (
        *around.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        *around.set(_MASK, ",".join(map(str, indices))),
    )


def _replaced(index: int | None, meanwhile: tuple[str, ...]) -> tuple[Fix, ...]:
    replace = say("Take the GPU out of service and have the card replaced.")
    if meanwhile:
        commands = say(
            "The first command shows its serial number and memory errors, for the supplier; the "
            "others hide the GPU from the programs of this shell (write them into your job script, "
            "too)."
        )
    else:
        commands = say("The command shows its serial number and memory errors, for the supplier.")
    lasts = say("gpucheck reports this fault until the card is replaced.")
    show = "nvidia-smi -q" if index is None else f"nvidia-smi -q -i {index}"
    return (Fix(text=in_turn([replace, commands, lasts]), commands=(show, *meanwhile)),)


def _fixes(index: int | None, around: Surroundings, update: DriverFixes) -> tuple[Fix, ...]:
    if around.in_container() or index is None:
        return update.reboot(say("this resets the GPU")), _diagnose()
    reset = Fix(
        text=say(
            "Stop everything that uses the GPU and reset it. If that is refused, restart the "
            "machine."
        ),
        commands=(f"sudo nvidia-smi --gpu-reset -i {index}",),
        restart="machine",
    )
    return reset, _diagnose()
