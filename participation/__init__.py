"""Participation models: which clients are active in which round. Independent of learning.

`MODELS`, `PROBABILITIES`, `VARIATIONS` and `SPEEDS` list the names that an experiment file can use. Each model and each
source of probabilities takes the population first, each variation p and t, each distribution of speeds the population
and a generator. Keyword arguments are the options of the file. A model raises ValueError for an option out of range;
probabilities must be in [0, 1], one for all clients or for each.
"""

from collections.abc import Callable

from rollcall.participation.base import Chain as Chain
from rollcall.participation.base import Participation as Participation
from rollcall.participation.base import Population as Population
from rollcall.participation.base import stream as stream
from rollcall.participation.clock import SPEEDS as SPEEDS
from rollcall.participation.clock import Clocked as Clocked
from rollcall.participation.cyclic import Cyclic as Cyclic
from rollcall.participation.cyclic import CyclicReset as CyclicReset
from rollcall.participation.fits import matched as matched
from rollcall.participation.function import FromFunction as FromFunction
from rollcall.participation.function import FromObject as FromObject
from rollcall.participation.independent import Active as Active
from rollcall.participation.independent import Bernoulli as Bernoulli
from rollcall.participation.independent import Copula as Copula
from rollcall.participation.independent import Full as Full
from rollcall.participation.independent import GroupEvents as GroupEvents
from rollcall.participation.independent import Uniform as Uniform
from rollcall.participation.independent import Weighted as Weighted
from rollcall.participation.markov import ClusteredMarkov as ClusteredMarkov
from rollcall.participation.markov import Markov as Markov
from rollcall.participation.markov import MarkovPiLambda as MarkovPiLambda
from rollcall.participation.markov import MarkovVarying as MarkovVarying
from rollcall.participation.minimum_separation import MinimumSeparation as MinimumSeparation
from rollcall.participation.probabilities import PROBABILITIES as PROBABILITIES
from rollcall.participation.probabilities import VARIATIONS as VARIATIONS
from rollcall.participation.trace import Trace as Trace

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
    "function": FromFunction,
}
