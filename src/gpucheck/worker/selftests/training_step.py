"""Compares a few training steps with float64 on the CPU, with and without autocast.

No formula bounds the effect of rounding errors on a training, but the effect can be measured. The
float64 training is repeated with a rounding error of the format in every weight and in every
layer's output. The device's distance from the undisturbed training may be a fixed multiple of the
largest distance found in this way; ``docs/selftests/reference.md`` has the reason.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any, Callable, NamedTuple

from .. import networks
from ..bench import Bench, Failed, release, seconds_per_call, synchronize
from ..reference import Format, not_tested, obeyed, switches, usable
from ..words import say

NAME = "training-step"
PER = "gpu"
LEVELS = ("standard", "stress")
ABOUT = "a small network trained for a few steps, with and without autocast, against float64"

Torch = Any  # the module, of any version
Tensor = Any
Module = Any
Scaler = Any

_STEPS = 5  # chosen: enough for the momentum and a falling loss; rounding errors grow with each
_DISTURBED = 3  # chosen: the largest of three distances is less a matter of chance than one
# docs/selftests/reference.md, training-step, has the reason; CPUs reached at most 0.37 of it.
_TIMES = {"fp32": 64, "fp16": 16, "bf16": 16}
_LOSS_SCALE = 1024.0  # below torch's 65,536: a step that is skipped for an overflow would differ
# Chosen: large enough that a GPU is busy, small enough that the CPU that it is compared with needs
# less than a second.
_SPEED_BATCH, _SPEED_SIDE = 256, 16


class _Task(NamedTuple):
    """The model, the images and the labels, in float32 on the CPU."""

    model: Module
    images: Tensor
    labels: Tensor


def run(bench: Bench) -> None:
    """Train in fp32 twice, then with autocast to each usable format; then measure the speed."""
    task = _Task(
        networks.training_network(bench.torch, bench.seed),
        *networks.training_batch(bench.torch, bench.seed + 1),
    )
    with switches(bench.torch, deterministic=True, reduced=False):
        _same_twice(bench, task)
        for fmt in obeyed(bench, ("fp32", "fp16", "bf16")):
            if fmt.name == "fp16" and bench.device.type != "cuda":
                not_tested(bench, say("autocast to fp16"), say("not every torch has it on the CPU"))
                continue
            _against_float64(bench, task, fmt)
    _speed(bench)
    release(bench)


def _against_float64(bench: Bench, task: _Task, fmt: Format) -> None:
    title = "training in fp32" if fmt.name == "fp32" else "training with autocast to " + fmt.name
    bench.stage(title)
    expected = _on_cpu(bench.torch, task)
    bounds = _bounds(bench, task, fmt, expected)
    got = _on_device(bench, task, fmt)
    _require_finite(bench.torch, title, got)
    names = ["loss"] + [name for name, _weight in task.model.named_parameters()]
    because = say(
        "{times} times what one rounding error per weight and layer does", times=_TIMES[fmt.name]
    )
    for name, distance, bound in zip(names, networks.distances(got, expected), bounds):
        what = f"{title}: {name}"
        if distance > bound:
            raise Failed(
                "wrong-value",
                say(
                    "{what} is {distance:.3g} away from float64 after {steps} steps; {bound:.3g} "
                    "is allowed",
                    what=what,
                    distance=distance,
                    steps=_STEPS,
                    bound=bound,
                ),
                {"what": what, "error": distance, "bound": bound, "bound_from": because},
            )
        bench.measure(what, distance, "", bound, because)
    first, last = float(got.losses[0]), float(got.losses[-1])
    bench.require(
        last < first,
        "loss-not-falling",
        say(
            "{title}: the loss went from {first:.4g} to {last:.4g} on a batch it was trained on",
            title=title,
            first=first,
            last=last,
        ),
    )


def _on_cpu(
    torch: Torch, task: _Task, disturb: Callable[[Tensor], Tensor] | None = None
) -> networks.TrainingCourse:
    """Train a copy of the model in float64 on the CPU."""
    model = copy.deepcopy(task.model).double()
    return networks.train(torch, model, task.images.double(), task.labels, _STEPS, disturb=disturb)


def _bounds(
    bench: Bench, task: _Task, fmt: Format, expected: networks.TrainingCourse
) -> list[float]:
    """Return the bounds of losses and weights: a multiple of the largest disturbed distance."""
    disturbed = []
    for at in range(_DISTURBED):
        disturb = networks.disturber(bench.torch, fmt.result_roundoff, bench.seed + 10 + at)
        disturbed.append(networks.distances(_on_cpu(bench.torch, task, disturb), expected))
    own = 2 * _STEPS * 2.0**-24  # weights and momentum are kept in fp32 in every format
    values = [expected.losses, *expected.weights]
    return [
        own * float(each.abs().max()) + _TIMES[fmt.name] * max(several)
        for each, several in zip(values, zip(*disturbed))
    ]


def _on_device(bench: Bench, task: _Task, fmt: Format) -> networks.TrainingCourse:
    torch = bench.torch
    options: dict[str, Any] = {}
    if fmt.name != "fp32":
        kind = bench.device.type
        options["autocast"] = lambda: torch.autocast(device_type=kind, dtype=fmt.dtype)
    if fmt.name == "fp16":
        options["scaler"] = _scaler(torch)
    model = copy.deepcopy(task.model).to(bench.device)
    images, labels = task.images.to(bench.device), task.labels.to(bench.device)
    course = networks.train(torch, model, images, labels, _STEPS, **options)
    synchronize(bench)
    return course


def _scaler(torch: Torch) -> Scaler:
    """Return a gradient scaler; in releases before 2.3 it is in ``torch.cuda``."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", init_scale=_LOSS_SCALE)
    return torch.cuda.amp.GradScaler(init_scale=_LOSS_SCALE)


