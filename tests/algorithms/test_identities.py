"""Identities between methods, as the papers state them."""

from math import inf

import numpy as np
import pytest
import torch
from clients import rounds_of
from lightning.pytorch import Callback
from oracle import rollout

from rollcall import simulate
from rollcall.algorithms import ALGORITHMS

DRAW = np.random.default_rng(8)
U, H = DRAW.normal(size=(6, 4)), DRAW.uniform(0.3, 2.0, 6)
MASK = DRAW.random((30, 6)) < [0.9, 0.2, 0.5, 0.7, 0.1, 0.4]
MASK[[3, 11]] = False
PI, LAMBDA = np.array([0.9, 0.2, 0.5, 0.7, 0.1, 0.4]), np.array([0.0, 0.5, -0.3, 0.1, 0.2, 0.9])
FULL = {"mask": np.ones((30, 6)), "probability": np.ones(6), "stationary": np.ones(6), "correlation": np.zeros(6)}


def run(name, options=(), mask=MASK, K=3, lr=0.05, stationary=PI, correlation=LAMBDA, **more):
    """The method, and the update, model and state of each round."""
    known = {"stationary": stationary, "correlation": correlation} | more
    method = ALGORITHMS[name](**dict(options))
    return method, [*rounds_of(method, U, H, map(np.flatnonzero, mask), K, lr, **known)]


def end(*args, **options):
    """The model after the last round of `run`."""
    method, path = run(*args, **options)
    return method.eval_models(path[-1][2], path[-1][1])[""].numpy()


def same(one, other):
    assert np.abs(one - other).max() < 1e-10
    assert np.abs(one).max() > 0.01


def suite(algorithm, callbacks=(), **changes):
    """The model of the same trial in the suite."""
    trial = {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {"name": "trace", "mask": MASK},
        "algorithm": algorithm,
        "local": {"steps": 3, "lr": 0.05},
        "rounds": 30,
        "numerics": {"dtype": "float64"},
    }
    return simulate(trial | changes, callbacks=[*callbacks]).model


LIKE_FEDAVG = [
    *("fedpbc", "fedawe", "mifa", "fedvarp", "fedau", "fedavg_all", "fedavg_known", "unbiased", "adafed"),
    *("fedavg_debiased", "local_sgd", "f3ast", "more_available", "fedstale", "mimic"),
]


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in LIKE_FEDAVG), ("fedprox", {"mu": 0.0}), ("ca_fed", {"kappa2": 1e12})],
    ids=str,
)
def test_under_full_participation_all_are_fedavg(name, options):
    same(end(name, options, **FULL), end("fedavg", **FULL))


def test_under_full_participation_fedsgd_iw_is_fedsgd_is_fedavg_with_one_step():
    fedsgd = end("fedsgd", K=1, **FULL)
    same(fedsgd, end("fedsgd_iw", K=1, **FULL))
    same(fedsgd, end("fedavg", K=1, **FULL))


def test_ca_fed_with_unbounded_kappa_is_unbiased():
    found = end("ca_fed", {"kappa2": inf})
    same(found, end("unbiased"))
    # And with a small one it is not.
    assert np.abs(found - end("ca_fed", {"kappa2": 0.01})).max() > 1e-3


@pytest.mark.parametrize("oracle", [True, False])
def test_fedstale_without_stale_updates_is_unbiased(oracle):
    found = end("fedstale", {"beta": 0.0, "oracle": oracle})
    same(found, end("unbiased", {"oracle": oracle}))
    assert np.abs(found - end("fedstale", {"beta": 0.1, "oracle": oracle})).max() > 1e-3


def test_nor_does_the_momentum_of_the_server_tell_them_apart():
    """In empty rounds neither has an update; zeros would let the momentum move the model."""
    known = {"name": "trace", "mask": MASK, "stationary": PI}
    moving = {"participation": known, "server": {"momentum": 0.9}}
    found = suite({"name": "fedstale", "beta": 0.0}, **moving)
    same(found, suite("unbiased", **moving))
    assert np.abs(found - suite({"name": "fedstale", "beta": 1e-9}, **moving)).max() > 1e-3


