"""FedDyn, FedNova, amplified FedAvg, FedAvgM, FedAdam and FedYogi: one round by hand, options against NumPy, identities.

With their default options all of them are in `test_against_numpy`, with uneven K_i too.
"""

import numpy as np
import pytest
import torch
from oracle import rollout

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS, AmplifiedFedAvg, FedAdam, FedAvgM, FedDyn, FedNova, FedYogi, Round, Traffic
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.conformance.subject import Quadratics

M, D, T, K, LR = 6, 4, 30, 3, 0.05
K_I = np.array([3, 1, 5, 2, 1, 4])
DRAW = np.random.default_rng(5)
U, H, CHANCE = DRAW.normal(size=(M, D)), DRAW.uniform(0.3, 2.0, M), DRAW.uniform(0.05, 0.9, M)
MASK = DRAW.random((T, M)) < CHANCE
MASK[[4, 5, 17]] = False
OPTIMUM = H @ U / H.sum()


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


# Two clients in one dimension, x = 0, eta = 0.5: with F = 0.5 h (x - u)^2 client 0 goes to 2 - 2 / 2^k in k steps, and
# client 1, with h = 2, to -8 in one.
HAND = Quadratics(vector(2, -8)[:, None], vector(1, 2), torch.tensor([2, 1]), 0.5)


def by_hand(method, calls, alpha=(0.5, 0.5)):
    """The updates of rounds with these active clients, and the state at the end."""
    x, updates = vector(0.0), []
    state = method.init(x, 2)
    for t, active in enumerate(calls):
        call = Round(t, torch.tensor(active, dtype=torch.int64), 0.5, vector(*alpha))
        update, state = method.round(state, x, call, HAND)
        updates.append(None if update is None else update.item())
        x = x if update is None else x + update
    return updates, state


def test_feddyn():
    # Client 0 with alpha = 1: 0 -> 1 -> 1 - (-1 + 1) / 2 = 1. h = -(1/2) 1, so x = 1 + 0.5.
    (first, empty, second), state = by_hand(FedDyn(alpha=1.0), [[0], [], [1]])
    assert first == 1.5
    assert empty is None
    # Client 1 from 1.5: 1.5 - 0.5 * 2 * 9.5 = -8, moved by -9.5. h = -0.5 + 9.5 / 2 = 4.25, x = -8 - 4.25.
    assert 1.5 + second == -12.25
    assert state.g.dense().tolist() == [[-1.0], [9.5]]
    assert state.h.tolist() == [4.25]
    x = vector(-12.25)
    models = FedDyn(alpha=1.0).eval_models(state, x)
    assert models[""] is x
    assert models["active"].tolist() == [-8.0]


def test_fednova():
    # Moves 1.5 in two steps and -8 in one; p = (0.25, 0.75): tau_eff = 1.25, of 0.25 * 0.75 - 0.75 * 8.
    (first, empty, second), _ = by_hand(FedNova(), [[0, 1], [], [0]], alpha=(0.25, 0.75))
    assert first == 1.25 * (0.25 * 0.75 - 0.75 * 8)
    assert empty is None
    # Alone a client's own number of steps cancels: a quarter of the way to 2 is left after two steps.
    assert second == pytest.approx(0.75 * (2 - first))


def test_fednova_counts_what_momentum_repeats():
    # |a| = 1 + (1 + 0.5) = 2.5 for two steps, 1 for one.
    (update,), _ = by_hand(FedNova(rho=0.5), [[0, 1]])
    assert update == pytest.approx((0.5 * 2.5 + 0.5 * 1) * (0.5 * 1.5 / 2.5 - 0.5 * 8))


def test_amplified_fedavg():
    # 1.5; then nobody, but the interval of two rounds ends: 2 * 1.5 more. From 4.5: client 1 to -8, amplified at once.
    updates, state = by_hand(AmplifiedFedAvg(eta=3.0, P=2), [[0], [], [], [1], []])
    assert updates == [1.5, 3.0, None, 3 * -12.5, None]
    assert state.u.tolist() == [0.0]
    # A round within the interval adds up.
    updates, state = by_hand(AmplifiedFedAvg(eta=3.0, P=3), [[0], [1], []])
    assert updates == [1.5, -9.5, 2 * -8.0]


