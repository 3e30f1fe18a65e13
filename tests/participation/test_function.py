"""Participation from a function or an object: keyed randomness, masks and ids, oracle knowledge."""

from inspect import getsourcelines

import numpy as np
import pytest

from rollcall.benchmark.config.choice import read
from rollcall.participation import FromFunction, FromObject, Participation, Population, stream
from rollcall.participation.function import checked_model


def half(t, rng):
    """A mask."""
    return rng.random(40) < 0.5


def test_a_mask_and_ids():
    model = FromFunction(Population(40, seed=3), function=half)
    assert model.active(2).tolist() == np.flatnonzero(stream(3, "participation", 2).random(40) < 0.5).tolist()
    ids = {0: [5, 2], 1: [], 2: np.array([True, False, False, False, False, True]), 3: np.array([3], dtype=np.int32)}
    model = FromFunction(Population(6), function=lambda t, rng: ids[t])
    found = [model.active(t) for t in range(4)]
    assert [active.tolist() for active in found] == [[2, 5], [], [0, 5], [3]]
    assert {active.dtype for active in found} == {np.dtype(np.int64)}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([True, False], r"function: a mask of shape \(2,\) is not allowed \(round 7\); must be a mask of 3 values"),
        ([0, 1, 1], "an id twice is not allowed .* A mask of 0 and 1: use astype"),
        ([0, 3], r"function: id 3 is not allowed \(round 7\); .* ids from 0 to 2"),
        ([0.5, 1.0, 0.0], r"function: list \(float64 of shape \(3,\)\) is not allowed"),
        (None, r"function: NoneType \(object of shape \(\)\) is not allowed"),
    ],
)
def test_what_is_neither_a_mask_nor_ids(answer, message):
    with pytest.raises(ValueError, match=message):
        FromFunction(Population(3), function=lambda t, rng: answer if t == 7 else []).active(7)
    with pytest.raises(ValueError, match=r"\(round 0\)"):  # before the first round
        FromFunction(Population(3), function=lambda t, rng: answer)


class Alternating:
    """No base class: a mask in even rounds, ids in odd ones."""

    def active(self, t):
        return np.arange(4) % 2 == 0 if t % 2 == 0 else [3, 1]


class Numbers(Participation):
    """With the base class; its answers are a mask of 0 and 1, or its probabilities are too many."""

    def __init__(self, population, answer=(0, 1, 1), p=None):
        super().__init__(population)
        self.answer, self.p = answer, p

    def active(self, t):
        return np.array(self.answer)

    def probability(self, t):
        return self.p


def test_what_a_class_with_the_base_class_says_is_checked_as_well():
    population = Population(3)
    with pytest.raises(ValueError, match="an id twice is not allowed"):
        checked_model(Numbers(population), population)
    with pytest.raises(ValueError, match=r"id -1 is not allowed"):
        checked_model(Numbers(population, (-1, 2)), population)
    with pytest.raises(ValueError, match="probability"):
        checked_model(Numbers(population, (0, 2), np.full(4, 0.5)), population)
    assert checked_model(Numbers(population, (2, 0)), population).active(5).tolist() == [0, 2]
    own = Numbers(population, (True, False, True))
    assert checked_model(own, population).active(0).tolist() == [0, 2]
    assert "active" not in vars(own)  # it may be used for many trials


def test_an_object_with_active_is_enough():
    model = FromObject(Population(4), Alternating())
    assert [model.active(t).tolist() for t in range(3)] == [[0, 2], [1, 3], [0, 2]]
    assert model.probability(0) is model.stationary is model.correlation is model.share is None
    message = r"^active: a mask of shape \(4,\) is not allowed \(round 0\); must be a mask of 5"
    with pytest.raises(ValueError, match=message):
        FromObject(Population(5), Alternating())
    line = getsourcelines(Alternating)[1]
    with pytest.raises(ValueError, match=rf"^[^:]*test_function\.py:{line}: active: a mask of shape"):
        read("participation", Alternating()).build(Population(5))


def test_oracle_knowledge_is_a_vector_or_a_number():
    class Knowing(Alternating):
        stationary = 0.5
        share = (0.1, 0.2, 0.3, 0.4)

        def probability(self, t):
            return [t % 2] * 4

    model = FromObject(Population(4), Knowing())
    assert model.probability(3).tolist() == [1.0] * 4
    assert model.stationary.tolist() == [0.5] * 4
    assert model.share.tolist() == [0.1, 0.2, 0.3, 0.4]
    function = FromFunction(Population(40), function=half, stationary=np.full(40, 0.5))
    assert function.stationary.tolist() == [0.5] * 40
    assert function.probability(0) is function.correlation is None
    with pytest.raises(ValueError, match=r"^stationary: 1\.5 is not allowed"):
        FromFunction(Population(40), function=half, stationary=np.full(40, 1.5))
