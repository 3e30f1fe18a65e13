"""Whether the methods of an algorithm returned what they must."""

import dataclasses
import re
from typing import Any

from torch import Tensor

from algorithms.base import Traffic

MODEL_NAME = re.compile(r"\w*")
"""A name of a model to evaluate, which ends the names of its metrics."""


class WrongReturnError(ValueError):
    """A method of a class returned something else than it must.

    Attributes:
        method: its name, such as `round`.
        expected: what it must return.
        seen: what it returned.
    """

    def __init__(self, part: Any, method: str, expected: str, seen: str) -> None:
        super().__init__(f"{type(part).__name__}.{method} returned {seen}; must return {expected}")
        self.method = method
        self.expected = expected
        self.seen = seen


def check_init(algorithm: Any, state: Any) -> None:
    """Refuse a first state that is no dataclass of tensors.

    Raises:
        WrongReturnError: names the class, and the field that is no tensor.
    """
    if not _is_dataclass(state):
        raise WrongReturnError(algorithm, "init", "a dataclass of tensors", in_words(state))
    _check_fields(algorithm, "init", state)


def check_round(algorithm: Any, returned: Any, state: Any, x: Tensor) -> None:
    """Refuse what is no pair of an update and a state. Values that are not finite are not looked for.

    Args:
        algorithm: whose `round` was called.
        returned: by it.
        state, x: what it was called with.

    Raises:
        WrongReturnError: names the class, what was returned and what must be.
    """
    update, after = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    if not isinstance(update, Tensor | None) or type(after) is not type(state):
        kind = type(state).__name__
        pair = f"(update, state): {_like(x)} or None, and the state, of class {kind} as from init"
        raise WrongReturnError(algorithm, "round", pair, in_words(returned))
    if update is not None:
        _check_alike(algorithm, "round", "an update", update, x)
    _check_fields(algorithm, "round", after)


def check_eval_models(algorithm: Any, models: Any, x: Tensor) -> None:
    """Refuse what is no mapping of names to models like x with a model of the name "".

    Raises:
        WrongReturnError: names the class, what was returned and what must be.
    """
    expected = f'the models to evaluate by name, such as {{"": x}}: each {_like(x)}'
    if not isinstance(models, dict):
        raise WrongReturnError(algorithm, "eval_models", expected, in_words(models))
    for name, model in models.items():
        if not isinstance(name, str) or not isinstance(model, Tensor):
            raise WrongReturnError(algorithm, "eval_models", expected, f"{name!r}: {in_words(model)}")
        if not MODEL_NAME.fullmatch(name):
            raise WrongReturnError(algorithm, "eval_models", "names of letters, digits and _", f"the name {name!r}")
        _check_alike(algorithm, "eval_models", "a model", model, x)
    if "" not in models:
        raise WrongReturnError(algorithm, "eval_models", f'{expected}; the name "" is the result', f"only {[*models]}")


def check_traffic(algorithm: Any, traffic: Any) -> None:
    """Refuse what is no `Traffic`.

    Raises:
        WrongReturnError: names the class and what was returned.
    """
    if not isinstance(traffic, Traffic):
        raise WrongReturnError(algorithm, "traffic", "an algorithms.Traffic(up, down)", in_words(traffic))


def _check_fields(algorithm: Any, method: str, state: Any) -> None:
    """Refuse a field of a state that is neither a tensor nor a dataclass of tensors."""
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if _is_dataclass(value):
            _check_fields(algorithm, method, value)
        elif not isinstance(value, Tensor):
            seen = f"a {type(state).__name__} whose {field.name} is {in_words(value)}"
            raise WrongReturnError(algorithm, method, "a dataclass of tensors, such as torch.tensor(0)", seen)


def _check_alike(algorithm: Any, method: str, what: str, vector: Tensor, x: Tensor) -> None:
    """Refuse a vector whose shape, type or device is not that of x."""
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


def in_words(value: Any) -> str:
    """A returned value in words, with the shape of a tensor."""
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return f"({', '.join(map(in_words, value))})"
    name = type(value).__name__
    shape = f" {list(value.shape)}" if hasattr(value, "shape") else ""
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}{shape}"
