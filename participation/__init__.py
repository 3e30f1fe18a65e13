"""Participation models: which clients are active in which round. Independent of learning.

`MODELS`, `PROBABILITIES`, `VARIATIONS` and `SPEEDS` list the names that an experiment file can use. Each model and each
source of probabilities takes the population first, each variation p and t, each distribution of speeds the population
and a generator. Keyword arguments are the options of the file. A model raises ValueError for an option out of range;
probabilities must be in [0, 1], one for all clients or for each.
"""

from collections.abc import Callable

from rollcall.participation.base import Chain, Participation, Population
from rollcall.participation.clock import SPEEDS, Clocked
from rollcall.participation.cyclic import Cyclic, CyclicReset
from rollcall.participation.departures import Adversary, Churn
from rollcall.participation.fits import matched
from rollcall.participation.function import FromFunction, FromObject
from rollcall.participation.independent import Active, Bernoulli, Copula, Full, GroupEvents, Uniform, Weighted
from rollcall.participation.markov import ClusteredMarkov, Markov, MarkovPiLambda, MarkovVarying
from rollcall.participation.minimum_separation import MinimumSeparation
from rollcall.participation.probabilities import PROBABILITIES
from rollcall.participation.trace import Trace
from rollcall.participation.variations import VARIATIONS

MODELS: dict[str, Callable[..., Participation]] = {
    "full": Full,
    "bernoulli": Bernoulli,
    "uniform": Uniform,
    "weighted": Weighted,
    "active": Active,
    "markov": Markov,
    "markov_varying": MarkovVarying,
    "markov_pi_lambda": MarkovPiLambda,
    "cyclic": Cyclic,
    "cyclic_reset": CyclicReset,
    "minimum_separation": MinimumSeparation,
    "clustered_markov": ClusteredMarkov,
    "group_events": GroupEvents,
    "copula": Copula,
    "trace": Trace,
    "matched": matched,
    "churn": Churn,
    "adversary": Adversary,
    "function": FromFunction,
}

__all__ = [
    "MODELS",
    "PROBABILITIES",
    "SPEEDS",
    "VARIATIONS",
    "Active",
    "Adversary",
    "Bernoulli",
    "Chain",
    "Churn",
    "Clocked",
    "ClusteredMarkov",
    "Copula",
    "Cyclic",
    "CyclicReset",
    "FromFunction",
    "FromObject",
    "Full",
    "GroupEvents",
    "Markov",
    "MarkovPiLambda",
    "MarkovVarying",
    "MinimumSeparation",
    "Participation",
    "Population",
    "Trace",
    "Uniform",
    "Weighted",
    "matched",
]
