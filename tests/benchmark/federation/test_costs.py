"""What a method costs, counted by hand: 3 clients, d = 2, K = 2, rounds with 2, 0 and 1 active clients."""

import numpy as np
import pytest

from rollcall import simulate

TRIAL = {
    "task": {"name": "quadratic", "targets": np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])},
    "participation": {"name": "trace", "mask": np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])}
    | {"probability": np.full(3, 0.5), "stationary": np.array([0.2, 0.5, 0.5])},
    "local": {"steps": 2, "lr": 0.1},
    "rounds": 3,
    "evaluation": {"every": 1},
}
BOTH_WAYS = [4, 4, 6]  # floats: 2 clients x 2, none, 1 x 2

# Rows of 0, 2, 2 and 3 clients that have taken part and one for all others, of d = 2; and where each client's is.
ROWS = [2 + 3, 6 + 3, 6 + 3, 8 + 3]

# gradients after each round, floats up, floats down, floats kept (always, or before round 0 and after each)
EXPECTED = {
    "local_sgd": ([6, 12, 18], [6, 12, 18], [6, 12, 18], 0),
    "fedavg": ([4, 4, 6], BOTH_WAYS, BOTH_WAYS, 0),
    "fedpbc": ([6, 12, 18], BOTH_WAYS, BOTH_WAYS, 6),
    "fedau": ([4, 4, 6], BOTH_WAYS, BOTH_WAYS, 9),
    "mifa": ([4, 4, 6], BOTH_WAYS, BOTH_WAYS, ROWS),
    "fedvarp": ([4, 4, 6], BOTH_WAYS, BOTH_WAYS, [row + 2 for row in ROWS]),
    "scaffold": ([4, 4, 6], [8, 8, 12], [8, 8, 12], [row + 2 for row in ROWS]),
    "scaffold I": ([8, 8, 12], [8, 8, 12], [8, 8, 12], [row + 2 for row in ROWS]),
    "scaffnew": ([4, 4, 6], BOTH_WAYS, BOTH_WAYS, [2 * row + 3 for row in ROWS]),
    "scaffnew at once": ([4, 4, 6], BOTH_WAYS, [8, 8, 12], ROWS),
    "fedawe": ([4, 4, 6], BOTH_WAYS, BOTH_WAYS, [row + 3 for row in ROWS]),
    "focus": ([4, 4, 6], BOTH_WAYS, BOTH_WAYS, [row + 2 for row in ROWS]),
    # c, u, the gradient counts, and c_i, in whose single row nobody has yet been put
    "amplified_scaffold": ([4, 4, 6], [8, 8, 12], [8, 8, 12], [2 + 2 + 3 + row + 5 for row in ROWS]),
    "ca_fed": ([6, 6, 9], BOTH_WAYS, BOTH_WAYS, 9),  # one gradient more: it brings the loss at x
    "more_available": ([2, 2, 4], [2, 2, 4], [2, 2, 4], 0),  # client 0 is below the mean of pi
}
OPTIONS = {
    "scaffold I": {"name": "scaffold", "option": "I"},
    "scaffnew at once": {"name": "scaffnew", "shift": "at_once"},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_costs(name):
    history = simulate(TRIAL | {"algorithm": OPTIONS.get(name, name)}).history
    gradients, up, down, memory = EXPECTED[name]
    assert history["cost/gradients"].tolist() == [0, *gradients]
    assert history["cost/floats_up"].tolist() == [0, *up]
    assert history["cost/floats_down"].tolist() == [0, *down]
    assert history["cost/memory"].tolist() == (memory if isinstance(memory, list) else [memory] * 4)


def test_one_gradient_each():
    trial = TRIAL | {"local": {"steps": 1, "lr": 0.1}}
    for name in ("fedsgd", "fedsgd_iw"):
        assert simulate(trial | {"algorithm": name}).history["cost/gradients"].tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize(("losses", "gradients"), [("minibatch", 3 + 2), ("validation", 2), ("test", 2)])
def test_ca_fed_with_one_client_included(losses, gradients):
    """All gaps of the losses are 0 in the first round, and so equal that only the last client is kept."""
    task = {"name": "leaf_synthetic", "clients": 3, "validation": 0.1}
    method = {"name": "ca_fed", "losses": losses, "kappa2": 0.0, "ties": "leave_out"}
    trial = TRIAL | {"task": task, "algorithm": method, "participation": "full", "rounds": 1}
    history = simulate(trial | {"local": {"steps": 2, "lr": 0.1, "batch_size": 4}}).history
    d = 60 * 10 + 10
    costs = [f"cost/{name}" for name in ("gradients", "floats_up", "floats_down")]
    assert history.iloc[-1][costs].tolist() == [gradients, d, 3 * d]
