"""Participation models: which clients are active in which round. Independent of learning.

`MODELS`, `PROBABILITIES` and `VARIATIONS` list the names that an experiment file can use. Each model and each source of
probabilities takes the population first, each variation takes p and t. Keyword arguments are the options of the file.
"""

from collections.abc import Callable

from participation.base import Participation, Population
from participation.bernoulli import Active, Bernoulli
from participation.copula import Copula
from participation.cyclic import Cyclic, CyclicReset
from participation.function import FromFunction, FromObject
from participation.group_events import GroupEvents
from participation.markov import ClusteredMarkov, Markov, MarkovPiLambda, MarkovVarying
from participation.minimum_separation import MinimumSeparation
from participation.probabilities import PROBABILITIES
from participation.trace import Trace
from participation.uniform import Full, Uniform, Weighted
from participation.variations import VARIATIONS

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
    "function": FromFunction,
}

__all__ = [
    "MODELS",
    "PROBABILITIES",
    "VARIATIONS",
    "Active",
    "Bernoulli",
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
]
