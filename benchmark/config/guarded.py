"""Contributed callables: their errors name the file and the line, and their results are checked."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmark.config.errors import SourceError
from benchmark.config.kinds import KINDS
from benchmark.config.source import contributed_line, definition, in_words, told

REFUSAL = re.compile(r"[\w.]+: .*(is|are) not allowed")
"""How a `ValueError` begins that names the setting itself."""


@dataclass(frozen=True)
class Guarded:
    """A contributed callable whose errors name the file and the line, and whose results are checked.

    Attributes:
        kind: of the choice.
        factory: the callable.
    """

    kind: str
    factory: Callable[..., Any]

    def __call__(self, *supplied: Any, **options: Any) -> Any:
        try:
            result = self.factory(*supplied, **options)
        except Exception as error:
            if isinstance(error, SourceError) or (isinstance(error, ValueError) and REFUSAL.match(str(error))):
                raise
            raise SourceError(f"{contributed_line(error) or self._place}{told(error)}") from error
        return self._checked(result, supplied)

    @property
    def _place(self) -> str:
        place = definition(self.factory)
        return f"{place}: " if place else ""

    def _checked(self, result: Any, supplied: tuple[Any, ...]) -> Any:
        kind = KINDS[self.kind]
        if self.kind == "partition" and isinstance(result, list | tuple):
            result = _parts(result, supplied[0])
        if self.kind == "partition" and kind.result and isinstance(result, kind.result):
            parts: Any = result
            wrong = _wrong_rows(parts.rows, len(supplied[0]), supplied[1])
            if wrong:
                raise SourceError(f"{self._place}{wrong}")
        if not kind.fits(result):
            raise SourceError(f"{self._place}must return {kind.returned or kind.returns}; returned {in_words(result)}")
        if self.kind == "model":
            self._check_model(result, *supplied)
        return self._roll_call(result, supplied[0]) if self.kind == "participation" else result

    def _check_model(self, network: Any, shape: tuple[int, ...], classes: int) -> None:
        from tasks.supervised import check_model

        try:
            check_model(network, shape, classes)
        except ValueError as error:
            raise SourceError(f"{self._place}{error}") from None
        except Exception as error:
            raise SourceError(f"{contributed_line(error) or self._place}{told(error)}") from error

    def _roll_call(self, result: Any, population: Any) -> Any:
        """A participation model from what the callable made."""
        from participation import FromObject, Participation

        model = isinstance(result, Participation)
        clients = getattr(result, "clients", None if model else population.clients)
        if clients != population.clients:
            raise SourceError(
                f"{self._place}its attribute `clients` is {clients}; must be {population.clients}, as in the task"
            )
        if model:
            return result
        try:
            return FromObject(population, result)
        except Exception as error:
            said = str(error) if REFUSAL.match(str(error)) else told(error)
            raise SourceError(f"{contributed_line(error) or self._place}{said}") from error


def _parts(rows: Any, labels: np.ndarray) -> Any:
    """Parts from a list of the samples of each client."""
    from tasks.partitions import Parts, realised

    arrays = [np.asarray(mine) for mine in rows]
    if labels.dtype.kind not in "iu" or any(len(mine) == 0 or mine.dtype.kind not in "iu" for mine in arrays):
        return Parts(arrays, np.ones((len(arrays), 1)))
    if any(mine.max() >= len(labels) or mine.min() < 0 for mine in arrays):
        return Parts(arrays, np.ones((len(arrays), 1)))  # refused next
    return Parts(arrays, realised(labels, arrays))


def _wrong_rows(rows: list[np.ndarray], samples: int, clients: int) -> str:
    """What is wrong with the samples of the clients; empty if nothing is."""
    if len(rows) != clients:
        return f"the partition has {len(rows)} parts; must have {clients}, one for each client"
    taken = np.zeros(samples, dtype=np.int64)
    for client, mine in enumerate(rows):
        if len(mine) == 0:
            return f"client {client} has no samples; every client must have one"
        if mine.dtype.kind not in "iu":
            return f"the samples of client {client} are {mine.dtype}; must be whole numbers (positions of samples)"
        if mine.min() < 0 or mine.max() >= samples:
            outside = mine.max() if mine.max() >= samples else mine.min()
            return f"client {client} has sample {outside}; must be in 0 to {samples - 1}"
        taken += np.bincount(mine, minlength=samples)
    if taken.max() > 1:
        return f"sample {int(taken.argmax())} belongs to {taken.max()} clients; must belong to one at most"
    return ""


def bound(kind: str, factory: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """A contributed callable with its options filled in, guarded."""
    return Guarded(kind, partial(factory, **options))
