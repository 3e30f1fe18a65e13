"""Trials with a clock: seconds and costs by hand, who computes, equal in both engines and after a stop, and what is refused."""

from datetime import timedelta

import numpy as np
import pytest
import torch
from keys import keyed
from runs import DIGITS, Count

from rollcall import Trial, simulate
from rollcall.benchmark.federation.build import build, objective
from rollcall.tasks import ClientData, supervised

# 3 clients, d = 2, K = 2 steps of one sample. Client i needs 2 / down + 2 / speed + 2 / up seconds, with one vector:
# 0.5 + 1 + 1 = 2.5; 0.5 + 8 + 0.25 = 8.75; 0.5 + 2 + 0.5 = 3.
CLOCK = {"speed": [2.0, 0.25, 1.0], "up": [2.0, 8.0, 4.0], "down": 4.0}
TRIAL = {
    "task": {"name": "quadratic", "targets": np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])},
    "participation": {"name": "trace", "mask": np.array([[1, 1, 1], [0, 1, 1], [0, 0, 0], [0, 1, 0]])},
    "local": {"steps": 2, "lr": 0.1},
    "rounds": 4,
    "evaluation": {"every": 1},
    "numerics": {"dtype": "float64"},
}
COLUMNS = ["time/seconds", "cost/gradients", "cost/floats_up", "cost/floats_down"]

# Seconds, gradients, floats up and down after each round; a late client has computed 2 gradients and received 2 floats.
EXPECTED = {
    ("fedavg", "all"): ([8.75, 17.5, 20.5, 29.25], [6, 10, 10, 12], [6, 10, 10, 12], [6, 10, 10, 12]),
    ("fedavg", "first"): ([3.0, 11.75, 14.75, 23.5], [6, 10, 10, 12], [4, 8, 8, 10], [6, 10, 10, 12]),
    ("fedavg", "deadline"): ([4.0, 8.0, 12.0, 16.0], [6, 10, 10, 12], [4, 6, 6, 6], [6, 10, 10, 12]),
    # Two vectors each way: 4, 9.5 and 4 seconds.
    ("scaffold", "all"): ([9.5, 19.0, 23.0, 32.5], [6, 10, 10, 12], [12, 20, 20, 24], [12, 20, 20, 24]),
    ("scaffold", "deadline"): ([4.0, 8.0, 12.0, 16.0], [6, 10, 10, 12], [8, 12, 12, 12], [12, 20, 20, 24]),
    # Late clients compute anyway, and receive the model only after they were heard.
    ("fedpbc", "deadline"): ([4.0, 8.0, 12.0, 16.0], [6, 10, 10, 12], [4, 6, 6, 6], [4, 6, 6, 6]),
    # One vector each, although none is selected before the first round, or only one of the three.
    ("f3ast", "all"): ([8.75, 17.5, 20.5, 29.25], [2, 4, 4, 6], [2, 4, 4, 6], [2, 4, 4, 6]),
}
WAITS = {"all": "all", "first": {"first": 2}, "deadline": {"deadline": 4.0}}


@pytest.mark.parametrize(("name", "wait"), EXPECTED)
def test_seconds_and_costs_by_hand(name, wait):
    algorithm = {"name": name, "capacity": 1} if name == "f3ast" else name
    history = simulate(TRIAL | {"algorithm": algorithm, "clock": CLOCK | {"wait": WAITS[wait]}}).history
    expected = np.array([[0, *values] for values in EXPECTED[name, wait]])
    assert history[COLUMNS].to_numpy().T == pytest.approx(expected, abs=1e-12)


