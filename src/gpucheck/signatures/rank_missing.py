"""Texts that point to rank-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs
from gpucheck.signatures.numbers import fewer_workers

SIGNS = Signs(
    slug="rank-missing",
    zh="有 rank 一直没有到达",
    signatures=(
        Signature(
            name="waiting",
            literal="worker_count",
            pattern=r"world_size=(?P<world>\d{1,6}), worker_count=(?P<count>\d{1,6})",
            weight=72,
            says="Only {count} of {world} ranks arrived",
            sample=(
                "Timed out initializing process group in store based barrier "
                "on rank: 0 (world_size=4, worker_count=2, timeout=0:30:00)"
            ),
            other="worker_count",
            check=fewer_workers,
        ),
    ),
    cures=(
        Cure(
            text="Read the output of the rank that is missing, on its own node.",
            zh="在缺失的 rank 所在节点查看它的输出。",
        ),
    ),
)
