"""Peer-to-peer copies between GPUs hang or corrupt data; NCCL_P2P_DISABLE=1 avoids this.

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
"""

from gpucheck.derived.selftest_results import NcclControl, PassedWithout
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import say

_VARIABLE = "NCCL_P2P_DISABLE"
_LOOK = ("sudo dmesg | grep -i -e IO_PAGE_FAULT -e DMAR", "sudo lspci -vvv | grep ACSCtl")

RULE = Rule(
    __name__,
    title=say("peer-to-peer between GPUs hangs or corrupts data"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=("gpu-fallen-off-bus", "gpu-hardware-fault", "fabric-manager-down"),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Look for what redirects the transfers between GPUs: an IOMMU that translates, or PCIe "
            "ACS on a bridge."
        ),
        commands=_LOOK,
        passes_without=(_VARIABLE,),
    ),
)

_COLLECTIVES = ("all-reduce",)
_CAUSE = Fix(
    text=say(
        "To repair it, look for what redirects the transfers: an IOMMU that translates (start the "
        "kernel with iommu=pt, or switch the IOMMU off in the BIOS), or PCIe ACS on a bridge "
        "(SrcValid+ in the output; in a virtual machine, its host must change this). The commands "
        "show both."
    ),
    commands=_LOOK,
    verify="gpucheck selftest --tests peer-copy,all-reduce --level standard",
)


@RULE.check
def check(tests: SelfTests, says: SelfTestSays, nccl: NcclControl) -> Judgement | None:
    """Look for copies that only work through the CPU, or collectives that need P2P off."""
    if tests.results is None:
        return None
    copies = [
        numbered_result
        for numbered_result in says.failed_with("wrong-value")
        if numbered_result[1].data.get("staged_is_right") is True
        and numbered_result[1].data.get("direct") is True
    ]
    if copies:
        return Hit(
            headline=say("Copies between GPUs arrive wrong: {detail}", detail=copies[0][1].detail),
            evidence=tuple(f"{path}.detail" for path, _result in copies[:6]),
            fixes=(_CAUSE, _for_now(say("Until then, for NCCL only; tensor.to() stays wrong."))),
        )
    passing = [control for control in nccl.passed_without() if _VARIABLE in control.variables]
    if passing:
        return _hit(passing)
    return says.fine("peer-copy", *_COLLECTIVES)


def _hit(passing: list[PassedWithout]) -> Hit:
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
        fixes=(_for_now(_AROUND), _CAUSE),
        confidence=Confidence.CERTAIN if first.again else Confidence.LIKELY,
    )


_AROUND = say(
    "Work around it: switch peer-to-peer off for NCCL, which then is slower. The other fix "
    "(gpucheck -v) looks for the cause."
)


def _for_now(text: str) -> Fix:
    return Fix(
        text=text,
        commands=(f"export {_VARIABLE}=1",),
        verify=f"{_VARIABLE}=1 gpucheck selftest --tests all-reduce",
    )
