"""Checks of augmentations.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

import torch
from torch import Tensor

from benchmark.config.choice import Choice
from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.randomness import twice
from tasks.augmentation import Augment

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
