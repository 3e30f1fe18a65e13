"""The algorithm under test, with its rounds on five quadratic clients whose local work has a closed form."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rollcall.algorithms import Algorithm, Round, Rows, TrainingSetup
from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.federation.checked import check_init, check_round
from rollcall.participation import Bernoulli, Population

LR = 0.05
U = np.array([[1.2, -0.4], [-0.7, 0.9], [0.3, 1.5], [-1.6, -0.8], [0.5, 0.1]])
H = np.array([0.6, 1.4, 0.9, 1.7, 0.5])
P = np.array([0.15, 0.9, 0.5, 0.3, 0.7])
LAMBDA = np.array([-0.3, 0.0, 0.6, 0.2, 0.4])
"""Targets, curvatures, probabilities and correlations of five clients: F_i(x) = 0.5 h_i ||x - u_i||^2."""

EVERYONE = np.arange(len(U))

ROUNDS = ("11010", "01101", "00000", "01001", "10111", "01000", "00110", "11111", "01101", "10010")
MASK = np.array([list(uplinks) for uplinks in ROUNDS]) == "1"
"""Active sets of ten rounds: one is empty, one has a single client, one has all; every client comes and goes."""


class Quadratics:
    """The clients' local work in closed form: see `rollcall.algorithms.LocalWork`.

    Args:
        u, h: targets and curvatures.
        K: local steps of each client, [m].
        lr: eta.

    Attributes:
        asked: ids of all clients that computed.
        beyond: ids of the clients that computed a gradient of a step k >= K_i.
    """

    def __init__(self, u: Float[Tensor, "m d"], h: Float[Tensor, "m"], K: Int[Tensor, "m"], lr: float) -> None:
        self.u, self.h, self.K, self.lr = u, h, K, lr
        self.asked: set[int] = set()
        self.beyond: set[int] = set()

    @property
    def steps(self) -> int:
        return int(self.K.max())

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        return self.K[clients]

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        return self.gradients(clients, x, 0)[1]

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        self.asked |= set(clients.tolist())
        self.beyond |= set(clients[step >= self.K[clients]].tolist())
        away, h = x - self.u[clients], self.h[clients]
        return h[:, None] * away, 0.5 * h * away.square().sum(dim=1)

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a d"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a d"] | None = None,
    ) -> Float[Tensor, "a d"]:
        self.asked |= set(clients.tolist())
        y = start
        for step in range(self.steps):
            g = self.h[clients][:, None] * (y - self.u[clients])
            g = g if correct is None else g + correct
            g = g if scale is None else scale[:, None] * g
            y = y - self.lr * g * (step < self.K[clients])[:, None]
        return y


@dataclass(frozen=True)
class Subject:
    """An algorithm with its options.

    Attributes:
        choice: of the algorithm.
        steps: K: three, or one if the method accepts no more.
    """

    choice: Choice
    steps: int

    @classmethod
    def of(cls, choice: Choice) -> "Subject":
        """With the number of local steps that the algorithm accepts."""
        for steps in (3, 1):
            try:
                method, setup = choice.build(), TrainingSetup(steps, method=choice.label)
                setup.need(*method.needs)
                method.check(setup)
                return cls(choice, steps)
            except ValueError as error:
                refusal = error
        raise SettingError(f"algorithm: {choice.label} cannot be checked with one or three local steps: {refusal}")

    def method(self) -> Algorithm[Any]:
        return self.choice.build()

    def begin(self) -> tuple[Algorithm[Any], Any, Float[Tensor, "d"]]:
        """A new instance, its state and x = 0, all in float64."""
        method, x = self.method(), torch.zeros(2, dtype=torch.float64)
        return method, method.init(x, len(U)), x

    def call(
        self,
        t: int,
        active: Bool[np.ndarray, "m"],
        p: Float[np.ndarray, "m"] = P,
        clients: Int[np.ndarray, "m"] = EVERYONE,
        dtype: torch.dtype = torch.float64,
    ) -> Round:
        """Round t with the knowledge that the method requires, and no other."""
        values = {"probability": p, "stationary": p, "correlation": LAMBDA[clients], "share": shares(p)}
        values["least_loss"] = np.zeros(len(p))  # at its target every client's loss is 0
        known: dict[str, Any] = {name: torch.tensor(values[name], dtype=dtype) for name in self.method().requires}
        alpha = torch.full((len(p),), 1 / len(p), dtype=dtype)
        return Round(t, torch.from_numpy(np.flatnonzero(active)), LR, alpha, **known)

    def work(
        self,
        clients: Int[np.ndarray, "m"] = EVERYONE,
        steps: int | Int[np.ndarray, "m"] | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> "Quadratics":
        """The local work of these clients in a round; by default all take the subject's K steps."""
        u, h = torch.tensor(U[clients], dtype=dtype), torch.tensor(H[clients], dtype=dtype)
        K = np.broadcast_to(self.steps if steps is None else steps, len(clients))
        return Quadratics(u, h, torch.from_numpy(K.astype(np.int64)), LR)

    def rounds(
        self,
        mask: Bool[np.ndarray, "T m"] = MASK,
        *,
        clients: Int[np.ndarray, "m"] = EVERYONE,
        p: Float[np.ndarray, "m"] = P,
        steps: int | Int[np.ndarray, "m"] | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> Iterator["Step"]:
        """The rounds of a run from x = 0 with these clients, in this order.

        Raises WrongReturnError: `init` or `round` returns another value than it must.
        """
        method, x = self.method(), torch.zeros(2, dtype=dtype)
        state = method.init(x, len(clients))
        check_init(method, state)
        first, local = self.call(0, mask[0], p[clients], clients, dtype), self.work(clients, steps, dtype)
        for t, active in enumerate(mask):
            call = dataclasses.replace(first, t=t, active=torch.from_numpy(np.flatnonzero(active)))
            work = Quadratics(local.u, local.h, local.K, LR)
            returned = method.round(state, x, call, work)
            check_round(method, returned, state, x)
            update, after = returned
            step = Step(method, call, work, x if update is None else x + update.detach(), state, after)
            yield step
            x, state = step.x_after, after


@dataclass(frozen=True)
class Step:
    """One round of a run: the state before and after it, and x after it."""

    method: Algorithm[Any]
    call: Round
    work: Quadratics
    x_after: Tensor
    before: Any
    after: Any


def leaves(state: Any, prefix: str = "") -> dict[str, Tensor]:
    """The tensors of a state by name; of a nested dataclass as `outer.inner`; of `Rows` in dense form."""
    if isinstance(state, Rows):
        return {prefix.rstrip(".") or "rows": state.dense(), f"{prefix}stored": state.stored}
    tensors: dict[str, Tensor] = {}
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if dataclasses.is_dataclass(value):
            tensors |= leaves(value, f"{prefix}{field.name}.")
        else:
            tensors[prefix + field.name] = value
    return tensors


def by_client(state: Any) -> dict[str, Tensor]:
    """The tensors of a state that have a row for each of the five clients."""
    return {name: leaf for name, leaf in leaves(state).items() if leaf.ndim and len(leaf) == len(U)}


def shares(p: Float[np.ndarray, "m"]) -> Any:
    """c_i = E[1{i in A}/a] [m] for independent uplinks."""
    return Bernoulli(Population(len(p)), probability=p).share
