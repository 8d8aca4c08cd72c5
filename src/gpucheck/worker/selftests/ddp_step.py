"""One step with DistributedDataParallel: each rank has part of a batch and gets the mean gradient.

Each rank's gradient is exact (``networks.py``). If the number of ranks is a power of two, their
mean is exact as well. Otherwise each share is rounded when it is multiplied by 1 / ranks, which is
itself rounded, and whenever two shares are added. The error bound follows from these roundings.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, NamedTuple

from .. import networks, reference
from ..bench import Bench, Failed
from ..groups import Group, group
from ..reference import switches
from ..words import say

NAME = "ddp-step"
PER = "ranks"
LEVELS = ("standard", "stress")
ABOUT = "a step of DistributedDataParallel has the gradient of the whole batch on every rank"
# More than usual: importing torch._dynamo takes seconds, and every rank waits for it.
SECONDS = {"quick": 120, "standard": 180}

Tensor = Any
Module = Any
Named = Any  # a dictionary of tensors

_EACH = 8  # samples; a power of two
_UNIT = 2.0**-24  # the unit roundoff of fp32
_RATE = 0.5  # a power of two: multiplying by it is exact
_BECAUSE = say("rounding of the mean over the ranks, which is none for a power of two")


class _Right(NamedTuple):
    """The mean gradients in float64, and their error bounds."""

    gradients: Named
    bounds: Named


def run(bench: Bench) -> None:
    """Take one step on every rank and compare with the gradient of the whole batch."""
    torch = bench.torch
    bench.stage(say("importing torch._dynamo, as DistributedDataParallel does"))
    with contextlib.suppress(Exception):  # older releases have none; DDP raises what is wrong
        importlib.import_module("torch._dynamo")  # seconds: nobody should wait for it in a step
    right = _whole_batch(bench)
    with group(bench) as ranks, switches(torch):
        # Another rank than 0 starts with other weights: DDP has to replace them.
        model = networks.network(torch, bench.seed + 1000 * ranks.rank).to(bench.device)
        wrapped: list[Module] = []
        ranks.do(
            say("construction of DistributedDataParallel"),
            lambda: wrapped.append(_wrapped(bench, model)),
        )
        optimiser = torch.optim.SGD(model.parameters(), lr=_RATE)
        images, factors = _part(bench, ranks.rank)
        ranks.do(
            say("step of DistributedDataParallel"),
            lambda: networks.loss(
                wrapped[0](images.to(bench.device)), factors.to(bench.device)
            ).backward(),
        )
        optimiser.step()
        ranks.judge(lambda: _check_gradients(bench, ranks, model, right))
        ranks.judge(lambda: _check_weights(bench, model, right))


def _part(bench: Bench, rank: int) -> tuple[Tensor, Tensor]:
    """Return a rank's part of the batch."""
    return networks.batch(bench.torch, bench.seed + 1 + rank, _EACH)


def _wrapped(bench: Bench, model: Module) -> Module:
    ids = [bench.device] if bench.device.type == "cuda" else None
    return bench.torch.nn.parallel.DistributedDataParallel(model, device_ids=ids)


def _whole_batch(bench: Bench) -> _Right:
    """Compute every rank's gradient in this process."""
    size = bench.world_size
    shares = [networks.exact(bench.torch, bench.seed, *_part(bench, rank)) for rank in range(size)]
    names = [name for name in shares[0] if name != "the output"]
    is_exact = size & (size - 1) == 0
    share = 0.0 if is_exact else reference.gamma(size + 2, _UNIT)
    return _Right(
        {name: sum(rank_share[name] for rank_share in shares) / size for name in names},
        {
            name: share * sum(rank_share[name].abs() for rank_share in shares) / size
            for name in names
        },
    )


def _check_gradients(bench: Bench, ranks: Group, model: Module, right: _Right) -> None:
    for name, weight in model.named_parameters():
        what = "the gradient of " + name
        got = weight.grad
        if got is None:
            raise Failed(
                "wrong-value",
                say("{what} is missing on rank {rank}", what=what, rank=ranks.rank),
                {"what": what},
            )
        try:
            exact, bound = right.gradients[what], right.bounds[what]
            reference.within(what, got, exact, bound, bench, _BECAUSE)
        except Failed as failure:
            rank = _whose(bench, what, got)
            if rank is not None:
                failure.detail = say(
                    "{said}; it is the value of rank {rank} alone: the ranks were not averaged",
                    said=failure.detail,
                    rank=rank,
                )
            raise


def _whose(bench: Bench, what: str, got: Tensor) -> int | None:
    """Return the rank whose own gradient this is; None if it is that of no rank."""
    for rank in range(bench.world_size if bench.world_size > 1 else 0):
        alone = networks.exact(bench.torch, bench.seed, *_part(bench, rank))[what]
        if bench.torch.equal(alone, got.detach().cpu().double()):
            return rank
    return None


def _check_weights(bench: Bench, model: Module, right: _Right) -> None:
    """Compare with one step from rank 0's weights."""
    start = dict(networks.network(bench.torch, bench.seed).named_parameters())
    for name, weight in model.named_parameters():
        what = "the gradient of " + name
        wanted = start[name].detach().double() - _RATE * right.gradients[what]
        room = _RATE * right.bounds[what]
        if bool((room > 0).any()):  # then the step itself is rounded as well
            room = room + 2 * _UNIT * (wanted.abs() + room)
        reference.within(
            say("{name} after the step", name=name), weight, wanted, room, bench, _BECAUSE
        )
