"""What NCCL fails at within a machine: two ranks on a GPU, peers, transports."""

from gpucheck.derived.selftest_results import NcclControl, PassedWithout, settings
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import Nvml
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, run_tests
from gpucheck.language import say

NCCL_DUPLICATE_GPU = Rule(
    "nccl-duplicate-gpu",
    page="""\
Two ranks of one job use the same GPU, which NCCL refuses.

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
""",
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


@NCCL_DUPLICATE_GPU.check
def check_nccl_duplicate_gpu(tests: SelfTests, nccl: NcclControl) -> Judgement | None:
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


_VARIABLE = "NCCL_P2P_DISABLE"
# The kernel's Documentation/ABI/testing/sysfs-kernel-iommu_groups: DMA, DMA-FQ or identity. dmesg
# shows a fault only if one was logged.
_NCCL_P2P_BROKEN_LOOK = (
    "cat /sys/kernel/iommu_groups/*/type | sort | uniq -c",
    "sudo lspci -vvv | grep ACSCtl",
)

NCCL_P2P_BROKEN = Rule(
    "nccl-p2p-broken",
    page="""\
Peer-to-peer copies between GPUs hang or corrupt data; NCCL_P2P_DISABLE=1 avoids this.

The GPUs of a machine exchange data directly over PCIe or NVLink. An IOMMU or PCIe ACS may redirect
these transfers, and a driver may offer them on boards that do not support them. NCCL then hangs
right after its initialisation, or transfers wrong bytes without any error.

Symptoms: all GPUs at 100 % and no progress after "Init COMPLETE"; a tensor that changes when it is
moved from one GPU to another; "AMD-Vi: Event logged [IO_PAGE_FAULT" or "DMAR" faults in dmesg.

When it is reported: a self-test has shown one of two things.
- A copy from one GPU to another is wrong, and the same values are right when they are copied
  through the CPU.
- A collective that hangs or gives a wrong result passes with NCCL_P2P_DISABLE=1 and fails again
  without it (only "likely" if no time was left for the last run).

``gpucheck preflight`` reports the same for the smallest group of ranks that fails, and names the
host.

Fix: disable the IOMMU in the BIOS or start the kernel with ``iommu=pt`` (a virtual machine needs
settings of its hypervisor), disable ACS on the PCIe bridges, and update the driver. Until then use
NCCL_P2P_DISABLE=1 for NCCL; the variable does not affect copies with ``tensor.to``.
""",
    title=say("peer-to-peer between GPUs hangs or corrupts data"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=("gpu-fallen-off-bus", "gpu-hardware-fault", "fabric-manager-down"),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Look for what redirects the transfers between GPUs: an IOMMU that translates (DMA in "
            "the first command's output), or PCIe ACS on a bridge (SrcValid+ in the second's)."
        ),
        commands=_NCCL_P2P_BROKEN_LOOK,
        passes_without=(_VARIABLE,),
    ),
)

_COLLECTIVES = ("all-reduce",)
_TESTS_P2P = "gpucheck selftest --tests peer-copy,all-reduce --level standard"
_CAUSE = Fix(
    text=say(
        "To repair it, look for what redirects the transfers: an IOMMU that translates (start the "
        "kernel with iommu=pt, or switch the IOMMU off in the BIOS), or PCIe ACS on a bridge "
        "(SrcValid+). In a virtual machine, its host must change this. The first command shows how "
        "the IOMMU works (DMA: it translates; identity: it does not), the second ACS."
    ),
    commands=_NCCL_P2P_BROKEN_LOOK,
    verify=_TESTS_P2P,
)
# NCCL takes NVLink wherever it is (NVIDIA/nccl-tests issue 250), so PCIe, its ACS and the IOMMU are
# not in the way of these transfers.
_CAUSE_ON_NVLINK = Fix(
    text=say(
        "To repair it, look at the links, which carry these transfers: at their error counters, "
        "and for SXids in the kernel's log and in the Fabric Manager's. Then update the driver, "
        "the Fabric Manager and NCCL."
    ),
    commands=(
        "nvidia-smi nvlink --status",
        "nvidia-smi nvlink -e",
        "sudo dmesg | grep -i sxid",
        "journalctl -u nvidia-fabricmanager --no-pager -n 50",
    ),
    verify=_TESTS_P2P,
)


@NCCL_P2P_BROKEN.check
def check_nccl_p2p_broken(
    tests: SelfTests, says: SelfTestSays, nccl: NcclControl, nvml: Nvml
) -> Judgement | None:
    """Look for copies that only work through the CPU, or collectives that need P2P off."""
    if tests.results is None:
        return None
    copies = [
        numbered_result
        for numbered_result in says.failed_with("wrong-value")
        if numbered_result[1].data.get("staged_is_right") is True
        and numbered_result[1].data.get("direct") is True
    ]
    are_linked = all(gpu.nvlinks and all(gpu.nvlinks) for gpu in nvml.gpus or ())
    cause = _CAUSE_ON_NVLINK if nvml.gpus and are_linked else _CAUSE
    if copies:
        return Hit(
            headline=say("Copies between GPUs arrive wrong: {detail}", detail=copies[0][1].detail),
            evidence=tuple(f"{path}.detail" for path, _result in copies[:6]),
            fixes=(cause, _for_now(say("Until then, for NCCL only; tensor.to() stays wrong."))),
        )
    passing = [control for control in nccl.passed_without() if _VARIABLE in control.variables]
    if passing:
        return _nccl_p2p_broken_hit(passing, cause)
    return says.fine("peer-copy", *_COLLECTIVES)


def _nccl_p2p_broken_hit(passing: list[PassedWithout], cause: Fix) -> Hit:
    first = passing[0]
    return Hit(
        headline=say(
            "Peer-to-peer transfers between the GPUs do not work: the self-test {test} passes only "
            "with {variable}=1. Without it: {detail}",
            test=first.result.name,
            variable=_VARIABLE,
            detail=first.result.detail,
        ),
        evidence=tuple(
            fact
            for control in passing[:3]
            for fact in (f"{control.path}.detail", f"{control.path}.data.control")
        ),
        fixes=(_for_now(_AROUND), cause),
        confidence=Confidence.CERTAIN if first.again else Confidence.LIKELY,
    )


_AROUND = say(
    "Work around it: in this shell and in your job script, switch peer-to-peer off for NCCL, which "
    "is slower without it. The other fix (gpucheck -v) looks for the cause."
)


def _for_now(text: str) -> Fix:
    return Fix(
        text=text,
        commands=(f"export {_VARIABLE}=1",),
        verify=f"{_VARIABLE}=1 gpucheck selftest --tests all-reduce",
    )


NCCL_TRANSPORT_BROKEN = Rule(
    "nccl-transport-broken",
    page="""\
One of NCCL's transports (NVLink SHARP, cuMem, shared memory, a protocol) fails here.

NCCL chooses among several ways to move data. If a driver, the limits of a container or the fabric
breaks one of them, the job runs as soon as this one is turned off.

Symptoms: "transport/nvls.cc ... NCCL WARN Cuda failure", "Failed to bind NVLink SHARP (NVLS)
Multicast memory", cuMem calls that fail, or a job that runs only with NCCL_NVLS_ENABLE=0,
NCCL_CUMEM_ENABLE=0, NCCL_SHM_DISABLE=1 or NCCL_PROTO=Simple.

Peer-to-peer has its own page: nccl-p2p-broken. A full /dev/shm is reported as shm-too-small, a
Fabric Manager that is not running as fabric-manager-down.

When it is reported: a collective of the self-tests fails, passes with one of these variables, and
fails again without it (only "likely" if no time was left for the last run).

``gpucheck preflight`` reports the same for the smallest group of ranks that fails, and names the
host.

Fix: set the one variable that helps until you have updated the driver, the Fabric Manager (same
release as the driver) and NCCL.
""",
    title=say("a transport of NCCL fails on this machine"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=(
        "fabric-manager-down",
        "shm-too-small",
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
    ),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Update the driver, on NVSwitch machines the Fabric Manager to the same release, and "
            "torch with its NCCL."
        ),
        of_links=("error",),
        passes_without=(
            "NCCL_NVLS_ENABLE",
            "NCCL_CUMEM_ENABLE",
            "NCCL_SHM_DISABLE",
            "NCCL_PROTO",
            "gloo",
        ),
    ),
)

