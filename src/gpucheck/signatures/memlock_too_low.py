"""Texts that point to memlock-too-low."""

from gpucheck.findings import Severity
from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="memlock-too-low",
    zh="锁定内存上限太低（InfiniBand 需要）",
    signatures=(
        Signature(
            name="warning",
            literal="rlimit_memlock",
            pattern=r"RLIMIT_MEMLOCK is (?P<bytes>\d{1,12}) bytes",
            weight=80,
            says="The limit on locked memory is {bytes} bytes: too low for InfiniBand",
            sample="libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.",
            other="RLIMIT_MEMLOCK unlimited",
            severity=Severity.WARNING,
        ),
    ),
    cures=(
        Cure(
            text="Raise the limit on locked memory for the job.",
            zh="提高任务的锁定内存上限。",
            commands=(
                "ulimit -l unlimited",
                "docker run --ulimit memlock=-1 IMAGE",
            ),
        ),
    ),
)