def test_a_late_client_that_received_no_model_has_computed_nothing():
    """While CA-Fed watches, nobody trains. Client 1 is late, and below the mean availability."""
    watching = {"name": "ca_fed", "oracle": False, "watch": 4}
    above = TRIAL["participation"] | {"stationary": [0.9, 0.1, 0.8]}
    for changes in ({"algorithm": watching}, {"algorithm": "more_available", "participation": above}):
        history = simulate(TRIAL | changes | {"clock": CLOCK | {"wait": WAITS["deadline"]}}).history
        expected = [0] * 5 if changes["algorithm"] == watching else [0, 4, 6, 6, 6]  # clients 0 and 2, then 2
        assert history["cost/gradients"].tolist() == expected
        assert history["cost/floats_down"].tolist() == expected


def test_a_failed_upload_is_not_a_client_that_is_not_there():
    """FedPBC by hand, K = 1, lr 0.1, f_i = (x - u_i)^2 / 2: a client that computes keeps its step, another does not."""
    base = {"task": {"name": "quadratic", "targets": np.array([[1.0], [4.0], [10.0]])}, "algorithm": "fedpbc"}
    base |= {"local": {"steps": 1, "lr": 0.1}, "rounds": 1, "numerics": {"dtype": "float64"}}
    # x_i* = 0.1 u_i of who computes. Client 0 is heard: x = 0.1. The result is the mean of the three models.
    mask = {"name": "trace", "mask": np.array([[1, 1, 0]])}
    clock = {"speed": 1.0, "failure": [0.0, 1.0, 0.0]}
    for participation, settings, models in (
        (mask, {"clock": clock}, [0.1, 0.4, 0.0]),  # 1 computes in vain, 2 is not there
        (mask, {"clock": {"speed": 1.0}}, [0.25, 0.25, 0.0]),  # 0 and 1 are heard
        ("full", {"clock": {"speed": [1.0, 0.1, 0.1], "wait": {"deadline": 2}}}, [0.1, 0.4, 1.0]),  # 1 and 2 are late
        (mask | {"mask": np.array([[1, 0, 0]])}, {}, [0.1, 0.4, 1.0]),  # without a clock all compute
    ):
        result = simulate(base | {"participation": participation} | settings)
        assert result.model == pytest.approx([np.mean(models)], abs=1e-12)


def columns(sizes, **options):
    """Clients with so many samples of one feature each, for a linear model."""
    inputs = np.arange(sum(sizes), dtype=np.float32)[:, None] % 7
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return supervised(
        (inputs, inputs[:, 0]), None, lambda seed: torch.nn.Linear(1, 1), clients=len(sizes),
        partition=lambda labels, clients, seed: parts, **options,
    )  # fmt: skip


def test_uneven_clients_need_the_time_of_their_own_samples():
    """Two epochs of 5 and 3 samples in batches of 2: 6 and 4 steps, of 10 and 6 samples at 2 and 0.5 a second."""
    local = {"epochs": 2, "lr": 0.01, "batch_size": 2}
    trial = {"task": columns([5, 3]), "algorithm": "fedavg", "local": local, "rounds": 2, "evaluation": {"every": 1}}
    for wait, seconds in (("all", 12.0), ({"deadline": 7.0}, 7.0)):  # the second, late, computes its 4 gradients too
        history = simulate(trial | {"clock": {"speed": [2.0, 0.5], "wait": wait}}).history
        assert history["time/seconds"].tolist() == pytest.approx([0, seconds, 2 * seconds])
        assert history["cost/gradients"].tolist() == [0, 10, 20]


@pytest.mark.parametrize("seed", [0, 3])
def test_speed_up_and_down_are_drawn_apart(seed):
    """Each by the key of its number; a round takes 2 steps of one sample, and 2 floats each way."""
    medians = {"speed": 1.0, "up": 2.0, "down": 4.0}
    drawn = {name: {"name": "lognormal", "median": median, "spread": 0.5} for name, median in medians.items()}
    built = build(Trial.read(TRIAL | {"algorithm": "fedavg", "clock": drawn, "seed": seed}))
    factors = [np.exp(0.5 * keyed(seed, "clock", 0, k).standard_normal(3)) for k in range(3)]
    seconds = sum(2 / (median * factor) for median, factor in zip(medians.values(), factors, strict=True))
    assert built.participation.T == pytest.approx(seconds, rel=1e-12)


