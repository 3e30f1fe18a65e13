"""Tasks from plain parts: samples, a network, a loss and metrics.

The parts are checked on two samples; error messages state the requirement.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import Dataset, TensorDataset, default_collate

from rollcall.tasks.base import (
    ClientData,
    EmptyClients,
    Samples,
    Task,
    cast,
    evaluating,
    need_least,
    need_shares,
    one_line,
)
from rollcall.tasks.metrics import METRICS, Accumulated
from rollcall.tasks.partitions import PARTITIONS, Partition, Parts, iid, made_by, made_parts, realised, rows_of
from rollcall.tasks.streams import stream, torch_stream

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From predictions and targets, [n, ...] each."""


OWNED = "owners: are not allowed beside clients or partition, which would have no effect"


class SupervisedTask(Task):
    """A network and a loss: see `Supervised`.

    `classes` is C for classification and None for regression. `per_sample` metrics give [n] from predictions and
    targets; `accumulated` ones are computed over a whole split.
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
        if self.classes is None and targets.ndim == 1 and getattr(predictions, "shape", ()) == (len(targets), 1):
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
        of_one = torch.func.vmap(lambda prediction, target: self.loss_function(prediction[None], target[None]))
        metrics = {"loss": of_one(predictions, targets)}
        if self.classes is not None:
            metrics["accuracy"] = (predictions.argmax(dim=1) == targets).to(torch.float64)
        return metrics | {name: function(predictions, targets) for name, function in self.per_sample.items()}


class Supervised:
    """A task from plain parts: called with a seed, it returns the module and the data of the clients.

    Whole numbers as targets make a classification, real numbers a regression.

    Args:
        train: a torch data set whose items are (input, target), or a tuple (inputs, targets) of tensors or arrays.
        test: the same for the split `test`; None for no such split.
        network: maps inputs to predictions: logits [n, C] for labels 0, ..., C - 1. A module is the initial model of
            every seed; a function makes it from the seed. A LightningModule gives predictions by its `forward`.
        loss: from predictions and targets to the mean loss over samples. Default: cross-entropy, or the squared error.
        metrics: names such as `auroc` or torchmetrics objects, in a list or by name; and by name functions from
            predictions and targets to a value of each sample [n].
        clients: m, the number of clients.
        partition: of the training samples among clients: a name, a mapping with name and options, or a function of
            (labels, clients, seed) that returns `Parts` or a list of the samples' numbers for each client.
        owners: by split (`train`, `test`) the client of each sample, a number or a name, instead of `clients` and
            `partition`. With `test`, each client is also evaluated on its own test samples (`evaluation.by: [client]`).
            Without `train`, the clients are those of `partition`, and the owners their numbers from 0.
        validation, test_share: shares of each client's training samples that are held out as the splits `validation`
            and `test`.
        empty_clients: of `ClientData`.
        lr: learning rate of central training.

    Raises:
        ValueError: parts that do not fit together; it states the requirement.
    """

    def __init__(
        self,
        train: Any,
        test: Any,
        network: nn.Module | Callable[[int], nn.Module],
        *,
        loss: Loss | None = None,
        metrics: Mapping[str, Any] | Sequence[Any] = (),
        clients: int = 10,
        partition: Partition | str | Mapping[str, Any] = iid,
        owners: Mapping[str, Any] | None = None,
        validation: float = 0.0,
        test_share: float = 0.0,
        empty_clients: EmptyClients = "refuse",
        lr: float = 0.01,
    ) -> None:
        samples = _columns(train, "train")
        self.network, self.lr, self.classes = network, lr, _classes(samples[-1])
        self.loss = loss or (mse_loss if self.classes is None else cross_entropy)
        self.per_sample, self.accumulated = _metrics(metrics)
        measured = {"loss"} if self.classes is None else {"loss", "accuracy"}
        if taken := measured & {*self.per_sample, *self.accumulated}:
            raise ValueError(f"metrics: {min(taken)} is not allowed; the task measures it. Take another name")
        try:
            made: Any = None if isinstance(network, type) or not callable(network) else self._network(0)
        except Exception as error:
            raise ValueError(
                f"network: cannot be made from a seed: {type(error).__name__}: {one_line(error)}"
            ) from error
        parameters = made.parameters() if isinstance(made, nn.Module) else ()
        if not any(isinstance(one, nn.Parameter) and one.requires_grad for one in parameters):
            must = "a torch module with parameters to train, or a function from the seed to one"
            raise ValueError(f"network: {network!r} is not allowed; must be {must}")
        dtype = next(made.parameters()).dtype
        self.splits = {"train": cast(samples, dtype)}
        if test is not None:
            self.splits["test"] = cast(_columns(test, "test"), dtype)
            _check_test(self.splits["train"], self.splits["test"], self.classes)
        self._check(made)
        self.names, self.owners = _owners(owners or {}, self.splits)
        owner = self.owners.pop("train", None)
        self.owned = owner is not None
        if owner is not None:
            if clients != 10 or partition is not iid:
                raise ValueError(OWNED)
            owned = rows_of(owner, len(self.names or ()))
            clients, partition = len(owned), lambda labels, m, seed: Parts(owned, realised(labels, owned))
        self.options: dict[str, Any] = {"clients": clients, "partition": _partition(partition)}
        self.options |= {"validation": validation, "test_share": test_share, "empty_clients": empty_clients}

    def __call__(
        self,
        seed: int,
        *,
        clients: int | None = None,
        partition: Partition | None = None,
        validation: float | None = None,
        test_share: float | None = None,
        empty_clients: EmptyClients | None = None,
    ) -> tuple[SupervisedTask, ClientData]:
        """The task and its data; the options replace those of the parts.

        Args:
            seed: of partition, validation split and, from a function, initial model.

        Raises:
            ValueError: an option out of range, a partition by classes of a task without classes, or clients or a
                partition beside owners of the training samples.
        """
        if self.owned and (clients is not None or partition is not None):
            raise ValueError(OWNED)
        options: dict[str, Any] = {"clients": clients, "partition": partition, "validation": validation}
        options |= {"test_share": test_share, "empty_clients": empty_clients}
        options = self.options | {name: value for name, value in options.items() if value is not None}
        loss = copy.deepcopy(self.loss) if isinstance(self.loss, nn.Module) else self.loss
        parts = self._network(seed), loss, self.classes, self.per_sample, self.accumulated, self.lr
        return SupervisedTask(*parts), self._data(seed, **options)

    def _network(self, seed: int) -> Any:
        """A copy of the module, or the function's result for a seed."""
        if isinstance(self.network, nn.Module):
            return copy.deepcopy(self.network)
        with torch_stream(seed, "init"):
            return self.network(seed)

    def _check(self, network: nn.Module) -> None:
        """Check the parts on a few samples, of different classes since a loss may weight them.

        First in evaluation mode: torch's old weight_norm can only be copied after a call.
        """
        *_, targets = samples = self.splits["train"]
        of_each: Any = [] if self.classes is None else np.unique(targets, return_index=True)[1][:10]
        batch = tuple(column[np.union1d(of_each, range(min(2, len(targets)))).astype(int)] for column in samples)
        task = SupervisedTask(network, self.loss, self.classes, self.per_sample)
        with evaluating(task):
            _check_task(task, batch)
        network = copy.deepcopy(network)  # training changes the statistics of BatchNorm
        _check_task(SupervisedTask(network, self.loss, self.classes, self.per_sample), batch)

    def _data(
        self,
        seed: int,
        clients: int,
        partition: Partition,
        validation: float,
        test_share: float,
        empty_clients: EmptyClients,
    ) -> ClientData:
        """The samples of the clients."""
        need_least(1, clients=clients)
        need_shares(validation, test_share)
        if test_share and "test" in self.splits:
            raise ValueError(f"test_share: {test_share:g} is not allowed beside samples for the split test")
        train, splits, owners = self.splits["train"], dict(self.splits), dict(self.owners)
        y = train[-1]
        targets = (y.float() if y.dtype == torch.bfloat16 else y).numpy()  # NumPy has no bfloat16
        labels = targets if targets.ndim == 1 else np.zeros(len(targets))
        parts = made_parts(partition, labels, clients, seed)
        rows: Sequence[np.ndarray] = parts.rows
        for split, option, share in (("validation",) * 2 + (validation,), ("test", "test_share", test_share)):
            if share:
                rows, held_out = _held_out(rows, share, parts.rows, seed, split)
                mine = np.concatenate(held_out)
                if len(mine) == 0:
                    raise ValueError(f"{option}: {share:g} is not allowed; no client would hold out a sample")
                splits[split] = tuple(column[mine] for column in train)
                owners[split] = np.repeat(np.arange(clients), [len(part) for part in held_out])
        classes = histogram = None
        if self.classes is not None:
            classes = parts.classes
            histogram = np.stack([np.bincount(labels[mine], minlength=self.classes) for mine in rows])
        with made_by(partition):
            return ClientData(
                splits,
                rows,
                owners=owners,
                classes=classes,
                histogram=histogram,
                names=self.names,
                empty_clients=empty_clients,
                seed=seed,
            )


