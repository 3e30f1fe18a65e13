"""Uplinks with a stated availability and a stated memory ([CAF] section II and V-A)."""

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from participation.base import Population
from participation.chain import Chain, switch
from participation.probabilities import Source, first_half, resolve, two_level
from participation.streams import stream


def transitions(
    pi: Float[np.ndarray, "n"], correlation: Float[np.ndarray, "n"], who: str = "client"
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """(P(on|on), P(on|off)) of the two-state chains with stationary pi and second eigenvalue lambda.

    Raises:
        ValueError: a pair that no chain has: lambda must be at least max(1 - 1/pi, 1 - 1/(1 - pi)) and below 1.
    """
    with np.errstate(divide="ignore", over="ignore"):
        least = np.maximum(1 - 1 / pi, 1 - 1 / (1 - pi))
    # A lambda on the boundary is allowed, whichever way its division was rounded.
    wrong = np.flatnonzero(~((correlation >= least - 1e-12) & (correlation < 1)))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"correlation: {correlation[i]:g} ({who} {i}, whose pi is {pi[i]:g}) is not allowed; "
            f"must be in [{least[i]:g}, 1)"
        )
    # Written so that pi = 1 stays on and pi = 0 stays off without rounding.
    return 1 - (1 - correlation) * (1 - pi), (1 - correlation) * pi


class MarkovPiLambda(Chain):
    """P(on|on) = lambda + (1 - lambda) pi and P(on|off) = (1 - lambda) pi, started from pi; roll call, then transition.

    By default the paper's population: by `two_level` half of the clients have pi = 1/2 + g, half 1/2 - g; the first
    half of each has lambda = nu, the second lambda ~ N(0, eps^2), drawn once. With `lasting: rare` only clients of the
    second half, those that are rarely there, have lambda = nu: the three classes of the authors' released code.

    Args:
        population: the clients.
        probability: pi_i as one number, one for each client, or a source.
        correlation: lambda_i, one number or one for each client, instead of the paper's draw. This is the dial for
            the correlation time, -1 / log lambda rounds, at fixed marginals.
        nu: lambda of the correlated clients.
        eps: standard deviation of lambda of the others.
        lasting: whether lambda = nu occurs in `both` halves or among the `rare` alone.

    Raises:
        ValueError: a probability outside [0, 1], not one value for each client, or a pair (pi, lambda) no chain has.
    """

    def __init__(
        self,
        population: Population,
        *,
        probability: float | np.ndarray | Source = two_level,
        correlation: float | np.ndarray | None = None,
        nu: float = 0.9,
        eps: float = 0.01,
        lasting: Literal["both", "rare"] = "both",
    ) -> None:
        super().__init__(population)
        m = self.clients
        if eps < 0:
            raise ValueError(f"eps: {eps:g} is not allowed; must be at least 0")
        self.pi = resolve(probability, population)
        if correlation is None:
            drawn = eps * stream(self.seed, "probabilities", 1).standard_normal(m)
            high = first_half(m)
            correlated = np.concatenate([first_half(int(high.sum())), first_half(m - int(high.sum()))])
            if lasting == "rare":
                correlated &= ~high
            correlation = np.where(correlated, nu, drawn)
        self.eigenvalue = spread("correlation", correlation, m)
        self.stay, self.turn = transitions(self.pi, self.eigenvalue)

    def start(self) -> Bool[np.ndarray, "m"]:
        return stream(self.seed, "participation", 0).random(self.clients) < self.pi

    def step(self, state: Bool[np.ndarray, "m"], t: int) -> Bool[np.ndarray, "m"]:
        return switch(state, self.stay, self.turn, stream(self.seed, "participation", t))

    def emit(self, state: Bool[np.ndarray, "m"], t: int) -> Int[np.ndarray, "a"]:
        return np.flatnonzero(state)

    def probability(self, t: int) -> Float[np.ndarray, "m"]:
        return self.pi

    @property
    def stationary(self) -> Float[np.ndarray, "m"]:
        return self.pi

    @property
    def correlation(self) -> Float[np.ndarray, "m"]:
        return self.eigenvalue


def spread(name: str, value: float | np.ndarray, n: int, unit: str = "client") -> Float[np.ndarray, "n"]:
    """[n] from one number or one for each.

    Raises:
        ValueError: another number of them.
    """
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (n,)):
        raise ValueError(
            f"{name}: shape {values.shape} is not allowed; must be one number or [{n}], one for each {unit}"
        )
    return np.broadcast_to(values, (n,))
