"""Identities between methods, as the papers state them."""

from math import inf

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback
from oracle import rollout

from rollcall import simulate

DRAW = np.random.default_rng(8)
U, H = DRAW.normal(size=(6, 4)), DRAW.uniform(0.3, 2.0, 6)
MASK = DRAW.random((30, 6)) < [0.9, 0.2, 0.5, 0.7, 0.1, 0.4]
MASK[[3, 11]] = False
QUADRATIC = {
    "task": {"name": "quadratic", "targets": U, "curvature": H},
    "participation": {
        "name": "trace",
        "mask": MASK,
        "stationary": np.array([0.9, 0.2, 0.5, 0.7, 0.1, 0.4]),
        "correlation": np.array([0.0, 0.5, -0.3, 0.1, 0.2, 0.9]),
    },
    "local": {"steps": 3, "lr": 0.05},
    "rounds": 30,
    "numerics": {"dtype": "float64"},
}


def same(one, other, tolerance=1e-10):
    assert np.abs(one.model - other.model).max() < tolerance
    assert np.abs(one.model).max() > 0.01


LIKE_FEDAVG = [
    *("fedpbc", "fedawe", "mifa", "fedvarp", "fedau", "fedavg_all", "fedavg_known", "unbiased", "adafed"),
    *("fedavg_debiased", "local_sgd", "f3ast", "more_available", "fedstale", "mimic"),
    {"name": "fedprox", "mu": 0.0},
    {"name": "ca_fed", "kappa2": 1e12},
]


FULL = QUADRATIC | {"participation": "full"}


@pytest.fixture(scope="module")
def fedavg():
    return simulate(FULL | {"algorithm": "fedavg"})


@pytest.mark.parametrize("algorithm", LIKE_FEDAVG, ids=str)
def test_under_full_participation_all_are_fedavg(algorithm, fedavg):
    same(simulate(FULL | {"algorithm": algorithm}), fedavg)


def test_under_full_participation_fedsgd_iw_is_fedsgd_is_fedavg_with_one_step():
    one = FULL | {"local": {"steps": 1, "lr": 0.05}}
    same(simulate(one | {"algorithm": "fedsgd"}), simulate(one | {"algorithm": "fedsgd_iw"}))
    same(simulate(one | {"algorithm": "fedsgd"}), simulate(one | {"algorithm": "fedavg"}))


def test_ca_fed_with_unbounded_kappa_is_unbiased():
    found = simulate(QUADRATIC | {"algorithm": {"name": "ca_fed", "kappa2": inf}})
    same(found, simulate(QUADRATIC | {"algorithm": "unbiased"}))
    # And with a small one it is not.
    other = simulate(QUADRATIC | {"algorithm": {"name": "ca_fed", "kappa2": 0.01}})
    assert np.abs(found.model - other.model).max() > 1e-3


@pytest.mark.parametrize(("server", "oracle"), [({}, True), ({"lr": 0.6}, False)], ids=str)
def test_fedstale_without_stale_updates_is_unbiased(server, oracle):
    trial = QUADRATIC | {"server": server}
    found = simulate(trial | {"algorithm": {"name": "fedstale", "beta": 0.0, "oracle": oracle}})
    same(found, simulate(trial | {"algorithm": {"name": "unbiased", "oracle": oracle}}))
    other = simulate(trial | {"algorithm": {"name": "fedstale", "beta": 0.1, "oracle": oracle}})
    assert np.abs(found.model - other.model).max() > 1e-3


def test_fedstale_with_all_stale_updates_is_fedvarp_where_p_is_a_over_m():
    """The same number of clients in every round, so that p_i = a / m turns w_i / p_i into 1 / a."""
    mask = np.array([DRAW.permutation(6) < 2 for _ in range(30)])
    trace = {"name": "trace", "mask": mask, "stationary": np.full(6, 2 / 6)}
    trial = QUADRATIC | {"participation": trace}
    fedvarp = simulate(trial | {"algorithm": "fedvarp"})
    same(simulate(trial | {"algorithm": {"name": "fedstale", "beta": 1.0}}), fedvarp)
    assert np.abs(simulate(trial | {"algorithm": "fedstale"}).model - fedvarp.model).max() > 1e-4


