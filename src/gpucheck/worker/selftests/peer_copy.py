"""Copies between every two GPUs, in both directions: the values, peer access and the speed.

If data arrives wrong, it is sent again through the CPU. If it is right then, the direct path
between the two GPUs is to blame.
"""

from __future__ import annotations

from typing import Any

from .. import reference
from ..bench import Bench, Failed, by_level, release
from ..words import say

NAME = "peer-copy"
PER = "machine"
LEVELS = ("standard", "stress")
ABOUT = "copies between every two GPUs: their values, their speed, direct or through the CPU"
SECONDS = {"standard": 240, "stress": 600}  # chosen: eight GPUs are 56 ordered pairs

Tensor = Any
Device = Any

_COUNT = (1 << 20) + 7  # values of 8 bytes; no multiple of a block, so that a copy ends within one
_TURNS = 3  # as TURNS of collectives.py: what is left of an earlier copy shows
# Chosen: long enough that starting a copy does not count, within the level's memory.
_TIMED_BYTES = {"quick": 1 << 24, "standard": 1 << 26, "stress": 1 << 28}
_CALLS = 10  # chosen: with 16 MiB and more each, starting a copy does not count


def run(bench: Bench) -> None:
    """Copy between every ordered pair of GPUs."""
    gpus = [device for device in bench.devices if device.type == "cuda"]
    if not gpus:
        bench.skip(say("there is no GPU under test"))
    if len(gpus) == 1:
        bench.skip(say("there is one GPU only, and no other to copy to"))
    pairs = [(here, there) for here in gpus for there in gpus if here != there]
    reach = bench.data["direct"] = {}
    for here, there in pairs:
        way = say("{here} to {there}", here=here, there=there)
        bench.stage(say("asking whether {here} can access {there}", here=here, there=there))
        reach[way] = bool(bench.torch.cuda.can_device_access_peer(here, there))
    for at, (here, there) in enumerate(pairs):
        check_pair(bench, here, there, bench.seed + at, direct=reach[f"{here} to {there}"])
    for here, there in pairs:
        _time(bench, here, there)
    release(bench)


def check_pair(bench: Bench, here: Device, there: Device, seed: int, *, direct: bool) -> None:
    """Copy different values into the same buffer several times, and compare every bit on the CPU.

    Raises:
        Failed: values arrive wrong; ``data`` says whether they are right through the CPU.
    """
    torch, way = bench.torch, f"{here} to {there}"
    bench.stage(say("copies from {here}", here=here))
    source = reference.generator(torch, seed)
    buffer = torch.full((_COUNT,), -1, dtype=torch.int64, device=there)
    for turn in range(_TURNS):
        values = torch.randint(0, 1 << 62, (_COUNT,), generator=source)
        sent = values.to(here)
        if not torch.equal(sent.cpu(), values):
            raise Failed(
                "wrong-value", say("{here} does not keep what the CPU has sent it", here=here)
            )
        bench.stage(say("copy from {way}", way=way))
        buffer.copy_(sent)
        got = buffer.cpu()
        if not torch.equal(got, values):
            bench.stage(say("copy from {way} by way of the CPU", way=way))
            staged = torch.equal(sent.cpu().to(there).cpu(), values)
            raise _wrong(
                got,
                values,
                turn,
                {"from": str(here), "to": str(there)},
                direct=direct,
                staged=staged,
            )


def _wrong(
    got: Tensor,
    values: Tensor,
    turn: int,
    way: dict[str, str],
    *,
    direct: bool,
    staged: bool,
) -> Failed:
    wrong = (got != values).nonzero().reshape(-1)
    at = int(wrong[0])
    access = say("direct access") if direct else say("no direct access")
    through = say("arrives right") if staged else say("arrives wrong as well")
    flipped = bin((int(got[at]) ^ int(values[at])) & (2**64 - 1)).count("1")
    return Failed(
        "wrong-value",
        say(
            "{wrong} of {all} values copied from {here} to {there} are wrong ({access}), the "
            "first at {at}, in {flipped} of its 64 bits; by way of the CPU the same {through}",
            wrong=len(wrong),
            all=len(values),
            here=way["from"],
            there=way["to"],
            access=access,
            at=at,
            flipped=flipped,
            through=through,
        ),
        {**way, "direct": direct, "staged_is_right": staged, "wrong": len(wrong), "turn": turn},
    )


def _time(bench: Bench, here: Device, there: Device) -> None:
    """Measure the speed of copies by the clock of the sending GPU."""
    torch = bench.torch
    size = min(int(by_level(bench, _TIMED_BYTES)), bench.memory_limit // 4)
    sent = torch.zeros(size, dtype=torch.uint8, device=here)
    got = torch.empty(size, dtype=torch.uint8, device=there)
    bench.stage(say("bandwidth from {here} to {there}", here=here, there=there))
    with torch.cuda.device(here):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        got.copy_(sent, non_blocking=True)
        start.record()
        for _ in range(_CALLS):
            got.copy_(sent, non_blocking=True)
        end.record()
        torch.cuda.synchronize(there)
        end.synchronize()
    seconds = start.elapsed_time(end) / 1e3 / _CALLS
    bench.measure(f"{here} to {there}", size / max(seconds, 1e-9) / 1e9, "GB/s")
