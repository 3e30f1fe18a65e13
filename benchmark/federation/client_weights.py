"""How much each client has moved the server's model, whatever the method does with what clients send.

Methods are linear in the clients' work: they add, scale, store and subtract vectors. So a second run of the same
rounds, on vectors of length m instead of d, in which all that client i ever does is to move coordinate i by 1, ends at
the clients' cumulative weights: for FedAvg the sum of 1/a over the rounds that a client answered in, for CA-Fed the sum
of its q_i ([CAF] Fig. 1d). What else decides the course of a method, the losses, is taken from the run. Methods
that are not linear, such as those that clip by norms, have no such weights and say so (`Properties.linear`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from algorithms import Algorithm, Round
from benchmark.config.trial import Alike
from benchmark.federation.evaluation import is_often
from benchmark.federation.observed import Observed
from benchmark.federation.state import StateBuffers

MOST_CLIENTS = 5_000
"""A method that stores a vector for each client stores m of m numbers here."""


@dataclass(frozen=True)
class Classes:
    """Clients by what they have in common.

    Attributes:
        names: of the classes.
        of: [m], the number of each client's class.
        alpha: [c], what the classes weigh in the objective; they sum to 1.
    """

    names: Sequence[str]
    of: Int[np.ndarray, "m"]
    alpha: Float[np.ndarray, "c"]


def classes(
    alike: Sequence[Alike],
    alpha: Float[np.ndarray, "m"],
    availability: Float[np.ndarray, "m"] | None,
    correlation: Float[np.ndarray, "m"] | None,
) -> Classes:
    """Clients that are alike in all of this: `availability` (`often` as in `is_often`, else `rare`); `correlation` of
    one round with the next, above a half (`lasting`) or not (`fleeting`); or each `client` alone.

    Raises:
        ValueError: the participation model does not know it, or there are too many clients.
    """
    m = len(alpha)
    if m > MOST_CLIENTS:
        raise ValueError(f"weights: is not allowed with {m:,} clients; must be left out above {MOST_CLIENTS:,}")
    words: dict[Alike, Sequence[str] | None] = {
        "client": [f"client{i}" for i in range(m)],
        "availability": None if availability is None else np.where(is_often(availability), "often", "rare").tolist(),
        "correlation": None if correlation is None else np.where(correlation > 0.5, "lasting", "fleeting").tolist(),
    }
    chosen = []
    for one in alike:
        theirs = words[one]
        if theirs is None:
            raise ValueError(f"weights: {one!r} is not allowed; the participation model must tell it, and does not")
        chosen.append(theirs)
    labels = ["-".join(parts) for parts in zip(*chosen, strict=True)]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    of = np.array([numbers[label] for label in labels])
    return Classes(list(numbers), of, np.bincount(of, alpha))


class Weights(nn.Module):
    """The second run. Its numbers are buffers, and `given` a parameter, so that checkpoints hold them.

    Args:
        algorithm: the method.
        classes: of the clients.
        dtype: of the run.

    Attributes:
        given: [m], where the server of this run is: the clients' cumulative weights, in the unit of one client's work
            that is added to the server's model whole.
    """

    def __init__(self, algorithm: Algorithm, classes: Classes, dtype: torch.dtype) -> None:
        super().__init__()
        self.algorithm = algorithm
        self.classes = classes
        self.given = nn.Parameter(torch.zeros(len(classes.of), dtype=dtype))
        self.state = StateBuffers(algorithm.init(self.given.detach(), len(classes.of)))

    def round(self, call: Round, observed: Observed) -> None:
        """The round that the run has just made, once more; the server's optimizer finds its update as a gradient."""
        work = UnitWork(observed, call.lr)
        update, state = self.algorithm.round(self.state.get(), self.given.detach(), call, work)
        self.given.grad = None if update is None else -update
        self.state.set(state)

    def measured(self) -> dict[str, float]:
        """`weight/class`: the class's part of all weight, in units of its part in the objective; 0 for all before the
        first update."""
        given = self.algorithm.eval_model(self.state.get(), self.given.detach()).double().cpu().numpy()
        total = given.sum()
        parts = np.bincount(self.classes.of, given / total if total else given)
        return {
            f"weight/{name}": float(part)
            for name, part in zip(self.classes.names, parts / self.classes.alpha, strict=True)
        }


class UnitWork:
    """Clients whose K steps move them by 1 along a coordinate of their own, wherever they are: see
    `algorithms.LocalWork`.

    Args:
        observed: the run's work in this round.
        lr: eta.
    """

    def __init__(self, observed: Observed, lr: float) -> None:
        self.observed = observed
        self.lr = lr
        self._told = iter(observed.told)

    @property
    def steps(self) -> int:
        return self.observed.steps

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        return self.observed.steps_of(clients)

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a m"], split: str) -> Float[Tensor, "a"]:
        return next(self._told)

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a m"], step: int
    ) -> tuple[Float[Tensor, "a m"], Float[Tensor, "a"]]:
        return self._gradients(clients, x), next(self._told)

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a m"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a m"] | None = None,
    ) -> Float[Tensor, "a m"]:
        steps = self._gradients(clients, start) if correct is None else self._gradients(clients, start) + correct
        path = self.lr * self.steps_of(clients)[:, None] * steps
        return start - (path if scale is None else path * scale[:, None])

    def _gradients(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a m"]) -> Float[Tensor, "a m"]:
        move = -1 / (self.lr * self.steps_of(clients).to(x.dtype))
        return torch.zeros_like(x).scatter_(1, clients[:, None], move[:, None])
