"""The interface of a task: a loss, metrics, and the data of the clients."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from lightning.pytorch import LightningDataModule, LightningModule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from rollcall.tasks.metrics import Accumulated
from rollcall.tasks.streams import stream

EmptyClients: TypeAlias = Literal["refuse", "keep"]
Samples: TypeAlias = tuple[Tensor, ...]
"""Samples as columns, for example inputs and labels: tensors of equal first dimension. A batch is a subset of rows."""


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """A context in which a module is in evaluation mode. Afterwards each of its parts has its own mode again."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        module.train(modes[0][1])  # of the module itself, which may do more in `train` than set modes
        for part, mode in modes:
            part.training = mode


class Task(LightningModule, ABC):
    """Base class of tasks: a model, its loss and its metrics.

    `Trainer().fit(task, data)` trains it centrally on the data of all clients, as a baseline without federation. The
    federated loop only calls `loss` and `metrics`, with its own parameters.

    Args:
        lr: learning rate of central training by SGD with momentum 0.9.
    """

    accumulated: Mapping[str, Accumulated] = MappingProxyType({})
    """Metrics by name that belong to the task and are computed over a whole split."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.lr = lr

    @abstractmethod
    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        """The mean loss of a batch; a pure function of parameters and batch, differentiated for each client."""

    @abstractmethod
    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """Metrics by name, including `loss`: [n] for each sample, or [] for the batch if it is not a mean over
        samples."""

    def outputs(self, batch: Samples) -> tuple[Tensor, Tensor]:
        """Predictions and targets of a batch, [n, ...] each, for the metrics of `evaluation.metrics`.

        By default `forward` of all columns but the last, which holds the targets. For classification, predictions are
        probabilities: torchmetrics decides anew for each batch whether numbers outside [0, 1] are logits.

        Raises:
            NotImplementedError: the task has no `forward`.
        """
        *inputs, targets = batch
        return self(*inputs), targets

    def least_losses(self, data: "ClientData") -> Float[np.ndarray, "m"] | None:
        """F*_i [m], the least training loss of each client; None if unknown, as for most networks."""
        return None

    def weigh(self, alpha: Float[np.ndarray, "m"], data: "ClientData") -> None:
        """Learn the clients' weights alpha in the objective, before the first round; by default it does nothing.

        Raises:
            ValueError: weights that the task's metrics do not allow.
        """
        return

    @property
    def augments(self) -> bool:
        """Whether `augment` changes samples."""
        return type(self).augment is not Task.augment

    def augment(self, batch: Samples, keys: Int[Tensor, "n 3"]) -> Samples:
        """Augment n training samples before a local step.

        Random draws may only depend on the seed and `keys`: client, step and position in the minibatch of each sample.
        """
        return batch

    def prepare(self, batch: Samples) -> Samples:
        """What `loss` first makes of samples whatever the model, for many minibatches at once.

        `loss` also takes samples that are not prepared.
        """
        return batch

    def training_step(self, batch: Samples, batch_idx: int) -> Tensor:
        n = len(batch[0])
        steps = torch.full((n,), self.global_step, device=batch[0].device)
        no_client = torch.full_like(steps, -1)
        keys = torch.stack([no_client, steps, torch.arange(n, device=steps.device)], dim=1)
        loss = self.loss(self.augment(batch, keys))
        self.log("train/loss", loss, batch_size=len(batch[0]))
        return loss

    def validation_step(self, batch: Samples, batch_idx: int) -> None:
        for name, value in self.metrics(batch).items():
            self.log(f"test/{name}", value.mean(), batch_size=len(batch[0]))

    test_step = validation_step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


class Classifier(Task):
    """Base class of tasks that minimise the cross-entropy of logits, plus ridge/2 ||x||^2 over all parameters x.

    `forward` maps inputs to logits [n, C]. The gradient of the penalty is ridge * x, as with torch's `weight_decay`.
    """

    def __init__(self, lr: float, ridge: float) -> None:
        super().__init__(lr)
        self.ridge = ridge

    def loss(self, batch: Samples) -> Float[Tensor, ""]:
        inputs, labels = batch
        return cross_entropy(self(inputs), labels) + half_squares(self, self.ridge)

    def outputs(self, batch: Samples) -> tuple[Tensor, Tensor]:
        """Probabilities [n, C], in float64, and labels [n]."""
        inputs, labels = batch
        return self(inputs).double().softmax(dim=1), labels

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """For each sample: `loss` with the ridge penalty, and `accuracy`, 0 or 1."""
        inputs, labels = batch
        logits = self(inputs)
        hits = (logits.argmax(dim=1) == labels).to(torch.float64)  # float64, so that 987 of 10,000 is 0.0987
        loss = cross_entropy(logits, labels, reduction="none") + half_squares(self, self.ridge)
        return {"loss": loss, "accuracy": hits}


class Batches:
    """The samples of a split in batches, in order, or shuffled in each epoch by a seed.

    Indexing whole tensors needs no worker and no collating.
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
        for start in range(0, len(rows), self.size):
            batch = rows[start : start + self.size]
            yield tuple(column[batch] for column in self.samples)


