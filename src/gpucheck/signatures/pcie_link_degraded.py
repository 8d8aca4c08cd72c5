"""Texts that point to pcie-link-degraded."""

from gpucheck.findings import Severity
from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="pcie-link-degraded",
    zh="PCIe 链路宽度或速度低于应有值",
    signatures=(
        Signature(
            name="downgraded",
            literal="downgraded",
            pattern=r"LnkSta:.{0,60}Width x\d{1,2} \(downgraded\)",
            weight=84,
            says="The PCIe link runs with fewer lanes than it could",
            sample="LnkSta: Speed 8GT/s (ok), Width x4 (downgraded)",
            other="downgraded the package",
            severity=Severity.WARNING,
        ),
        Signature(
            name="words",
            literal="pcie",
            pattern=(
                r"PCIe?.{0,60}(?:x1\b|x4\b|1x\b|4x\b|width).{0,60}(?:instead "
                r"of|rather than|only|should be|expected)|(?:only|just|at) "
                r"x(?:1|4)\b.{0,40}"
            ),
            weight=72,
            says="The PCIe link runs with fewer lanes than it could",
            sample="PCIe runs at x4 instead of x16",
            other="pcie x16",
            severity=Severity.WARNING,
        ),
        Signature(
            name="smi-width",
            literal="link width",
            pattern=r"(?:LINK|Link) Width.{0,60}Current\s{0,20}: 1x\b",
            weight=78,
            says="The PCIe link runs with fewer lanes than it could",
            sample="Link Width Current : 1x",
            other="link width",
            severity=Severity.WARNING,
        ),
        Signature(
            name="gen",
            literal="gen",
            pattern=r"\b(?:PCIe? )?Gen ?[12]\b.{0,30}x(?:1|4|8|16)\b|\bx(?:1|4|8|16) Gen ?[12]\b",
            weight=66,
            says="The PCIe link runs below what it could",
            sample="the card ran at Gen2 x16",
            other="gen 4",
            beside=("gpu|rtx|nvidia",),
            severity=Severity.WARNING,
        ),
    ),
    cures=(
        Cure(
            text=(
                "Seat the card anew, in a slot with all lanes, without a riser; "
                "look at the BIOS settings of the slot."
            ),
            zh="重新插好显卡，使用满通道插槽，不用转接线，并检查 BIOS 的插槽设置。",
            commands=(
                "nvidia-smi -q -d PERFORMANCE",
                "sudo lspci -vv -d 10de: | grep -E 'LnkCap|LnkSta'",
            ),
        ),
    ),
)
