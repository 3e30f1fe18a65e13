"""Every method, run by the whole suite, against plain NumPy: uneven active sets, empty rounds, K > 1; to 1e-10."""

import numpy as np
import pytest
import torch
from oracle import METHODS, rollout

from rollcall import simulate
from rollcall.algorithms import ALGORITHMS, Round
from rollcall.benchmark.conformance.subject import Quadratics

M, D, T, K, LR = 6, 4, 30, 3, 0.05
ONE_STEP = {"fedsgd", "fedsgd_iw"}


@pytest.fixture(scope="module")
def problem():
    draw = np.random.default_rng(5)
    u, h = draw.normal(size=(M, D)), draw.uniform(0.3, 2.0, M)
    p = np.tile(draw.uniform(0.05, 0.9, M), (T, 1))
    p[T // 2 :] *= 0.7
    mask = draw.random((T, M)) < p
    mask[[4, 5, 17]] = False
    mask[12] = True
    return u, h, mask, p


PI = np.array([0.5, 0.15, 0.8, 0.35, 0.7, 0.25])
LAMBDA = np.array([0.1, -0.7, 0.3, 0.9, -0.2, 0.4])


def run(problem, algorithm, **changes):
    u, h, mask, p = problem
    trial = {
        "task": {"name": "quadratic", "targets": u, "curvature": h},
        "participation": {
            "name": "trace",
            "mask": mask,
            "probability": p,
            "stationary": PI,
            "correlation": LAMBDA,
        },
        "algorithm": algorithm,
        "local": {"steps": K, "lr": LR, "batch_size": "full"},
        "rounds": T,
        "evaluation": {"every": 7},
        "numerics": {"dtype": "float64", "engine": "sequential"},
    }
    return simulate(trial | changes)


def expected(name, problem, **options):
    u, h, mask, p = problem
    steps = 1 if name in ONE_STEP else K
    return rollout(name, u, h, mask, **{"K": steps, "eta": lambda t: LR, "p": p, "pi": PI, "lam": LAMBDA} | options)


def check(result, path, problem):
    u, h, _, _ = problem
    size = max(1, np.abs(path).max())  # scaffnew diverges here
    assert np.abs(result.server - path[-1]).max() < 1e-10 * size
    optimum = (h[:, None] * u).sum(axis=0) / h.sum()
    rounds = [0, *range(7, T, 7), T]
    assert result.history["round"].tolist() == rounds
    distances = [np.linalg.norm(path[t] - optimum) for t in rounds]
    losses = [np.mean([0.5 * h[i] * np.sum((path[t] - u[i]) ** 2) for i in range(M)]) for t in rounds]
    server = "/server" if "train/loss/server" in result.history else ""  # of FedPBC the result is another model
    assert result.history[f"train/distance{server}"].to_numpy() == pytest.approx(distances, abs=1e-10, rel=1e-10)
    assert result.history[f"train/loss{server}"].to_numpy() == pytest.approx(losses, abs=1e-10, rel=1e-9)


def local(name, **changes):
    return {"steps": 1 if name in ONE_STEP else K, "lr": LR, "batch_size": "full"} | changes


def test_the_oracle_knows_every_method():
    assert set(METHODS) == set(ALGORITHMS)


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_method(problem, name):
    _, _, mask, _ = problem
    assert (~mask.any(axis=1)).sum() >= 3
    assert len({tuple(row) for row in mask}) > 12
    path, _ = expected(name, problem)
    assert np.abs(path[-1] - path[T // 2]).max() > 1e-3  # it has not come to rest, so agreement says something
    result = run(problem, {"name": name}, local=local(name))
    check(result, path, problem)
    assert np.array_equal(result.model, result.server) == (name != "fedpbc")


def follow(path, name, options, u, h, mask, K, alpha, p, **known):
    """Run the method round by round, without the suite, and compare each of its models with NumPy's."""
    work = Quadratics(torch.tensor(u), torch.tensor(h), torch.tensor(K), LR)
    method, x = ALGORITHMS[name](**options), torch.zeros(u.shape[1], dtype=torch.float64)
    state = method.init(x, len(u))
    told = {key: torch.tensor(value) for key, value in known.items()}
    size = max(1, np.abs(path).max())  # scaffnew diverges here
    for t, on in enumerate(mask):
        A = torch.from_numpy(np.arange(len(u)) if name == "local_sgd" else np.flatnonzero(on))
        call = Round(t, A, LR, torch.tensor(alpha), probability=torch.tensor(p[t]), **told)
        update, state = method.round(state, x, call, work)
        x = x if update is None else x + update
        assert np.abs(x.numpy() - path[t + 1]).max() < 1e-10 * size


EQUAL = np.full(M, 1 / M)
UNEVEN_WEIGHTS = [
    *((name, {}) for name in ALGORITHMS),
    ("f3ast", {"capacity": 2, "beta": 0.2}),
    ("scaffold", {"option": "I"}),
    ("fedstale", {"beta": 0.8, "oracle": False, "empty": "skip"}),
    ("amplified_scaffold", {"gamma": 0.7, "P": 4}),
]
UNEVEN_WEIGHTS += [(name, {"oracle": False}) for name in ("unbiased", "adafed", "more_available", "ca_fed")]
UNEVEN_WEIGHTS += [("ca_fed", {"kappa2": 0.01}), ("ca_fed", {"kappa2": 0.03, "beta": 0.7, "tau": 0.01})]


@pytest.mark.parametrize(("name", "options"), UNEVEN_WEIGHTS, ids=str)
def test_clients_of_different_weights_in_the_objective(name, options):
    """Weights alpha from 0.001 to almost 1, for one and five clients; K_i differ and a round is empty."""
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
        path, _ = rollout(name, u, h, mask, K=K_i, eta=lambda t: LR, p=p, pi=pi, lam=lam, alpha=alpha, **options)
        follow(path, name, options, u, h, mask, K_i, alpha, p, stationary=pi, correlation=lam)


ADAPTIVE = {"beta_1": 0.5, "beta_2": 0.8, "tau": 0.02}
FALLING = {"name": "inverse_sqrt", "period": 10}
OPTIONS = [
    ("fedavg_known", {"probability": "last_client"}, {}),
    ("fedsgd_iw", {"delta": 0.3}, {}),
    ("fedavg_debiased", {"cap": 1.2}, {}),
    ("fedavg_debiased", {"horizon": 20}, {}),
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
    ("focus", {"empty": "skip"}, {}),
    ("fedawe", {"clip": 0.05}, {}),
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
    ("fedadam", {"eta_g": 0.05} | ADAPTIVE, {"rate": 0.05} | ADAPTIVE),
    ("fedyogi", {"eta_g": 0.05} | ADAPTIVE, {"rate": 0.05} | ADAPTIVE),
]


@pytest.mark.parametrize(("name", "options", "in_numpy"), OPTIONS)
def test_options_under_a_falling_rate(problem, name, options, in_numpy):
    eta = lambda t: LR / np.sqrt(t / 10 + 1)  # noqa: E731
    path, _ = expected(name, problem, eta=eta, **(in_numpy or options))
    default, _ = expected(name, problem, eta=eta)
    assert np.abs(path - default).max() > 1e-4  # the option matters here
    result = run(problem, {"name": name} | options, local=local(name, schedule=FALLING))
    check(result, path, problem)


def test_the_exact_shares_of_a_recording(problem):
    mask = problem[2]
    share = np.array([np.mean([row[i] / max(row.sum(), 1) for row in mask]) for i in range(M)])
    path, _ = expected("fedsgd_iw", problem, share=share)
    check(run(problem, {"name": "fedsgd_iw", "oracle": True}, local=local("fedsgd_iw")), path, problem)


def test_the_least_losses_that_a_task_tells(problem):
    u, h, mask, p = problem
    least = np.array([0.1, 0.7, 0.02, 0.3, 0.9, 0.05])
    options = {"kappa2": 0.2, "least": "optimum", "ties": "leave_out"}
    path, _ = expected("ca_fed", problem, optimum=least, **options)
    assert np.abs(path - expected("ca_fed", problem, **(options | {"least": "zero"}))[0]).max() > 1e-4
    assert ALGORITHMS["ca_fed"](**options).requires == ("stationary", "correlation", "least_loss")
    known = {"stationary": PI, "correlation": LAMBDA, "least_loss": least}
    follow(path, "ca_fed", options, u, h, mask, np.full(M, K), EQUAL, p, **known)


def test_scaffnew_with_a_coin(problem):
    lengths = []
    for t in range(T):
        call = Round(t, torch.arange(M), LR, torch.full((M,), 1 / M), seed=3)
        coin = torch.rand((), generator=call.generator(), dtype=torch.float64).item()
        # The first iteration after which a coin of chance 1/K falls: P(L > l) = (1 - 1/K)^l.
        length = 1
        while (1 - 1 / K) ** length > 1 - coin:
            length += 1
        lengths.append(length)
    assert 2 < np.mean(lengths) < 4
    path, _ = expected("scaffnew", problem, lengths=lengths)
    check(run(problem, {"name": "scaffnew", "schedule": "random"}, seed=3), path, problem)


def test_scaffnew_with_a_coin_that_always_falls(problem):
    path, _ = expected("scaffnew", problem, K=1)
    check(run(problem, {"name": "scaffnew", "schedule": "random"}, local=local("scaffnew", steps=1)), path, problem)


@pytest.mark.parametrize(
    ("name", "options", "in_numpy"),
    [
        ("fedpbc", {"eta_g": 0.6}, {"scale": 0.6}),
        ("fedawe", {"eta_g": 0.6}, {"scale": 0.6}),
        ("feddyn", {"alpha": 2.0}, {"strength": 2.0}),
    ],
)
def test_models_to_evaluate(problem, name, options, in_numpy):
    path, memory = expected(name, problem, **in_numpy)
    u, h = problem[:2]
    result = run(problem, {"name": name} | options)
    clients = memory["mean_of_active"] if name == "feddyn" else np.mean(memory["mine"], axis=0)
    of_clients = {"fedawe": "clients", "feddyn": "active"}
    models = {"": clients, "server": path[-1]} if name == "fedpbc" else {"": path[-1], of_clients[name]: clients}
    assert np.abs(result.server - path[-1]).max() < 1e-10
    assert np.abs(result.model - models[""]).max() < 1e-10
    assert np.abs(clients - path[-1]).max() > 1e-3
    for model, x in models.items():
        loss = (0.5 * h * np.sum((x - u) ** 2, axis=1)).mean()
        assert result.history.iloc[-1][f"train/loss{model and f'/{model}'}"] == pytest.approx(loss, rel=1e-10)