class Holdings(Sequence[Int[np.ndarray, "_"]]):
    """A sequence of each client's rows, stored in one array.

    For a million clients a list of arrays would need more memory than the samples.

    Args:
        rows: [n], the rows of all clients, client after client.
        sizes: [m], number of rows of each client; also an attribute.
    """

    def __init__(self, rows: Int[np.ndarray, "n"], sizes: Int[np.ndarray, "m"]) -> None:
        self.sizes = sizes
        self._rows = rows
        self._ends = np.cumsum(sizes)

    @classmethod
    def of(cls, parts: Sequence[Int[np.ndarray, "_"]]) -> "Holdings":
        """Holdings from one array of rows for each client."""
        if isinstance(parts, cls):
            return parts
        full = [part for part in parts if len(part)] or [np.empty(0, dtype=np.int64)]  # an empty list has a type, too
        return cls(np.concatenate(full), np.array([len(part) for part in parts], dtype=np.int64))

    def fault(self, samples: int) -> str:
        """The first error in the rows as numbers of samples, in words; empty if there is none."""
        rows = self._rows
        if rows.dtype.kind not in "iu":
            return f"samples of type {rows.dtype} are not allowed; must be whole numbers (positions of samples)"
        outside = np.flatnonzero((rows < 0) | (rows >= samples))
        if len(outside):
            client = self._holder(outside[0])
            return f"sample {rows[outside[0]]} of client {client} is not allowed; must be in 0 to {samples - 1}"
        taken = np.bincount(rows, minlength=1)
        if taken.max() > 1:
            sample = int(taken.argmax())
            clients = ", ".join(str(self._holder(int(row))) for row in np.flatnonzero(rows == sample))
            return f"sample {sample} of clients {clients} is not allowed; must belong to one at most"
        return ""

    def _holder(self, position: int) -> int:
        """The client whose row is at a position of all rows."""
        return int(np.searchsorted(self._ends, position, side="right"))

    def owners(self) -> Int[np.ndarray, "n"]:
        """The client [n] of each row. All rows together must be 0, 1, ..., n - 1."""
        owner = np.empty_like(self._rows)
        owner[self._rows] = np.repeat(np.arange(len(self)), self.sizes)
        return owner

    def __len__(self) -> int:
        return len(self.sizes)

    def padded(self, clients: Int[np.ndarray, "a"], width: int) -> Int[np.ndarray, "a b"]:
        """The first `width` rows of each of these clients; a client with fewer rows repeats its first row."""
        sizes = self.sizes[clients, None]
        position = np.arange(width)
        return self._rows[self._ends[clients, None] - sizes + np.where(position < sizes, position, 0)]

    def held_of(self, n: int) -> "tuple[Int[np.ndarray, 'k'], Holdings]":
        """The rows out of n that any client holds, ascending [k], and the holdings as positions in them."""
        held = np.sort(self._rows)
        return held, self if len(held) == n else Holdings(np.searchsorted(held, self._rows), self.sizes)

    def __getitem__(self, client: int) -> Int[np.ndarray, "_"]:  # type: ignore[override]  # a slice has no use
        end = self._ends[client]
        return self._rows[end - self.sizes[client] : end]


