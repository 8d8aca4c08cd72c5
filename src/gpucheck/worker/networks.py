"""Small networks for tests: trained in every format, or of integers, to be split."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, NamedTuple

from . import reference

# A small network of integers for tests that split the network or its batch over several devices.
#
# The weights, the data and the factors of the outputs are small integers. So float32 holds every
# result and every gradient exactly, in every order of summation.

Torch = Any  # the module, of any version
Tensor = Any
Module = Any

# With _BITS the largest result is 16 * (12 * 49 + 7) * 7 + 7, far below the 2**24 of float32.
INPUTS, HIDDEN, OUTPUTS = 12, 16, 4
_BITS = 3


def network(torch: Torch, seed: int) -> Module:
    """Return two linear layers with a ReLU in between, on the CPU."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUTPUTS))
    source = reference.generator(torch, seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(reference.integers(torch, source, tuple(weight.shape), _BITS))
    return model


def batch(torch: Torch, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """Return a batch of inputs, and the factors of their outputs in the loss."""
    source = reference.generator(torch, seed)
    return (
        reference.integers(torch, source, (count, INPUTS), _BITS).float(),
        reference.integers(torch, source, (count, OUTPUTS), _BITS).float(),
    )


def loss(outputs: Tensor, factors: Tensor) -> Tensor:
    """Return a loss whose gradient with respect to the outputs is the factors."""
    return (outputs * factors).sum()


def exact(torch: Torch, seed: int, images: Tensor, factors: Tensor) -> dict[str, Tensor]:
    """Return the outputs and every gradient, computed in float64 on the CPU."""
    model = network(torch, seed).double()
    outputs = model(images.double())
    loss(outputs, factors.double()).backward()
    return found(model, outputs)


def found(model: Module, outputs: Tensor) -> dict[str, Tensor]:
    """Return the computed outputs and gradients by name."""
    results = {"the output": outputs.detach()}
    for name, weight in model.named_parameters():
        results["the gradient of " + name] = weight.grad
    return results


# A small network and its training, identical for every device and format.

# Chosen: small enough for float64 on a CPU, four times for each format, and the loss falls within
# five steps, which the test requires.
_BATCH, _SIDE, _CLASSES = 8, 16, 10
_LEARNING_RATE, _MOMENTUM = 0.05, 0.9  # chosen with it: larger ones let rounding errors grow faster


class TrainingCourse(NamedTuple):
    """The course of a training: the loss of each step, and the final weights."""

    losses: Tensor
    weights: list[Tensor]


def training_network(torch: Torch, seed: int) -> Module:
    """Return a network with convolutions, batch norm and a linear layer, in float32 on the CPU.

    Its activations are smooth and its pooling is an average. With ReLU or a maximum, a rounding
    error could select another branch, and the difference would have no bound.
    """
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),  # batch norm would take a bias out again
        nn.BatchNorm2d(8),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (_SIDE // 4) ** 2, _CLASSES),
    )
    source = reference.generator(torch, seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                fan_in = weight[0].numel()
                weight.copy_(torch.randn(weight.shape, generator=source) / fan_in**0.5)
            elif name.endswith("bias"):
                weight.zero_()
    return model


def training_batch(torch: Torch, seed: int, count: int = _BATCH, side: int = _SIDE) -> Any:  # noqa: ANN401
    """Return random images and labels."""
    source = reference.generator(torch, seed)
    images = torch.randn(count, 3, side, side, generator=source)
    return images, torch.randint(0, _CLASSES, (count,), generator=source)


def optimizer(torch: Torch, model: Module) -> Any:  # noqa: ANN401  # a torch.optim.Optimizer
    """Return stochastic gradient descent with momentum over the weights of the model."""
    return torch.optim.SGD(model.parameters(), lr=_LEARNING_RATE, momentum=_MOMENTUM)


def train(
    torch: Torch,
    model: Module,
    images: Tensor,
    labels: Tensor,
    steps: int,
    *,
    autocast: Callable[[], Any] | None = None,
    scaler: Any = None,  # noqa: ANN401  # a GradScaler
    disturb: Callable[[Tensor], Tensor] | None = None,
) -> TrainingCourse:
    """Train on one batch and return losses and weights as float64 on the CPU.

    ``disturb`` returns its tensor with a rounding error in each value. It is applied to the weights
    that compute each loss and to the output of each layer, and thereby also to the gradients. It is
    not applied to the weights that a step updates.
    """
    optimiser, losses = optimizer(torch, model), []
    weights = list(model.parameters())
    if disturb is not None:
        for layer in model:
            layer.register_forward_hook(lambda _layer, _given, result: disturb(result))
    for _ in range(steps):
        kept = []
        if disturb is not None:
            kept = [weight.detach().clone() for weight in weights]
            _put(torch, weights, [disturb(weight) for weight in kept])
        optimiser.zero_grad()
        with autocast() if autocast else contextlib.nullcontext():
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        (loss if scaler is None else scaler.scale(loss)).backward()
        _put(torch, weights, kept)
        if scaler is None:
            optimiser.step()
        else:
            scaler.step(optimiser)
            scaler.update()
        losses.append(loss.detach().cpu().double())
    ended = [weight.detach().cpu().double() for weight in weights]
    return TrainingCourse(torch.stack(losses), ended)


def _put(torch: Torch, weights: list[Tensor], values: list[Tensor]) -> None:
    with torch.no_grad():
        for weight, value in zip(weights, values):
            weight.copy_(value)


def disturber(torch: Torch, roundoff: float, seed: int) -> Callable[[Tensor], Tensor]:
    """Return a function that changes each value of a tensor by one rounding error of a format."""
    source = reference.generator(torch, seed)

    def disturb(values: Tensor) -> Tensor:
        signs = torch.randint(0, 2, values.shape, generator=source) * 2 - 1
        return values * (1.0 + roundoff * signs.to(values.dtype))

    return disturb


def distances(course: TrainingCourse, other: TrainingCourse) -> list[float]:
    """Return the largest difference of losses, then of each weight."""
    pairs = [(course.losses, other.losses), *zip(course.weights, other.weights)]
    return [float((first - second).abs().max()) for first, second in pairs]