_TRANSPORTS = {
    "NCCL_SHM_DISABLE": say("shared memory"),
    "NCCL_NVLS_ENABLE": "NVLink SHARP (NVLS)",
    "NCCL_CUMEM_ENABLE": say("memory mapped by cuMem"),
}


@NCCL_TRANSPORT_BROKEN.check
def check_nccl_transport_broken(
    tests: SelfTests, says: SelfTestSays, nccl: NcclControl
) -> Judgement | None:
    """Look for a collective that passes without one of NCCL's transports."""
    if tests.results is None:
        return None
    for control in nccl.passed_without():
        name = next((name for name in _TRANSPORTS if name in control.variables), None)
        if name is None:
            continue
        variables = settings(control.variables)
        again = run_tests(control.result.name)
        return Hit(
            headline=say(
                "NCCL's transport over {transport} fails here: the self-test {test} passes only "
                "with {variables}: {detail}",
                transport=_TRANSPORTS[name],
                test=control.result.name,
                variables=variables,
                detail=control.result.detail,
            ),
            evidence=(f"{control.path}.detail", f"{control.path}.data.control"),
            fixes=(
                Fix(
                    text=say("Do without this transport for now."),
                    commands=(f"export {variables}",),
                    verify=f"{variables} {again}",
                ),
                Fix(
                    text=say(
                        "To repair it, update the driver, on NVSwitch machines the Fabric Manager "
                        "to the same release, and torch with its NCCL; then try without the "
                        "variable."
                    ),
                    verify=again,
                ),
            ),
            confidence=Confidence.CERTAIN if control.again else Confidence.LIKELY,
        )
    return says.fine("all-reduce")