def cast(samples: Samples, dtype: torch.dtype) -> Samples:
    """The columns; those of floating-point numbers have this type."""
    return tuple(column.to(dtype) if column.is_floating_point() else column for column in samples)


class ClientData(LightningDataModule):
    """The splits of a data set, with the training split partitioned among clients.

    Args:
        splits: samples by split: `train`, and `validation` and `test` if they exist.
        parts: for each client the rows of `train` that it holds, disjoint. Rows that no client holds leave `train`.
        owners: for other splits whose samples belong to clients, the client of each sample [n].
        classes: [m, C], nu, the class distribution that each client's data were drawn from, if there are classes.
        histogram: [m, C], number of samples of each class of each client, if there are classes.
        names: of the clients, such as hospitals; a recording of availability is joined to them.
        empty_clients: whether clients without training samples are an error (`refuse`), or stay and never train.
        seed: of the order of samples in central training.
        batch_size: of central training.
        evaluation_batch: number of samples evaluated at once.

    Raises:
        ValueError: columns of other lengths, a sample of two clients or of none that exists, or an empty client.
    """

    def __init__(
        self,
        splits: dict[str, Samples],
        parts: Sequence[Int[np.ndarray, "_"]],
        *,
        owners: dict[str, Int[np.ndarray, "_"]] | None = None,
        classes: Float[np.ndarray, "m C"] | None = None,
        histogram: Int[np.ndarray, "m C"] | None = None,
        names: tuple[str, ...] | None = None,
        empty_clients: EmptyClients = "refuse",
        seed: int = 0,
        batch_size: int = 64,
        evaluation_batch: int = 1000,
    ) -> None:
        super().__init__()
        for split, samples in splits.items():
            if len({len(column) for column in samples}) != 1:
                lengths = [len(column) for column in samples]
                raise ValueError(f"{split}: columns of lengths {lengths} are not allowed; must be equal")
            if split != "train" and not len(samples[0]):
                raise ValueError(f"data: {split} without samples is not allowed; must have one, or be left out")
        n = len(splits["train"][0])
        held_by = Holdings.of(parts)
        if fault := held_by.fault(n):
            raise ValueError(f"data: {fault}")
        empty = np.flatnonzero(held_by.sizes == 0)
        if len(empty) and (empty_clients != "keep" or len(empty) == len(held_by)):
            name = f" ({names[empty[0]]})" if names else ""
            must = "must have one; `empty_clients: keep` keeps clients that never train"
            raise ValueError(f"data: client {empty[0]}{name} without training samples is not allowed; {must}")
        held, self.parts = held_by.held_of(n)
        self.splits = splits
        if len(held) < n:  # the others are not part of the training loss
            self.splits = splits | {"train": tuple(column[held] for column in splits["train"])}
        self.owners = owners or {}
        for split, owner in self.owners.items():
            size, m = len(self.splits[split][0]) if split in self.splits else 0, len(self.parts)
            if len(owner) != size or not ((owner >= 0) & (owner < m)).all():
                must = f"must be {size} numbers of clients from 0 to {m - 1}"
                raise ValueError(f"data: owners of {split} are not allowed; {must}")
        self.classes = classes
        self.histogram = histogram
        self.names = names
        self.seed = seed
        self.batch_size = batch_size
        self.evaluation_batch = evaluation_batch

    @property
    def clients(self) -> int:
        """m, the number of clients."""
        return len(self.parts)

    def owner(self, split: str) -> Int[np.ndarray, "n"] | None:
        """The client [n] of each sample of a split; None if the samples do not belong to clients."""
        return self.parts.owners() if split == "train" else self.owners.get(split)

    def evaluation(self, split: str) -> Batches:
        """A split in order, in large batches."""
        return Batches(self.splits[split], self.evaluation_batch)

    def cast(self, dtype: torch.dtype) -> "ClientData":
        """A copy whose columns of floating-point numbers have this type; these data stay as they are."""
        made = copy.copy(self)
        made.splits = {split: cast(samples, dtype) for split, samples in self.splits.items()}
        return made

    def check(self, task: Task) -> None:
        """Raise ValueError for samples with values that are not finite, which a run would call divergence.

        They are allowed if the task, in evaluation mode, computes finite losses from the first hundred of them: NaN may
        stand for a missing value.
        """
        for split, samples in self.splits.items():
            bad = torch.zeros(len(samples[0]), dtype=torch.bool)
            for column in samples:
                if column.is_floating_point():
                    bad |= ~column.isfinite().reshape(len(column), -1).all(dim=1)
            rows = bad.nonzero()[:, 0]
            if not len(rows):
                continue
            with torch.no_grad(), evaluating(task):
                loss = task.loss(tuple(column[rows[:100]] for column in samples))
            if not loss.isfinite():
                owner, first = self.owner(split), int(rows[0])
                whose = "" if owner is None else f", of client {owner[first]}"
                raise ValueError(
                    f"data: NaN or infinite values in {len(rows)} of {len(bad)} samples of {split}; the first is "
                    f"sample {first}{whose}; remove or replace them"
                )

    def train_dataloader(self) -> Batches:
        return Batches(self.splits["train"], self.batch_size, self.seed)

    def val_dataloader(self) -> Batches:
        return self.evaluation("test" if "test" in self.splits else "train")

    test_dataloader = val_dataloader


