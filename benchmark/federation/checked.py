"""Checks of the values that a contributed method or task returns.

A run makes each check once, at the first call; `rollcall check` makes them too. A check raises `WrongReturnError`. A
wrong value that a method returns only later in a run raises an error of torch.
"""

import dataclasses
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from rollcall.algorithms import Traffic
from rollcall.benchmark.config.errors import SourceError
from rollcall.benchmark.config.source import contributed_line, definition, told
from rollcall.tasks import Samples, Task

MODEL_NAME = re.compile(r"\w*")
"""A name of a model to evaluate, which ends the names of its metrics."""


class WrongReturnError(ValueError):
    """A method of a class returned another value than it must.

    Attributes:
        method: its name, such as `round`.
        expected: the allowed values.
        seen: the value.
    """

    def __init__(self, part: Any, method: str, expected: str, seen: str) -> None:
        super().__init__(f"{type(part).__name__}.{method} returned {seen}; must return {expected}")
        self.method = method
        self.expected = expected
        self.seen = seen


@contextmanager
def located(part: Any) -> Iterator[None]:
    """Turn a `WrongReturnError` of a part into a `SourceError` that begins with the line of the method."""
    try:
        yield
    except WrongReturnError as error:
        raise SourceError(f"{definition(getattr(type(part), error.method))}: {error}") from None


def check_init(algorithm: Any, state: Any, method: str = "init") -> None:
    """The state is a dataclass whose fields are tensors or dataclasses of tensors."""
    if not _is_dataclass(state):
        raise WrongReturnError(algorithm, method, "a dataclass of tensors", _in_words(state))
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if _is_dataclass(value):
            check_init(algorithm, value, method)
        elif not isinstance(value, Tensor):
            seen = f"a {type(state).__name__} whose {field.name} is {_in_words(value)}"
            raise WrongReturnError(algorithm, method, "a dataclass of tensors, such as torch.tensor(0)", seen)


def check_round(algorithm: Any, returned: Any, state: Any, x: Tensor) -> None:
    """`round(state, x, ...)` returned a pair: an update [d] like x or None, and a state of the same class.

    Numbers that are not finite are not looked for.
    """
    update, after = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    if not isinstance(update, Tensor | None) or type(after) is not type(state):
        kind = type(state).__name__
        pair = f"(update, state): {_like(x)} or None, and the state, of class {kind} as from init"
        raise WrongReturnError(algorithm, "round", pair, _in_words(returned))
    if update is not None:
        _check_alike(algorithm, "round", "an update", update, x)
    check_init(algorithm, after, "round")


def check_eval_models(algorithm: Any, models: Any, x: Tensor) -> None:
    """The models to evaluate are a mapping of names to models [d] like x; one name is ""."""
    expected = f'the models to evaluate by name, such as {{"": x}}: each {_like(x)}'
    if not isinstance(models, dict):
        raise WrongReturnError(algorithm, "eval_models", expected, _in_words(models))
    for name, model in models.items():
        if not isinstance(name, str) or not isinstance(model, Tensor):
            raise WrongReturnError(algorithm, "eval_models", expected, f"{name!r}: {_in_words(model)}")
        if not MODEL_NAME.fullmatch(name):
            raise WrongReturnError(algorithm, "eval_models", "names of letters, digits and _", f"the name {name!r}")
        _check_alike(algorithm, "eval_models", "a model", model, x)
    if "" not in models:
        raise WrongReturnError(algorithm, "eval_models", f'{expected}; the name "" is the result', f"only {[*models]}")


def check_traffic(algorithm: Any, traffic: Any) -> None:
    """The traffic is a `Traffic`."""
    if not isinstance(traffic, Traffic):
        raise WrongReturnError(algorithm, "traffic", "an algorithms.Traffic(up, down)", _in_words(traffic))


def check_loss(task: Task, loss: Any, batch: Samples) -> None:
    """The loss of a batch is one number."""
    if not isinstance(loss, Tensor) or loss.ndim:
        must = "one number, the mean over the samples: a tensor [], such as loss.mean()"
        raise WrongReturnError(task, "loss", must, _in_words(loss))


def check_metrics(task: Task, metrics: Any, batch: Samples) -> None:
    """The metrics of a batch of n samples are tensors [n] or [] by name, and one is the loss."""
    n = len(batch[0])
    if not isinstance(metrics, dict) or "loss" not in metrics:
        seen = f"the keys {', '.join(metrics) or 'none'}" if isinstance(metrics, dict) else _in_words(metrics)
        raise WrongReturnError(task, "metrics", "a dict of tensors with the key `loss`", seen)
    for name, values in metrics.items():
        if not isinstance(values, Tensor) or values.shape not in ((n,), ()):
            must = f"{name!r}: a tensor [{n}] with a value for each sample, or [] for the batch"
            raise WrongReturnError(task, "metrics", must, f"{name!r}: {_in_words(values)}")


def check_task(task: Task, batch: Samples) -> None:
    """Call `loss` and `metrics` of a user's task with a batch, in evaluation mode, and check the results.

    Raises:
        SourceError: one of them raised an error, or returned another value than it must; names the line.
    """
    training = task.training
    task.eval()
    for method, check in {"loss": check_loss, "metrics": check_metrics}.items():
        try:
            with torch.no_grad():
                returned = getattr(task, method)(batch)
        except Exception as error:
            place = contributed_line(error) or f"{definition(getattr(type(task), method))}: "
            raise SourceError(f"{place}{told(error)}") from error
        with located(task):
            check(task, returned, batch)
    task.train(training)


def _check_alike(algorithm: Any, method: str, what: str, vector: Tensor, x: Tensor) -> None:
    """A vector has the shape, type and device of x."""
    d = list(x.shape)
    if vector.shape != x.shape:
        hint = ". Take the mean over the clients: .mean(dim=0)" if vector.shape[1:] == x.shape else ""
        raise WrongReturnError(algorithm, method, f"{what} {d}, as x is{hint}", f"{what} {list(vector.shape)}")
    if vector.dtype != x.dtype:
        raise WrongReturnError(algorithm, method, f"{what} of {_dtype(x)}, as x is", f"{what} of {_dtype(vector)}")
    if vector.device != x.device:
        raise WrongReturnError(algorithm, method, f"{what} on {x.device}, as x is", f"{what} on {vector.device}")


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _like(x: Tensor) -> str:
    return f"a {_dtype(x)} tensor {list(x.shape)}"


def _dtype(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def _in_words(value: Any) -> str:
    """A returned value in words, with the shape of a tensor."""
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return f"({', '.join(map(_in_words, value))})"
    name = type(value).__name__
    shape = f" {list(value.shape)}" if hasattr(value, "shape") else ""
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}{shape}"
