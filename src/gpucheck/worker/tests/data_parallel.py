"""``nn.DataParallel``: how it splits a batch over the GPUs, and that it computes what one does.

A batch is split as ``torch.chunk`` does: every part but the last has ceil(batch / GPUs) samples, so
that 30 samples over two GPUs are 15 and 15, and 10 over eight are two on each of five.
"""

from __future__ import annotations

from typing import Any

from .. import reference, split
from ..bench import Bench, Failed
from ..formats import switches
from ..timing import release
from ..words import say

NAME = "data-parallel"
PER = "machine"
LEVELS = ("standard", "stress")
ABOUT = "nn.DataParallel splits a batch as documented, and its gradients are those of one device"

Seen = Any  # a list of devices and how many samples each got

_BATCHES = (30, 10, 1)


def run(bench: Bench) -> None:
    """Split batches that divide by the number of GPUs and that do not."""
    if bench.device.type != "cuda":
        bench.skip(say("nn.DataParallel splits over GPUs, and none is under test"))
    if len(bench.devices) == 1:
        bench.skip(say("there is one GPU only, and nothing to split over"))
    for count in _BATCHES:
        check_batch(bench, count)
    release(bench)


def expected_split(count: int, devices: int) -> list[int]:
    """Return how many samples each device gets, in order; the last devices may get none."""
    each = -(-count // devices)
    return [min(each, count - start) for start in range(0, count, each)]


def check_batch(bench: Bench, count: int) -> None:
    """Run a batch through all devices; compare with float64 on the CPU.

    Raises:
        Failed: the batch is split in another way, or a result is wrong.
    """
    torch = bench.torch
    title = f"{count} samples over {len(bench.devices)} GPUs"
    images, factors = split.batch(torch, bench.seed + count, count)
    right = split.exact(torch, bench.seed, images, factors)
    model = split.network(torch, bench.seed).to(bench.device)
    seen: Seen = []
    model.register_forward_pre_hook(
        lambda _module, given: seen.append((str(given[0].device), len(given[0])))
    )
    bench.stage("nn.DataParallel, forward: " + title)
    wrapped = torch.nn.DataParallel(model, device_ids=bench.devices)
    with switches(torch):
        outputs = wrapped(images.to(bench.device))
        bench.stage("nn.DataParallel, backward: " + title)
        split.loss(outputs, factors.to(bench.device)).backward()
    _require_split(bench, count, seen)
    for name, got in split.found(model, outputs).items():
        bench.require(
            got is not None, "wrong-value", say("{what}: {name} is missing", what=title, name=name)
        )
        reference.same(f"{name}, {title}", got, right[name], bench)


def _require_split(bench: Bench, count: int, seen: Seen) -> None:
    wanted = expected_split(count, len(bench.devices))
    expected = sorted(zip(map(str, bench.devices), wanted))
    if sorted(seen) != expected:
        got = ", ".join(f"{samples} on {device}" for device, samples in sorted(seen))
        right = ", ".join(f"{samples} on {device}" for device, samples in expected)
        raise Failed(
            "wrong-split",
            say(
                "nn.DataParallel split {count} samples into {got} instead of {right}",
                count=count,
                got=got or say("nothing"),
                right=right,
            ),
            {"batch": count, "got": sorted(seen), "expected": expected},
        )