def test_fedavgm():
    # 1.5; nobody; client 1 from 1.5 moves by -9.5, and half of 1.5 goes on.
    (first, empty, second), state = by_hand(FedAvgM(beta=0.5, eta_g=2.0), [[0], [], [1]])
    assert first == 2 * 1.5
    assert empty is None
    assert second == 2 * (0.5 * 1.5 - 11)  # from 3 to -8
    assert state.v.tolist() == [-10.25]


def test_fedadam_and_fedyogi():
    # Delta = 1.5 with m = 0.75; v = 0.75 * 0.25 + 0.25 * 2.25 = 0.75, or v = 0.25 + 0.25 * 2.25.
    options = {"eta_g": 2.0, "beta_1": 0.5, "beta_2": 0.75, "tau": 0.5}
    (first, empty), state = by_hand(FedAdam(**options), [[0], []])
    assert first == pytest.approx(2 * 0.75 / (0.75**0.5 + 0.5))
    assert empty is None
    assert (state.m.tolist(), state.v.tolist()) == ([0.75], [0.75])
    (first, _), state = by_hand(FedYogi(**options), [[0], []])
    assert first == pytest.approx(2 * 0.75 / (0.8125**0.5 + 0.5))
    # With a large v Yogi goes down by the same amount.
    (first,), state = by_hand(FedYogi(**(options | {"tau": 2.0})), [[0]])
    assert state.v.tolist() == [4 - 0.25 * 2.25]
    # Corrected, the first step is the sign of Delta, but for tau.
    (first,), _ = by_hand(FedAdam(**options, bias_correction=True), [[0]])
    assert first == pytest.approx(2 * 1.5 / (1.5 + 0.5))


def test_one_vector_each_way():
    call = Round(0, torch.tensor([0, 1]), 0.5, vector(0.5, 0.5))
    for method in (FedDyn(), FedNova(), AmplifiedFedAvg(), FedAvgM(), FedAdam(), FedYogi()):
        assert method.traffic(method.init(vector(0.0), 2), call) == Traffic(up=2, down=2)


OPTIONS = [
    ("feddyn", {"alpha": 2.0}),
    ("amplified_fedavg", {"eta": 2.0, "P": 6}),  # round 17, an empty one, ends an interval
    ("amplified_fedavg", {"eta": 0.4, "P": 1}),
    ("fedavgm", {"beta": 0.5, "eta_g": 0.7}),
    ("fedadam", {"eta_g": 0.05, "beta_1": 0.5, "beta_2": 0.8, "tau": 0.02}),
    ("fedadam", {"eta_g": 0.05, "bias_correction": True}),
    ("fedyogi", {"eta_g": 0.05, "beta_1": 0.5, "beta_2": 0.8, "tau": 0.02}),
]


def expected(name, options, **changes):
    """What the oracle says, whose options have names of their own."""
    names = {"alpha": "strength", "eta": "factor", "eta_g": "rate"}
    options = {names.get(option, option): value for option, value in options.items()}
    return rollout(name, U, H, MASK, **({"K": K, "eta": lambda t: LR} | changes | options))


def trial(algorithm, **changes):
    return {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {"name": "trace", "mask": MASK},
        "algorithm": algorithm,
        "local": {"steps": K, "lr": LR},
        "rounds": T,
        "numerics": {"dtype": "float64"},
    } | changes


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_options_against_numpy(name, options):
    path, memory = expected(name, options)
    assert np.abs(path[-1] - expected(name, {})[0][-1]).max() > 1e-3
    result = simulate(trial({"name": name} | options))
    assert np.abs(result.server - path[-1]).max() < 1e-10
    if name == "feddyn":
        active = (0.5 * H * np.sum((memory["mean_of_active"] - U) ** 2, axis=1)).mean()
        assert result.history.iloc[-1]["train/loss/active"] == pytest.approx(active, rel=1e-10)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_options_with_uneven_steps(name, options):
    path, _ = expected(name, options, K=K_I)
    assert np.abs(rounds(name, options) - path).max() < 1e-10


