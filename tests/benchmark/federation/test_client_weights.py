"""Clients' cumulative weights, of every method, against NumPy and against hand arithmetic."""

from datetime import timedelta

import numpy as np
import oracle
import pytest
import torch
from runs import Count

from rollcall import SettingError, simulate
from rollcall.algorithms import FedAvg
from rollcall.benchmark.federation.client_weights import Classes, Weights, classes
from rollcall.participation.weights import chi_square, l1_distance
from rollcall.tasks import supervised

M, D, T, LR = 6, 4, 20, 0.05
DRAW = np.random.default_rng(3)
U, H = DRAW.normal(size=(M, D)), DRAW.uniform(0.3, 2.0, M)
MASK = DRAW.random((T, M)) < [0.9, 0.2, 0.5, 0.7, 0.1, 0.4]
MASK[[3, 11]] = False
PI = np.array([0.9, 0.2, 0.5, 0.7, 0.1, 0.4])
LAMBDA = np.array([0.1, 0.7, -0.3, 0.9, 0.2, 0.4])


def trial(algorithm, steps=3, **changes):
    return {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {
            "name": "trace", "mask": MASK, "probability": np.tile(PI, (T, 1)), "stationary": PI, "correlation": LAMBDA
        },
        "algorithm": algorithm,
        "local": {"steps": steps, "lr": LR, "schedule": {"name": "inverse_sqrt", "period": 10}},
        "rounds": T,
        "evaluation": {"every": 5, "weights": ["client"]},
        "numerics": {"dtype": "float64"},
    } | changes  # fmt: skip


def weights(history, names):
    return history[[f"weight/{name}" for name in names]].to_numpy()


CLIENTS = [f"client{i}" for i in range(M)]


METHODS = [
    *((name, {}, {}) for name in ("fedsgd_iw", "fedavg_known", "fedau", "fedpbc", "fedawe", "ca_fed", "scaffnew")),
    *((name, {}, {"lr": 0.6}) for name in ("mifa", "fedvarp", "focus")),
    ("amplified_scaffold", {"gamma": 2.0, "P": 6}, {}),
]


@pytest.mark.parametrize(("name", "options", "server"), METHODS, ids=str)
def test_methods_against_numpy(name, options, server, monkeypatch):
    """Behind the D numbers of the model, the oracle's clients move M numbers of their own: client i the i-th by 1."""
    steps = 1 if name == "fedsgd_iw" else 3

    def gradient(s, i, y):
        unit = np.eye(M)[i] / (s.eta * s.K)
        return np.concatenate([s.h[i] * (y[:D] - s.u[i, :D]), -unit])

    def loss(s, i, y):
        return 0.5 * s.h[i] * np.sum((y[:D] - s.u[i, :D]) ** 2)

    monkeypatch.setattr(oracle, "gradient", gradient)
    monkeypatch.setattr(oracle, "loss", loss)
    path, _ = oracle.rollout(
        name, np.hstack([U, np.zeros((M, M))]), H, MASK, K=steps, eta=lambda t: LR / np.sqrt(t / 10 + 1),
        p=np.tile(PI, (T, 1)), pi=PI, lam=LAMBDA, eta_g=server.get("lr", 1.0), **options,
    )  # fmt: skip
    moved = path[[0, 5, 10, 15, 20], D:]
    assert np.abs(moved[-1]).max() > 0.5
    expected = np.zeros((5, M))
    expected[1:] = moved[1:] / moved[1:].sum(axis=1, keepdims=True) * M
    of_server = [f"{client}/server" if name in ("fedpbc", "fedawe") else client for client in CLIENTS]
    found = weights(simulate(trial({"name": name} | options, steps, server=server)).history, of_server)
    assert found == pytest.approx(expected, abs=1e-9, rel=1e-9)


