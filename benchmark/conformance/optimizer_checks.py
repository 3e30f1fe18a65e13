"""Checks of the optimizers of the server and of local steps.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

from copy import deepcopy

import torch
from torch import nn

from benchmark.config.choice import Choice
from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.randomness import twice


def steps(choice: Choice) -> None:
    """a step moves the model by finite numbers, not at all without a gradient, and survives a checkpoint"""
    x = nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = choice.build([x], 0.1)
    optimizer.step()
    if x.tolist() != [1.0, -2.0]:
        raise CheckFailed("x to stay where x.grad is None: skip such parameters", str(x.tolist()))
    for _ in range(3):
        x.grad = torch.tensor([0.5, -0.25])
        optimizer.step()
    y = nn.Parameter(x.detach().clone())
    if not x.isfinite().all() or x.tolist() == [1.0, -2.0]:
        raise CheckFailed("x to move by finite numbers", str(x.tolist()))
    again = choice.build([y], 0.1)
    again.load_state_dict(deepcopy(optimizer.state_dict()))
    for z, one in ((x, optimizer), (y, again)):
        z.grad = torch.tensor([0.5, -0.25])
        one.step()
    if not torch.equal(x, y):
        raise CheckFailed("all memory in self.state, so that a checkpoint has it", f"{x.tolist()} and {y.tolist()}")


def starts_anew(choice: Choice) -> None:
    """a new optimizer remembers nothing of earlier ones, and draws no random numbers"""
    # Each client gets a new optimizer in each round.
    one, other = twice(lambda: _path(choice), "no generator: a step is a function of the gradients")
    if one != other:
        raise CheckFailed("equal steps of two new optimizers: no memory in the class or the module", f"{one}, {other}")


def _path(choice: Choice) -> list[list[float]]:
    """The models of three steps along equal gradients."""
    x = nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer, path = choice.build([x], 0.1), []
    for _ in range(3):
        x.grad = torch.tensor([0.5, -0.25])
        optimizer.step()
        path.append(x.tolist())
    return path