def test_clients_without_samples_are_not_among_the_first():
    """Two clients with 20 samples, one a second faster, and two without: K = 2 steps of 10 samples at 10 and 5 a second."""
    task = columns([20, 20, 0, 0], empty_clients="keep")
    trial = {"task": task, "algorithm": "fedavg", "local": {"steps": 2, "lr": 0.01, "batch_size": 10}, "rounds": 5}
    for first, seconds, gradients in ((1, 2.0, 4), (2, 4.0, 4), (3, 4.0, 4)):
        clock = {"speed": [10.0, 5.0, 10.0, 10.0], "wait": {"first": first}}
        result = simulate(trial | {"clock": clock, "evaluation": {"every": 1}})
        assert result.history["time/seconds"].tolist() == pytest.approx([seconds * t for t in range(6)])
        assert result.history["cost/gradients"].tolist() == [gradients * t for t in range(6)]
        assert result.history["train/loss"].iloc[-1] < result.history["train/loss"].iloc[0]


RANDOM = DIGITS | {
    "participation": {"name": "bernoulli", "probability": 0.7},
    "clock": {
        "speed": {"name": "lognormal", "median": 200, "probability": {"name": "class_coupled", "delta": 0.2}},
        "up": {"name": "lognormal", "median": 1300},
        "wait": {"first": 3, "deadline": 9},
        "jitter": 0.3,
        "failure": 0.1,
    },
}


@pytest.mark.parametrize("name", ["fedpbc", "scaffold"])
def test_both_engines_and_a_resumed_run_have_the_same_clock(name, tmp_path):
    trial = RANDOM | {"algorithm": name, "numerics": {"dtype": "float64"}, "evaluation": {"every": 1}}
    whole = simulate(trial | {"numerics": {"dtype": "float64", "engine": "sequential"}})
    other = simulate(trial | {"numerics": {"dtype": "float64", "engine": "vectorised"}})
    assert other.history[COLUMNS].equals(whole.history[COLUMNS])
    assert np.abs(other.model - whole.model).max() < 1e-10
    with pytest.raises(KeyboardInterrupt):
        simulate(trial, folder=tmp_path / "run", callbacks=[Count(7)], checkpoint_every=timedelta(0))
    count = Count()
    resumed = simulate(trial, folder=tmp_path / "run", callbacks=[count])
    assert count.rounds == list(range(7, 14))  # not from the start
    assert resumed.history[COLUMNS].equals(whole.history[COLUMNS])
    steps = np.diff(whole.history["time/seconds"])
    assert (steps > 0).all()
    assert steps.max() <= 9 + 1e-9
    assert (np.abs(steps - 9) < 1e-9).any()
    assert (steps < 8.9).any()


def test_a_method_that_receives_more_than_it_sends():
    """Scaffnew at once: two vectors down, one up: 1 + 1 + 1, 1 + 8 + 0.25 and 1 + 2 + 0.5 seconds."""
    method = {"name": "scaffnew", "shift": "at_once"}
    history = simulate(TRIAL | {"algorithm": method, "clock": CLOCK}).history
    assert history["time/seconds"].tolist() == pytest.approx([0, 9.25, 18.5, 22.0, 31.25])


def test_a_client_without_samples_has_no_weight():
    parts = [np.array([0]), np.array([], int), np.array([1, 2])]
    data = ClientData({"train": (torch.zeros(3, 1),)}, parts, empty_clients="keep")
    for target, alpha in (("uniform", [0.5, 0, 0.5]), ("samples", [1 / 3, 0, 2 / 3]), ([0.2, 0.6, 0.2], [0.5, 0, 0.5])):
        assert objective(Trial.read(TRIAL | {"algorithm": "fedavg", "target": target}), data).tolist() == pytest.approx(
            alpha
        )
