"""Checks of augmentations, optimizers, schedules and analyses.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

import math
from copy import deepcopy

import torch
from torch import Tensor, nn

from rollcall.benchmark.config.analysis import fault_of_table
from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.conformance.failure import CheckFailed, expect, twice, unchanged
from rollcall.tasks.augmentation import Augment

SEED = 3
DRAWS = "uniforms(seed, keys) of tasks.streams"
START, GRADIENT = [1.0, -2.0], [0.5, -0.25]
"""The model and the gradient of the checks of optimizers."""


def same_form(choice: Choice) -> str:
    """images keep their shape and type, and neither images nor keys are changed in place"""
    augment = choice.build(SEED)
    for channels in (1, 3):
        images, keys = _batch(augment, channels)
        untouched = "images and keys not to change; work on images.clone()"
        with unchanged(untouched, images, keys, seen="they were modified in place"):
            made = augment(images, keys)
            expect(isinstance(made, Tensor), "a tensor of images", f"a {type(made).__name__}")
            form = f"{list(images.shape)} of {images.dtype}"
            same = made.shape == images.shape and made.dtype == images.dtype
            expect(same, f"images {form}, as before", f"{list(made.shape)} of {made.dtype}")
    return "applied to normalised images" if augment.on_normalised else "applied to pixels"


def by_key(choice: Choice) -> None:
    """the draws of an image depend on its key and the seed only, not on the other images of the batch"""
    augment = choice.build(SEED)
    images, keys = _batch(augment, 3)
    together = augment(images, keys)
    for row in range(len(images)):
        expect(
            torch.equal(augment(images[row : row + 1], keys[row : row + 1])[0], together[row]),
            f"one draw for each row of keys (client, step, position), such as {DRAWS}",
            f"image {row} differs when it is augmented alone",
        )


def same_augmentation(choice: Choice) -> None:
    """the same seed and keys give the same images, without global random generators"""
    images, keys = _batch(choice.build(SEED), 3)
    twice(lambda: choice.build(SEED)(images, keys), DRAWS, "two draws of one seed differ")


def _batch(augment: Augment, channels: int) -> tuple[Tensor, Tensor]:
    """Images [6, c, 8, 8], pixels or normalised, and their keys: two clients, in different steps."""
    draw = torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (6, channels, 8, 8), generator=draw, dtype=torch.uint8)
    keys = torch.tensor([[client, 5 + client, position] for client in (0, 4) for position in range(3)])
    return (pixels.float() / 128 - 1 if augment.on_normalised else pixels), keys


def steps(choice: Choice) -> None:
    """a step moves the model by finite numbers, not at all without a gradient, and survives a checkpoint"""
    x = nn.Parameter(torch.tensor(START))
    optimizer = choice.build([x], 0.1)
    optimizer.step()
    expect(x.tolist() == START, "x to stay where x.grad is None: skip such parameters", x.tolist())
    _path(x, optimizer)
    y = nn.Parameter(x.detach().clone())
    expect(x.isfinite().all() and x.tolist() != START, "x to move by finite numbers", x.tolist())
    again = choice.build([y], 0.1)
    again.load_state_dict(deepcopy(optimizer.state_dict()))
    one, other = _path(x, optimizer, 1), _path(y, again, 1)
    expect(one == other, "all memory in self.state, so that a checkpoint has it", f"{one[0]} and {other[0]}")


def starts_anew(choice: Choice) -> None:
    """a new optimizer remembers nothing of earlier ones, and draws no random numbers"""

    def path() -> list[list[float]]:  # each client gets a new optimizer in each round
        x = nn.Parameter(torch.tensor(START))
        return _path(x, choice.build([x], 0.1))

    one, other = twice(path, "no generator: a step is a function of the gradients")
    expected = "equal steps of two new optimizers: no memory in the class or the module"
    expect(one == other, expected, f"{one}, {other}")


def _path(x: nn.Parameter, optimizer: torch.optim.Optimizer, steps: int = 3) -> list[list[float]]:
    """The models of some steps along equal gradients."""
    path = []
    for _ in range(steps):
        x.grad = torch.tensor(GRADIENT)
        optimizer.step()
        path.append(x.tolist())
    return path


def factors(choice: Choice) -> None:
    """the factor of the learning rate is a finite number above 0, the same at every call"""
    schedule = choice.bound()
    one, other = twice(lambda: [float(schedule(t)) for t in range(200)], "nothing: a factor is a function of t")
    for t, (a, b) in enumerate(zip(one, other, strict=True)):
        valid = math.isfinite(a) and a > 0 and a == b
        expect(valid, "one finite number above 0 for each round", f"{a} and {b} in round {t}")


def numbers_by_round(choice: Choice) -> str:
    """a table of numbers with a column `round` of different whole numbers"""
    table = choice.build(SEED)
    fault = fault_of_table(table)
    if fault is not None:
        raise CheckFailed(*fault)
    return f"{len(table)} rows of {', '.join(map(str, table.columns))}"


def same_table(choice: Choice) -> None:
    """the same seed gives the same table, without global random generators"""
    source = "stream(seed, PURPOSE) of tasks.streams"
    twice(lambda: choice.build(SEED), source, "two tables of one seed differ")
