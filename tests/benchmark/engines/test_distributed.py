"""Two processes against one: every method, with unequal clients and empty rounds. One peer computes all these trials."""

import traceback
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from algorithms import ALGORITHMS, Rows
from benchmark import simulate
from benchmark.engines import FlatTask, distributed, evaluator
from benchmark.engines.distributed import DistributedWork, part
from benchmark.engines.peers import PeerFailed, Peers
from benchmark.engines.share import MomentumRows
from benchmark.federation import simulation
from benchmark.federation.processes import started
from tasks import quadratic

MASK = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
TRIAL = {
    "task": {
        "name": "digits",
        "clients": 6,
        "partition": {"name": "dirichlet", "alpha": 0.3},
        "augmentation": {"name": "crop_flip", "padding": 1},
        "model": {"name": "mlp", "hidden": [8]},
    },
    "participation": {
        "name": "trace",
        "mask": MASK,
        "probability": np.linspace(0.3, 0.9, 6),
        "stationary": np.linspace(0.3, 0.9, 6),
        "correlation": np.linspace(0.1, 0.5, 6),
    },
    "local": {"steps": 3, "lr": 0.05, "batch_size": 32},
    "rounds": 4,
    "evaluation": {"every": 2},
    "numerics": {"dtype": "float64", "engine": "sequential"},
}
BATCHNORM = """
from torch import nn

def network(shape, classes):
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, classes))
"""


@pytest.fixture(scope="module")
def messages():
    with started(2) as messages:
        yield messages


@pytest.fixture(scope="module", autouse=True)
def _small_pieces():
    """So that an evaluation of digits has several pieces, some for each process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "PIECE", 64 * 8 * 8)
        yield


@pytest.fixture
def in_two(messages, monkeypatch):
    """Simulates a trial in two processes. `in_two.requests` are the requests to the peer."""

    def simulate_in_two(trial):
        class Observed(Peers):
            def ask(self, rank, request, tensors=()):
                simulate_in_two.requests.append(request)
                super().ask(rank, request, tensors)

        # Only whole pieces are sent to a peer, and a batch of digits is one piece.
        monkeypatch.setattr(evaluator, "PIECE", 64 * 8 * 8)
        monkeypatch.setattr(simulation, "peers_of", lambda trial: nullcontext(Observed(messages)))
        result = simulate(trial)
        monkeypatch.undo()
        return result

    simulate_in_two.requests = []
    return simulate_in_two


def compare(in_two, trial, tolerance=1e-10):
    one, two = simulate(trial), in_two(trial)
    assert np.abs(two.model - one.model).max() <= tolerance
    assert np.abs(two.server - one.server).max() <= tolerance
    assert np.allclose(two.history, one.history, rtol=0, atol=tolerance)
    assert two.history.columns.equals(one.history.columns)
    for name, values in one.buffers.items():
        assert np.abs(two.buffers[name] - values).max() <= tolerance
    return two


@pytest.fixture(scope="module")
def start():
    trial = {"algorithm": "fedavg", "rounds": 1, "local": TRIAL["local"] | {"lr": 1e-12}}
    return simulate(TRIAL | trial).server


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_method_is_equal(name, in_two, start):
    one_step = name in ("fedsgd", "fedsgd_iw")
    trial = TRIAL | {"algorithm": name, "local": TRIAL["local"] | ({"steps": 1} if one_step else {})}
    result = compare(in_two, trial)
    assert np.abs(result.server - start).max() > 1e-3
    methods = {request.method for request in in_two.requests[1:]}  # the first request loads the trial
    assert "metrics" in methods
    assert methods & {"sgd", "gradients"}


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
@pytest.mark.parametrize("name", ["fedavg", "fedprox", "scaffold"])
def test_unequal_steps_kept_momentum_and_buffers(engine, name, in_two, tmp_path):
    (tmp_path / "own.py").write_text(BATCHNORM)
    local = {"epochs": 1, "lr": 0.05, "batch_size": 32}
    if name == "fedavg":
        local |= {"momentum": 0.9, "keep_momentum": True, "weight_decay": 0.01}
    result = compare(
        in_two,
        TRIAL
        | {
            "task": TRIAL["task"] | {"model": f"{tmp_path}/own.py:network"},
            "algorithm": name,
            "local": local,
            "rounds": 6,  # the trace begins again
            "numerics": {"dtype": "float64", "engine": engine},
        },
        tolerance=0 if engine == "sequential" else 1e-10,  # a client computed alone gives the same bits anywhere
    )
    assert max(np.abs(values).max() for values in result.buffers.values() if values.ndim) > 1e-3


def test_metrics_of_a_whole_split_and_losses_on_held_out_samples(in_two):
    trial = TRIAL | {"algorithm": "fedavg", "rounds": 2}
    compare(in_two, trial | {"evaluation": {"metrics": ["f1"], "by": ["class"]}}, tolerance=1e-15)
    assert "outputs" in {request.method for request in in_two.requests[1:]}
    task = {"name": "leaf_synthetic", "clients": 6, "validation": 0.2}
    compare(in_two, trial | {"task": task, "algorithm": {"name": "ca_fed", "losses": "validation"}})
    assert "losses" in {request.method for request in in_two.requests if hasattr(request, "method")}


def test_a_diverging_run_ends_in_the_same_round(in_two):
    trial = TRIAL | {"algorithm": "fedavg", "local": TRIAL["local"] | {"lr": 1e200}}
    assert in_two(trial).diverged == simulate(trial).diverged is not None


FAILING = """
import os
from torch import nn

