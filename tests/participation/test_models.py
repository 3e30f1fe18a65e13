"""Roll calls against their laws, with tolerances from the standard error of the estimate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollcall.participation import Bernoulli, Full, Population, Trace


def mask(model, rounds):
    found = np.zeros((rounds, model.clients), dtype=bool)
    for t in range(rounds):
        found[t, model.active(t)] = True
    return found


def test_full_calls_everyone():
    model = Full(Population(3))
    assert model.active(7).tolist() == [0, 1, 2]
    assert model.probability(7).tolist() == model.stationary.tolist() == [1, 1, 1]
    assert model.correlation.tolist() == [0, 0, 0]


def test_bernoulli_keeps_its_probabilities_and_has_no_memory():
    p = np.array([0.0, 0.05, 0.3, 0.7, 1.0])
    T = 40_000
    on = mask(Bernoulli(Population(5, seed=3), probability=p), T)
    se = np.sqrt(p * (1 - p) / T)
    assert (np.abs(on.mean(axis=0) - p) <= 4 * se).all()
    # A tenth more or less in p would be seen.
    assert (0.1 * p[1:4] > 4 * se[1:4]).all()
    moving = on[:, 1:4] - p[1:4]
    lag_one = (moving[1:] * moving[:-1]).mean(axis=0) / (p * (1 - p))[1:4]
    assert (np.abs(lag_one) < 4 / np.sqrt(T)).all()
    between = np.corrcoef(moving.T)[np.triu_indices(3, 1)]
    assert (np.abs(between) < 4 / np.sqrt(T)).all()


def test_bernoulli_tells_an_oracle_what_is_true():
    model = Bernoulli(Population(2), probability=np.array([0.2, 0.9]))
    assert model.probability(5).tolist() == model.stationary.tolist() == [0.2, 0.9]
    assert model.correlation.tolist() == [0, 0]


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from([0.0, 0.3, 1.0]) | st.floats(0, 1), min_size=1, max_size=20),
    st.data(),
)
def test_rounds_depend_on_seed_and_number_alone(seed, p, data):
    rounds = data.draw(st.permutations(range(8)))
    one = Bernoulli(Population(len(p), seed=seed), probability=np.array(p))
    other = Bernoulli(Population(len(p), seed=seed), probability=np.array(p))
    straight = [one.active(t) for t in range(8)]
    for t in rounds:
        active = other.active(t)
        assert np.array_equal(active, straight[t])
        assert np.array_equal(active, np.unique(active))
        assert all(p[i] > 0 for i in active)
        assert all(i in active for i in range(len(p)) if p[i] == 1)


def test_seeds_and_rounds_differ():
    calls = {
        tuple(Bernoulli(Population(40, seed=seed), probability=0.5).active(t).tolist())
        for seed in range(3)
        for t in range(3)
    }
    assert len(calls) == 9


def test_trace_replays_its_mask_and_wraps():
    recorded = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    model = Trace(Population(3), mask=recorded)
    assert [model.active(t).tolist() for t in range(5)] == [[0, 2], [], [1], [0, 2], []]
    ending = Trace(Population(3), mask=recorded, wrap=False)
    assert [ending.active(t).tolist() for t in (2, 3)] == [[1], []]
    assert model.probability(0) is None
    # On once in three rounds: P(on|on) = 0 and P(off|off) = 1/2, so lambda = -1/2.
    assert model.stationary == pytest.approx([1 / 3] * 3)
    assert model.correlation == pytest.approx([-1 / 2] * 3)


def test_trace_takes_lists_and_paths(tmp_path):
    recorded = [[1, 0, 1], [0, 1, 0]]
    np.save(tmp_path / "mask.npy", np.array(recorded))
    for mask in (recorded, tmp_path / "mask.npy", str(tmp_path / "mask.npy")):
        model = Trace(Population(3), mask=mask)
        assert [model.active(t).tolist() for t in range(2)] == [[0, 2], [1]]


def test_trace_hands_on_what_an_oracle_may_know():
    p = np.array([[0.5, 0.25], [1.0, 0.125]])
    model = Trace(
        Population(2), mask=np.ones((2, 2)), probability=p, stationary=p[0], correlation=np.array([-1.0, 1.0])
    )
    assert model.probability(1).tolist() == model.probability(3).tolist() == [1.0, 0.125]
    assert model.stationary.tolist() == [0.5, 0.25]
    assert model.correlation.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"mask": np.ones((4, 2))}, r"mask: shape \(4, 2\).*\[rounds, 3\]"),
        ({"mask": np.ones(3)}, "mask: shape"),
        ({"mask": np.ones((0, 3))}, "mask: shape"),
        ({"mask": np.full((4, 3), 0.5)}, "mask: values other than 0 and 1"),
        ({"mask": np.ones((4, 3)), "probability": np.ones(2)}, r"probability: shape \(2,\).*\[3\] or \[4, 3\]"),
        ({"mask": np.ones((4, 3)), "probability": np.array([1, 1, 1.5])}, r"probability: 1.5 .*\[0, 1\]"),
        ({"mask": np.ones((4, 3)), "probability": np.array([1, 0, 1.0])}, r"probability: 0 \(client 1\)"),
        ({"mask": np.ones((4, 3)), "stationary": np.array([1, 1, np.nan])}, "stationary: nan"),
        ({"mask": np.ones((4, 3)), "correlation": np.array([0, 0, -1.5])}, r"correlation: -1.5 .*\[-1, 1\]"),
    ],
)
def test_trace_refuses_what_does_not_fit(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        Trace(Population(3), **options)