supervised = Supervised


def _classes(targets: Tensor) -> int | None:
    """C of labels; None for a regression."""
    if targets.is_floating_point():
        return None
    if targets.ndim != 1 or targets.min() < 0:
        raise ValueError(
            f"train: labels of shape {list(targets.shape)} from {int(targets.min())} are not allowed; "
            "must be [n], whole numbers from 0. For regression make the targets floating point"
        )
    if not targets.any():
        raise ValueError("train: labels that are all 0 are not allowed; must be of two classes or more")
    return int(targets.max()) + 1


def _held_out(
    rows: Sequence[np.ndarray], share: float, all_rows: Sequence[np.ndarray], seed: int, split: str
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The rows of each client that it trains on, at least one, and those that it holds out, a share of all its rows."""
    train, held_out = [], []
    for client, (mine, every) in enumerate(zip(rows, all_rows, strict=True)):
        order = stream(seed, split, client).permutation(mine)
        cut = max(min(round(share * len(every)), len(mine) - 1), 0)
        held_out.append(np.sort(order[:cut]))
        train.append(np.sort(order[cut:]))
    return train, held_out


def _owners(
    owners: Mapping[str, Any], splits: Mapping[str, Samples]
) -> tuple[tuple[str, ...] | None, dict[str, Int[np.ndarray, "n"]]]:
    """The names of the clients, if those of training samples are known, and the number of each sample's client."""
    given = {split: np.asarray(owner) for split, owner in owners.items()}
    for split, owner in given.items():
        n = len(splits[split][-1]) if split in splits else 0
        if owner.shape != (n,):
            raise ValueError(f"owners: shape {owner.shape} for {split} is not allowed; must be [{n}]")
        if pd.isna(owner).any():
            raise ValueError(f"owners: {pd.isna(owner).sum()} missing ones for {split} are not allowed; must be names")
        if owner.dtype.kind == "f" and (owner == np.rint(owner)).all():  # as pandas makes whole numbers
            given[split] = owner.astype(np.int64)
    if "train" not in given:
        for split, owner in given.items():
            if owner.dtype.kind not in "biu":
                raise ValueError(
                    f"owners: names or fractions for {split} are not allowed without owners for train; must be whole "
                    "numbers from 0"
                )
        return None, given
    ids, numbers = np.unique(np.concatenate(list(given.values())), return_inverse=True)
    return tuple(map(str, ids)), dict(zip(given, np.split(numbers, [len(next(iter(given.values())))]), strict=False))


def _columns(source: Any, name: str) -> Samples:
    """The columns of a split: inputs, and targets last. A data set is read once, so a random transform acts once."""
    try:
        if isinstance(source, TensorDataset):
            source = source.tensors
        elif isinstance(source, Dataset):
            source = default_collate([source[i] for i in range(len(source))])  # type: ignore[arg-type]
        if not isinstance(source, tuple | list) or len(source) < 2:
            raise TypeError(type(source).__name__)
        if any(isinstance(column, np.ma.MaskedArray) for column in source):
            raise TypeError("masked arrays")
        columns = [
            column.detach().clone() if isinstance(column, Tensor) else torch.from_numpy(np.array(column))
            for column in source
        ]
    except (TypeError, RuntimeError) as error:
        raise ValueError(
            f"{name}: {one_line(error)}: must be a tuple (inputs, targets) of tensors or arrays of numbers, or a torch "
            "Dataset whose items are such pairs"
        ) from error
    lengths = [len(column) if column.ndim else 0 for column in columns]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise ValueError(f"{name}: columns of lengths {lengths} are not allowed; must be equal and at least 1")
    pixels = [column.dtype == torch.uint8 for column in columns[:-1]] + [False]  # targets are no pixels
    return tuple(
        column if column.is_floating_point() or column.is_complex() or kept else column.long()
        for column, kept in zip(columns, pixels, strict=True)
    )


def _metrics(metrics: Mapping[str, Any] | Sequence[Any]) -> tuple[dict[str, Loss], dict[str, Accumulated]]:
    """The metrics of each sample, and those that are computed over a whole split, by name."""
    if not isinstance(metrics, Mapping):
        names = [one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__) for one in metrics]
        if len({*names}) < len(names):
            raise ValueError(f"metrics: two of one name are not allowed ({', '.join(names)}); name them in a mapping")
        metrics = dict(zip(names, metrics, strict=True))
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
                f"metrics: {made!r} is not allowed; must be a name such as auroc or f1, a torchmetrics "
                "object, or by name a function from predictions and targets to values [n]. "
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


