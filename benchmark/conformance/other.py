"""Checks of augmentations, optimizers, schedules and analyses.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

import math
from copy import deepcopy

import pandas as pd
import torch
from torch import Tensor, nn

from rollcall.benchmark.config.analysis import fault_of_table
from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.conformance.failure import CheckFailed, twice
from rollcall.tasks.augmentation import Augment

SEED = 3
DRAWS = "uniforms(seed, keys) of tasks.streams"


def same_form(choice: Choice) -> str:
    """images keep their shape and type, and neither images nor keys are changed in place"""
    augment = _augment(choice)
    for channels in (1, 3):
        images, keys = _batch(augment, channels)
        before = images.clone(), keys.clone()
        made = augment(images, keys)
        if not isinstance(made, Tensor):
            raise CheckFailed("a tensor of images", f"a {type(made).__name__}")
        if made.shape != images.shape or made.dtype != images.dtype:
            raise CheckFailed(
                f"images {list(images.shape)} of {images.dtype}, as before", f"{list(made.shape)} of {made.dtype}"
            )
        if not torch.equal(images, before[0]) or not torch.equal(keys, before[1]):
            raise CheckFailed("images and keys not to change; work on images.clone()", "they were modified in place")
    return "applied to normalised images" if augment.on_normalised else "applied to pixels"


def by_key(choice: Choice) -> None:
    """the draws of an image depend on its key and the seed only, not on the other images of the batch"""
    augment = _augment(choice)
    images, keys = _batch(augment, 3)
    together = augment(images, keys)
    for row in range(len(images)):
        alone = augment(images[row : row + 1], keys[row : row + 1])[0]
        if not torch.equal(alone, together[row]):
            raise CheckFailed(
                f"one draw for each row of keys (client, step, position), such as {DRAWS}",
                f"image {row} differs when it is augmented alone",
            )


def same_augmentation(choice: Choice) -> None:
    """the same seed and keys give the same images, without global random generators"""
    images, keys = _batch(_augment(choice), 3)
    one, other = twice(lambda: _augment(choice)(images, keys), DRAWS)
    if not torch.equal(one, other):
        raise CheckFailed(f"random numbers from {DRAWS}", "two draws of one seed differ")


def _augment(choice: Choice) -> Augment:
    augment: Augment = choice.build(SEED)
    return augment


def _batch(augment: Augment, channels: int) -> tuple[Tensor, Tensor]:
    """Images [6, c, 8, 8], pixels or normalised, and their keys: two clients, in different steps."""
    draw = torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (6, channels, 8, 8), generator=draw, dtype=torch.uint8)
    keys = torch.tensor([[client, 5 + client, position] for client in (0, 4) for position in range(3)])
    return (pixels.float() / 128 - 1 if augment.on_normalised else pixels), keys


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


def factors(choice: Choice) -> None:
    """the factor of the learning rate is a finite number above 0, the same at every call"""
    schedule = choice.bound()
    one, other = twice(lambda: [float(schedule(t)) for t in range(200)], "nothing: a factor is a function of t")
    for t, (a, b) in enumerate(zip(one, other, strict=True)):
        if not (math.isfinite(a) and a > 0) or a != b:
            raise CheckFailed("one finite number above 0 for each round", f"{a} and {b} in round {t}")


def numbers_by_round(choice: Choice) -> str:
    """a table of numbers with a column `round` of different whole numbers"""
    table: pd.DataFrame = choice.build(SEED)
    fault = fault_of_table(table)
    if fault is not None:
        raise CheckFailed(*fault)
    return f"{len(table)} rows of {', '.join(map(str, table.columns))}"


def same_table(choice: Choice) -> None:
    """the same seed gives the same table, without global random generators"""
    source = "stream(seed, PURPOSE) of tasks.streams"
    one, other = twice(lambda: choice.build(SEED), source)
    if not one.equals(other):
        raise CheckFailed(f"random numbers from {source}", "two tables of one seed differ")
