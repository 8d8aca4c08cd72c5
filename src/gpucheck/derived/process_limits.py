"""How much of what the kernel limits is enough for NCCL: locked and shared memory."""

from collections.abc import Mapping

MIB = 1024 * 1024  # bytes
_LOCKED_ENOUGH = 64 * MIB
"""A few NCCL connections with their 4 MiB buffers; the defaults of 64 KiB and 8 MiB lie below."""
_SHARED_ENOUGH = 512 * MIB
"""Eight times the default of containers."""
_ONE_BATCH = MIB
"""With less, batches of 32 small images (28 by 28) did not fit for two DataLoader workers."""


def locks_too_little(memlock: int) -> bool:
    """Whether the limit of locked memory, in bytes, is too low for NCCL over InfiniBand.

    A negative number, such as the -1 of "unlimited", is no limit.
    """
    return 0 <= memlock < _LOCKED_ENOUGH


def shares_too_little(total: int) -> bool:
    """Whether shared memory of so many bytes is too little for NCCL and DataLoader workers."""
    return 0 <= total < _SHARED_ENOUGH


def holds_no_batch(total: int) -> bool:
    """Whether shared memory of so many bytes stops nearly every DataLoader that has workers."""
    return 0 <= total < _ONE_BATCH


def nccl_uses_shared_memory(variables: Mapping[str, str] | None) -> bool:
    """Whether NCCL may join ranks through shared memory, as far as its variables tell."""
    return (variables or {}).get("NCCL_SHM_DISABLE") != "1"


def in_words(size: int) -> str:
    """Return ``8 MiB`` or ``64 KiB``."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB"
