"""GPUs that are lost, wait for a repair of their memory, or compute wrong values."""

from gpucheck.advice import DriverFixes, TorchFixes
from gpucheck.derived.gpu_labels import at_pci, gpu_names
from gpucheck.derived.gpu_support import GpuSupport
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.driver import DeviceNodes, KernelLog, NvidiaSmi, Nvml, NvmlGpu
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.system import Container, Pci, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.findings.witnesses.selftest_says import (
    OTHER_RUNTIMES,
    SelfTestSays,
    repeated,
    run_tests,
    where,
)
from gpucheck.language import and_more, in_series, in_turn, say, say_many

GPU_FALLEN_OFF_BUS = Rule(
    "gpu-fallen-off-bus",
    page="""\
A GPU no longer answers: it has fallen off the bus, or never came up.

Symptoms: nvidia-smi says "Unable to determine the device handle for GPU 0000:05:00.0: GPU is lost.
Reboot the system to recover this GPU", or simply lists one GPU fewer; the kernel log has "NVRM: Xid
(PCI:0000:05:00): 79, GPU has fallen off the bus". Running programs fail with "CUDA error:
unspecified launch failure" or error 999, and new ones see fewer GPUs, or none.

Causes: power (a weak or shared cable, a power supply that cannot follow the peaks), heat, a riser
or slot with a bad contact, firmware, or a failing card.

When it is reported: gpucheck also reports a GPU on the PCI bus that the driver is bound to but does
not list, unless the branch or the flavour of the driver explains it. A GPU that answers again is
fine: it was reset.

Fix: restart. If the GPU stays away, switch the power off and on. If it comes back, find the cause
before the next long job.
""",
    title=say("a GPU has fallen off the bus"),
    severity=Severity.ERROR,
    family="driver",
    concern="hardware",
    suppressed_by=("driver-dropped-gpu", "driver-library-mismatch"),
    preflight=InPreflight(exit_class=1),
    # Xid 79 is RESTART_BM in NVIDIA's catalogue (compat_tables/xid.json), and contacting support is
    # what comes after: a loose cable is as likely as the card.
    on_gpu=OnGpu(
        "drain", say("it does not answer; NVIDIA's Xid catalogue asks for a restart (Xid 79)")
    ),
)

_NO_HANDLE = "Unable to determine the device handle"
_LOST = "GPU is lost"


@GPU_FALLEN_OFF_BUS.check
def check_gpu_fallen_off_bus(
    nvml: Nvml,
    log: KernelLog,
    smi: NvidiaSmi,
    pci: Pci,
    nodes: DeviceNodes,
    support: GpuSupport,
    around: Surroundings,
    update: DriverFixes,
) -> Judgement:
    """Ask NVML and nvidia-smi, then the log; else compare the bus with the driver's list."""
    restart = update.reboot(say("this brings the GPU back if it still works"))
    fixes = (restart, *_THEN)
    lost = [at for at, gpu in enumerate(nvml.gpus or ()) if gpu.lost]
    answering = {gpu.pci_address for gpu in nvml.gpus or ()}
    fallen = [address for address in log.fallen_off_bus or () if address not in answering]
    ours = not nvml.gpus or not (around.in_container() or _is_refused(nodes))
    if not ours or None in answering:
        fallen = []
    named = GPU_FALLEN_OFF_BUS.names((*(f"nvml.gpus.{at}" for at in lost), *fallen))
    if lost:
        found = [(nvml.gpus or [])[at].pci_address for at in lost]
        where = [address for address in found if address and ":" in address]
        headline = say_many(
            len(lost),
            "{gpus} does not answer: it has fallen off the bus",
            "{gpus} do not answer: they have fallen off the bus",
            gpus=gpu_names(nvml.gpus or [], lost),
        )
        if where:
            headline = say(
                "{headline} (PCI {addresses})", headline=headline, addresses=in_series(where)
            )
        return Hit(
            headline=headline,
            evidence=tuple(f"nvml.gpus.{at}.lost" for at in lost),
            fixes=fixes,
            gpus=named,
        )
    if _NO_HANDLE in (smi.message or "") or _LOST in (smi.message or ""):
        return Hit(
            headline=say("nvidia-smi cannot reach a GPU: it has fallen off the bus"),
            evidence=("nvidia_smi.message",),
            fixes=fixes,
            gpus=named,
        )
    if fallen:
        return Hit(
            headline=say(
                "The kernel's log says that {at_pci} has fallen off the bus (Xid 79)",
                at_pci=at_pci(fallen),
            ),
            evidence=("kernel_log.fallen_off_bus", *(("nvml.gpus",) if nvml.gpus else ())),
            fixes=fixes,
            confidence=Confidence.LIKELY if nvml.gpus is None else Confidence.CERTAIN,
            gpus=named,
        )
    if around.in_container():
        return NotApplicable(say("a container sees more GPUs on the bus than it was given"))
    if nvml.gpus is None and pci.gpus == []:
        return NotApplicable(say("there is no NVIDIA GPU on the bus, and the log names none"))
    return _compare(nvml, pci, nodes, support, fixes)


