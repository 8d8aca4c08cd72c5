"""Moves tensors and a module to the device and back; checks every bit, the device and the speed."""

from __future__ import annotations

import functools
from typing import Any

from .. import reference
from ..bench import Bench, Failed, by_level, release, seconds_per_call, synchronize
from ..words import say

NAME = "device-placement"
PER = "gpu"
LEVELS = ("quick", "standard", "stress")
ABOUT = "tensors and modules moved to the GPU and back, bit for bit; pinned and pageable bandwidth"

Torch = Any  # the module, of any version
Tensor = Any

_DTYPES = ("uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool")
_VALUES = 4099  # a prime: no multiple of any width
# Chosen: 32 MiB are within what the quick level may use; larger copies are steadier.
_BANDWIDTH_BYTES = {"quick": 1 << 25, "standard": 1 << 28, "stress": 1 << 28}


def run(bench: Bench) -> None:
    """Move tensors and a module, compute with them on the device, and measure the speed."""
    _round_trips(bench)
    _shapes(bench)
    _module(bench)
    _no_mixing(bench)
    _bandwidth(bench)
    release(bench)


def _movers(bench: Bench) -> dict[str, Any]:
    """Return the ways to move something to the device."""
    device = bench.device
    ways: dict[str, Any] = {
        ".to(device)": lambda tensor: tensor.to(device),
        ".to(device), not blocking": lambda tensor: tensor.to(device, non_blocking=True),
        "copy_": lambda tensor: bench.torch.empty_like(tensor, device=device).copy_(tensor),
    }
    if device.type == "cuda":
        ways[".cuda(index)"] = lambda tensor: tensor.cuda(device.index)
    return ways


def _round_trips(bench: Bench) -> None:
    """Move random bits of every type there and back several times, to detect a stale copy."""
    torch = bench.torch
    source = reference.generator(torch, bench.seed)
    for way, move in _movers(bench).items():
        bench.stage("round trip by " + way)
        for name in _DTYPES:
            bits = _random_bits(torch, source, name)
            there = move(bits)
            _require_on(bench, f"{name} {way}", there)
            back = there.cpu()
            synchronize(bench)
            _require_same_bits(torch, f"{name} moved by {way}", back, bits)


def _random_bits(torch: Torch, source: Any, name: str) -> Tensor:  # noqa: ANN401  # a generator
    """Return random bits as a tensor of the type: NaN, infinities, zeros of both signs included."""
    if name == "bool":
        return torch.randint(0, 2, (_VALUES,), generator=source).bool()
    width = torch.empty(0, dtype=getattr(torch, name)).element_size()
    octets = torch.randint(0, 256, (_VALUES * width,), generator=source, dtype=torch.uint8)
    return octets.view(getattr(torch, name))


def _require_same_bits(torch: Torch, what: str, got: Tensor, expected: Tensor) -> None:
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise Failed(
            "wrong-shape",
            say(
                "{what}: {got} came back instead of {right}",
                what=what,
                got=f"{got.dtype} {list(got.shape)}",
                right=f"{expected.dtype} {list(expected.shape)}",
            ),
        )
    if expected.numel() == 0:
        return
    got_bytes, expected_bytes = (
        each.contiguous().reshape(-1).view(torch.uint8) for each in (got, expected)
    )
    wrong = (got_bytes != expected_bytes).nonzero()
    if wrong.numel():
        at = int(wrong[0])
        raise Failed(
            "wrong-value",
            say(
                "{what}: {changed} of {all} bytes came back changed, the first at {at}: {got:#04x} "
                "instead of {right:#04x}",
                what=what,
                changed=int(wrong.shape[0]),
                all=got_bytes.numel(),
                at=at,
                got=int(got_bytes[at]),
                right=int(expected_bytes[at]),
            ),
            {"what": what, "wrong": int(wrong.shape[0]), "of": got_bytes.numel(), "index": [at]},
        )


