"""Texts that point to gpu-slow."""

from gpucheck.findings import Severity
from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="gpu-slow",
    zh="某块 GPU 明显慢于同型号的其他 GPU",
    signatures=(
        Signature(
            name="one-slow",
            literal="slow",
            pattern=(
                r"(?:one|gpu \d|this gpu|card).{0,60}(?:slower|slow) than (?:the "
                r")?(?:others|other|rest)"
            ),
            weight=60,
            says="One GPU is slower than its peers",
            sample="GPU 3 is slower than the others",
            other="the training is slow",
            severity=Severity.WARNING,
        ),
    ),
    cures=(
        Cure(
            text="Compare this GPU's clocks, heat and power with a fast one under the same load.",
            zh="在相同负载下比较该 GPU 与其他 GPU 的频率、温度和功耗。",
            commands=("nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER",),
        ),
    ),
)
