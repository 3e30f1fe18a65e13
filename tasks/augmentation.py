"""Augmentation of batches of training images, on any device.

The random draws of a sample depend only on the seed and its key (client, step, position), so all engines use the same.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Int, Num
from torch import Tensor
from torch.nn.functional import pad

from rollcall.tasks.streams import uniforms


@runtime_checkable
class Augment(Protocol):
    """A function of images and keys that returns images of the same shape and type.

    Attributes:
        on_normalised: whether it is applied to normalised images, in which 0 is the mean colour, or to pixels (uint8),
            in which 0 is black.
    """

    @property
    def on_normalised(self) -> bool: ...

    def __call__(self, images: Num[Tensor, "n c h w"], keys: Int[Tensor, "n 3"]) -> Num[Tensor, "n c h w"]: ...


Augmentation: TypeAlias = Callable[[int], Augment]
"""A function of the trial's seed that returns an augmentation."""


@dataclass(frozen=True)
class CropFlip:
    """Random crop of the padded image to its own size, and a horizontal flip with probability 1/2.

    All positions of the crop are equally likely. Code that crops before normalising has a black border (FOCUS). Code
    that crops after normalising has a border of the mean colour (FedPBC, FedAU).

    Args:
        seed: the trial's seed.
        padding: width of the border on each side, in pixels.
        fill: colour of the border: `black`, or the `mean` of each channel by which images are normalised.
        flip: whether to flip; SVHN's digits are not flipped.
        per: draw for each `sample`, or once for each `minibatch` (the FedPBC authors' released code).

    Raises:
        ValueError: a negative padding.
    """

    seed: int
    _: KW_ONLY
    padding: int = 4
    fill: Literal["black", "mean"] = "black"
    flip: bool = True
    per: Literal["sample", "minibatch"] = "sample"

    def __post_init__(self) -> None:
        if self.padding < 0:
            raise ValueError(f"augmentation.padding: {self.padding} is not allowed; must be at least 0")

    @property
    def on_normalised(self) -> bool:
        return self.fill == "mean"

    def __call__(self, images: Num[Tensor, "n c h w"], keys: Int[Tensor, "n 3"]) -> Num[Tensor, "n c h w"]:
        if self.per == "minibatch":
            keys = keys.clone()
            keys[:, 2] = 0
        down, right, mirror = (
            uniforms(self.seed, torch.cat([keys, torch.full_like(keys[:, :1], draw)], dim=1)) for draw in range(3)
        )
        n, _, h, w = images.shape
        places = 2 * self.padding + 1
        rows = (down * places).long()[:, None] + torch.arange(h, device=images.device)
        columns = torch.arange(w, device=images.device).expand(n, w)
        if self.flip:
            columns = columns.where(mirror[:, None] < 0.5, w - 1 - columns)
        columns = (right * places).long()[:, None] + columns
        padded = pad(images, (self.padding,) * 4)
        sample = torch.arange(n, device=images.device)[:, None, None]
        # Indexed dimensions come first: [n, h, w, c].
        return padded[sample, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


AUGMENTATIONS: dict[str, Callable[..., Augment]] = {"crop_flip": CropFlip}
