"""`target`: every method that weights clients ends at the optimum of the weighted objective; the others refuse it."""

import numpy as np
import pytest
import torch
from clients import rounds_of

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.trial import Trial

U = torch.tensor([[0.0], [1.0], [10.0]], dtype=torch.float64)
ALPHA = [0.7, 0.2, 0.1]
OPTIONS = {"amplified_fedavg": {"eta": 1.0}, "ca_fed": {"losses": "minibatch", "kappa2": 1e12}}


def path(name, K, alpha, u, p, lam, mask, weighted, **options):
    """The models after each round with steps at the rate 0.3 on F_i = (x - u_i)^2 / 2; x starts at 4."""
    method, start = ALGORITHMS[name](**OPTIONS.get(name, {}) | options), torch.full((1,), 4.0, dtype=torch.float64)
    known = {"probability": p, "stationary": p, "correlation": lam, "least_loss": 0 * p, "share": p / 2}
    known |= {"alpha": alpha, "weighted": weighted, "start": start}
    run = rounds_of(method, u, torch.ones(len(u)).double(), map(np.flatnonzero, mask), K, 0.3, **known)
    return [x.item() for _, x, _ in run]


def end(name, alpha, weighted, rounds=200, active=3, **options):
    """The last model with one local step; the first clients are active in every round."""
    m, p = len(alpha), torch.ones(len(alpha), dtype=torch.float64)
    mask = np.tile(np.arange(m) < active, (rounds, 1))
    return path(name, 1, alpha, U[:m], p, 0 * p, mask, weighted, **options)[-1]


WEIGHT = [name for name, kind in ALGORITHMS.items() if kind().properties.weights]


@pytest.mark.parametrize("name", WEIGHT)
def test_the_end_is_the_optimum_of_the_weighted_objective(name):
    assert end(name, ALPHA, True) == pytest.approx(0.2 * 1 + 0.1 * 10, abs=1e-3)
    assert end(name, [1 / 3] * 3, False) == pytest.approx(11 / 3, abs=1e-3)


ASK_THE_ACTIVE = [(name, {}) for name in WEIGHT if not ALGORITHMS[name]().properties.asks_all]


@pytest.mark.parametrize(("name", "options"), [*ASK_THE_ACTIVE, ("mifa", {"wait_for_all": True})], ids=str)
def test_clients_of_weight_0_that_never_come_change_nothing(name, options):
    """Such as clients without samples: two clients alone, and beside a third one, for which MIFA does not wait."""
    for rounds in (1, 3):
        alone = end(name, [0.5, 0.5], False, rounds, active=2, **options)
        assert end(name, [0.5, 0.5, 0.0], True, rounds, active=2, **options) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fedavg_debiased", {}),
        ("fedavg_debiased", {"oracle": True}),
        ("fedavg_debiased", {"horizon": 3}),
        ("fedavg_debiased", {"cap": 0.8}),
        ("more_available", {"oracle": False}),
        ("ca_fed", {"least": "zero", "kappa2": 0.2}),
    ],
)
def test_nor_do_they_with_several_steps_and_other_options(name, options):
    """Two clients of unequal availability, alone and beside a client of weight 0 that never comes."""
    mask = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 0]])
    p, lam = torch.tensor([[0.9, 0.4, 0.2], [0.1, 0.3, 0.2]], dtype=torch.float64)
    alone = path(name, 3, [0.5, 0.5], U[:2], p[:2], lam[:2], mask[:, :2], False, **options)
    beside = path(name, 3, [0.5, 0.5, 0.0], U, p, lam, mask, True, **options)
    assert beside == pytest.approx(alone, rel=1e-12)
    assert len({*alone}) > 3


MASK = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1]])
KNOWN = torch.tensor([[0.6, 0.2, 0.5], [0.3, 0.1, 0.2]], dtype=torch.float64)  # p or pi, and lambda
ROUNDS_COUNT_CLIENTS = {"fedavg_debiased", "fedsgd_iw", "fedvarp"}  # their formulas have a or a / m


COUNT_WEIGHTS = [
    *((name, {}) for name in WEIGHT if name not in ROUNDS_COUNT_CLIENTS),
    ("fedau", {"divisor": "weights"}),
]


@pytest.mark.parametrize(("name", "options"), COUNT_WEIGHTS, ids=str)
def test_a_client_of_double_weight_is_two_equal_clients(name, options):
    """Weights of 1/2, 1/4 and 1/4, and four equal clients of which two are the same and come together."""
    K = torch.ones(3, dtype=torch.int64) if name == "fedsgd" else torch.tensor([2, 1, 3])
    twice = [0, 0, 1, 2]
    weighted = path(name, K, [0.5, 0.25, 0.25], U, *KNOWN, MASK, True, **options)
    copied = path(name, K[twice], [0.25] * 4, U[twice], *KNOWN[:, twice], MASK[:, twice], False, **options)
    assert weighted == pytest.approx(copied, rel=1e-12)
    assert len({*weighted}) > 3
    assert weighted != pytest.approx(path(name, K, [1 / 3] * 3, U, *KNOWN, MASK, False, **options), rel=1e-3)


