"""Tasks from plain parts: samples, a network, a loss and metrics."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from tasks.base import ClientData, Samples, Task
from tasks.columns import columns
from tasks.holdings import Holdings
from tasks.metrics import METRICS, Accumulated
from tasks.partitions import PARTITIONS, Partition, iid
from tasks.streams import stream, torch_stream
from tasks.supervised_checks import check_finite, check_network, check_task

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From predictions and targets, [n, ...] each."""


class SupervisedTask(Task):
    """A network and a loss.

    Args:
        network: maps the inputs to predictions: logits [n, C] for classification.
        loss: the mean over samples, from predictions and targets.
        classes: C, for classification; None for regression.
        per_sample: metrics by name, [n] from predictions and targets.
        accumulated: metrics by name that are computed over a whole split.
        lr: learning rate of central training.
    """

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        classes: int | None = None,
        per_sample: Mapping[str, Loss] | None = None,
        accumulated: Mapping[str, Accumulated] | None = None,
        lr: float = 0.01,
    ) -> None:
        super().__init__(lr)
        self.network = network
        self.loss_function = loss
        self.classes = classes
        self.per_sample = dict(per_sample or {})
        self.accumulated = dict(accumulated or {})

    def forward(self, *inputs: Tensor) -> Tensor:
        """The network's predictions."""
        return self.network(*inputs)

    def predictions(self, batch: Samples) -> tuple[Tensor, Tensor]:
        """Predictions and targets of a batch. Predictions [n, 1] of targets [n] become [n]."""
        *inputs, targets = batch
        predictions = self(*inputs)
        if self.classes is None and targets.ndim == 1 and predictions.shape == (len(targets), 1):
            predictions = predictions[:, 0]
        return predictions, targets

    def loss(self, batch: Samples) -> Tensor:
        return self.loss_function(*self.predictions(batch))

    def outputs(self, batch: Samples) -> tuple[Tensor, Tensor]:
        """Predictions and targets; for classification probabilities [n, C], in float64, and labels."""
        predictions, targets = self.predictions(batch)
        return (predictions if self.classes is None else predictions.double().softmax(dim=1)), targets

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """For each sample: `loss`; `accuracy` for classification; and the metrics that were given."""
        predictions, targets = self.predictions(batch)
        metrics = {"loss": torch.func.vmap(self._loss_of_one)(predictions, targets)}
        if self.classes is not None:
            metrics["accuracy"] = (predictions.argmax(dim=1) == targets).to(torch.float64)
        return metrics | {name: function(predictions, targets) for name, function in self.per_sample.items()}

    def _loss_of_one(self, prediction: Tensor, target: Tensor) -> Tensor:
        return self.loss_function(prediction[None], target[None])


@dataclass(frozen=True, eq=False)  # a registry needs its hash
class Supervised:
    """A task of plain parts: called with a seed, it returns the module and the data of the clients.

    See `supervised` for the attributes. The options of a call replace the attributes of the same name.
    """

    train: Samples
    test: Samples | None
    network: nn.Module | Callable[[int], nn.Module]
    loss: Loss
    per_sample: Mapping[str, Loss]
    accumulated: Mapping[str, Accumulated]
    classes: int | None
    clients: int
    partition: Partition
    validation: float
    lr: float

    def __call__(
        self,
        seed: int,
        *,
        clients: int | None = None,
        partition: Partition | None = None,
        validation: float | None = None,
    ) -> tuple[SupervisedTask, ClientData]:
        """The task and its data.

        Args:
            seed: of the partition, the validation split, and the initial model where `network` is a function.
            clients: m, the number of clients.
            partition: of the training samples among clients.
            validation: share of each client's training samples that is held out as the split `validation`, in [0, 1).

        Raises:
            ValueError: an option out of range, or a partition by classes of a task without classes.
        """
        options: dict[str, Any] = {"clients": clients, "partition": partition, "validation": validation}
        parts = replace(self, **{key: value for key, value in options.items() if value is not None})
        return parts.task(seed), parts.data(seed)

    def task(self, seed: int) -> SupervisedTask:
        """The module with its initial parameters."""
        if isinstance(self.network, nn.Module):
            network = copy.deepcopy(self.network)
        else:
            with torch_stream(seed, "init"):
                network = self.network(seed)
        loss = copy.deepcopy(self.loss) if isinstance(self.loss, nn.Module) else self.loss
        return SupervisedTask(network, loss, self.classes, self.per_sample, self.accumulated, self.lr)

    def data(self, seed: int) -> ClientData:
        """The samples of the clients."""
        if self.clients < 1:
            raise ValueError(f"clients: {self.clients} is not allowed; must be at least 1")
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation: {self.validation} is not allowed; must be in [0, 1)")
        targets = self.train[-1].numpy()
        labels = targets if targets.ndim == 1 else np.zeros(len(targets))
        parts = self.partition(labels, self.clients, seed)
        splits, owners, rows = {"train": self.train}, {}, parts.rows
        if self.validation:
            rows, held_out = _held_out(rows, self.validation, seed)
            validation = np.concatenate(held_out)
            if len(validation) == 0:
                raise ValueError(f"validation: {self.validation:g} is not allowed; no client would hold out a sample")
            splits["validation"] = tuple(column[validation] for column in self.train)
            owners["validation"] = np.repeat(np.arange(self.clients), [len(mine) for mine in held_out])
        held, holdings = Holdings.of(rows).held_of(len(targets))
        splits["train"] = tuple(column[held] for column in self.train)
        if self.test is not None:
            splits["test"] = self.test
        if self.classes is None:
            return ClientData(splits, holdings, owners=owners, seed=seed)
        histogram = np.stack([np.bincount(labels[mine], minlength=self.classes) for mine in rows])
        return ClientData(splits, holdings, owners=owners, classes=parts.classes, histogram=histogram, seed=seed)


