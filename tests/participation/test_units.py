"""Groups of clients, by hand."""

import numpy as np
import pytest

from participation import Population
from participation.units import members, pooled


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
    units = pooled(Population(4, 5, classes, np.array([[2, 0], [0, 6], [1, 1], [3, 3]])), np.array([0, 0, 1, 1]), 2)
    assert (units.clients, units.seed) == (2, 5)
    assert units.classes.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert units.histogram.tolist() == [[2, 6], [4, 4]]