def rounds(name, options, alpha=None, mask=MASK):
    """x^0 ... x^T with uneven K_i, of the method alone."""
    work = Quadratics(torch.tensor(U), torch.tensor(H), torch.tensor(K_I), LR)
    alpha = np.full(M, 1 / M) if alpha is None else alpha
    method, x = ALGORITHMS[name](**options), torch.zeros(D, dtype=torch.float64)
    state, path = method.init(x, M), [x.numpy()]
    for t in range(len(mask)):
        call = Round(t, torch.from_numpy(np.flatnonzero(mask[t])), LR, torch.tensor(alpha))
        update, state = method.round(state, x, call, work)
        x = x if update is None else x + update
        path.append(x.numpy())
    return np.array(path)


def test_fednova_weights_clients_as_the_objective_does():
    alpha = np.array([0.3, 0.05, 0.15, 0.1, 0.25, 0.15])
    path, _ = expected("fednova", {}, K=K_I, alpha=alpha)
    assert np.abs(rounds("fednova", {}, alpha) - path).max() < 1e-10
    assert np.abs(path - rounds("fednova", {})).max() > 1e-2


DIGITS = {
    "task": {"name": "digits", "clients": 6, "partition": {"name": "dirichlet", "alpha": 0.3}},
    "participation": {"name": "trace", "mask": MASK[:8]},
    "rounds": 8,
    "evaluation": {"every": 8, "splits": ["test"]},
    "numerics": {"dtype": "float64"},
}


def test_fednova_with_momentum_against_numpy():
    """The whole suite: torch's momentum is what |a_i|_1 counts."""
    path, _ = expected("fednova", {"rho": 0.6})
    local = {"steps": K, "lr": LR, "momentum": 0.6}
    result = simulate(trial({"name": "fednova", "rho": 0.6}, local=local))
    assert np.abs(result.server - path[-1]).max() < 1e-10
    # And with one client a round it is FedAvg, whatever K_i.
    local = {"epochs": 1, "batch_size": 32, "lr": 0.1, "momentum": 0.6}
    alone = DIGITS | {"local": local, "participation": {"name": "trace", "mask": np.eye(6)}}
    ends = [simulate(alone | {"algorithm": method}).model for method in ({"name": "fednova", "rho": 0.6}, "fedavg")]
    assert np.abs(ends[0] - ends[1]).max() < 1e-12
    assert np.abs(ends[0]).max() > 0.01


AS_FEDAVG = [
    ("fednova", {}),
    ({"name": "amplified_fedavg", "eta": 1.0, "P": 5}, {}),
    ({"name": "fedavgm", "beta": 0.0}, {}),
    ({"name": "fedavgm", "beta": 0.8, "eta_g": 0.5}, {"lr": 0.5, "momentum": 0.8}),
    ({"name": "fedyogi", "eta_g": 0.1}, {"optimizer": "yogi", "lr": 0.1}),
    ({"name": "fedadam", "eta_g": 0.1, "bias_correction": True}, {"optimizer": "adam", "lr": 0.1}),
    ({"name": "fedadam", "beta_1": 0.0, "beta_2": 0.0}, {"optimizer": "adam", "lr": 0.1, "betas": [0.0, 0.0]}),
]


@pytest.mark.parametrize(("algorithm", "server"), AS_FEDAVG, ids=str)
def test_they_are_fedavg_with_a_server_optimizer(algorithm, server):
    """On digits, with empty rounds and minibatches; the server optimizers are torch's and the suite's."""
    digits = DIGITS | {"local": {"steps": 3, "lr": 0.1, "batch_size": 16}}
    own = simulate(digits | {"algorithm": algorithm})
    fedavg = simulate(digits | {"algorithm": "fedavg", "server": server})
    assert np.abs(own.model - fedavg.model).max() < 1e-10
    assert np.abs(own.model).max() > 0.01
    assert own.history["test/loss"].iloc[-1] != own.history["test/loss"].iloc[0]


