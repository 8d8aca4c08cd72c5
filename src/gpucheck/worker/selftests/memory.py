"""Writes a pattern to a share of the free memory and reads it back; then asks for too much memory.

The pattern of each value depends on its address, and everything is written before anything is read.
So the test detects a stuck address line as well as a bit that loses its value.
"""

from __future__ import annotations

from typing import Any, Iterator

from ..bench import Bench, Failed, by_level, release, seconds_per_call, synchronize
from ..errors import is_out_of_memory
from ..words import say

NAME = "memory"
PER = "gpu"
LEVELS = ("standard", "stress")
ABOUT = "a pattern over 25 % (stress: 90 %) of the free memory, running out of memory, giving back"
# 5.3 s for 71 GiB on an H100 (docs/evidence.md); the limit is for slow memory and one CPU.
SECONDS = {"standard": 120, "stress": 600}

Torch = Any  # the module, of any version
Tensor = Any
Device = Any

_BLOCK = 1 << 22  # values worked on at a time: 32 MiB, and as much again for intermediate results
_CHUNK = 8 * _BLOCK  # values allocated at a time
_SPREAD = -7046029254386353131  # odd: 2**64 divided by the golden ratio, as a signed number
_MIX = -4658895280553007687  # odd: a multiplier of the splitmix64 generator, as a signed number
_IMPOSSIBLE = 1 << 50  # bytes: one PiB
# What is flipped in the pattern: -1 is its complement, which shows bits that are stuck.
_PASSES = {"quick": (0,), "standard": (0,), "stress": (0, -1)}


def run(bench: Bench) -> None:
    """Write and read the patterns, run out of memory, and check that all memory was released."""
    torch = bench.torch
    before = _held(bench)
    chunks = _allocate(bench)
    tested = sum(chunk.numel() for chunk in chunks) * 8
    bench.measure("memory tested", tested / 2**30, "GiB")
    bench.stage(say("copy speed within the memory"))
    _copy_speed(bench, chunks[0])
    for flip in by_level(bench, _PASSES):
        bench.stage(say("writing the pattern") if not flip else say("writing its complement"))
        for block, pattern in _blocks(bench, chunks, flip):
            block.copy_(pattern)
        synchronize(bench)
        bench.stage(
            say("reading the pattern back") if not flip else say("reading its complement back")
        )
        for at, (block, pattern) in enumerate(_blocks(bench, chunks, flip)):
            if not torch.equal(block, pattern):
                raise _corruption(block, pattern, at)
        _sample_on_cpu(bench, chunks, flip)
    del block, pattern
    chunks.clear()
    _out_of_memory(bench)
    release(bench)
    _require_given_back(bench, before)