def natural_clients(
    columns: Sequence[np.ndarray],
    rows: Mapping[str, Sequence[Int[np.ndarray, "_"]]],
    classes: int | None,
    seed: int,
    names: tuple[str, ...] | None = None,
    empty_clients: EmptyClients = "refuse",
) -> ClientData:
    """The data of clients that are given with the samples, each of which has rows of its own in every split.

    Args:
        columns: inputs and targets of all samples.
        rows: by split, the rows of each client.
        classes: C, if the targets are labels.
        seed, names, empty_clients: of `ClientData`.
    """
    splits: dict[str, Samples] = {
        split: tuple(torch.from_numpy(column[np.concatenate(of_clients)]) for column in columns)
        for split, of_clients in rows.items()
        if any(len(mine) for mine in of_clients)
    }
    sizes = {split: np.array([len(mine) for mine in of_clients]) for split, of_clients in rows.items()}
    owners = {split: np.repeat(np.arange(len(n)), n) for split, n in sizes.items() if split != "train"}
    parts = Holdings(np.arange(sizes["train"].sum()), sizes["train"])
    shares = histogram = None
    if classes is not None:
        histogram = np.stack([np.bincount(columns[-1][mine], minlength=classes) for mine in rows["train"]])
        # For a client's class distribution, which is not known.
        shares = histogram / np.maximum(histogram.sum(axis=1, keepdims=True), 1)
    return ClientData(
        splits,
        parts,
        owners={split: owner for split, owner in owners.items() if split in splits},
        classes=shares,
        histogram=histogram,
        names=names,
        empty_clients=empty_clients,
        seed=seed,
    )


def need_shares(validation: float, test: float) -> None:
    """Raise ValueError unless the shares of each client's samples that are held out leave it a tenth."""
    beside = f", beside a validation of {validation:g}" if validation else ""
    for name, share, most, why in (("validation", validation, 0.9, ""), ("test", test, 0.9 - validation, beside)):
        if not 0 <= share <= most + 1e-9:  # 0.9 - 0.8 is less than 0.1 in floating point
            raise ValueError(f"{name}: {share} is not allowed; must be in [0, {most:g}]{why}")


def need_least(least: float, **options: float) -> None:
    """Raise ValueError unless each option is finite and at least `least`."""
    for name, value in options.items():
        if not least <= value < np.inf:
            raise ValueError(f"{name}: {value} is not allowed; must be at least {least}")


def one_line(error: Exception) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split())


def half_squares(model: nn.Module, ridge: float) -> Tensor | float:
    """ridge/2 ||x||^2 over all parameters x, including biases; 0.0 if ridge is 0."""
    if not ridge:
        return 0.0
    return 0.5 * ridge * torch.stack([parameter.square().sum() for parameter in model.parameters()]).sum()
