"""c_i = E[1{i in A} / |A|]: what models tell of it against all outcomes, and against what they then do."""

import numpy as np
import pytest

from rollcall.participation import MODELS, Population
from rollcall.participation.recording import record


def brute_force(p):
    """Independent uplinks, by all active sets."""
    total = np.zeros(len(p))
    for number in range(1, 2 ** len(p)):
        on = np.array([number >> i & 1 for i in range(len(p))], dtype=bool)
        total[on] += np.prod(np.where(on, p, 1 - np.asarray(p))) / on.sum()
    return total


def test_independent_uplinks_against_all_outcomes():
    p = [0.05, 0.9, 0.4, 1.0, 0.0, 0.6]
    model = MODELS["bernoulli"](Population(6), probability=np.array(p))
    assert model.share == pytest.approx(brute_force(p), abs=1e-13)


@pytest.mark.parametrize("redraw", [False, True])
def test_clients_that_decide_themselves_against_all_outcomes(redraw):
    p = [0.05, 0.3, 0.4, 0.0, 0.1]
    occupied = 1 - np.prod(1 - np.array(p)) if redraw else 1.0
    model = MODELS["active"](Population(5), probability=np.array(p), redraw_if_empty=redraw)
    assert model.share == pytest.approx(brute_force(p) / occupied, abs=1e-13)


def test_two_clients_by_hand():
    model = MODELS["bernoulli"](Population(2), probability=np.array([0.5, 0.2]))
    assert model.share == pytest.approx([0.5 * 0.8 + 0.1 / 2, 0.2 * 0.5 + 0.1 / 2])


def test_a_recording_by_hand():
    mask = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]])
    model = MODELS["trace"](Population(3), mask=mask)
    assert model.share == pytest.approx([(1 / 2 + 1 + 1 / 3) / 4, (1 / 2 + 1 / 3) / 4, 1 / 12])
    told = MODELS["trace"](Population(3), mask=mask, share=np.array([0.1, 0.2, 0.3]))
    assert told.share.tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("full", {}),
        ("uniform", {"per_round": 3}),
        ("bernoulli", {"probability": np.linspace(0.1, 0.8, 10)}),
        ("active", {"probability": 0.05, "redraw_if_empty": True}),
        ("group_events", {}),
        ("group_events", {"max_active": 2, "reading": "cap"}),
        ("group_events", {"max_active": 3}),
    ],
)
def test_what_is_told_is_what_happens(name, options):
    T = 20_000
    model = MODELS[name](Population(10, seed=4), **options)
    mask = record(model, T)
    weights = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    error = weights.std(axis=0) / np.sqrt(T)
    assert (np.abs(weights.mean(axis=0) - model.share) < 4.5 * error + 1e-12).all()


@pytest.mark.parametrize(
    ("name", "options"),
    [("markov", {"probability": 0.5}), ("bernoulli", {"probability": 0.5, "variation": lambda p, t: p})],
)
def test_others_say_that_they_do_not_know(name, options):
    assert MODELS[name](Population(4), **options).share is None
