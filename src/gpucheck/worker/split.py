"""A small network of integers for tests that split the network or its batch over several devices.

The weights, the data and the factors of the outputs are small integers. So float32 holds every
result and every gradient exactly, in every order of summation.
"""

from __future__ import annotations

from typing import Any

from . import reference

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
