"""Arrivals, departures and the adversary: by hand, and their laws against counts."""

import numpy as np
import pytest

from rollcall.participation import MODELS, Population
from rollcall.participation.recording import record


def over(name, clients=4, seed=0, mask=None, **options):
    of = MODELS["full"] if mask is None else lambda population: MODELS["trace"](population, mask=np.array(mask))
    return MODELS[name](Population(clients, seed), participation=of, **options)


def test_arrivals_and_stays_have_their_laws():
    m = 4000
    mask = record(over("churn", m, arrive=9, stay=5.0), 60)
    first, stay = mask.argmax(axis=0), mask.sum(axis=0)
    assert (np.diff(mask.astype(int), axis=0) < 0).sum(axis=0).max() == 1  # for good
    assert np.bincount(first, minlength=10) / m == pytest.approx(np.full(10, 0.1), abs=4 * np.sqrt(0.09 / m))
    assert len(np.bincount(first)) == 10
    # Geometric from 1 on with mean 5: P(1) = 0.2, standard deviation sqrt(0.8) / 0.2.
    assert abs(stay.mean() - 5) < 4 * np.sqrt(0.8) / 0.2 / np.sqrt(m)
    assert abs((stay == 1).mean() - 0.2) < 4 * np.sqrt(0.16 / m)


def test_who_is_there_is_known_and_the_other_model_decides_the_rest():
    options = {"participation": lambda population: MODELS["bernoulli"](population, probability=0.5), "arrive": 6}
    model = MODELS["churn"](Population(50), **options)
    for t in range(12):
        p = model.probability(t)
        assert set(np.unique(p)) <= {0.0, 0.5}
        assert (p[model.active(t)] == 0.5).all()
    assert (model.probability(0) == 0).any()
    assert (model.probability(6) == 0.5).all()
    assert (model.probability(10_000) == 0.5).all()  # without `stay` nobody departs
    stays = over("churn", mask=[[1, 0, 1, 1], [0, 1, 0, 0]])
    assert [stays.active(t).tolist() for t in (0, 1)] == [[0, 2, 3], [1]]


def test_the_adversary_by_hand():
    mask = [[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    weights = np.array([0.3, 0.1, 0.9, 0.1])

    def rounds(epsilon, p=weights):
        model = over("adversary", mask=mask, epsilon=epsilon, probability=p)
        return [model.active(t).tolist() for t in range(4)]

    assert rounds(0.0) == [[0, 1, 2, 3], [1, 2], [2], []]
    assert rounds(0.25) == [[0, 2, 3], [1, 2], [2], []]  # of 1 and 3, which weigh the same, the smaller id
    assert rounds(0.5) == [[0, 2], [2], [2], []]
    assert rounds(1.0) == [[], [], [], []]
    assert len(over("adversary", 100, epsilon=0.29, probability=0.5).active(0)) == 71
    with pytest.raises(ValueError, match=r"^epsilon: 1\.1 is not allowed; must be in \[0, 1\]$"):
        rounds(1.1)