def test_amplified_scaffold_with_periods_of_one_round_is_scaffold():
    found = simulate(QUADRATIC | {"algorithm": {"name": "amplified_scaffold", "gamma": 1.0, "P": 1}})
    same(found, simulate(QUADRATIC | {"algorithm": {"name": "scaffold", "option": "II"}}))


AS_FEDAVG = [
    ("fednova", {}),
    ({"name": "amplified_fedavg", "eta": 1.0, "P": 5}, {}),
    ({"name": "fedavgm", "beta": 0.0}, {}),
    ({"name": "fedavgm", "beta": 0.8, "eta_g": 0.5}, {"lr": 0.5, "momentum": 0.8}),
]


@pytest.mark.parametrize(("algorithm", "server"), AS_FEDAVG, ids=str)
def test_server_methods_are_fedavg_with_a_server_optimizer(algorithm, server):
    """With empty rounds; the server optimizers are torch's and the suite's."""
    fedavg = simulate(QUADRATIC | {"algorithm": "fedavg", "server": server})
    same(simulate(QUADRATIC | {"algorithm": algorithm}), fedavg)


def test_fednova_with_momentum_against_numpy():
    """torch's momentum is what |a_i|_1 counts; with one client in a round FedNova is FedAvg."""
    local = {"steps": 3, "lr": 0.05, "momentum": 0.6}
    path, _ = rollout("fednova", U, H, MASK, K=3, eta=lambda t: 0.05, rho=0.6)
    fednova = {"algorithm": {"name": "fednova", "rho": 0.6}}
    assert np.abs(simulate(QUADRATIC | fednova | {"local": local}).server - path[-1]).max() < 1e-10
    alone = QUADRATIC | {"local": local, "participation": {"name": "trace", "mask": np.eye(6)}}
    same(simulate(alone | fednova), simulate(alone | {"algorithm": "fedavg"}))


def test_focus_with_one_step_is_mifa_at_m_times_the_rate():
    one = QUADRATIC | {"local": {"steps": 1, "lr": 0.02}}
    six = QUADRATIC | {"local": {"steps": 1, "lr": 0.12}}
    same(simulate(one | {"algorithm": "focus"}), simulate(six | {"algorithm": "mifa"}))


class States(Callback):
    """The algorithm's state after every round."""

    def __init__(self):
        self.states = []

    def on_train_batch_end(self, trainer, federation, *_):
        self.states.append(federation.state.get())


RIDGE = {
    "task": {"name": "ridge", "clients": 6, "samples": 20, "dimension": 4, "theta_spread": 1.0},
    "local": {"steps": 3, "lr": 0.02, "batch_size": 5},
}


@pytest.mark.parametrize(("empty", "task"), [("step", {}), ("skip", RIDGE)], ids=["gradients", "minibatches"])
def test_focus_tracks_the_sum_of_the_last_gradients(empty, task):
    """[FOCUS] Appendix E: also of stochastic gradients, which are stored and used again."""
    watch = States()
    simulate(QUADRATIC | task | {"algorithm": {"name": "focus", "empty": empty}}, callbacks=[watch])
    assert len(watch.states) == 30
    for state in watch.states:
        assert torch.allclose(state.y, state.h.dense().sum(dim=0), rtol=0, atol=1e-10)
    assert watch.states[-1].y.abs().max() > 1e-3


@pytest.mark.parametrize("schedule", ["deterministic", "random"])
def test_scaffnew_shifts_sum_to_zero_under_full_participation(schedule):
    watch = States()
    trial = QUADRATIC | {"participation": "full", "algorithm": {"name": "scaffnew", "schedule": schedule}}
    simulate(trial, callbacks=[watch])
    for state in watch.states:
        assert state.h.dense().sum(dim=0).abs().max() < 1e-10
    assert watch.states[-1].h.dense().abs().max() > 0.1
