"""A task: a loss and its metrics, with the data that clients hold."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from lightning.pytorch import LightningDataModule, LightningModule
from torch import Tensor

from tasks.holdings import Holdings
from tasks.streams import stream

Samples: TypeAlias = tuple[Tensor, ...]
"""Samples in columns, inputs and labels say: tensors with equal first dimension. A batch is a few of the rows."""


class Task(LightningModule, ABC):
    """What is learnt: a model, its loss and its metrics.

    A plain `Trainer().fit(task, data)` trains it centrally, on everybody's data at once: the baseline without
    federation. The federated loop only calls `loss` and `metrics`, with parameters of its own.

    Args:
        lr: learning rate of central training by SGD with momentum 0.9.
    """

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.lr = lr

    @abstractmethod
    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        """The mean loss of a batch. A pure function of parameters and batch: it is differentiated for each client."""

    @abstractmethod
    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """By name, `loss` among them: of each sample [n], or of the whole batch [] what is no mean over samples."""

    def least_losses(self, data: "ClientData") -> Float[np.ndarray, "m"] | None:
        """F*_i, the least training loss of each client; None where it is not known, as for most networks."""
        return None

    def augment(self, batch: Samples, keys: Int[Tensor, "n 3"]) -> Samples:
        """Training samples as a local step sees them.

        Args:
            batch: the samples.
            keys: of each, the client, the step and the position in its minibatch: all that a draw may depend on.
        """
        return batch

    def training_step(self, batch: Samples, batch_idx: int) -> Tensor:
        n = len(batch[0])
        steps = torch.full((n,), self.global_step, device=batch[0].device)
        nobody = torch.full_like(steps, -1)
        keys = torch.stack([nobody, steps, torch.arange(n, device=steps.device)], dim=1)
        loss = self.loss(self.augment(batch, keys))
        self.log("train/loss", loss, batch_size=len(batch[0]))
        return loss

    def validation_step(self, batch: Samples, batch_idx: int) -> None:
        for name, value in self.metrics(batch).items():
            self.log(f"test/{name}", value.mean(), batch_size=len(batch[0]))

    test_step = validation_step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


class Batches:
    """The samples of a split in batches; shuffled anew in each epoch where a seed is given.

    Indexes whole tensors instead of collating single samples, which is what makes evaluation cheap.
    """

    def __init__(self, samples: Samples, size: int, seed: int | None = None) -> None:
        self.samples = samples
        self.size = size
        self.seed = seed
        self.epoch = 0

    def __len__(self) -> int:
        return -(-len(self.samples[0]) // self.size)

    def __iter__(self) -> Iterator[Samples]:
        rows = torch.arange(len(self.samples[0]))
        if self.seed is not None:
            rows = torch.from_numpy(stream(self.seed, "central", self.epoch).permutation(len(rows)))
            self.epoch += 1
        for chosen in rows.split(self.size):
            yield tuple(column[chosen] for column in self.samples)


class ClientData(LightningDataModule):
    """Splits of a data set, the training split shared out among clients.

    Args:
        splits: samples by split: `train`, and `validation` and `test` where there are such.
        parts: for each client the rows of `train` that it holds; disjoint, none empty.
        owners: by split, where its samples belong to clients, whose each is, [n]; that of `train` follows from `parts`.
        classes: nu [m, C], the class distribution each client's data were drawn with, where there are classes.
        histogram: [m, C], the clients' label counts, likewise.
        seed: of the order in which central training sees the samples.
        batch_size: of central training.
        evaluation_batch: samples evaluated at once.
    """

    def __init__(
        self,
        splits: dict[str, Samples],
        parts: Sequence[Int[np.ndarray, "_"]],
        *,
        owners: dict[str, Int[np.ndarray, "_"]] | None = None,
        classes: Float[np.ndarray, "m C"] | None = None,
        histogram: Int[np.ndarray, "m C"] | None = None,
        seed: int = 0,
        batch_size: int = 64,
        evaluation_batch: int = 1000,
    ) -> None:
        super().__init__()
        self.splits = splits
        self.parts = Holdings.of(parts)
        self.owners = owners or {}
        self.classes = classes
        self.histogram = histogram
        self.seed = seed
        self.batch_size = batch_size
        self.evaluation_batch = evaluation_batch

    @property
    def clients(self) -> int:
        return len(self.parts)

    def owner(self, split: str) -> Int[np.ndarray, "n"] | None:
        """Whose each sample of a split is; None where they are nobody's."""
        if split != "train":
            return self.owners.get(split)
        return self.parts.owners()

    def evaluation(self, split: str) -> Batches:
        """A split in order, in large batches."""
        return Batches(self.splits[split], self.evaluation_batch)

    def train_dataloader(self) -> Batches:
        return Batches(self.splits["train"], self.batch_size, self.seed)

    def val_dataloader(self) -> Batches:
        return self.evaluation("test" if "test" in self.splits else "train")

    test_dataloader = val_dataloader
