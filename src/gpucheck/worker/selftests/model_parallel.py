"""A model with its layers on different GPUs must give the results and gradients of one device."""

from __future__ import annotations

from typing import Any, Sequence

from .. import networks, reference
from ..bench import Bench, release
from ..reference import switches
from ..words import say

NAME = "model-parallel"
PER = "machine"
LEVELS = ("standard", "stress")
ABOUT = "layers on different GPUs compute what one device does, forward and backward"

Device = Any

_COUNT = 24  # samples; the sums over them stay exact in float32 (networks.py)


def run(bench: Bench) -> None:
    """Put the halves of a network on each GPU and its successor."""
    if bench.device.type != "cuda":
        bench.skip(say("layers can lie on several GPUs, and none is under test"))
    if len(bench.devices) == 1:
        bench.skip(say("there is one GPU only, and no second for the other layers"))
    for at, here in enumerate(bench.devices):
        check_halves(bench, (here, bench.devices[(at + 1) % len(bench.devices)]))
    release(bench)


def check_halves(bench: Bench, devices: Sequence[Device]) -> None:
    """Compute with the first layers on one device and the last on another.

    Raises:
        Failed: an output or a gradient is not that of float64 on the CPU.
    """
    torch = bench.torch
    here, there = devices
    title = f"layers on {here} and {there}"
    images, factors = networks.batch(torch, bench.seed, _COUNT)
    right = networks.exact(torch, bench.seed, images, factors)
    model = networks.network(torch, bench.seed)
    first, last = model[:2].to(here), model[2:].to(there)
    with switches(torch):
        bench.stage("forward, " + title)
        outputs = last(first(images.to(here)).to(there))
        bench.stage("backward, " + title)
        networks.loss(outputs, factors.to(there)).backward()
    for name, got in networks.found(model, outputs).items():
        bench.require(
            got is not None, "wrong-value", say("{what}: {name} is missing", what=title, name=name)
        )
        reference.same(f"{name}, {title}", got, right[name], bench)
