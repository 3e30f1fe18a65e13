"""Calls of the methods of a user's task, whose return values are checked before the first round."""

from typing import Any

import torch
from torch import Tensor

from algorithms.returned import WrongReturnError, in_words
from benchmark.config.errors import SourceError
from benchmark.config.source import contributed_line, definition, told
from tasks import Samples, Task


def refuse_wrong_returns(task: Task, batch: Samples) -> None:
    """Call `loss` and `metrics` with a batch, in evaluation mode.

    Raises:
        SourceError: one of them raised an error, or returned something else than it must; names the line.
    """
    training = task.training
    task.eval()
    for method, check in {"loss": check_loss, "metrics": check_metrics}.items():
        try:
            with torch.no_grad():
                check(task, getattr(task, method)(batch), batch)
        except WrongReturnError as error:
            raise SourceError(f"{definition(getattr(type(task), method))}: {error}") from None
        except Exception as error:
            place = contributed_line(error) or f"{definition(getattr(type(task), method))}: "
            raise SourceError(f"{place}{told(error)}") from error
    task.train(training)


def check_loss(task: Task, loss: Any, batch: Samples) -> None:
    """Refuse what is no loss of a batch.

    Raises:
        WrongReturnError: names the class and what was returned.
    """
    if not isinstance(loss, Tensor) or loss.ndim:
        must = "one number, the mean over the samples: a tensor [], such as loss.mean()"
        raise WrongReturnError(task, "loss", must, in_words(loss))


def check_metrics(task: Task, metrics: Any, batch: Samples) -> None:
    """Refuse what are no metrics of a batch.

    Raises:
        WrongReturnError: names the class and what was returned.
    """
    n = len(batch[0])
    if not isinstance(metrics, dict) or "loss" not in metrics:
        seen = f"the keys {', '.join(metrics) or 'none'}" if isinstance(metrics, dict) else in_words(metrics)
        raise WrongReturnError(task, "metrics", "a dict of tensors with the key `loss`", seen)
    for name, values in metrics.items():
        if not isinstance(values, Tensor) or values.shape not in ((n,), ()):
            must = f"{name!r}: a tensor [{n}] with a value for each sample, or [] for the batch"
            raise WrongReturnError(task, "metrics", must, f"{name!r}: {in_words(values)}")
