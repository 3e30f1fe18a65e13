"""A context in which other functions take the places of torch's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

Function = Callable[..., Any]


class Replaced(TorchFunctionMode):
    """While active, functions of torch are replaced, also inside `torch.nn` modules and `torch.func.vmap`.

    Inside the replacements, torch's own functions are called.

    Args:
        functions: by the function of torch, what is called instead, with the same arguments.
    """

    def __init__(self, functions: Mapping[Function, Function]) -> None:
        super().__init__()
        self.functions = functions

    def __torch_function__(
        self,
        function: Function,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return self.functions.get(function, function)(*args, **(kwargs or {}))
