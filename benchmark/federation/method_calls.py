"""Calls of the methods of an algorithm, whose return values are checked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from algorithms import Algorithm, LocalWork, Round, Traffic
from algorithms.returned import WrongReturnError, check_eval_models, check_init, check_round, check_traffic
from benchmark.config.errors import SourceError
from benchmark.config.source import definition


def first_state(algorithm: Algorithm[Any], x: Tensor, clients: int) -> Any:
    """The state before round 0.

    Raises:
        SourceError: it is no dataclass of tensors; names the line of the method and the class.
    """
    state = algorithm.init(x, clients)
    with _with_line(algorithm):
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
    with _with_line(algorithm):
        check_round(algorithm, returned, state, x)
    return returned


def evaluated_models(algorithm: Algorithm[Any], state: Any, x: Tensor) -> dict[str, Tensor]:
    """The models to evaluate, by name; "" is the result.

    Raises:
        SourceError: they are no mapping of names to models like x; names the line of the method and the class.
    """
    models = algorithm.eval_models(state, x)
    with _with_line(algorithm):
        check_eval_models(algorithm, models, x)
    return models


def traffic_of(algorithm: Algorithm[Any], state: Any, call: Round) -> Traffic:
    """The vectors sent in the round that ended in this state.

    Raises:
        SourceError: it is no `Traffic`; names the line of the method and the class.
    """
    traffic = algorithm.traffic(state, call)
    with _with_line(algorithm):
        check_traffic(algorithm, traffic)
    return traffic


@contextmanager
def _with_line(algorithm: Algorithm[Any]) -> Iterator[None]:
    """Prefix what is wrong with a return value with the file and the line of the method."""
    try:
        yield
    except WrongReturnError as error:
        raise SourceError(f"{definition(getattr(type(algorithm), error.method))}: {error}") from None
