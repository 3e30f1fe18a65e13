"""States as buffers: how many rows of clients a checkpoint brings; then runs that store few of many."""

from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback
from oracle import rollout
from torch import Tensor

from rollcall import simulate
from rollcall.algorithms import Rows
from rollcall.benchmark.federation.state import StateBuffers


def stored_rows(state):
    """The buffers with a row for each client that has taken part, and one row for all others."""
    return [part.get_buffer("values") for part in state.modules() if getattr(part, "_kind", None) is Rows]


@dataclass(frozen=True)
class Outer:
    rows: Rows
    dense: Tensor


def outer(*clients):
    """Five clients, of which these have taken part."""
    these, news = torch.tensor(clients, dtype=torch.int64), torch.arange(2.0 * len(clients)).view(-1, 2)
    return Outer(Rows.begin(torch.full((2,), -1.0), 5).put(these, news), torch.ones(5, 3))


@pytest.mark.parametrize("already", [(), (0,), (0, 1, 2, 3)])
def test_a_checkpoint_brings_its_own_number_of_rows(already):
    saved = StateBuffers(outer(1, 4)).state_dict()
    buffers = StateBuffers(replace(outer(*already), dense=torch.zeros(5, 3)))
    buffers.load_state_dict(saved)
    assert buffers.get().rows.values.tolist() == [[-1, -1], [0, 1], [2, 3]]
    assert buffers.get().rows.place.tolist() == [0, 1, 0, 0, 2]
    assert buffers.get().dense.tolist() == [[1] * 3] * 5
    assert [len(part) for part in stored_rows(buffers)] == [3]


def test_a_checkpoint_of_something_else_is_no_state():
    with pytest.raises(RuntimeError, match="size mismatch for dense"):
        StateBuffers(outer(1)).load_state_dict(StateBuffers(replace(outer(1), dense=torch.ones(4, 3))).state_dict())
    wider = StateBuffers(replace(outer(1), rows=Rows.begin(torch.ones(4), 5))).state_dict()
    with pytest.raises(RuntimeError, match=r"size mismatch for rows\.values"):
        StateBuffers(outer(1)).load_state_dict(wider)
    with pytest.raises(RuntimeError, match=r"Missing key.*rows\.values"):
        StateBuffers(outer(1)).load_state_dict({"dense": torch.ones(5, 3), "rows.place": torch.zeros(5).long()})


DRAW = np.random.default_rng(21)
M, T, STOP = 12, 24, 9
U, H = DRAW.normal(size=(M, 3)), DRAW.uniform(0.3, 2.0, M)
MASK = DRAW.random((T, M)) < np.linspace(0.0, 0.25, M)
MASK[[0, 5, 6, 15]] = False  # and client 0 never comes
TRIAL = {
    "task": {"name": "quadratic", "targets": U, "curvature": H},
    "participation": {"name": "trace", "mask": MASK},
    "local": {"steps": 3, "lr": 0.05},
    "rounds": T,
    "evaluation": {"every": 6},
    "numerics": {"dtype": "float64"},
}


class Watch(Callback):
    """How many rows there are after each round; breaks the run off after one, as a power cut would."""

    def __init__(self, stop=None):
        self.stop, self.stored = stop, []

    def on_train_batch_end(self, trainer, federation, *_):
        self.stored.append([len(rows) - 1 for rows in stored_rows(federation.state)])
        if federation.t == self.stop:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["mifa", "scaffnew", "fedawe"])
def test_a_run_that_stops_while_its_memory_grows(name, tmp_path):
    """Against a dense oracle; uneven rounds and empty ones, clients that never come, a stop and another setting."""
    after = np.cumsum(np.diff(np.maximum.accumulate(MASK, axis=0), axis=0, prepend=False).sum(axis=1)).tolist()
    assert 0 == after[0] < after[STOP - 1] < after[-1] < M
    trial, whole = TRIAL | {"algorithm": name}, Watch()
    undisturbed = simulate(trial, callbacks=[whole])
    per_client = 2 if name == "scaffnew" else 1
    assert whole.stored == [[n] * per_client for n in after]
    path, _ = rollout(name, U, H, MASK, K=3, eta=lambda t: 0.05)
    assert np.abs(undisturbed.server - path[-1]).max() < 1e-10 * max(1, np.abs(path).max())
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        simulate(trial, folder=tmp_path / "run", callbacks=[Watch(STOP)], checkpoint_every=timedelta(0))
    rest = Watch()
    resumed = simulate(trial, folder=tmp_path / "run", callbacks=[rest])
    assert rest.stored == whole.stored[STOP - 1 :]
    assert np.array_equal(resumed.server, undisturbed.server)
    assert resumed.history.equals(undisturbed.history)