def _require_on(bench: Bench, what: str, tensor: Tensor) -> None:
    if tensor.device != bench.device:
        raise Failed(
            "wrong-device",
            say(
                "{what} is on {got} instead of {right}",
                what=what,
                got=tensor.device,
                right=bench.device,
            ),
        )


def _shapes(bench: Bench) -> None:
    """Move tensors of unusual shape: empty, a single value, a transposed matrix, a slice."""
    torch = bench.torch
    bench.stage(say("tensors of odd shapes and strides"))
    grid = torch.arange(7 * 11 * 3, dtype=torch.float32).reshape(7, 11, 3)
    odd: list[Tensor] = [
        grid[0:0], grid[3, 4, 1], grid.transpose(0, 2), grid[::2, 1::3], grid[:1].expand(5, 11, 3)
    ]  # fmt: skip
    for each in odd:
        there = each.to(bench.device)
        what = f"a tensor of shape {list(each.shape)} and stride {list(each.stride())}"
        _require_on(bench, what, there)
        doubled = (there + there).cpu()
        _require_same_bits(torch, what, doubled, each * 2)


def _module(bench: Bench) -> None:
    """Move a module: its weights and buffers must arrive, compute there, and return unchanged."""
    torch, nn = bench.torch, bench.torch.nn
    bench.stage(say("moving a module"))
    source = reference.generator(torch, bench.seed + 1)
    model = nn.Sequential(nn.Linear(12, 5), nn.BatchNorm1d(5)).eval()
    with torch.no_grad():
        for weight in model[0].parameters():
            weight.copy_(reference.integers(torch, source, weight.shape, 3))
    before = {name: each.clone() for name, each in model.state_dict().items()}
    model = model.to(bench.device)
    for name, each in model.state_dict().items():
        _require_on(bench, name + " of a module", each)
    data = reference.integers(torch, source, (4, 12), 3)
    with torch.no_grad():
        got = model[0](data.float().to(bench.device))
    weight, bias = (before[name].long() for name in ("0.weight", "0.bias"))
    reference.same("a linear layer that was moved", got, data @ weight.t() + bias, bench)
    for name, each in model.cpu().state_dict().items():
        _require_same_bits(torch, name + " of a module", each, before[name])


def _no_mixing(bench: Bench) -> None:
    """Add tensors on different devices: torch must refuse."""
    here = bench.torch.ones(3, device=bench.device)
    others = ["cpu"] if bench.device.type == "cuda" else []
    others += [device for device in bench.devices if device != bench.device]
    for other in others:
        bench.stage(say("adding tensors of {device} and {other}", device=bench.device, other=other))
        try:
            total = here + bench.torch.ones(3, device=other)
        except RuntimeError as error:
            if "device" not in str(error):
                raise
            continue
        raise Failed(
            "devices-mixed",
            say(
                "torch added a tensor on {device} to one on {other} and returned one on {found}",
                device=bench.device,
                other=other,
                found=total.device,
            ),
        )


def _bandwidth(bench: Bench) -> None:
    """Measure the speed of copies to and from the GPU, with pageable and with pinned memory."""
    if bench.device.type != "cuda":
        return
    torch = bench.torch
    count = min(int(by_level(bench, _BANDWIDTH_BYTES)), bench.memory_limit // 4)
    there = torch.empty(count, dtype=torch.uint8, device=bench.device)
    for kind in ("pageable", "pinned"):
        bench.stage(say("bandwidth of {kind} memory", kind=kind))
        here = torch.ones(count, dtype=torch.uint8)
        if kind == "pinned":
            here = here.pin_memory()
        for way, target, origin in (("to", there, here), ("from", here, there)):
            copy = functools.partial(target.copy_, origin, non_blocking=True)
            seconds = seconds_per_call(bench, copy)
            bench.measure(f"{kind} memory {way} the GPU", count / seconds / 1e9, "GB/s")
        _require_same_bits(torch, kind + " memory, after its copies", here, torch.ones_like(here))
