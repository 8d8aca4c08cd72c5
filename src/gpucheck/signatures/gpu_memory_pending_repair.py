"""Texts that point to gpu-memory-pending-repair."""

from gpucheck.findings import Severity
from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="gpu-memory-pending-repair",
    zh="显存的行重映射或页退役等待重启生效",
    signatures=(
        Signature(
            name="pending",
            literal="pending",
            pattern=(
                r"(?:Remapped Rows|Row Remap\w{0,6}|Pending Page Blacklist|"
                r"Retired Pages).{0,80}Pending\s{0,40}: Yes|Pending(?: Page "
                r"Blacklist)?\s{1,40}: Yes"
            ),
            weight=80,
            says="A repair of the GPU's memory waits for a reset",
            sample="        Pending                           : Yes",
            other="pending: yes please",
            severity=Severity.WARNING,
        ),
    ),
    cures=(
        Cure(
            text="Reset the GPU or restart the machine when no job runs.",
            zh="在没有任务时重置 GPU 或重启机器。",
            commands=("sudo nvidia-smi --gpu-reset",),
        ),
    ),
)
