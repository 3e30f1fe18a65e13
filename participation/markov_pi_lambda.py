"""Participation with given availability pi and correlation lambda ([CAF] sections II and V-A)."""

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
    """Transition probabilities of two-state chains with stationary pi and second eigenvalue lambda.

    Args:
        pi: [n], stationary probabilities.
        correlation: [n], lambda.
        who: what a chain stands for, for errors.

    Returns:
        P(on|on) and P(on|off), each [n].

    Raises:
        ValueError: (pi, lambda) that no chain can have: lambda must be at least max(1 - 1/pi, 1 - 1/(1 - pi)) and
            below 1.
    """
    with np.errstate(divide="ignore", over="ignore"):
        least = np.maximum(1 - 1 / pi, 1 - 1 / (1 - pi))
    # A lambda on the boundary is allowed, even if its division was rounded to the wrong side.
    wrong = np.flatnonzero(~((correlation >= least - 1e-12) & (correlation < 1)))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"correlation: {correlation[i]:g} ({who} {i}, whose pi is {pi[i]:g}) is not allowed; "
            f"must be in [{least[i]:g}, 1)"
        )
    # In this form pi = 1 and pi = 0 give exact probabilities without rounding.
    return 1 - (1 - correlation) * (1 - pi), (1 - correlation) * pi


class MarkovPiLambda(Chain):
    """A two-state Markov chain for each client with availability pi_i and correlation lambda_i ([CAF] section II).

    P(on|on) = lambda + (1 - lambda) pi and P(on|off) = (1 - lambda) pi. The chain starts from pi. In each round the
    active set is read first, then the chain makes a transition.

    The default is the paper's population ([CAF] section V-A): by `two_level`, half of the clients have pi = 1/2 + g and
    half 1/2 - g. In each half, the first half of the clients has lambda = nu, and the second lambda ~ N(0, eps^2),
    drawn once. With `lasting: rare` only rarely available clients have lambda = nu: these are the three classes of the
    authors' released code.

    Args:
        population: the clients.
        probability: pi_i as one number, one for each client, or a source.
        correlation: lambda_i as one number or one for each client, instead of the paper's draw. It sets the correlation
            time, -1 / log lambda rounds, at fixed availability.
        nu: lambda of the correlated clients.
        eps: standard deviation of lambda of the other clients.
        lasting: which halves have clients with lambda = nu: `both`, or only the rarely available half (`rare`).

    Raises:
        ValueError: a probability outside [0, 1], not one value for each client, or (pi, lambda) that no chain can have.
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
        self.on_on, self.off_on = transitions(self.pi, self.eigenvalue)

    def start(self) -> Bool[np.ndarray, "m"]:
        return stream(self.seed, "participation", 0).random(self.clients) < self.pi

    def step(self, state: Bool[np.ndarray, "m"], t: int) -> Bool[np.ndarray, "m"]:
        return switch(state, self.on_on, self.off_on, stream(self.seed, "participation", t))

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
    """An array [n] from one number, or from one number for each unit.

    Raises:
        ValueError: another shape.
    """
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (n,)):
        raise ValueError(
            f"{name}: shape {values.shape} is not allowed; must be one number or [{n}], one for each {unit}"
        )
    return np.broadcast_to(values, (n,))
