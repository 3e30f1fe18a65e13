"""Metrics that are computed over a whole split: scores of torchmetrics, and statistics over clients.

`METRICS` lists the names that `evaluation.metrics` can use. A metric is an object with `update`, `compute` and `reset`,
such as any `torchmetrics.Metric`, or an `OverClients`. The arguments of a registered function are the options of an
experiment file.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
import torchmetrics  # its metrics are imported when one is made: that takes a second
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Accumulated(Protocol):
    """A metric that takes in batches and is computed once, after the last. Every `torchmetrics.Metric` is one."""

    def update(self, predictions: Tensor, targets: Tensor) -> None:
        """Take in a batch: predictions [n, ...] and targets [n, ...], see `rollcall.tasks.Task.outputs`."""

    def compute(self) -> Any:
        """The value for all samples since the last reset: a number, a vector, or a mapping of names to numbers."""

    def reset(self) -> None:
        """Forget all samples."""


@dataclass(frozen=True)
class OverClients:
    """A statistic over the clients of a mean over each client's samples.

    It is computed on splits whose samples belong to clients. A client without samples in a split is left out.

    Attributes:
        of: the metric of each sample whose client means are taken (`accuracy`); see `rollcall.tasks.Task.metrics`.
        statistic: from the means of the clients [m] to a number.
    """

    of: str
    statistic: Callable[[Float[np.ndarray, "m"]], float]


TaskMetric: TypeAlias = Accumulated | OverClients


class ClassScores:
    """A score of each class against all others, and its mean over the classes that have a score.

    A class has no score if the samples lack it, or if they lack all others and the score compares with these. Without
    any score the value is NaN. Predictions [n] or [n, 1] are the probabilities of class 1, whose score is the value.

    Args:
        score: name of the torchmetrics metric without `Multiclass`, such as `F1Score`.
        compares: whether the score needs samples of other classes.
    """

    def __init__(self, score: str, compares: bool = False) -> None:
        self.score = score
        self.compares = compares
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self.metric: torchmetrics.Metric | None = None
        self.counts = torch.zeros(0, dtype=torch.int64)
        self.of_one = False

    def update(self, predictions: Float[Tensor, "n *C"], targets: Int[Tensor, "n"] | Float[Tensor, "n"]) -> None:
        """Take in a batch of probabilities and labels 0, 1, ..., C - 1."""
        if not torch.equal(targets, targets.long()) or targets.min() < 0:
            raise ValueError("the targets must be labels, whole numbers from 0")
        targets = targets.long()
        if predictions.ndim == 1 or predictions.shape[1] == 1:
            ones = predictions.reshape(len(targets))
            predictions, self.of_one = torch.stack([1 - ones, ones], dim=1), True
        if self.metric is None:
            make = getattr(torchmetrics.classification, f"Multiclass{self.score}")
            self.metric = make(predictions.shape[1], average="none").to(predictions.device)
            self.counts = targets.new_zeros(predictions.shape[1])
        self.counts = self.counts + torch.bincount(targets, minlength=len(self.counts))
        self.metric.update(predictions, targets)

    def per_class(self) -> Float[Tensor, "C"]:
        """The score of each class; NaN for a class that has none."""
        if self.metric is None:
            return torch.zeros(0)
        scored = self.counts > 0
        if self.compares:
            scored &= self.counts < self.counts.sum()
        if self.of_one:
            scored[0] = False
        with warnings.catch_warnings():  # about classes without samples, whose scores are left out here
            warnings.simplefilter("ignore")
            scores = self.metric.compute()
        return scores.where(scored, torch.nan)

    def compute(self) -> Float[Tensor, ""]:
        """The mean over classes."""
        return self.per_class().nanmean()


def auroc() -> ClassScores:
    """Area under the ROC curve of each class against the others, averaged over classes."""
    return ClassScores("AUROC", compares=True)


def f1() -> ClassScores:
    """F1 score of each class, the harmonic mean of precision and recall, averaged over classes."""
    return ClassScores("F1Score")


def worst_10_accuracy() -> OverClients:
    """Mean accuracy of the worst 10 % of the clients, rounded up to whole clients (Li et al. 2020, q-FFL)."""
    return OverClients("accuracy", lambda values: float(np.sort(values)[: -(-len(values) // 10)].mean()))


def client_variance() -> OverClients:
    """Variance over clients of their accuracies in [0, 1] (Li et al. 2020, q-FFL)."""
    return OverClients("accuracy", lambda values: float(values.var()))


METRICS: dict[str, Callable[..., TaskMetric]] = {
    "auroc": auroc,
    "f1": f1,
    "worst_10_accuracy": worst_10_accuracy,
    "client_variance": client_variance,
}
