"""Participation models fitted to a recorded roll call: which of its features does a model keep?"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from rollcall.participation.base import Participation, Population
from rollcall.participation.cyclic import Cyclic
from rollcall.participation.independent import Bernoulli, Copula, Uniform
from rollcall.participation.markov import Markov, MarkovPiLambda
from rollcall.participation.recording import record
from rollcall.participation.trace import Trace, lag_one

ROUNDS = 2000


class Matched(Participation):
    """A model fitted to the roll call of another one, most often of a trace: the control of an experiment on the trace.

    It has the clients' shares of active rounds in the recording, and what else it can keep. A trace is fitted over all
    its rounds, another model over its first 2,000.

    Args:
        participation: the model to be matched.
        fit: the fitted model. `uniform`: the mean number of active clients. `bernoulli`: each client's share of rounds.
            `markov`: the shares, and the rate at which all clients return. `markov_pi_lambda`: the shares and each
            client's lag-1 autocorrelation. `cyclic`: the shares, and the mean time from one arrival to the next.
            `copula`: the shares, and the mean correlation of two clients in a round.
    """

    def __init__(
        self,
        population: Population,
        *,
        participation: Callable[[Population], Participation],
        fit: Literal["uniform", "bernoulli", "markov", "markov_pi_lambda", "cyclic", "copula"] = "bernoulli",
    ) -> None:
        super().__init__(population)
        model = participation(population)
        mask = model.mask if isinstance(model, Trace) else record(model, ROUNDS)
        self.fitted = fitted(fit, population, mask)

    def active(self, t: int) -> Int[np.ndarray, "a"]:
        return self.fitted.active(t)

    def probability(self, t: int) -> Float[np.ndarray, "m"] | None:
        return self.fitted.probability(t)

    @property
    def stationary(self) -> Float[np.ndarray, "m"] | None:
        return self.fitted.stationary

    @property
    def correlation(self) -> Float[np.ndarray, "m"] | None:
        return self.fitted.correlation

    @property
    def share(self) -> Float[np.ndarray, "m"] | None:
        return self.fitted.share


def fitted(name: str, population: Population, mask: Bool[np.ndarray, "T m"]) -> Participation:
    """The model of this name, fitted to a roll call."""
    model, options = FITS[name]
    return model(population, **options(mask))


def _markov(mask: Bool[np.ndarray, "T m"]) -> dict[str, Any]:
    """The shares, and q* = P(on|off) over all clients."""
    off = int((~mask).sum())
    return {"probability": mask.mean(axis=0), "off_on": max(_arrivals(mask), 1) / max(off, 1)}


def _cyclic(mask: Bool[np.ndarray, "T m"]) -> dict[str, Any]:
    """The shares, and the mean rounds of a client that moves from one arrival to the next."""
    moving = int((mask.any(axis=0) & ~mask.all(axis=0)).sum())
    return {"probability": mask.mean(axis=0), "length": max(2, round(len(mask) * moving / max(_arrivals(mask), 1)))}


def _copula(mask: Bool[np.ndarray, "T m"]) -> dict[str, Any]:
    """The shares, and the latent correlation with the recorded covariance of two clients, summed over all pairs."""
    pi = mask.mean(axis=0)
    recorded = mask.sum(axis=1).var() - (pi * (1 - pi)).sum()
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def excess(rho: float) -> float:
        # Given the common factor w, the clients are independent with probabilities q_i(w).
        q = ndtr((ndtri(pi)[:, None] - np.sqrt(rho) * nodes) / np.sqrt(1 - rho))
        pairs = q.sum(axis=0) ** 2 - (q**2).sum(axis=0)
        return float(weights @ pairs - (pi.sum() ** 2 - (pi**2).sum()) - recorded)

    low, high = 0.0, 0.99
    rho = low if excess(low) >= 0 else high if excess(high) <= 0 else float(brentq(excess, low, high))
    return {"probability": pi, "rho": rho}


def _arrivals(mask: Bool[np.ndarray, "T m"]) -> int:
    """How often a client becomes active, with the first round following the last."""
    return int((mask & ~np.roll(mask, 1, axis=0)).sum())


FITS: dict[str, tuple[Callable[..., Participation], Callable[[Bool[np.ndarray, "T m"]], dict[str, Any]]]] = {
    "uniform": (Uniform, lambda mask: {"per_round": max(1, round(float(mask.sum(axis=1).mean())))}),
    "bernoulli": (Bernoulli, lambda mask: {"probability": mask.mean(axis=0)}),
    "markov": (Markov, _markov),
    "markov_pi_lambda": (MarkovPiLambda, lambda mask: {"probability": mask.mean(axis=0), "correlation": lag_one(mask)}),
    "cyclic": (Cyclic, _cyclic),
    "copula": (Copula, _copula),
}
