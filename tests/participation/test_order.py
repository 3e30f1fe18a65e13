"""Rounds are functions of (seed, t): in any order of asking, after any restart, for every model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollcall.participation import MODELS, Population
from rollcall.participation.probabilities import sine

P = st.sampled_from([0.0, 0.3, 1.0]) | st.floats(0, 1)


def _options(name, m, data):
    p = np.array(data.draw(st.lists(P, min_size=m, max_size=m)))
    some = np.maximum(p, 0.01)
    return {
        "full": {},
        "bernoulli": {"probability": p, "variation": sine},
        "uniform": {"per_round": 1 + m // 3},
        "weighted": {"per_round": 1 + m // 3, "probability": some},
        "active": {"probability": some * 0.1, "redraw_if_empty": True},
        "markov": {"probability": p},
        "markov_varying": {"probability": p},
        "markov_pi_lambda": {"probability": p, "correlation": 0.7},
        "cyclic": {"probability": p, "length": 7},
        "cyclic_reset": {"probability": p, "length": 7},
        "minimum_separation": {"probability": some, "separation": m - 1},
        "clustered_markov": {"clusters": m, "probability": p, "correlation": 0.5},
        "group_events": {"sizes": (m,), "events": (0.5,), "inside": 0.5, "max_active": 2, "reading": "cap"},
        "copula": {"probability": p, "rho": 0.4},
        "function": {"function": lambda t, rng: rng.random(m) < p},
        "trace": {"mask": np.arange(5 * m).reshape(5, m) % 3 == 0, "shuffle": True, "random_start": True},
        "matched": {
            "participation": lambda population: MODELS["trace"](population, mask=np.eye(m + 1, m)),
            "fit": data.draw(st.sampled_from(["markov_pi_lambda", "copula"])),
        },
    }[name]


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), m=st.integers(1, 8), data=st.data())
def test_any_order_of_asking(name, seed, m, data):
    options = _options(name, m, data)
    population = Population(m, seed)
    one, other = MODELS[name](population, **options), MODELS[name](population, **options)
    straight = [one.active(t) for t in range(12)]
    for t in data.draw(st.permutations(range(12))):
        active = other.active(t)
        assert np.array_equal(active, straight[t])
        assert np.array_equal(active, np.unique(active))
        assert len(active) == 0 or 0 <= active[0] <= active[-1] < m
        told = other.probability(t)
        assert told is None or ((told >= 0) & (told <= 1)).all()
        # An oracle that divides by p must not meet a client that p says is never on.
        if name not in ("cyclic", "cyclic_reset"):
            assert told is None or (told[active] > 0).all()
