"""Cumulative client weights: how much each client has influenced the server's model.

Most methods are linear in the clients' updates: they add, scale, store and subtract vectors. So the weights can be
computed by a second run of the same rounds, on vectors of length m instead of d, in which the local work of client i
moves coordinate i by 1. It ends at the cumulative weights: for FedAvg the sum of 1/a over the rounds in which a client
was active, for CA-Fed the sum of its q_i ([CAF] Fig. 1d). The second run uses the losses of the first. A method that is
not linear, for example one that clips by norms, has no such weights (`Properties.linear`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rollcall.algorithms import Algorithm, Round
from rollcall.benchmark.config.trial import Alike
from rollcall.benchmark.engines import Work
from rollcall.benchmark.federation.evaluation import is_often, named
from rollcall.benchmark.federation.state import StateBuffers

MOST_CLIENTS = 5_000
"""A method that stores a vector for each client stores m vectors of m numbers here."""


@dataclass(frozen=True)
class Classes:
    """Classes of clients: `of` [m] is the number of each client's class, `alpha` [c] sums to 1 as in the objective.

    `unions` are classes of classes: all that share one property, as numbers of classes by name.
    """

    names: Sequence[str]
    of: Int[np.ndarray, "m"]
    alpha: Float[np.ndarray, "c"]
    unions: Mapping[str, Sequence[int]] = field(default_factory=dict)


def classes(
    alike: Sequence[Alike],
    alpha: Float[np.ndarray, "m"],
    availability: Float[np.ndarray, "m"] | None,
    correlation: Float[np.ndarray, "m"] | None,
) -> Classes:
    """Clients that agree in all of `alike` are one class. Of several, those that agree in one of them are a union.

    `availability` is `often` (see `is_often`) or `rare`. `correlation` of one round with the next is `lasting` (above
    0.5) or `fleeting`. `client` makes each client a class.

    Raises ValueError: the participation model does not provide it, or there are too many clients.
    """
    m = len(alpha)
    if m > MOST_CLIENTS:
        raise ValueError(f"weights: can be measured for at most {MOST_CLIENTS:,} clients; this task has {m:,}")
    columns: dict[Alike, Sequence[str]] = {"client": [f"client{i}" for i in range(m)]}
    if availability is not None:
        columns["availability"] = np.where(is_often(availability), "often", "rare").tolist()
    if correlation is not None:
        columns["correlation"] = np.where(correlation > 0.5, "lasting", "fleeting").tolist()
    missing = [name for name in alike if name not in columns]
    if missing:
        raise ValueError(f"weights: {missing[0]!r} is not allowed; this participation model does not provide it")
    agree = list(zip(*(columns[name] for name in alike), strict=True))
    numbers = {parts: number for number, parts in enumerate(dict.fromkeys(agree))}
    unions: dict[str, list[int]] = {}
    for parts, number in numbers.items():
        for part in parts if len(parts) > 1 else ():
            unions.setdefault(part, []).append(number)
    of = np.array([numbers[parts] for parts in agree])
    return Classes(["-".join(parts) for parts in numbers], of, np.bincount(of, alpha), unions)


class Weights(nn.Module):
    """The second run. Its state is buffers and a parameter, so that checkpoints contain it.

    `cumulative` [m] is the server's model of the second run: the clients' cumulative weights. A client whose update is
    added to the server's model in full gains 1.
    """

    def __init__(self, algorithm: Algorithm[Any], classes: Classes, dtype: torch.dtype) -> None:
        super().__init__()
        self.algorithm = algorithm
        self.classes = classes
        self.cumulative = nn.Parameter(torch.zeros(len(classes.of), dtype=dtype))
        self.state = StateBuffers(algorithm.init(self.cumulative.detach(), len(classes.of)))

    def round(self, call: Round, work: Work) -> None:
        """Repeat the round that the run has just done. The server's optimizer then applies the gradient set here."""
        unit_work = UnitWork(work, call.lr)
        update, state = self.algorithm.round(self.state.get(), self.cumulative.detach(), call, unit_work)
        self.cumulative.grad = None if update is None else -update
        self.state.set(state)

    def measured(self) -> dict[str, float]:
        """`weight/class`: the share of a class or union in the total weight over its share in the objective, if not 0.

        `weight_distance/tv` and `weight_distance/chi_square` compare the shares q in the total weight with those in the
        objective, alpha: the total variation, and sum (q - alpha)^2 / alpha, which is finite even if a class has no
        weight ([CAF] eq. 11 divides by q). It is left out while it is infinite: a class without a share in the
        objective, such as that of clients without samples, has a weight. All classes have 0 before the first update.

        The weights in another model than the result end in its name.
        """
        measured: dict[str, float] = {}
        models = self.algorithm.eval_models(self.state.get(), self.cumulative.detach())
        for name, model in models.items():
            weights = model.double().cpu().numpy()
            total = weights.sum()
            parts = np.bincount(self.classes.of, weights / total if total else weights)
            alpha = self.classes.alpha
            shared = np.flatnonzero(alpha)
            ratio = parts[shared] / alpha[shared]
            labels = (f"weight/{self.classes.names[c]}" for c in shared.tolist())
            columns = dict(zip(labels, ratio.tolist(), strict=True))
            for union, numbers in self.classes.unions.items():
                if share := alpha[numbers].sum():
                    columns[f"weight/{union}"] = float(parts[numbers].sum() / share)
            columns["weight_distance/tv"] = float(np.abs(parts - alpha).sum()) / 2
            if not parts[alpha == 0].any():
                columns["weight_distance/chi_square"] = float(alpha[shared] @ (ratio - 1) ** 2)
            measured |= named(columns, name)
        return measured


class UnitWork:
    """K local steps of client i move its model by 1 along coordinate i: see `rollcall.algorithms.LocalWork`."""

    def __init__(self, work: Work, lr: float) -> None:
        self.steps, self.steps_of = work.steps, work.steps_of
        self.lr = lr
        self._losses = iter(work.loss_calls)

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a m"], split: str) -> Float[Tensor, "a"]:
        return next(self._losses)

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a m"], step: int
    ) -> tuple[Float[Tensor, "a m"], Float[Tensor, "a"]]:
        return self._gradients(clients, x), next(self._losses)

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
