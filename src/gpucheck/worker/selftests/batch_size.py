"""The largest batch of a small network that this GPU trains, found by running out of memory.

The level sets the memory limit, and torch's own allocator enforces it, so neither the GPU nor the
machine runs out of memory. Meanwhile other programs cannot use this memory, so the test runs only
if it is named.
"""

from __future__ import annotations

import contextlib
import gc
from typing import Any, Callable, Iterator

from .. import reference
from ..bench import Bench, Failed, release, synchronize
from ..errors import is_out_of_memory
from ..reference import switches
from ..words import SpokenWords, say

NAME = "batch-size"
PER = "gpu"
LEVELS = ()
ABOUT = "the largest batch that a small network trains in the level's memory (only when named)"
# Chosen: each try trains on a batch until memory runs out.
SECONDS = {"quick": 120, "standard": 300, "stress": 300}

Torch = Any  # the module, of any version
Module = Any

# Chosen: an image takes some 20 MB in 24 equal layers, so that memory runs out in small steps.
_CHANNELS, _SIDE, _LAYERS, _CLASSES = 16, 112, 24, 10
_MOST_VALUES = (1 << 31) - 1
"""Several releases of torch compute larger tensors wrongly, or not at all."""
_NO_ROOM = (
    "Unable to find a valid cuDNN algorithm",
    "unable to find an engine to execute this computation",
    "_STATUS_ALLOC_FAILED",
)
"""What libraries say if they get no memory to work in."""
_REMARKS: dict[str, Callable[[int, float], SpokenWords]] = {
    "memory": lambda count, size: say(
        "a batch of {count} images fits into {size:.2f} GiB", count=count, size=size
    ),
    "time": lambda count, size: say(
        "a batch of {count} images fits into {size:.2f} GiB, and there was no time to try a larger "
        "one",
        count=count,
        size=size,
    ),
    "size": lambda count, size: say(
        "a batch of {count} images fits into {size:.2f} GiB, and no larger one was tried, because "
        "its tensors would have 2^31 values",
        count=count,
        size=size,
    ),
}
"""What a passed test says, by what ended the search."""
_PRECISION = 16  # docs/selftests/reference.md promises it
_SPARE_SECONDS = 20.0  # chosen: left for the training after the search


def run(bench: Bench) -> None:
    """Double the batch until it does not fit, close in on the largest, and train on that again."""
    if bench.device.type != "cuda":
        bench.skip(
            say(
                "the CPU uses the memory of the system, which would end a process that takes all "
                "of it"
            )
        )
    if _shares_memory(bench):
        bench.skip(
            say(
                "this GPU shares the memory of the machine: a test that fills it would take memory "
                "from other programs"
            )
        )
    with _limited(bench), switches(bench.torch):
        model = _network(bench.torch, bench.seed).to(bench.device)
        largest, stopped = _search(bench, model)
        bench.stage(say("training after running out of memory"))
        bench.require(
            _fits(bench, model, largest),
            "out-of-memory",
            say(
                "a batch of {size} fitted, but no longer fits after a larger one failed",
                size=largest,
            ),
        )
    release(bench)
    bench.measure("largest batch", largest, f"images of 3 x {_SIDE} x {_SIDE}")
    bench.measure("memory for it, at most", bench.memory_limit / 2**30, "GiB")
    bench.data["largest_batch"], bench.data["stopped_by"] = largest, stopped
    bench.remark = _REMARKS[stopped](largest, bench.memory_limit / 2**30)


def _shares_memory(bench: Bench) -> bool:
    properties = bench.torch.cuda.get_device_properties(bench.device)
    return bool(getattr(properties, "is_integrated", False))


@contextlib.contextmanager
def _limited(bench: Bench) -> Iterator[None]:
    """Have torch refuse more memory than the test may use."""
    cuda = bench.torch.cuda
    total = int(cuda.get_device_properties(bench.device).total_memory)
    cuda.set_per_process_memory_fraction(min(1.0, bench.memory_limit / total), bench.device)
    try:
        yield
    finally:
        cuda.set_per_process_memory_fraction(1.0, bench.device)


def _network(torch: Torch, seed: int) -> Module:
    """Return a network of many equal layers, so that each tensor is a small part of the whole."""
    nn = torch.nn
    layers = [nn.Conv2d(3, _CHANNELS, 3, padding=1), nn.Tanh()]
    for _ in range(_LAYERS - 1):
        layers += [nn.Conv2d(_CHANNELS, _CHANNELS, 3, padding=1), nn.Tanh()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(_CHANNELS, _CLASSES)]
    model = nn.Sequential(*layers)
    source = reference.generator(torch, seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=source) / 8)
    return model


def _search(bench: Bench, model: Module) -> tuple[int, str]:
    """Return the largest batch that is known to fit, and what ended the search."""
    fits, fails = 0, _MOST_VALUES // (_CHANNELS * _SIDE**2) + 1
    size = 1
    is_memory = False
    while fails - fits > max(1, fits // _PRECISION):
        if bench.seconds_left() < _SPARE_SECONDS and fits:
            return fits, "time"
        bench.stage(say("a batch of {size}", size=size))
        if _fits(bench, model, size):
            fits = size
        elif size == 1:
            raise Failed(
                "out-of-memory",
                say(
                    "not even one image can be trained on in {limit} MiB",
                    limit=bench.memory_limit >> 20,
                ),
            )
        else:
            fails, is_memory = size, True
        size = (fits + fails) // 2 if is_memory else min(2 * size, fails - 1)
    return fits, "memory" if is_memory else "size"


def _fits(bench: Bench, model: Module, size: int) -> bool:
    """Whether a training step on a batch of this size fits into memory."""
    try:
        _step(bench, model, size)
        synchronize(bench)
    except RuntimeError as error:
        if not _is_for_room(bench.torch, error):
            raise
        return False
    finally:
        model.zero_grad(set_to_none=True)
        gc.collect()
        release(bench)
    return True


def _is_for_room(torch: Torch, error: RuntimeError) -> bool:
    return is_out_of_memory(torch, error) or any(each in str(error) for each in _NO_ROOM)


def _step(bench: Bench, model: Module, size: int) -> None:
    torch = bench.torch
    images = torch.zeros(size, 3, _SIDE, _SIDE, device=bench.device)
    labels = torch.zeros(size, dtype=torch.int64, device=bench.device)
    torch.nn.functional.cross_entropy(model(images), labels).backward()