def test_fednova_is_not_fedavg_with_uneven_steps():
    digits = DIGITS | {"local": {"epochs": 1, "lr": 0.1, "batch_size": 16}}
    ends = [simulate(digits | {"algorithm": name}).model for name in ("fednova", "fedavg")]
    assert np.abs(ends[0] - ends[1]).max() > 1e-3


def test_fednova_reaches_the_optimum_that_fedavg_misses_with_uneven_steps():
    """All answer, eta small: FedAvg ends where client i weighs K_i."""
    work = Quadratics(torch.tensor(U), torch.tensor(H), torch.tensor(K_I), 1e-4)
    everyone, x = Round(0, torch.arange(M), 1e-4, torch.full((M,), 1 / M).double()), torch.tensor(OPTIMUM)
    update, _ = FedNova().round(FedNova().init(x, M), x, everyone, work)
    pulled = (work.sgd(everyone.active, x.expand(M, -1)) - x).mean(dim=0)
    assert update.abs().max() < 0.01 * pulled.abs().max()


@pytest.mark.parametrize("chance", [np.ones(M), CHANCE], ids=["full", "biased"])
def test_feddyn_ends_at_the_optimum(chance):
    """Whatever the number of inexact steps, and whether clients are equally often there or not."""
    mask = np.random.default_rng(2).random((900, M)) < chance
    path = rounds("feddyn", {"alpha": 10.0}, mask=mask)
    assert np.abs(path[-1] - OPTIMUM).max() < 1e-10
    assert np.abs(rounds("fednova", {}, mask=mask)[-1] - OPTIMUM).max() > 1e-2


def test_feddyn_with_exact_minimisers():
    """alpha = h for all: theta_k = (h u_k + g_k + h x) / (2 h), and x is the optimum after one round."""
    u, h = vector(3.0, -1.0)[:, None], vector(2.0, 2.0)
    work = Quadratics(u, h, torch.tensor([60, 60]), 0.25)  # eta (h + alpha) = 1: one step is exact
    method = FedDyn(alpha=2.0)
    call = Round(0, torch.tensor([0, 1]), 0.25, vector(0.5, 0.5))
    update, state = method.round(method.init(vector(0.0), 2), vector(0.0), call, work)
    assert update.item() == pytest.approx(1.0)  # the means of u_k / 2, less -alpha times that / alpha
    assert state.g.dense().flatten().tolist() == pytest.approx([-3.0, 1.0])  # the gradients h (theta_k - u_k)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"algorithm": "feddyn", "local": {"momentum": 0.5}}, "local.momentum: 0.5 is not allowed with feddyn"),
        (
            {"algorithm": "fednova", "local": {"momentum": 0.5}},
            "local.momentum: 0.5 is not allowed with fednova's rho 0;",
        ),
        ({"algorithm": {"name": "fednova", "rho": 0.5}}, "local.momentum: 0 is not allowed with fednova's rho 0.5;"),
        ({"algorithm": "feddyn", "server": {"lr": 0.5}}, "server: .* is not allowed with feddyn"),
        ({"algorithm": "fedavgm", "server": {"momentum": 0.5}}, "server: .* is not allowed with fedavgm"),
        ({"algorithm": "fedadam", "server": {"optimizer": "adam"}}, "server: .* is not allowed with fedadam"),
        ({"algorithm": "fedyogi", "server": {"lr": 0.1}}, "server: .* is not allowed with fedyogi"),
        ({"algorithm": "amplified_fedavg", "server": {"lr": 0.1}}, "server: .* is not allowed with amplified_fedavg"),
        ({"algorithm": "fedadam", "evaluation": {"weights": ["client"]}}, "evaluation.weights"),
        ({"algorithm": {"name": "fedadam", "beta_1": 1.0}}, "beta_1"),
        ({"algorithm": {"name": "amplified_fedavg", "P": 0}}, "P"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, complaint):
    with pytest.raises(SettingError, match=complaint):
        Trial.read(trial("fedavg") | changes)