def test_weights_where_a_formula_counts_clients():
    """One step of FedAvg debiased, FedSGD-IW and FedVARP by hand, after a round with all clients."""
    alpha, u = [0.5, 0.3, 0.2], U[:, 0].numpy()

    def two(name):
        return path(name, 1, alpha, U, *KNOWN, MASK[:2], True)

    def g(i, x):
        return x - u[i]

    first, x = two("fedavg_debiased")
    assert first == pytest.approx(4 - 0.3 * sum(alpha[i] * g(i, 4) for i in range(3)))
    nu = 2 * 2 / (2 * 3)  # two rounds; two clients are active, each for the second time
    assert x == pytest.approx(first - 0.3 * sum(3 * alpha[i] * nu * g(i, first) for i in (0, 2)) / 2)

    first, x = two("fedsgd_iw")
    assert first == pytest.approx(4 - 0.3 * sum(alpha[i] * g(i, 4) for i in range(3)))  # c_i = 1/3
    c = (1 / 3 + 1 / 2) / 2
    assert x == pytest.approx(first - 0.3 * sum(3 * alpha[i] * g(i, first) / (3 * c) for i in (0, 2)) / 2)

    first, x = two("fedvarp")
    y = [-0.3 * g(i, 4) for i in range(3)]
    assert first == pytest.approx(4 + sum(alpha[i] * y[i] for i in range(3)))
    fresh = sum(alpha[i] * (-0.3 * g(i, first) - y[i]) for i in (0, 2)) * 3 / 2
    assert x == pytest.approx(first + fresh + sum(alpha[i] * y[i] for i in range(3)))


def test_a_method_that_does_not_weight_refuses():
    others = [name for name in ALGORITHMS if name not in WEIGHT]
    assert {*others} == {"mimic", "scaffnew", "fedpbc", "fedawe", "focus", "feddyn", "amplified_scaffold"}
    for name in others:
        trial = {"task": {"name": "quadratic", "targets": U.numpy()}, "algorithm": name, "rounds": 1}
        with pytest.raises(SettingError, match=f"^target: samples is not allowed with {name}, which does not weight"):
            Trial.read(trial | {"target": "samples"})


def test_given_weights_and_half_of_the_clients():
    """FedAvg with two of three clients, by hand: alpha_i / sum over A of alpha_j."""
    task = {"name": "quadratic", "targets": U.numpy()}
    trial = {"task": task, "algorithm": "fedavg", "rounds": 1, "local": {"lr": 0.5}}
    trial |= {"participation": {"name": "trace", "mask": np.array([[1, 0, 1]])}, "numerics": {"dtype": "float64"}}
    assert simulate(trial | {"target": [3.0, 5.0, 1.0]}).model == pytest.approx(0.5 * 10 / 4)
    assert simulate(trial | {"target": [2, 0, 2]}).model.tobytes() == simulate(trial).model.tobytes()


@pytest.mark.parametrize(
    ("name", "options"), [("fedavg", {}), ("fednova", {}), ("adafed", {}), ("fedau", {"divisor": "weights"})], ids=str
)
def test_only_clients_of_weight_0_are_active(name, options):
    """The model stays at 4, in a round in which nobody counts; then it goes 0.3 of the way to client 0."""
    mask = np.array([[0, 0, 1], [1, 0, 0]])
    assert path(name, 1, [0.5, 0.5, 0.0], U, *KNOWN, mask, True, **options) == pytest.approx([4, 4 - 0.3 * 4])


def test_the_distance_is_to_the_optimum_of_the_weighted_objective():
    """Targets 0 and 10 of weights 0.9 and 0.1: the optimum is 1."""
    trial = {"algorithm": "fedavg", "rounds": 60, "local": {"lr": 0.5}, "numerics": {"dtype": "float64"}}
    trial |= {"task": {"name": "quadratic", "targets": [0.0, 10.0]}, "target": [0.9, 0.1]}
    end = simulate(trial).history.iloc[-1]
    assert [end["train/distance"], end["train/bias"]] == pytest.approx([0, 0], abs=1e-9)
    sun = {"name": "sun_synthetic", "clients": 2, "samples": 3, "dimension": 2}
    trial |= {"task": sun, "rounds": 5, "local": {"lr": 0.1}}
    with pytest.raises(SettingError, match=r"^target: unequal weights are not allowed with this task"):
        simulate(trial)
    # The clients of this task have equal numbers of samples.
    samples, uniform = (simulate(trial | {"target": target}) for target in ("samples", "uniform"))
    assert samples.history.equals(uniform.history)
    assert np.abs(samples.server).max() > 0.01
