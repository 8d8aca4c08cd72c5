"""``nn.DataParallel``: how it splits a batch over GPUs, and whether the result equals one GPU's.

A batch is split as by ``torch.chunk``: every part except the last has ceil(batch / GPUs) samples.
So two GPUs get 15 samples each of 30, and of eight GPUs five get two samples each of 10.
"""

from __future__ import annotations

from typing import Any

from .. import networks, reference
from ..bench import Bench, Failed, release
from ..reference import switches
from ..words import say

NAME = "data-parallel"
PER = "machine"
LEVELS = ("standard", "stress")
ABOUT = "nn.DataParallel splits a batch as documented, and its gradients are those of one device"

Seen = Any  # a list of devices and how many samples each got

# The docstring's example, one that leaves GPUs without a sample, and a single sample.
_BATCHES = (30, 10, 1)


def run(bench: Bench) -> None:
    """Split batches whose size is a multiple of the number of GPUs, and others."""
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
    images, factors = networks.batch(torch, bench.seed + count, count)
    right = networks.exact(torch, bench.seed, images, factors)
    model = networks.network(torch, bench.seed).to(bench.device)
    seen: Seen = []
    model.register_forward_pre_hook(
        lambda _module, given: seen.append((str(given[0].device), len(given[0])))
    )
    bench.stage("nn.DataParallel, forward: " + title)
    wrapped = torch.nn.DataParallel(model, device_ids=bench.devices)
    with switches(torch):
        outputs = wrapped(images.to(bench.device))
        bench.stage("nn.DataParallel, backward: " + title)
        networks.loss(outputs, factors.to(bench.device)).backward()
    _require_split(bench, count, seen)
    for name, got in networks.found(model, outputs).items():
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
