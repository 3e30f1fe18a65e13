"""Image classification tasks: data set x model x partition, and the augmentation of training images.

The random draws of a sample depend only on the seed and its key (client, step, position), so all engines use the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn
from torch.nn.functional import pad

from rollcall.tasks.base import Classifier, ClientData, EmptyClients, Samples, need_least
from rollcall.tasks.datasets import SOURCES, Source, load, root
from rollcall.tasks.models import Model, fedpbc_cifar10, fedpbc_cinic10, fedpbc_svhn, linear, mlp
from rollcall.tasks.partitions import Partition, iid, made_by
from rollcall.tasks.streams import stream, torch_stream, uniforms


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


class Classification(Classifier):
    """Cross-entropy of a network's logits on normalised images, plus ridge/2 ||x||^2 over all parameters x.

    `mean` and `std` are those of each channel, for pixels scaled to [0, 1].
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        lr: float = 0.01,
        augmentation: Augment | None = None,
        ridge: float = 0.0,
    ) -> None:
        super().__init__(lr, ridge)
        self.network = network
        self.augmentation = augmentation
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=False)

    def normalised(self, images: Num[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
        """Normalised images. Pixels (uint8) are normalised here; floating-point images are already normalised."""
        if images.is_floating_point():
            return images
        return images.to(self.mean.dtype).div_(255).sub_(self.mean).div_(self.std)

    def forward(self, images: Num[Tensor, "n c h w"]) -> Float[Tensor, "n classes"]:
        """Logits."""
        return self.network(self.normalised(images))

    @property
    def augments(self) -> bool:
        return self.augmentation is not None

    def augment(self, batch: Samples, keys: Int[Tensor, "n 3"]) -> Samples:
        images, labels = batch
        if self.augmentation is None:
            return batch
        if self.augmentation.on_normalised:
            images = self.normalised(images)
        return self.augmentation(images, keys), labels

    def prepare(self, batch: Samples) -> Samples:
        images, labels = batch
        return self.normalised(images), labels


def classification(
    source: Source,
    seed: int,
    *,
    clients: int,
    model: Model,
    partition: Partition = iid,
    augmentation: Augmentation | None = None,
    validation: float = 0.0,
    labels: Sequence[int] | None = None,
    ridge: float = 0.0,
    empty_clients: EmptyClients = "refuse",
) -> tuple[Classification, ClientData]:
    """Image classification with a data set partitioned among clients, and a network.

    Args:
        source: the data set.
        seed: of the partition, the initial model and the validation split.
        clients: m, the number of clients.
        model: the network.
        partition: of the training samples among clients.
        augmentation: of the samples in local steps. Evaluation uses none.
        validation: share of the training samples held out as the split `validation`, in [0, 1).
        labels: keep only samples of these labels, in all splits, and number them 0, 1, ... in this order.
        ridge: see `Classifier`; [CAF] uses 1e-2 on linear models, as weight decay.
        empty_clients: of `ClientData`.

    Raises:
        ValueError: an option out of range, or a data set that is missing and cannot be downloaded.
    """
    if not 0 <= validation < 1:
        raise ValueError(f"validation: {validation} is not allowed; must be in [0, 1)")
    need_least(1, clients=clients)
    need_least(0, ridge=ridge)
    known = load(source, root())
    splits: dict[str, Samples] = {"train": known["train"], "test": known["test"]}
    if labels is not None:
        splits = {split: _only(samples, labels) for split, samples in splits.items()}
    if validation:
        order = stream(seed, "validation").permutation(len(splits["train"][0]))
        held_out = round(validation * len(order))
        if held_out == 0:
            raise ValueError(f"validation: {validation:g} is not allowed; no sample would be held out")
        splits["validation"], splits["train"] = (
            tuple(column[np.sort(rows)] for column in splits["train"]) for rows in (order[:held_out], order[held_out:])
        )
    pixels, targets = splits["train"]
    parts = partition(targets.numpy(), clients, seed)
    classes = parts.classes.shape[1]
    histogram = np.stack([np.bincount(targets.numpy()[rows], minlength=classes) for rows in parts.rows])
    with torch_stream(seed, "init"):
        network = model(tuple(pixels.shape[1:]), classes)
    with made_by(partition):
        data = ClientData(
            splits, parts.rows, classes=parts.classes, histogram=histogram, empty_clients=empty_clients, seed=seed
        )
    augment = None if augmentation is None else augmentation(seed)
    return Classification(network, source.mean, source.std, augmentation=augment, ridge=ridge), data


def _only(samples: Samples, labels: Sequence[int]) -> Samples:
    """The samples with these labels, each label replaced by its position among them."""
    pixels, targets = samples
    if not labels or len(set(labels)) < len(labels) or not set(labels) <= set(targets.tolist()):
        raise ValueError(f"labels: {list(labels)} is not allowed; must be different labels that the data set has")
    kept = torch.isin(targets, torch.tensor(labels))
    return pixels[kept], (targets[kept, None] == torch.tensor(labels)).int().argmax(dim=1)


digits = partial(classification, SOURCES["digits"], model=mlp)
mnist = partial(classification, SOURCES["mnist"], model=linear)
fashion_mnist = partial(classification, SOURCES["fashion_mnist"], model=linear)
svhn = partial(classification, SOURCES["svhn"], model=fedpbc_svhn)
cifar10 = partial(classification, SOURCES["cifar10"], model=fedpbc_cifar10)
cifar100 = partial(classification, SOURCES["cifar100"], model=fedpbc_cifar10)
cinic10 = partial(classification, SOURCES["cinic10"], model=fedpbc_cinic10)
