"""A roll call from a function: keyed randomness, masks and ids, and what an oracle may know."""

import numpy as np
import pytest

from participation import FromFunction, Population
from participation.streams import stream


def half(t, rng):
    """A mask."""
    return rng.random(40) < 0.5


def three(t, rng):
    """Ids in any order."""
    return rng.permutation(40)[:3]


@pytest.mark.parametrize("function", [half, three])
def test_the_same_seed_gives_the_same_roll_call_in_any_order_of_rounds(function):
    one, other = (FromFunction(Population(40, seed=3), function=function) for _ in range(2))
    forward = [one.active(t).tolist() for t in range(9)]
    assert [other.active(t).tolist() for t in reversed(range(9))][::-1] == forward
    np.random.seed(5)  # noqa: NPY002
    assert other.active(4).tolist() == forward[4]
    assert len({tuple(active) for active in forward}) == 9
    another = FromFunction(Population(40, seed=4), function=function)
    assert another.active(0).tolist() != forward[0]


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
        ([-1], "function: id -1 is not allowed"),
        ([0.5, 1.0, 0.0], r"function: list \(float64 of shape \(3,\)\) is not allowed"),
        (None, r"function: NoneType \(object of shape \(\)\) is not allowed"),
        (2, r"function: int \(int64 of shape \(\)\) is not allowed"),
    ],
)
def test_what_is_neither_a_mask_nor_ids(answer, message):
    with pytest.raises(ValueError, match=message):
        FromFunction(Population(3), function=lambda t, rng: answer if t == 7 else []).active(7)
    with pytest.raises(ValueError, match=r"\(round 0\)"):  # before the first round
        FromFunction(Population(3), function=lambda t, rng: answer)


def test_knowledge_is_optional():
    blind = FromFunction(Population(40), function=half)
    assert blind.probability(0) is blind.stationary is blind.correlation is blind.share is None
    pi = np.linspace(0.1, 1.0, 40)
    knowing = FromFunction(Population(40), function=half, probability=pi, stationary=pi, correlation=-pi, share=pi / 3)
    for value, expected in (
        (knowing.probability(8), pi),
        (knowing.stationary, pi),
        (knowing.correlation, -pi),
        (knowing.share, pi / 3),
    ):
        assert np.array_equal(value, expected)
    with pytest.raises(ValueError, match=r"stationary: shape \(2,\) is not allowed; must be \[40\]"):
        FromFunction(Population(40), function=half, stationary=pi[:2])
