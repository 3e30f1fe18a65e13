"""Groups of clients, by hand."""

from functools import partial

import numpy as np
import pytest

from rollcall.participation import MODELS, Population
from rollcall.participation.base import members
from rollcall.participation.probabilities import class_coupled
from rollcall.participation.streams import stream


def test_units_are_contiguous_or_shuffled_by_the_seed():
    assert members("groups", Population(6), 3).tolist() == [0, 0, 1, 1, 2, 2]
    shuffled = [members("groups", Population(60, seed), 3, shuffled=True) for seed in (0, 0, 1)]
    assert (shuffled[0] == shuffled[1]).all()
    assert (shuffled[0] != shuffled[2]).any()
    assert np.bincount(shuffled[2]).tolist() == [20, 20, 20]
    with pytest.raises(ValueError, match="groups: 4 is not allowed; must be a divisor of the 6 clients"):
        members("groups", Population(6), 4)


def test_a_unit_pools_what_its_members_hold():
    classes = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    population = Population(4, 5, classes, np.array([[2, 0], [0, 6], [1, 1], [3, 3]]))
    units = population.pooled(np.array([0, 0, 1, 1]), 2)
    assert (units.clients, units.seed) == (2, 5)
    assert units.classes.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert units.histogram.tolist() == [[2, 6], [4, 4]]


@pytest.mark.parametrize(
    ("name", "options"),
    [("minimum_separation", {"groups": 2, "separation": 0}), ("clustered_markov", {"clusters": 2, "correlation": 0.0})],
)
def test_the_classes_of_a_unit_decide_how_often_it_is_active(name, options):
    classes = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    population = Population(4, 1, classes, np.ones((4, 3), dtype=int))
    p = partial(class_coupled, sigma0=1.0, delta=0.0)
    a, b, c, d = p(population)  # linear in the classes: a unit has the mean of its members
    expected = np.array([(a + b) / 2, (a + b) / 2, (c + d) / 2, (c + d) / 2])
    stationary = MODELS[name](population, probability=p, **options).stationary
    assert stationary / stationary.sum() == pytest.approx(expected / expected.sum())
    assert abs(expected[0] - expected[2]) > 0.1


def test_no_round_has_the_draws_that_deal_out_groups():
    dealt = members("groups", Population(60, 3), 3, shuffled=True)
    for t in range(5):
        assert (dealt != stream(3, "participation", t).permutation(np.repeat(np.arange(3), 20))).any()
