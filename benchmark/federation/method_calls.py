"""Calls of an algorithm's `init` and `round`, whose return values are checked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from algorithms import Algorithm, LocalWork, Round
from algorithms.returned import WrongReturnError, check_init, check_round
from benchmark.config.errors import SourceError
from benchmark.config.source import definition


def first_state(algorithm: Algorithm[Any], x: Tensor, clients: int) -> Any:
    """The state before round 0.

    Raises:
        SourceError: it is no dataclass; names the line of the method and the class.
    """
    state = algorithm.init(x, clients)
    with _with_line(type(algorithm).init):
        check_init(algorithm, state)
    return state


def one_round(
    algorithm: Algorithm[Any], state: Any, x: Tensor, call: Round, work: LocalWork
) -> tuple[Tensor | None, Any]:
    """The update and the next state.

    Raises:
        SourceError: the method returned something else; names the line of the method and the class.
    """
    returned = algorithm.round(state, x, call, work)
    with _with_line(type(algorithm).round):
        check_round(algorithm, returned, state, x)
    return returned


@contextmanager
def _with_line(method: Callable[..., Any]) -> Iterator[None]:
    """Prefix what is wrong with a return value with the file and the line of the method."""
    try:
        yield
    except WrongReturnError as error:
        raise SourceError(f"{definition(method)}: {error}") from None