def _require_finite(torch: Torch, title: str, course: networks.TrainingCourse) -> None:
    for each in [course.losses, *course.weights]:
        if not bool(torch.isfinite(each).all()):
            raise Failed(
                "not-finite", say("{title}: a loss or a weight is NaN or infinite", title=title)
            )


def _same_twice(bench: Bench, task: _Task) -> None:
    """Train twice with deterministic algorithms: every bit must be the same."""
    title = "deterministic training, twice"
    bench.stage(title)
    torch = bench.torch
    fp32 = usable(bench, ("fp32",))[0]
    before = torch.are_deterministic_algorithms_enabled()
    with warnings.catch_warnings():
        # Only a warning: cuBLAS wants an environment variable, and is deterministic on one stream.
        warnings.simplefilter("ignore")
        torch.use_deterministic_algorithms(mode=True, warn_only=True)
        try:
            first, second = (_on_device(bench, task, fp32) for _ in range(2))
        finally:
            torch.use_deterministic_algorithms(before)
    _require_finite(torch, title, first)
    bench.require(
        max(networks.distances(first, second)) == 0.0,
        "not-deterministic",
        say("two trainings with the same start and deterministic algorithms differ"),
    )


def _speed(bench: Bench) -> None:
    """Measure the duration of a step on the device and, for a GPU, on the CPU as well."""
    bench.stage(say("speed of a training step"))
    here = _seconds_per_step(bench, bench.device)
    bench.measure("training step", here * 1e3, "ms")
    if bench.device.type == "cuda":
        there = _seconds_per_step(bench, bench.torch.device("cpu"))
        bench.measure("training step on this machine's CPU", there * 1e3, "ms")
        bench.measure("speed against this machine's CPU", there / here, "times")
        bench.remark = say(
            "a training step takes {here:.3g} ms here and {there:.3g} ms on this machine's "
            "CPU, which is {times:.2g} times as long",
            here=here * 1e3,
            there=there * 1e3,
            times=there / here,
        )


def _seconds_per_step(bench: Bench, device: Any) -> float:  # noqa: ANN401  # a torch.device
    torch = bench.torch
    images, labels = networks.training_batch(torch, bench.seed, _SPEED_BATCH, _SPEED_SIDE)
    images, labels = images.to(device), labels.to(device)
    model = networks.training_network(torch, bench.seed).to(device)
    optimiser = networks.optimizer(torch, model)

    def step() -> None:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()

    return seconds_per_call(bench, step)
