"""Texts that point to nccl-duplicate-gpu."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="nccl-duplicate-gpu",
    zh="两个 rank 使用了同一块 GPU",
    signatures=(
        Signature(
            name="duplicate",
            literal="duplicate gpu detected",
            pattern=(
                r"Duplicate GPU detected ?: rank (?P<a>\d{1,6}) and rank (?P<b>\d{1,6}) "
                r"both on CUDA device (?P<device>\w{1,20})"
            ),
            weight=95,
            says="Ranks {a} and {b} use the same GPU",
            sample=(
                "NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000"
            ),
            other="duplicate files",
            stands=True,
        ),
        Signature(
            name="duplicate-any",
            literal="duplicate gpu",
            pattern=r"Duplicate GPU detected",
            weight=93,
            says="Two ranks use the same GPU",
            sample="Duplicate GPU detected",
            other="duplicate gpu order",
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text=(
                "One process per GPU, and torch.cuda.set_device(LOCAL_RANK) "
                "before the first collective."
            ),
            zh="每块 GPU 一个进程，并在第一次集合通信前调用 torch.cuda.set_device(LOCAL_RANK)。",
            commands=("torchrun --nproc-per-node=gpu SCRIPT",),
        ),
    ),
)