class Failing(nn.Linear):
    def forward(self, images):
        if os.environ.get("RANK") == "1" and self.training:
            raise ArithmeticError("only in the peer")
        return super().forward(images.flatten(1))

def network(shape, classes):
    return Failing(64, classes)
"""


def test_a_peer_that_fails_ends_the_run_with_its_traceback(in_two, tmp_path):
    (tmp_path / "own.py").write_text(FAILING)
    trial = TRIAL | {"algorithm": "fedavg", "task": TRIAL["task"] | {"model": f"{tmp_path}/own.py:network"}}
    with pytest.raises(PeerFailed, match=r"^process 1 of 2 failed: ArithmeticError: only in the peer$") as raised:
        in_two(trial)
    assert f'{tmp_path}/own.py", line 8, in forward' in "".join(traceback.format_exception(raised.value))
    compare(in_two, TRIAL | {"algorithm": "fedavg", "rounds": 1})  # the peer is still there


class Steps:
    """An engine whose clients take 1, 5, 1, 3, 1 steps; it adds 1 to every starting point."""

    momentum = None

    def round(self, t, lr, momentum=None):
        return self

    def steps_of(self, clients):
        return torch.tensor([1, 5, 1, 3, 1])[clients]

    def sgd(self, clients, start):
        return start + 1


class Recorded(Peers):
    """Stands in for two peers, which add 1 too."""

    def __init__(self):
        self.size = 3
        self.asked = {}

    def ask(self, rank, request, tensors=()):
        self.asked[rank] = tensors[0].expand(len(request.clients), -1)
        self.sent = [tuple(tensor.shape) for tensor in tensors]

    def answer(self, rank):
        return [], [self.asked[rank] + 1]


def work():
    task, _ = quadratic(0, targets=np.zeros((5, 2)))
    engine = distributed.Distributed(Steps(), FlatTask(task), Recorded())
    return engine.round(0, 0.1), engine.peers


def test_steps_are_shared_evenly_and_a_client_keeps_its_process():
    shared, _ = work()
    assert isinstance(shared, DistributedWork)
    places = shared._places(torch.arange(5), [0, 1, 2, 3, 4])
    assert places == {0: [1], 1: [3], 2: [0, 2, 4]}  # 5, 3, and three times 1 steps
    assert shared._places(torch.tensor([3, 4, 1]), [3, 4, 1]) == {1: [0], 2: [1], 0: [2]}


def test_a_common_vector_is_sent_once():
    shared, peers = work()
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(shared.sgd(torch.arange(5), x.expand(5, 2)), torch.tensor([[2.0, 3.0]] * 5))
    assert peers.sent == [(1, 2)]
    assert [part({"x": torch.eye(3)}, [2, 0])["x"].tolist()] == [[[0, 0, 1], [1, 0, 0]]]


def test_a_table_of_momentum_has_the_rows_of_one_call():
    table = MomentumRows()
    table.rows = torch.eye(2)
    assert table.put(torch.tensor([4, 9]), 2 * table[torch.tensor([4, 9])]) is table
    assert isinstance(table, Rows)
    assert torch.equal(table.rows, 2 * torch.eye(2))
