"""Whether `Algorithm.init` and `Algorithm.round` returned what they must."""

import dataclasses
from typing import Any

from torch import Tensor


class WrongReturnError(ValueError):
    """A method of an algorithm returned something else than it must.

    Attributes:
        expected: what it must return.
        seen: what it returned.
    """

    def __init__(self, method: str, expected: str, seen: str) -> None:
        super().__init__(f"{method} returned {seen}; must return {expected}")
        self.expected = expected
        self.seen = seen


def check_init(algorithm: Any, state: Any) -> None:
    """Refuse a first state that is no dataclass.

    Raises:
        WrongReturnError: names the class.
    """
    if not dataclasses.is_dataclass(state) or isinstance(state, type):
        raise WrongReturnError(f"{type(algorithm).__name__}.init", "a dataclass of tensors", _in_words(state))


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
    is_pair = isinstance(update, Tensor | None) and type(after) is type(state)
    if is_pair and (update is None or (update.shape, update.dtype, update.device) == (x.shape, x.dtype, x.device)):
        return
    method, dtype, d = f"{type(algorithm).__name__}.round", str(x.dtype).removeprefix("torch."), list(x.shape)
    if not is_pair:
        kind = type(state).__name__
        pair = f"(update, state): a {dtype} tensor {d} or None, and the state, of class {kind} as from init"
        raise WrongReturnError(method, pair, _in_words(returned))
    if update.shape != x.shape:
        hint = ". Take the mean over the clients: .mean(dim=0)" if update.shape[1:] == x.shape else ""
        raise WrongReturnError(method, f"an update {d}, as x is{hint}", f"an update {list(update.shape)}")
    if update.dtype != x.dtype:
        seen = str(update.dtype).removeprefix("torch.")
        raise WrongReturnError(method, f"an update of {dtype}, as x is", f"an update of {seen}")
    raise WrongReturnError(method, f"an update on {x.device}, as x is", f"an update on {update.device}")


def _in_words(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return f"({', '.join(map(_in_words, value))})"
    name = type(value).__name__
    shape = f" {list(value.shape)}" if hasattr(value, "shape") else ""
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}{shape}"