def _allocate(bench: Bench) -> list[Tensor]:
    """Allocate as much as the limit allows, or less if other programs use the memory."""
    bench.stage(say("allocating memory"))
    torch, chunks = bench.torch, []
    scratch = 3 * _BLOCK * 8
    left = max(bench.memory_limit - scratch, 2 * _BLOCK * 8) // 8
    try:
        while left >= 2 * _BLOCK:
            count = min(_CHUNK, left // _BLOCK * _BLOCK)
            chunks.append(torch.empty(count, dtype=torch.int64, device=bench.device))
            left -= count
    except RuntimeError as error:
        if not is_out_of_memory(torch, error):
            raise
        bench.data["stopped_at"] = str(error)[:300]
        if len(chunks) > 1:
            chunks.pop()  # room for intermediate results
    if not chunks:
        raise Failed(
            "out-of-memory",
            say(
                "not even {least} MiB can be allocated, though this test may take {limit} MiB",
                least=2 * _BLOCK * 8 >> 20,
                limit=bench.memory_limit >> 20,
            ),
            {"message": bench.data.get("stopped_at", "")},
        )
    return chunks


def _copy_speed(bench: Bench, chunk: Tensor) -> None:
    half = chunk.numel() // 2
    seconds = seconds_per_call(bench, lambda: chunk[:half].copy_(chunk[half : 2 * half]))
    bench.measure("copy within the memory, read and written", 16.0 * half / seconds / 1e9, "GB/s")


def _blocks(bench: Bench, chunks: list[Tensor], flip: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each block of the memory with its expected values."""
    start = 0
    for chunk in chunks:
        for at in range(0, chunk.numel(), _BLOCK):
            block = chunk[at : at + _BLOCK]
            yield block, pattern_of(bench.torch, bench.device, start, block.numel(), flip)
            start += block.numel()


def pattern_of(torch: Torch, device: Device, start: int, count: int, flip: int) -> Tensor:
    """Return the values that belong at these addresses: a hash of each, or its complement."""
    values = torch.arange(start + 1, start + 1 + count, dtype=torch.int64, device=device)
    values.mul_(_SPREAD)
    values.bitwise_xor_(values >> 29)
    values.mul_(_MIX)
    return values.bitwise_xor_(flip)


def _corruption(block: Tensor, pattern: Tensor, at: int) -> Failed:
    """Describe the difference between the values read and the values written."""
    wrong = (block != pattern).nonzero().reshape(-1)
    first = int(wrong[0])
    written, read = int(pattern[first]), int(block[first])
    changed = (written ^ read) & (2**64 - 1)
    offset = (at * _BLOCK + first) * 8
    return Failed(
        "wrong-value",
        say(
            "{wrong} of {all} values differ from what was written, the first {offset} bytes into "
            "the tested memory: {bits} bits have changed",
            wrong=wrong.numel(),
            all=block.numel(),
            offset=offset,
            bits=bin(changed).count("1"),
        ),
        {
            "offset": offset,
            "wrong": wrong.numel(),
            "of": block.numel(),
            "written": f"{written & (2**64 - 1):#018x}",
            "read": f"{read & (2**64 - 1):#018x}",
            "changed": f"{changed:#018x}",
        },
    )


def _sample_on_cpu(bench: Bench, chunks: list[Tensor], flip: int) -> None:
    """Compare the start of each chunk on the CPU, because the GPU's own comparison may be wrong."""
    torch, start, count = bench.torch, 0, 1024
    for chunk in chunks:
        block, pattern = chunk[:count].cpu(), pattern_of(torch, "cpu", start, count, flip)
        if not torch.equal(block, pattern):
            raise _corruption(block, pattern, start // _BLOCK)
        start += chunk.numel()


def _out_of_memory(bench: Bench) -> None:
    """Ask for more than any machine has: torch must refuse, and the device must still work."""
    torch = bench.torch
    bench.stage(say("asking for one PiB"))
    try:
        torch.empty(_IMPOSSIBLE, dtype=torch.uint8, device=bench.device)
    except RuntimeError as error:
        if not is_out_of_memory(torch, error):
            raise
    else:
        raise Failed("out-of-memory-not-raised", say("one PiB of memory was granted"))
    bench.stage(say("working on after running out of memory"))
    total = float(torch.ones(1000, device=bench.device).sum())
    bench.require(
        total == 1000.0,  # noqa: PLR2004
        "wrong-value",
        say("after running out of memory 1000 ones sum up to {total}", total=repr(total)),
    )


def _held(bench: Bench) -> tuple[int, int]:
    """Return the bytes that torch has allocated and reserved on the GPU."""
    if bench.device.type != "cuda":
        return 0, 0
    cuda = bench.torch.cuda
    release(bench)
    return int(cuda.memory_allocated(bench.device)), int(cuda.memory_reserved(bench.device))


def _require_given_back(bench: Bench, before: tuple[int, int]) -> None:
    after = _held(bench)
    bench.require(
        after[0] <= before[0] and after[1] <= before[1],
        "memory-not-returned",
        say(
            "{used} MiB are in use and {kept} MiB kept after everything was released; "
            "{used_before} and {kept_before} before",
            used=after[0] >> 20,
            kept=after[1] >> 20,
            used_before=before[0] >> 20,
            kept_before=before[1] >> 20,
        ),
        {"before": list(before), "after": list(after)},
    )