def test_by_hand():
    """Three rounds on three clients, of whom the last never answers, and nobody in the second: FedAvg's halves and a whole."""
    mask = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]])
    participation = {"name": "trace", "mask": mask, "stationary": [0.5, 0.4, 0.1], "correlation": [0.6, 0.6, -0.9]}
    task = {"name": "quadratic", "targets": U[:3]}
    by = {"every": 1, "weights": ["availability", "correlation"]}
    history = simulate(trial("fedavg", task=task, participation=participation, rounds=3, evaluation=by)).history
    # Clients 0 and 1 are often there and lasting, 2 is neither; they have all of the weight, and 2/3 of the objective.
    assert history["weight/often-lasting"].tolist() == pytest.approx([0, 1.5, 1.5, 1.5])
    assert history["weight/rare-fleeting"].tolist() == [0, 0, 0, 0]
    by = {"every": 3, "weights": ["client"]}
    history = simulate(trial("fedavg", task=task, participation=participation, rounds=3, evaluation=by)).history
    assert weights(history, CLIENTS[:3])[-1] == pytest.approx([3 * 1.5 / 2, 3 * 0.5 / 2, 0])


def test_classes_of_one_property():
    """Client 0 has all of round 0, 1 and 2 halves of round 1: of a weight of 2 they have 1, 1/2, 1/2; alpha is 1/3 each."""
    mask = np.array([[1, 0, 0], [0, 1, 1]])
    participation = {"name": "trace", "mask": mask, "stationary": [0.9, 0.8, 0.1], "correlation": [0.9, 0.1, 0.9]}
    by = {"every": 2, "weights": ["availability", "correlation"]}
    task = {"name": "quadratic", "targets": U[:3]}
    last = simulate(trial("fedavg", task=task, participation=participation, rounds=2, evaluation=by)).history.iloc[-1]
    found = {name.removeprefix("weight/"): value for name, value in last.items() if name.startswith("weight/")}
    joint = {"often-lasting": 1.5, "often-fleeting": 0.75, "rare-lasting": 0.75}
    assert found == pytest.approx(joint | {"often": 1.125, "rare": 0.75, "lasting": 1.125, "fleeting": 0.75})


def test_a_client_outside_the_objective_has_no_ratio():
    """FedAvg weights by alpha, here 1/4, 3/4 and 0."""
    task, every = {"name": "quadratic", "targets": U[:3]}, {"every": 1, "weights": ["client"]}
    mask = {"name": "trace", "mask": np.array([[1, 0, 1], [1, 1, 1]])}
    given = trial("fedavg", task=task, participation=mask, rounds=2, target=[1, 3, 0], evaluation=every)
    history = simulate(given).history
    # Client 0 alone has the first round. After two of equal lr it has 1 + 1/4 of 2, and client 1 has 3/4.
    shares = np.array([0.0, 0.0]), np.array([1.0, 0.0]), np.array([1.25, 0.75]) / 2
    assert weights(history, CLIENTS[:2]) == pytest.approx(np.array(shares) / [0.25, 0.75])
    assert not [name for name in history if "client2" in name]
    assert history["weight_distance/tv"].iloc[-1] == pytest.approx(0.375)
    assert history["weight_distance/chi_square"].iloc[-1] == pytest.approx(0.375**2 / 0.25 + 0.375**2 / 0.75)


def test_a_weight_outside_the_objective_is_infinitely_far():
    measured = Weights(FedAvg(), Classes(["in", "out"], np.array([0, 1]), np.array([1.0, 0.0])), torch.float64)
    assert measured.measured() == {"weight/in": 0, "weight_distance/tv": 0.5, "weight_distance/chi_square": 1}
    torch.nn.init.constant_(measured.cumulative, 2.0)
    assert measured.measured() == {"weight/in": 0.5, "weight_distance/tv": 0.5}