def _check_test(train: Samples, test: Samples, classes: int | None) -> None:
    """Raise unless test samples have the shapes, types and labels of the training samples."""
    of_train, of_test = ([(list(column.shape[1:]), column.dtype) for column in samples] for samples in (train, test))
    if of_train != of_test:
        raise ValueError(f"test: columns {of_test} are not allowed; must be as those of train, {of_train}")
    if classes is not None and not 0 <= test[-1].min() <= test[-1].max() < classes:
        raise ValueError(f"test: labels are not allowed that train does not have; must be in [0, {classes - 1}]")


def checked_model(module: Any, shape: tuple[int, ...], classes: int) -> Any:
    """A user's network. Raise ValueError unless it gives C logits for images of a shape; or its own error."""
    if not isinstance(module, nn.Module):
        return module
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        images = torch.randn(2, *shape, generator=generator)
        for training in (False, True):
            try:
                logits = copy.deepcopy(module).train(training)(images)
            except RuntimeError as error:
                error.args = (f"for images of shape {list(shape)}: {one_line(error)}",)
                raise
            _check_predictions(logits, torch.arange(2) % classes, classes, training)
    return module


def _check_task(task: SupervisedTask, batch: Samples) -> None:
    """Raise unless predictions of two samples have the right shape and the loss is the mean over samples."""
    with torch.no_grad():
        try:
            predictions, targets = task.predictions(batch)
        except Exception as error:  # of the user's code
            shapes = [list(column.shape) for column in batch[:-1]]
            told = f"{type(error).__name__}: {one_line(error)}"
            raise ValueError(f"network: cannot be computed for inputs of shape {shapes}: {told}") from error
        _check_predictions(predictions, targets, task.classes, task.training)
        _check_loss(task.loss_function, predictions, targets)
        for name, function in task.per_sample.items():
            values = function(predictions, targets)
            if not isinstance(values, Tensor) or values.shape != (len(targets),):
                raise ValueError(f"metrics: {name} gives {_shape(values)} for {len(targets)} samples; must give [n]")
        try:
            task.metrics(batch)
        except RuntimeError as error:
            raise ValueError(
                f"loss: cannot be computed for each sample by torch.func.vmap: {one_line(error)}. "
                "Avoid .item() and branches that depend on numbers"
            ) from error


