"""Texts that point to rank-hangs."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="rank-hangs",
    zh="有 rank 卡住了",
    signatures=(
        Signature(
            name="flight",
            literal="did not join",
            pattern=r"rank\(?s?\)? .{0,60}did not (?:join|enter|call|reach)",
            weight=50,
            says="A rank did not reach the collective",
            sample="Following ranks: rank 3 did not join collective",
            other="did not join us",
        ),
    ),
    cures=(
        Cure(
            text="Look at the stack of the rank that is stuck.",
            zh="查看卡住的 rank 的调用栈。",
            commands=("py-spy dump --pid PID",),
        ),
    ),
)