def test_clients_without_samples_have_no_ratio():
    """Clients 0 and 1 hold all samples, and have all of the weight and of the objective."""
    parts = [np.arange(4), np.arange(4, 10), np.arange(0)]
    task = supervised(
        (np.zeros((10, 1), np.float32), np.ones((10, 1), np.float32)), None, lambda seed: torch.nn.Linear(1, 1),
        clients=3, empty_clients="keep", partition=lambda labels, clients, seed: parts,
    )  # fmt: skip
    given = trial("fedavg", task=task, participation="full", rounds=2, evaluation={"every": 1, "weights": ["client"]})
    history = simulate(given).history
    assert weights(history, CLIENTS[:2])[1:] == pytest.approx(np.ones((2, 2)))
    assert "weight/client2" not in history


def test_a_client_without_samples_is_never_selected():
    """As released, F3AST takes positions among the active clients as ids: 0, 1 and 2 of clients 1, 2 and 3. So two train."""
    parts = [np.arange(0), np.arange(4), np.arange(4, 10), np.arange(10, 12)]
    task = supervised(
        (np.zeros((12, 1), np.float32), np.ones((12, 1), np.float32)), None, lambda seed: torch.nn.Linear(1, 1),
        clients=4, empty_clients="keep", partition=lambda labels, clients, seed: parts,
    )  # fmt: skip
    method = {"name": "f3ast", "capacity": 3, "selection": "released"}
    history = simulate(trial(method, task=task, participation="full", rounds=3)).history
    assert history["cost/gradients"].iloc[-1] == 3 * 2 * 3  # rounds, clients, steps


def test_the_servers_momentum_by_hand():
    """Client 0, nobody, client 1: the first update counts once more, by half, in the third round and not in the second."""
    participation = {"name": "trace", "mask": np.array([[1, 0], [0, 0], [0, 1]])}
    task = {"name": "quadratic", "targets": U[:2]}
    changes = {"evaluation": {"every": 1, "weights": ["client"]}, "server": {"lr": 0.6, "momentum": 0.5}}
    history = simulate(trial("fedavg", task=task, participation=participation, rounds=3, **changes)).history
    assert weights(history, CLIENTS[:2])[1:].ravel() == pytest.approx([2, 0, 2, 0, 2 * 1.5 / 2.5, 2 * 1 / 2.5])


def test_a_stopped_run_goes_on_with_its_weights(tmp_path):
    given = trial("fedvarp", server={"lr": 0.6, "momentum": 0.5})
    whole = simulate(given)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        simulate(given, folder=tmp_path / "run", callbacks=[Count(13)], checkpoint_every=timedelta(0))
    assert simulate(given, folder=tmp_path / "run").history.equals(whole.history)


def test_a_correlation_above_a_half_is_lasting():
    lasting = classes(("correlation",), np.full(4, 1 / 4), None, np.array([0.01, 0.5, 0.51, -0.9]))
    assert [lasting.names[c] for c in lasting.of.tolist()] == ["fleeting", "fleeting", "lasting", "fleeting"]


def test_what_cannot_be_measured_is_refused():
    unknown = {"name": "minimum_separation", "groups": 3, "probability": 1.0, "separation": 1}
    with pytest.raises(SettingError, match=r"weights: 'correlation' .* does not provide it"):
        simulate(trial("fedavg", participation=unknown, evaluation={"weights": ["correlation"]}))
    with pytest.raises(ValueError, match=r"at most 5,000 clients; this task has 6,000"):
        classes(("client",), np.full(6_000, 1 / 6_000), None, None)


def test_the_distance_of_the_weights_from_the_objective():
    """The oracle: the distances of `participation.weights`, at the weights of each client."""
    history = simulate(trial("fedavg")).history.iloc[-1]
    shares = np.array([history[f"weight/{name}"] for name in CLIENTS]) / M
    uniform = np.full(M, 1 / M)
    assert history["weight_distance/tv"] == pytest.approx(l1_distance(uniform, shares) / 2, rel=1e-12)
    assert history["weight_distance/chi_square"] == pytest.approx(chi_square(shares, uniform), rel=1e-12)
    assert history["weight_distance/tv"] > 0.1