def _held_out(rows: Sequence[np.ndarray], share: float, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The rows of each client that it trains on, at least one, and those that it holds out."""
    train, held_out = [], []
    for client, mine in enumerate(rows):
        order = stream(seed, "validation", client).permutation(mine)
        cut = min(round(share * len(mine)), len(mine) - 1)
        held_out.append(np.sort(order[:cut]))
        train.append(np.sort(order[cut:]))
    return train, held_out


def supervised(
    train: Any,
    test: Any,
    network: nn.Module | Callable[[int], nn.Module],
    *,
    loss: Loss | None = None,
    metrics: Mapping[str, Any] | Sequence[Any] = (),
    clients: int = 10,
    partition: Partition | str | Mapping[str, Any] = iid,
    validation: float = 0.0,
    lr: float = 0.01,
) -> Supervised:
    """A task from plain parts. Whole numbers as targets make a classification, real numbers a regression.

    Args:
        train: a torch data set whose items are (input, target), or a tuple (inputs, targets) of tensors or arrays.
        test: the same for the split `test`; None for no such split.
        network: maps inputs to predictions: logits [n, C] for labels 0, ..., C - 1. A module is the initial model of
            every seed; a function makes it from the seed. A LightningModule gives predictions by its `forward`.
        loss: from predictions and targets to the mean loss over samples. Default: cross-entropy, or the squared error.
        metrics: names such as `auroc` or torchmetrics objects, in a list or by name; and by name functions from
            predictions and targets to a value of each sample [n].
        clients: m, the number of clients.
        partition: of the training samples among clients: a function, a name, or a mapping with name and options.
        validation: share of each client's training samples that is held out as the split `validation`, in [0, 1).
        lr: learning rate of central training.

    Raises:
        ValueError: parts that do not fit together; it says what is required.
    """
    samples = columns(train, "train")
    targets = samples[-1]
    classes = None if targets.is_floating_point() else _classes(targets)
    if loss is None:
        loss = mse_loss if classes is None else cross_entropy
    per_sample, accumulated = _metrics(metrics)
    made = check_network(network)
    dtype = next(made.parameters()).dtype
    samples = _cast(samples, dtype)
    test_samples = None if test is None else _cast(columns(test, "test"), dtype)
    if test_samples is not None:
        _check_test(samples, test_samples, classes)
    task = SupervisedTask(made, loss, classes, per_sample).eval()
    check_task(task, tuple(column[:2] for column in samples))
    check_finite(task, {"train": samples} if test_samples is None else {"train": samples, "test": test_samples})
    return Supervised(
        train=samples,
        test=test_samples,
        network=network,
        loss=loss,
        per_sample=per_sample,
        accumulated=accumulated,
        classes=classes,
        clients=clients,
        partition=_partition(partition),
        validation=validation,
        lr=lr,
    )


def _classes(targets: Tensor) -> int:
    """C, one more than the largest label."""
    if targets.ndim != 1 or targets.min() < 0:
        raise ValueError(
            f"train: labels of shape {list(targets.shape)} from {int(targets.min())} are not allowed; "
            "must be [n], whole numbers from 0. For regression make the targets floating point"
        )
    return int(targets.max()) + 1


def _metrics(metrics: Mapping[str, Any] | Sequence[Any]) -> tuple[dict[str, Loss], dict[str, Accumulated]]:
    """The metrics of each sample, and those that are computed over a whole split, by name."""
    if not isinstance(metrics, Mapping):
        metrics = {metric if isinstance(metric, str) else type(metric).__name__: metric for metric in metrics}
    per_sample: dict[str, Loss] = {}
    accumulated: dict[str, Accumulated] = {}
    for name, metric in metrics.items():
        made = METRICS[metric]() if isinstance(metric, str) and metric in METRICS else metric
        if isinstance(made, Accumulated):
            accumulated[name] = made
        elif callable(made) and not isinstance(made, type):
            per_sample[name] = made
        else:
            raise ValueError(
                f"metrics: {made!r} is not allowed; must be a name such as {', '.join(list(METRICS)[:3])}, a "
                "torchmetrics object, or by name a function from predictions and targets to values [n]. "
                "Statistics over clients go to evaluation.metrics"
            )
    return per_sample, accumulated


def _partition(partition: Any) -> Partition:
    """A partition from a function, a name, or a name with options."""
    if callable(partition):
        return partition
    options = dict(partition) if isinstance(partition, Mapping) else {"name": partition}
    name = options.pop("name", None)
    if name not in PARTITIONS:
        raise ValueError(f"partition: {name!r} is not allowed; must be a function or one of {', '.join(PARTITIONS)}")
    return partial(PARTITIONS[name], **options)


def _cast(samples: Samples, dtype: torch.dtype) -> Samples:
    """Floating-point columns in the type of the network's parameters."""
    return tuple(column.to(dtype) if column.is_floating_point() else column for column in samples)


def _check_test(train: Samples, test: Samples, classes: int | None) -> None:
    """Refuse test samples that are not like the training samples."""
    of_train, of_test = ([(list(column.shape[1:]), column.dtype) for column in samples] for samples in (train, test))
    if of_train != of_test:
        raise ValueError(f"test: columns {of_test} are not allowed; must be as those of train, {of_train}")
    if classes is not None and not 0 <= test[-1].min() <= test[-1].max() < classes:
        raise ValueError(f"test: labels are not allowed that train does not have; must be in [0, {classes - 1}]")