def _check_predictions(predictions: Any, targets: Tensor, classes: int | None, training: bool) -> None:
    n, tensor = len(targets), isinstance(predictions, Tensor)
    gives = f"network: gives {_shape(predictions)} for {n} samples{' in training' if training else ''}; must give"
    if classes is None:
        if not tensor or predictions.shape != targets.shape:
            raise ValueError(
                f"{gives} {list(targets.shape)}, as the targets. For classification make the targets whole numbers"
            )
    elif not tensor or predictions.ndim != 2 or len(predictions) != n or predictions.shape[1] < classes:
        numbers = ". For amounts make the targets floating point" if classes > 2 else ""
        raise ValueError(f"{gives} [{n}, {classes}], a logit for each class{numbers}")


def _check_loss(loss: Loss, predictions: Tensor, targets: Tensor) -> None:
    """Raise unless the loss is the mean of the samples' losses."""
    try:
        whole = loss(predictions, targets)
        if not isinstance(whole, Tensor) or whole.ndim:
            raise ValueError(f"loss: gives {_shape(whole)}; must give one number, the mean over samples")
        single = torch.stack([loss(predictions[i : i + 1], targets[i : i + 1]) for i in range(len(targets))])
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(
            f"loss: cannot be computed from predictions {list(predictions.shape)} and targets {list(targets.shape)}: "
            f"{one_line(error)}"
        ) from error
    rtol = max(1e-4, 4 * torch.finfo(whole.dtype).eps)
    if not torch.allclose(whole, single.mean(), rtol=rtol, atol=1e-6, equal_nan=True):
        raise ValueError(
            f"loss: gives {whole:.4g} for samples whose own losses are {', '.join(f'{one:.4g}' for one in single)}; "
            "must be their mean, without sums or class weights"
        )


def _shape(value: Any) -> str:
    return f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