def _compare(
    nvml: Nvml, pci: Pci, nodes: DeviceNodes, support: GpuSupport, fixes: tuple[Fix, ...]
) -> Judgement:
    """Compare the bus with NVML's list, unless something else keeps a GPU out of that list."""
    gpus = known(nvml.gpus, "nvml.gpus")
    if not gpus:
        return NotApplicable(say("NVML lists no GPU: the problem is the driver as a whole"))
    on_bus = known(pci.gpus, "pci.gpus")
    if _is_refused(nodes):
        return NotApplicable(say("this process may not open every GPU"))
    explained = {unsupported.gpu.pci_address for unsupported in support.unsupported()}
    bound = {gpu.address for gpu in on_bus if gpu.bound_driver == "nvidia"}
    missing = [
        gpu.pci_address
        for gpu in support.unserved()
        if gpu.pci_address in bound and gpu.pci_address not in explained
    ]
    if not missing:
        return Fine(say("every GPU that the driver has claimed responds"))
    places = [at for at, gpu in enumerate(on_bus) if gpu.address in missing]
    return Hit(
        headline=say_many(
            len(missing),
            "The driver holds the GPU at PCI {addresses} but does not list it: the GPU does not "
            "answer",
            "The driver holds the GPUs at PCI {addresses} but does not list them: they do not "
            "answer",
            addresses=in_series(missing),
        ),
        evidence=("nvml.gpus", *(f"pci.gpus.{at}.bound_driver" for at in places)),
        fixes=fixes,
        confidence=Confidence.LIKELY,
        gpus=GPU_FALLEN_OFF_BUS.names(f"pci.gpus.{at}" for at in places),
    )


def _is_refused(nodes: DeviceNodes) -> bool:
    """Whether this process may not use some of the GPUs: a job was given only a part."""
    return any(node.opens in ("EPERM", "EACCES") for node in nodes.nodes or ())


_THEN = (
    Fix(
        text=say(
            "If the GPU does not come back, or falls off the bus again: switch the power off and "
            "on, check the card's cables, seating and temperature, and read the kernel log. In a "
            "cloud, stop and start the machine to get other hardware."
        ),
        commands=("sudo dmesg | grep -i -E 'xid|fallen off|pcieport'",),
        restart="machine",
    ),
)


GPU_MEMORY_PENDING_REPAIR = Rule(
    "gpu-memory-pending-repair",
    page="""\
Bad memory was found on a GPU, and its repair waits for a reset.

Data-centre GPUs replace bad rows (row remapping, from Ampere on) or exclude bad pages (page
retirement, before Ampere) by themselves. The repair takes effect at the next reset of the GPU.
Until then, GPUs with dynamic page offlining (A100, H100) keep the bad page out of use; others may
use it again.

Symptoms: ``nvidia-smi -q`` says "Pending : Yes" under Remapped Rows or Retired Pages; the kernel
log has Xid 63; jobs occasionally fail with an ECC error (Xid 48, 94 or 95).

The GPU works, so this is a warning. A failed repair is another finding, gpu-hardware-fault.

Fix: reset the GPU or reboot when no job runs on it.
""",
    title=say("a repair of GPU memory is pending until a reset"),
    severity=Severity.WARNING,
    family="driver",
    concern="hardware",
    suppressed_by=("gpu-hardware-fault", "gpu-fallen-off-bus"),
    needs_gpu=True,
    compat_keys=("row_remap_pending",),
    preflight=InPreflight(exit_class=1, breaks_node=False),
    # Such a GPU may take new work (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, Error Recovery
    # and Response Flags), so nobody has to drain a node for it.
    on_gpu=OnGpu(
        "watch",
        say(
            "NVIDIA lets such a GPU take new work; a reset, when nothing runs on it, repairs its "
            "memory"
        ),
    ),
)


