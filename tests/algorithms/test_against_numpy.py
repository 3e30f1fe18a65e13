"""Every method against plain NumPy: uneven clients, empty rounds, several local steps, a falling rate; to 1e-10."""

from functools import cache
from itertools import count

import numpy as np
import pytest
import torch
from clients import rounds_of
from oracle import METHODS, rollout

from rollcall import simulate
from rollcall.algorithms import ALGORITHMS, Round

M, D, T, K, LR = 6, 4, 30, 3, 0.05
ONE_STEP = {"fedsgd", "fedsgd_iw"}
EMPTY_ROUNDS_STEP = {"local_sgd", "mifa", "fedstale", "focus", "amplified_fedavg", "amplified_scaffold"}
DRAW = np.random.default_rng(5)
U, H = DRAW.normal(size=(M, D)), DRAW.uniform(0.3, 2.0, M)
P = np.tile(DRAW.uniform(0.05, 0.9, M), (T, 1))
P[T // 2 :] *= 0.7
MASK = DRAW.random((T, M)) < P
MASK[[4, 5, 17]] = False
MASK[12] = True
PI = np.array([0.5, 0.15, 0.8, 0.35, 0.7, 0.25])
LAMBDA = np.array([0.1, -0.7, 0.3, 0.9, -0.2, 0.4])


def falling(t):
    return LR / np.sqrt(t / 10 + 1)


def expected(name, **options):
    steps = 1 if name in ONE_STEP else K
    return rollout(name, U, H, MASK, **{"K": steps, "eta": falling, "p": P, "pi": PI, "lam": LAMBDA} | options)


plain = cache(expected)


def test_the_oracle_knows_every_method():
    assert set(METHODS) == set(ALGORITHMS)


def follow(path, name, options, u, h, mask, K, eta, alpha, p, **known):
    """Compare each model of a run without the suite with NumPy's."""
    known |= {"alpha": alpha, "momentum": options.get("rho", 0.0), "probability": p}
    run = rounds_of(ALGORITHMS[name](**options), u, h, map(np.flatnonzero, mask), K, eta, **known)
    size = max(1, np.abs(path).max())  # scaffnew diverges here
    for on, model, (update, x, _) in zip(mask, path[1:], run, strict=True):
        if not on.any() and (name not in EMPTY_ROUNDS_STEP or options.get("empty") == "skip"):
            assert update is None  # zeros would still move x by the server's momentum
        assert np.abs(x.numpy() - model).max() < 1e-10 * size


EQUAL = np.full(M, 1 / M)
OPTIONS = [
    *((name, {}, {}) for name in ALGORITHMS),
    ("fedavg_known", {"probability": "last_client"}, {}),
    ("fedsgd_iw", {"delta": 0.15}, {}),
    ("fedavg_debiased", {"cap": 1.2}, {}),
    ("fedavg_debiased", {"horizon": 20}, {}),
    ("fedavg_debiased", {"oracle": True}, {}),
    ("unbiased", {"oracle": False}, {}),
    ("adafed", {"oracle": False}, {}),
    ("more_available", {"oracle": False}, {}),
    ("fedau", {"cutoff": 3}, {}),
    ("fedau", {"cutoff": 3, "intervals": "with_current", "divisor": "weights"}, {}),
    ("f3ast", {"capacity": 2, "beta": 0.2, "start": 0.5}, {}),
    ("f3ast", {"capacity": 2, "beta": 0.2, "selection": "released"}, {}),
    ("f3ast", {"capacity": 2, "oracle": True}, {}),
    ("fedprox", {"mu": 3.0}, {}),
    ("fedprox", {"mu": 0.0}, {}),
    ("mifa", {"memory": "gradients", "wait_for_all": True}, {"remember": "gradients", "wait_for_all": True}),
    ("mifa", {"memory": "updates"}, {"remember": "updates"}),
    ("mifa", {"memory": "differences"}, {"remember": "differences"}),
    ("mifa", {"memory": "updates", "wait_for_all": True}, {"remember": "updates", "wait_for_all": True}),
    ("scaffold", {"option": "I"}, {}),
    ("scaffnew", {"first_shift": "model"}, {}),
    ("scaffnew", {"shift": "at_once"}, {}),
    ("focus", {"empty": "skip"}, {}),
    ("fedawe", {"clip": 0.05, "eta_g": 0.6}, {"clip": 0.05, "scale": 0.6}),
    ("fedpbc", {"eta_g": 0.6}, {"scale": 0.6}),
    ("fedawe", {"eta_g": 0.6}, {"scale": 0.6}),
    ("ca_fed", {"kappa2": 0.01}, {}),
    ("ca_fed", {"kappa2": 0.03, "beta": 0.7, "tau": 0.01}, {}),
    ("ca_fed", {"oracle": False, "kappa2": 0.03}, {}),
    ("ca_fed", {"ties": "leave_out"}, {}),
    ("ca_fed", {"bias_factor": 1.0, "least": "zero", "kappa2": 0.2}, {}),
    ("feddyn", {"alpha": 2.0}, {"strength": 2.0}),
    ("amplified_fedavg", {"eta": 2.0, "P": 6}, {"factor": 2.0, "P": 6}),  # round 17, an empty one, ends an interval
    ("amplified_fedavg", {"eta": 0.4, "P": 1}, {"factor": 0.4, "P": 1}),
    ("amplified_scaffold", {"gamma": 2.0, "P": 6}, {}),  # likewise
    ("amplified_scaffold", {"gamma": 0.4, "P": 5}, {}),
    ("amplified_scaffold", {"P": 1}, {}),
    ("fedstale", {"beta": 0.0}, {}),
    ("fedstale", {"beta": 1.0}, {}),
    ("fedstale", {"empty": "skip"}, {}),
    ("fedstale", {"oracle": False}, {}),
    ("fedstale", {"oracle": False, "empty": "skip", "beta": 0.9}, {}),
    ("fedavgm", {"beta": 0.5, "eta_g": 0.7}, {"beta": 0.5, "rate": 0.7}),
    ("fednova", {"rho": 0.6}, {}),  # the clients' momentum
]


@pytest.mark.parametrize(("name", "options", "in_numpy"), OPTIONS, ids=str)
def test_method(name, options, in_numpy):
    """With equal weights of the clients; then with weights from 0.001 to almost 1, for one and five clients whose K_i differ."""
    told = in_numpy or options
    path, _ = plain(name, **told)
    assert not options or np.abs(path - plain(name)[0]).max() > 1e-4  # the option matters here
    steps = np.full(M, 1 if name in ONE_STEP else K)
    follow(path, name, options, U, H, MASK, steps, falling, EQUAL, P, stationary=PI, correlation=LAMBDA)
    for m in (1, 5):
        draw = np.random.default_rng(m)
        u, h = draw.normal(size=(m, 3)), draw.uniform(0.3, 2.0, m)
        K_i = np.ones(m, dtype=int) if name in ONE_STEP else draw.integers(1, 5, m)
        alpha = draw.dirichlet(np.full(m, 0.5)) + 1e-3
        alpha /= alpha.sum()
        p = np.tile(draw.uniform(0.2, 1.0, m), (12, 1))
        mask = draw.random((12, m)) < p
        mask[3] = False
        pi, lam = draw.uniform(0.1, 0.95, m), draw.uniform(-0.5, 0.9, m)
        path, _ = rollout(name, u, h, mask, K=K_i, eta=falling, p=p, pi=pi, lam=lam, alpha=alpha, **told)
        follow(path, name, options, u, h, mask, K_i, falling, alpha, p, stationary=pi, correlation=lam)


def run(algorithm, steps=K, **changes):
    trial = {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {"name": "trace", "mask": MASK, "probability": P, "stationary": PI, "correlation": LAMBDA},
        "algorithm": algorithm,
        "local": {"steps": steps, "lr": LR, "schedule": {"name": "inverse_sqrt", "period": 10}},
        "rounds": T,
        "evaluation": {"every": 7},
        "numerics": {"dtype": "float64", "engine": "sequential"},
    }
    return simulate(trial | changes)


def loss(x):
    return (0.5 * H * np.sum((x - U) ** 2, axis=1)).mean()


def check(result, path):
    size = max(1, np.abs(path).max())
    assert np.abs(result.server - path[-1]).max() < 1e-10 * size
    rounds = [0, *range(7, T, 7), T]
    assert result.history["round"].tolist() == rounds
    server = "/server" if "train/loss/server" in result.history else ""  # of FedPBC the result is another model
    distances = [np.linalg.norm(path[t] - H @ U / H.sum()) for t in rounds]
    assert result.history[f"train/distance{server}"].to_numpy() == pytest.approx(distances, abs=1e-10, rel=1e-10)
    losses = [loss(path[t]) for t in rounds]
    assert result.history[f"train/loss{server}"].to_numpy() == pytest.approx(losses, abs=1e-10, rel=1e-9)


THROUGH_THE_SUITE = [
    *((name, {}, {}) for name in ("local_sgd", "fedavg_known", "fedsgd_iw", "mifa", "scaffold", "scaffnew", "focus")),
    ("scaffnew", {"shift": "at_once"}, {}),
    ("unbiased", {"oracle": False}, {}),
    ("ca_fed", {"kappa2": 0.03}, {}),
    ("fedpbc", {"eta_g": 0.6}, {"scale": 0.6}),
]


@pytest.mark.parametrize(("name", "options", "in_numpy"), THROUGH_THE_SUITE, ids=str)
def test_a_run_of_the_suite(name, options, in_numpy):
    result = run({"name": name} | options, 1 if name in ONE_STEP else K)
    check(result, plain(name, **(in_numpy or options))[0])
    assert np.array_equal(result.model, result.server) == (name not in ("fedpbc", "fedawe"))


def test_the_exact_shares_of_a_recording():
    share = np.array([np.mean([row[i] / max(row.sum(), 1) for row in MASK]) for i in range(M)])
    check(run({"name": "fedsgd_iw", "oracle": True}, 1), expected("fedsgd_iw", share=share)[0])


def test_the_least_losses_that_a_task_tells():
    least = np.array([0.1, 0.7, 0.02, 0.3, 0.9, 0.05])
    options = {"kappa2": 0.2, "least": "optimum", "ties": "leave_out"}
    path, _ = expected("ca_fed", optimum=least, **options)
    assert np.abs(path - expected("ca_fed", **(options | {"least": "zero"}))[0]).max() > 1e-4
    assert ALGORITHMS["ca_fed"](**options).requires == ("stationary", "correlation", "least_loss")
    known = {"stationary": PI, "correlation": LAMBDA, "least_loss": least}
    follow(path, "ca_fed", options, U, H, MASK, np.full(M, K), falling, EQUAL, P, **known)


def lengths(seed, K_i):
    """The first iteration after which a coin of chance 1/K falls, [T][M]: P(L > l) = (1 - 1/K)^l."""
    drawn = []
    for t in range(T):
        call = Round(t, torch.arange(M), LR, torch.full((M,), 1 / M), seed=seed)
        coin = torch.rand((), generator=call.generator(), dtype=torch.float64).item()
        drawn.append([next(n for n in count(1) if (1 - 1 / steps) ** n <= 1 - coin) for steps in K_i])
    return drawn


def test_scaffnew_with_a_coin():
    equal, options = lengths(3, [K] * M), {"schedule": "random"}
    assert 2 < np.mean(equal) < 4
    check(run({"name": "scaffnew"} | options, seed=3), expected("scaffnew", lengths=equal)[0])
    check(run({"name": "scaffnew"} | options, 1), expected("scaffnew", K=1)[0])  # it always falls
    uneven = np.array([1, 2, 4, 4, 2, 1])
    path, _ = expected("scaffnew", K=uneven, lengths=lengths(0, uneven))
    follow(path, "scaffnew", options, U, H, MASK, uneven, falling, EQUAL, P)


@pytest.mark.parametrize(
    ("name", "options", "in_numpy"),
    [("fedpbc", {}, {}), ("fedawe", {"eta_g": 0.6}, {"scale": 0.6}), ("feddyn", {"alpha": 2.0}, {"strength": 2.0})],
)
def test_models_to_evaluate(name, options, in_numpy):
    path, memory = plain(name, **in_numpy)
    result = run({"name": name} | options)
    clients = memory["mean_of_active"] if name == "feddyn" else np.mean(memory["mine"], axis=0)
    models = {"": path[-1], "active": clients} if name == "feddyn" else {"": clients, "server": path[-1]}
    assert np.abs(result.model - models[""]).max() < 1e-10
    assert np.abs(clients - path[-1]).max() > 1e-3
    for model, x in models.items():
        assert result.history.iloc[-1][f"train/loss{model and f'/{model}'}"] == pytest.approx(loss(x), rel=1e-10)