def test_fedstale_with_all_stale_updates_is_fedvarp_where_p_is_a_over_m():
    """The same number of clients in every round, so that p_i = a / m turns w_i / p_i into 1 / a."""
    trace = {"mask": [DRAW.permutation(6) < 2 for _ in range(30)], "stationary": np.full(6, 2 / 6)}
    fedvarp = end("fedvarp", **trace)
    same(end("fedstale", {"beta": 1.0}, **trace), fedvarp)
    assert np.abs(end("fedstale", **trace) - fedvarp).max() > 1e-4


def test_amplified_scaffold_with_periods_of_one_round_is_scaffold():
    same(end("amplified_scaffold", {"gamma": 1.0, "P": 1}), end("scaffold", {"option": "II"}))


AS_FEDAVG = [("fednova", {}), ("amplified_fedavg", {"eta": 1.0, "P": 5}), ("fedavgm", {"beta": 0.0})]


@pytest.mark.parametrize(("name", "options"), AS_FEDAVG, ids=str)
def test_with_empty_rounds_server_methods_are_fedavg(name, options):
    same(end(name, options), end("fedavg"))


def test_fedavgm_is_fedavg_with_a_server_optimizer():
    """With empty rounds; the server optimizer is torch's."""
    same(end("fedavgm", {"beta": 0.8, "eta_g": 0.5}), suite("fedavg", server={"lr": 0.5, "momentum": 0.8}))


def test_fednova_with_momentum_against_numpy():
    """torch's momentum is what |a_i|_1 counts; with one client in a round FedNova is FedAvg."""
    path, _ = rollout("fednova", U, H, MASK, K=3, eta=lambda t: 0.05, rho=0.6)
    local = {"steps": 3, "lr": 0.05, "momentum": 0.6}
    assert np.abs(suite({"name": "fednova", "rho": 0.6}, local=local) - path[-1]).max() < 1e-10
    alone = {"mask": np.tile(np.eye(6), (5, 1)), "momentum": 0.6}
    same(end("fednova", {"rho": 0.6}, **alone), end("fedavg", **alone))


def test_focus_with_one_step_is_mifa_at_m_times_the_rate():
    same(end("focus", K=1, lr=0.02), end("mifa", K=1, lr=0.12))


class States(Callback):
    """The algorithm's state after every round."""

    def __init__(self):
        self.states = []

    def on_train_batch_end(self, trainer, federation, *_):
        self.states.append(federation.state.get())


@pytest.mark.parametrize("minibatches", [False, True])
def test_focus_tracks_the_sum_of_the_last_gradients(minibatches):
    """[FOCUS] Appendix E: also of stochastic gradients, which are stored and used again."""
    states = [state for *_, state in run("focus", {"empty": "step"})[1]]
    if minibatches:
        ridge = {"name": "ridge", "clients": 6, "samples": 20, "dimension": 4, "theta_spread": 1.0}
        local, watch = {"steps": 3, "lr": 0.02, "batch_size": 5}, States()
        suite({"name": "focus", "empty": "skip"}, [watch], task=ridge, local=local)
        states = watch.states
    assert len(states) == 30
    for state in states:
        assert torch.allclose(state.y, state.h.dense().sum(dim=0), rtol=0, atol=1e-10)
    assert states[-1].y.abs().max() > 1e-3


@pytest.mark.parametrize("schedule", ["deterministic", "random"])
def test_scaffnew_shifts_sum_to_zero_under_full_participation(schedule):
    states = [state for *_, state in run("scaffnew", {"schedule": schedule}, **FULL)[1]]
    for state in states:
        assert state.h.dense().sum(dim=0).abs().max() < 1e-10
    assert states[-1].h.dense().abs().max() > 0.1


def test_scaffnew_shifts_at_once_always_sum_to_zero():
    states = [state for *_, state in run("scaffnew", {"shift": "at_once"})[1]]
    for state in states:
        assert state.h.dense().sum(dim=0).abs().max() < 1e-10
    assert states[-1].h.dense().abs().max() > 0.1


def test_both_rules_of_scaffnew_agree_under_full_participation():
    ends = [run("scaffnew", {"shift": shift}, **FULL)[1][-1][1] for shift in ("on_return", "at_once")]
    assert torch.allclose(*ends, rtol=0, atol=1e-10)