@GPU_MEMORY_PENDING_REPAIR.check
def check_gpu_memory_pending_repair(
    nvml: Nvml, system: System, container: Container, driver: DriverFixes
) -> Judgement:
    """Look for a pending row remap or page retirement."""
    gpus = known(nvml.gpus, "nvml.gpus")
    if not gpus:
        return NotApplicable(say("there is no NVIDIA GPU"))
    pending = [
        (at, field)
        for at, gpu in enumerate(gpus)
        for field in ("rows_pending", "pages_pending")
        if getattr(gpu, field)
    ]
    if not pending:
        for at, gpu in enumerate(gpus):
            if gpu.rows_pending is None and gpu.pages_pending is None and not _has_none(at, nvml):
                raise UnknownFactError(f"nvml.gpus.{at}.rows_pending", gpu.problem("rows_pending"))
        return Fine(say("no repair of GPU memory is pending"))
    places = sorted({at for at, _ in pending})
    indices = [_index(at, gpus[at]) for at in places]
    names = in_series([f"GPU {index}" for index in indices])
    is_of_rows = any(field == "rows_pending" for _, field in pending)
    # The names by which nvidia-smi, DCGM and NVIDIA's pages call it: people search for them.
    headline = (
        say("Row remapping is pending on {gpus}: a reset repairs the defective memory", gpus=names)
        if is_of_rows
        else say(
            "Page retirement is pending on {gpus}: a reset repairs the defective memory", gpus=names
        )
    )
    return Hit(
        headline=headline,
        evidence=tuple(f"nvml.gpus.{at}.{field}" for at, field in pending),
        fixes=(
            _reset(indices, system, container, is_of_rows=is_of_rows),
            or_else(driver.reboot(say("this resets every GPU"))),
        ),
        gpus=GPU_MEMORY_PENDING_REPAIR.names(f"nvml.gpus.{at}" for at in places),
    )


def _index(at: int, gpu: NvmlGpu) -> int:
    return at if gpu.index is None else gpu.index


def _has_none(at: int, nvml: Nvml) -> bool:
    """Whether the GPU has no such repair mechanism: consumer cards do not."""
    gpu = (nvml.gpus or [])[at]
    problems = (gpu.problem("rows_pending"), gpu.problem("pages_pending"))
    return all("not supported" in problem.lower() for problem in problems)


# Of row remapping alone: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, Error Recovery and
# Response Flags.
_MAY_WORK = say("Until the reset, this GPU can still take new work, says NVIDIA's documentation.")


def _reset(indices: list[int], system: System, container: Container, *, is_of_rows: bool) -> Fix:
    """Return how to reset the GPUs (nvidia-smi's manual, --gpu-reset: when peers go with them)."""
    if container.runtime:
        return Fix(
            text=say(
                "On the host, when no job uses the GPU: {command}.",
                command="nvidia-smi --gpu-reset -i INDEX",
            )
        )
    sudo = "" if system.os == "windows" else "sudo "
    return Fix(
        text=in_turn(
            [
                say(
                    "Reset the GPU when nothing runs on it. If that is refused because of NVLink, "
                    "the message names the GPUs that must be reset in the same command."
                ),
                *((_MAY_WORK,) if is_of_rows else ()),
            ]
        ),
        commands=tuple(f"{sudo}nvidia-smi --gpu-reset -i {index}" for index in indices),
    )


_DIAGNOSE = "dcgmi diag -r 3"

WRONG_RESULT = Rule(
    "wrong-result",
    page="""\
A self-test computed wrong values.

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
""",
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


@WRONG_RESULT.check
def check_wrong_result(tests: SelfTests, says: SelfTestSays, reinstall: TorchFixes) -> Judgement:
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
        gpus=WRONG_RESULT.names(says.unlike_peers(found)),
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
