"""Checks of the values that a contributed method or task returns.

A run makes each check once, at the first call; `rollcall check` makes them too. A check raises `WrongReturnError`. A
wrong value that a method returns only later in a run raises an error of torch.
"""

import copy
import dataclasses
import re
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollcall.algorithms import Traffic
from rollcall.benchmark.config.errors import SettingError, SourceError
from rollcall.benchmark.config.source import contributed_line, definition, in_words, told
from rollcall.tasks import ClientData, Minibatches, Samples, Task, evaluating

MODEL_NAME = re.compile(r"\w*")
"""A name of a model to evaluate, which ends the names of its metrics."""


class WrongReturnError(SourceError):
    """A method of a class returned another value (`seen`) than it must (`expected`). Begins with the method's line."""

    def __init__(self, text: str, method: str = "", expected: str = "", seen: str = "") -> None:
        super().__init__(text)
        self.method = method
        self.expected = expected
        self.seen = seen


def _need(part: Any, method: str, fits: bool, expected: str, seen: str) -> None:
    if not fits:
        returned = f"{type(part).__name__}.{method} returned {seen}; must return {expected}"
        raise WrongReturnError(f"{definition(getattr(type(part), method))}: {returned}", method, expected, seen)


def check_init(algorithm: Any, state: Any, method: str = "init") -> None:
    """The state is a dataclass whose fields are tensors or dataclasses of tensors."""
    _need(algorithm, method, _is_dataclass(state), "a dataclass of tensors", _in_words(state))
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if _is_dataclass(value):
            check_init(algorithm, value, method)
        else:
            seen = f"a {type(state).__name__} whose {field.name} is {_in_words(value)}"
            _need(algorithm, method, isinstance(value, Tensor), "a dataclass of tensors, such as torch.tensor(0)", seen)


def check_round(algorithm: Any, returned: Any, state: Any, x: Tensor) -> None:
    """`round(state, x, ...)` returned a pair: an update [d] like x or None, and a state of the same class.

    Numbers that are not finite are not looked for.
    """
    update, after = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    fits = type(after) is type(state) and (update is None or _alike(update, x))
    pair = f"(update, state): {_in_words(x)} or None, and the state, of class {type(state).__name__} as from init"
    _need(algorithm, "round", fits, pair, _in_words(returned))
    check_init(algorithm, after, "round")


def check_eval_models(algorithm: Any, models: Any, x: Tensor) -> None:
    """The models to evaluate are a mapping of names, of which one is "", to models [d] like x."""
    expected = f'the models to evaluate by name, such as {{"": x}}: each {_in_words(x)}; the name "" is the result'
    _need(algorithm, "eval_models", isinstance(models, dict), expected, _in_words(models))
    _need(algorithm, "eval_models", "" in models, expected, f"only {[*models]}")
    for name, model in models.items():
        _need(algorithm, "eval_models", _alike(model, x), expected, f"{name!r}: {_in_words(model)}")
        plain = MODEL_NAME.fullmatch(str(name)) is not None
        _need(algorithm, "eval_models", plain, "names of letters, digits and _", f"the name {name!r}")


def check_traffic(algorithm: Any, traffic: Any) -> None:
    """The traffic is a `Traffic`."""
    _need(algorithm, "traffic", isinstance(traffic, Traffic), "an algorithms.Traffic(up, down)", _in_words(traffic))


def check_loss(task: Task, loss: Any, batch: Samples) -> None:
    """The loss of a batch is one number."""
    must = "one number, the mean over the samples: a tensor [], such as loss.mean()"
    _need(task, "loss", isinstance(loss, Tensor) and not loss.ndim, must, _in_words(loss))


def check_metrics(task: Task, metrics: Any, batch: Samples) -> None:
    """The metrics of a batch of n samples are tensors [n] or [] by name, and one is the loss."""
    n = len(batch[0])
    seen = f"the keys {', '.join(metrics) or 'none'}" if isinstance(metrics, dict) else _in_words(metrics)
    has_loss = isinstance(metrics, dict) and "loss" in metrics
    _need(task, "metrics", has_loss, "a dict of tensors with the key `loss`", seen)
    for name, values in metrics.items():
        must = f"{name!r}: a tensor [{n}] with a value for each sample, or [] for the batch"
        fits = isinstance(values, Tensor) and values.shape in ((n,), ())
        _need(task, "metrics", fits, must, f"{name!r}: {_in_words(values)}")


def check_task(task: Task, batch: Samples) -> None:
    """Call `loss` and `metrics` of a user's task with a batch, in evaluation mode, and check the results.

    Raises SourceError: one of them raised an error, or returned another value than it must; names the line.
    """
    for method, check in {"loss": check_loss, "metrics": check_metrics}.items():
        try:
            with torch.no_grad(), evaluating(task):
                returned = getattr(task, method)(batch)
        except Exception as error:
            place = contributed_line(error) or f"{definition(getattr(type(task), method))}: "
            raise SourceError(f"{place}{told(error)}") from error
        check(task, returned, batch)


def check_training(task: Task, data: ClientData, minibatches: Minibatches) -> None:
    """Compute the loss of the smallest minibatch of a run, in the modes of the run, on a copy of the task.

    Raises SettingError: it cannot be computed, for example because BatchNorm needs two samples.
    """
    sizes = np.where(minibatches.longest > 0, minibatches.shortest, np.iinfo(np.int64).max)
    client = int(sizes.argmin())
    n = int(sizes[client])
    rows = minibatches.parts[client][:n]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            batch = tuple(column[rows] for column in data.splits["train"])
            with evaluating(task):
                task.loss(batch)  # without it, a network with torch's old weight_norm cannot be copied
            copy.deepcopy(task).loss(batch)
    except Exception as error:
        place = contributed_line(error) or ""
        few = "" if n > 1 else ". local.last_batch: drop, another local.batch_size or tasks.models.BatchNorm avoid it"
        raise SettingError(
            f"model: {place}cannot be trained on a minibatch of {n} samples, the smallest of client {client}: "
            f"{told(error)}{few}"
        ) from error


def _alike(vector: Any, x: Tensor) -> bool:
    """Whether a value is a vector of the shape, type and device of x."""
    if not isinstance(vector, Tensor):
        return False
    return (vector.shape, vector.dtype, vector.device) == (x.shape, x.dtype, x.device)


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _in_words(value: Any) -> str:
    """A returned value in words, with the type and shape of a tensor."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_in_words, value))})"
    if isinstance(value, Tensor):
        place = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"a {str(value.dtype).removeprefix('torch.')} tensor {list(value.shape)}{place}"
    return in_words(value)
