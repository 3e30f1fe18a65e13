"""The vectorised engine against the sequential one, which is tested by itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import batch_norm, cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from algorithms import ALGORITHMS, LocalWork
from benchmark import SettingError, engines, simulate
from benchmark.engines import Feed, FlatTask, LocalTraining, Sequential, Vectorised, traced
from benchmark.engines.chunks import next_round_number
from benchmark.engines.loss_properties import Loss, activation_bytes, is_mean_of_samples
from benchmark.engines.stacked_minibatches import stack_minibatches
from tasks import AUGMENTATIONS, Minibatches, digits, ridge
from tasks.base import Task
from tasks.models import mlp
from tasks.partitions import Parts

STEPS, LR, T = 5, 0.1, 3
CROP = {"name": "crop_flip", "padding": 1}


def ragged(labels, m):
    """Clients with 5, 10, 20, ... samples: fewer than a minibatch, one and a bit, many."""
    bounds = 5 * np.cumsum(2 ** np.arange(m))
    return Parts(np.split(np.arange(bounds[-1]), bounds[:-1]), np.full((m, 10), 0.1))


def rigs(batch_size=16, local=LocalTraining(STEPS), wrap=lambda task: task, per="sample", momentum=None, **vectorised):  # noqa: B008
    """Works of round T by both engines, of the same augmented digits in float64, and the model."""
    found = []
    for engine in (Sequential, Vectorised):
        crop = lambda seed: AUGMENTATIONS["crop_flip"](seed, padding=1, per=per, fill="mean")  # noqa: E731
        task, data = digits(0, clients=6, augmentation=crop, partition=lambda labels, m, seed: ragged(labels, m))
        task = wrap(task).double()
        feed = Feed(task, data.splits["train"], Minibatches(data.parts, batch_size, seed=0))
        options = vectorised if engine is Vectorised else {}
        found.append(engine(FlatTask(task), feed, local, **options).round(T, LR, momentum))
    return *found, FlatTask(task).vector()


class Normalising(Task):
    """Digits through BatchNorm, with an idle parameter and a dropout or not."""

    def __init__(self, task, dropout=0.0):
        super().__init__(lr=0.1)
        torch.manual_seed(0)
        self.given = task
        self.network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 10))
        self.idle = nn.Parameter(torch.ones(2))
        self.dropout = dropout

    def augment(self, batch, keys):
        return self.given.augment(batch, keys)

    def loss(self, batch):
        logits = self.network(self.given.normalised(batch[0]))
        if self.dropout:
            logits = nn.functional.dropout(logits, self.dropout)
        return cross_entropy(logits, batch[1]) + self.given.loss(batch)

    def metrics(self, batch):
        return {"loss": self.loss(batch)}


class Standardising(Task):
    """Samples depend on each other although the model has no buffers."""

    def __init__(self, task):
        super().__init__(lr=0.1)
        self.given = task
        self.weights = nn.Parameter(torch.ones(10))

    def augment(self, batch, keys):
        return self.given.augment(batch, keys)

    def loss(self, batch):
        logits = batch_norm(self.given(batch[0]), None, None, self.weights, training=True)
        return cross_entropy(logits, batch[1])

    def metrics(self, batch):
        return {"loss": self.loss(batch)}


WRAPS = {"plain": lambda task: task, "batchnorm": Normalising}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("batch_size", [16, "full"])
@pytest.mark.parametrize(("scaled", "corrected"), [(False, False), (True, False), (False, True), (True, True)])
def test_sgd(wrap, batch_size, scaled, corrected):
    sequential, vectorised, x = rigs(batch_size, wrap=WRAPS[wrap])
    assert isinstance(vectorised, LocalWork)
    clients = torch.tensor([4, 0, 1, 5, 3])
    draw = torch.Generator().manual_seed(1)
    start = x + 0.1 * torch.randn(5, len(x), generator=draw, dtype=torch.float64)
    options = {}
    if scaled:
        options["scale"] = torch.tensor([0.5, 3.0, 1.5, 0.0, -1.0], dtype=torch.float64)
    if corrected:
        options["correct"] = 0.01 * torch.randn(start.shape, generator=draw, dtype=torch.float64)
    given = start.clone()
    ends, expected = (work.sgd(clients, start, **options) for work in (vectorised, sequential))
    assert torch.equal(start, given)
    assert (ends - expected).abs().max() < 1e-10
    assert (ends - start)[:3].abs().amax(dim=1).min() > 1e-2
    for one, other in zip(vectorised.buffers(clients[:3]), sequential.buffers(clients[:3]), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("batch_size", [16, 3, "full"])
def test_gradients_and_losses(wrap, batch_size):
    sequential, vectorised, x = rigs(batch_size, wrap=WRAPS[wrap])
    clients = torch.tensor([1, 4, 5])
    at = x + torch.tensor([[0.0], [0.1], [-0.1]], dtype=torch.float64)
    for step in (2, 0):
        gradients, losses = vectorised.gradients(clients, at, step)
        expected, expected_losses = sequential.gradients(clients, at, step)
        assert (gradients - expected).abs().max() < 1e-10
        assert (losses - expected_losses).abs().max() < 1e-10
        assert expected.abs().amax(dim=1).min() > 1e-2


def test_buffers_follow_all_that_a_client_computes():
    sequential, vectorised, x = rigs(wrap=Normalising)
    everyone = torch.arange(6)
    for work in (sequential, vectorised):
        assert work.buffers(everyone) is None
        ends = work.sgd(everyone[1:4], x.expand(3, -1))
        work.gradients(everyone[2:], ends[[0, 1, 2, 2]], 3)
    for client in range(1, 6):
        one, other = (work.buffers(everyone[client : client + 1]) for work in (vectorised, sequential))
        assert [mean.item() for mean in (one[2], other[2])] == [
            6.0 if 2 <= client < 4 else 5.0 if client == 1 else 1.0
        ] * 2
        assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(one, other, strict=True))
    assert vectorised.buffers(everyone[:1]) is None
    for one, other in zip(vectorised.buffers(everyone), sequential.buffers(everyone), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)
    norm = vectorised.engine.model.task.network[1]
    assert not norm.running_mean.any()  # the server's own have not moved, neither by work nor by trying
    assert norm.num_batches_tracked == 0


@pytest.mark.parametrize("wrap", WRAPS)
def test_memory_decides_only_how_many_are_computed_at_once(wrap):
    _, roomy, x = rigs(wrap=WRAPS[wrap])
    engine = roomy.engine
    each = engine.chunk_size.bytes_per_client + 16 * (
        engine.chunk_size.bytes_per_sample + STEPS * engine.chunk_size.bytes_per_step_sample
    )
    clients, draw = torch.arange(6), torch.Generator().manual_seed(2)
    start, correct = x + 0.1 * torch.randn(2, 6, len(x), generator=draw, dtype=torch.float64)
    options = {"scale": torch.linspace(0.5, 2.0, 6, dtype=torch.float64), "correct": correct - x}
    whole = roomy.sgd(clients, start, **options)
    assert len(list(roomy._chunks(clients, STEPS))) == 1
    for fitting, parts in ((2, 3), (4, 2), (0, 6)):
        _, tight, _ = rigs(wrap=WRAPS[wrap], memory=fitting * each)
        assert len(list(tight._chunks(clients, STEPS))) == parts
        assert (tight.sgd(clients, start, **options) - whole).abs().max() < 1e-12
        gradients, losses = tight.gradients(clients, start, 1)
        expected, expected_losses = roomy.gradients(clients, start, 1)
        assert (gradients - expected).abs().max() < 1e-12
        assert (losses - expected_losses).abs().max() < 1e-12


def test_nobody_is_a_valid_set_of_clients():
    for wrap in WRAPS.values():
        _, work, x = rigs(wrap=wrap)
        nobody = torch.empty(0, dtype=torch.int64)
        assert work.sgd(nobody, x.expand(0, -1)).shape == (0, len(x))
        gradients, losses = work.gradients(nobody, x.expand(0, -1), 0)
        assert gradients.shape == (0, len(x))
        assert losses.shape == (0,)
        assert not work.buffers(nobody)


@pytest.mark.parametrize("per", ["sample", "minibatch"])
def test_a_deal_is_what_the_feed_gives_bit_for_bit(per):
    sequential, vectorised, _ = rigs(per=per)
    feed, clients, first = sequential.engine.feed, torch.tensor([5, 0, 2]), 7
    rows = [[feed.minibatches.rows(client, first + k) for k in range(4)] for client in clients.tolist()]
    dealt = stack_minibatches(vectorised.engine.feed, clients, [first] * 3, rows, torch.float64)
    seen = 0
    for k in range(4):
        batch, weights = dealt.padded(k)
        for row, client in enumerate(clients.tolist()):
            expected = feed.batch(client, first + k)
            n = len(expected[0])
            for column, theirs in zip(batch, expected, strict=True):
                assert torch.equal(column[row, :n], theirs)
            assert weights[row].tolist() == [1 / n] * n + [0.0] * (16 - n)
            seen += n < 16
        for members, alike in dealt.by_length(k):
            for i, row in enumerate(members.tolist()):
                expected = feed.batch(clients[row].item(), first + k)
                assert all(torch.equal(column[i], theirs) for column, theirs in zip(alike, expected, strict=True))
    assert 4 < seen < 12


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_recording_gives_the_same_bits(wrap, monkeypatch):
    clients, found = torch.tensor([5, 4, 3]), []
    for worth in (2, 10**9):
        monkeypatch.setattr(traced, "CALLS_BEFORE_TRACING", worth)
        _, work, x = rigs(wrap=WRAPS[wrap])
        ends = [work.sgd(clients, x.expand(3, -1)) for _ in range(3)]
        found.append([*ends, *work.buffers(clients)])
        kinds = sum(len(f.traces) for f in (work.engine.of_whole_batches, work.engine.of_padded_batches))
        assert (kinds > 0) == (worth == 2)
    assert all(map(torch.equal, *found))


def test_what_was_recorded_is_played_back(monkeypatch):
    monkeypatch.setattr(traced, "CALLS_BEFORE_TRACING", 2)
    calls = []

    def slope(x):
        calls.append(len(x))
        return torch.func.grad(lambda y: (y**3).sum())(x)

    played = traced.Traced(slope)
    for n in (2, 3, 2, 2, 3, 2):
        x = torch.arange(n, dtype=torch.float64)
        assert played(x).tolist() == [3.0 * i**2 for i in range(n)]
    assert calls == [2, 3, 2, 2, 3, 3]  # twice when it is traced, then no more
    assert played(torch.tensor([2.0])).dtype == torch.float32


def test_full_batches_are_dealt_once_a_round():
    task, data = ridge(0, clients=3, samples=7, dimension=2)
    parts = [np.arange(3), np.arange(3, 10), np.arange(10, 21)]
    feed = Feed(task.double(), data.splits["train"], Minibatches(parts, "full", seed=0))
    clients = torch.tensor([2, 0])
    dealt = stack_minibatches(feed, clients, [7, 7], [[parts[i]] * 4 for i in (2, 0)], torch.float64)
    assert all(len(column) == 4 and column.stride(0) == 0 for column in dealt.samples)
    for k in range(4):
        batch, weights = dealt.padded(k)
        assert dealt.lengths[k].tolist() == [11, 3]
        assert weights.tolist() == [[1 / 11] * 11, [1 / 3] * 3 + [0.0] * 8]
        for row, client in enumerate((2, 0)):
            for column, given in zip(batch, data.splits["train"], strict=True):
                assert torch.equal(column[row, : len(parts[client])], given[parts[client]])


def test_what_a_loss_depends_on_is_found_out():
    task, data = digits(0, clients=2)
    samples = tuple(column[:8] for column in data.splits["train"])
    assert is_mean_of_samples(Loss(task), samples)
    assert is_mean_of_samples(Loss(task.double()), samples)
    assert not is_mean_of_samples(Loss(Standardising(task)), samples)
    assert not is_mean_of_samples(Loss(Normalising(task)), samples)


def test_a_loss_whose_samples_depend_on_each_other_is_not_padded():
    sequential, vectorised, x = rigs(wrap=Standardising, batch_size=16)
    clients = torch.tensor([1, 2, 4])
    ends, expected = (work.sgd(clients, x.expand(3, -1)) for work in (vectorised, sequential))
    assert (ends - expected).abs().max() < 1e-10


def test_activations_of_two_layers():
    task, data = digits(0, clients=2, model=lambda shape, classes: mlp(shape, classes, hidden=[5]))
    samples = tuple(column[:8] for column in data.splits["train"])
    # The first layer's input, the second's, the logarithm of the softmax, the label, and one number of the batch;
    # not the second layer's weights, which are nobody's sample.
    assert activation_bytes(Loss(task), samples) == 4 * 64 + 4 * 5 + 4 * 10 + 8 + 4 // 8


def test_what_cannot_be_vectorised_is_refused_in_time():
    for wrap in (lambda task: Normalising(task, dropout=0.5), Peeking):
        with pytest.raises(SettingError, match=r"numerics.engine: 'vectorised' is not allowed .*; must be sequential"):
            rigs(wrap=wrap)


class Peeking(Standardising):
    """Its loss looks at a value on the host."""

    def loss(self, batch):
        logits = self.given(batch[0])
        return cross_entropy(logits * 2 if logits.sum().item() > 0 else logits, batch[1])


class Waits(TorchDispatchMode):
    """Counts what makes a host wait for a GPU: values that Python reads, and shapes that depend on values."""

    WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero")

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        self.count += operator.__name__.partition(".")[0].lstrip("_") in {name.lstrip("_") for name in self.WAITING}
        return operator(*arguments, **(options or {}))


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_host_reads_nothing_but_who_is_asked(wrap, monkeypatch):
    _, work, x = rigs(wrap=WRAPS[wrap])
    clients, read = torch.arange(6), []
    tolist = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", lambda tensor: read.append(tensor) or tolist(tensor))
    with Waits() as waits:
        work.sgd(clients, x.expand(6, -1), scale=torch.ones(6, dtype=torch.float64))
        for step in range(STEPS):
            work.gradients(clients, x.expand(6, -1), step)
        work.buffers(clients)
        assert waits.count == 0
        clients[0].item()
        assert waits.count == 1  # it would have been seen
    assert len(read) == 1
    assert read[0] is clients


def test_what_is_compiled_meets_few_shapes():
    shapes = []

    def compiler(gradients):
        def run(*tensors):
            assert all(tensor.is_contiguous() for tensor in tensors[-3:])  # images, labels and weights
            assert len({len(tensor) for tensor in tensors}) == 1
            shapes.append(tuple(tensors[-1].shape))
            return gradients(*tensors)

        return run

    for memory in (2**30, 2**17):
        sequential, vectorised, x = rigs(compiler=compiler, memory=memory)
        for clients in ([5], [0], [0, 1, 2, 3], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]):
            clients = torch.tensor(clients)
            start = x + 0.01 * torch.arange(len(clients))[:, None]
            assert (vectorised.sgd(clients, start) - sequential.sgd(clients, start)).abs().max() < 1e-10
            for one, other in zip(
                *(work.gradients(clients, start, 2) for work in (vectorised, sequential)), strict=True
            ):
                assert (one - other).abs().max() < 1e-10
        if memory == 2**30:
            assert set(shapes) == {(1, 16), (4, 16), (5, 16), (6, 16)}
    assert {length for _, length in shapes} == {16}
    sequential, vectorised, x = rigs("full", compiler=compiler)
    ends, expected = (work.sgd(torch.tensor([0, 2]), x.expand(2, -1)) for work in (vectorised, sequential))
    assert (ends - expected).abs().max() < 1e-10
    assert shapes[-1] == (2, 160)  # the largest client's


def test_round_numbers():
    found = [next_round_number(n, 100) for n in range(1, 101)]
    numbers = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 100]
    assert found == [next(number for number in numbers if number >= n) for n in range(1, 101)]


def test_as_many_at_once_as_fit_and_need_no_padding():
    _, work, _ = rigs()
    engine = work.engine
    each = engine.chunk_size.bytes_per_client + 16 * (
        engine.chunk_size.bytes_per_sample + STEPS * engine.chunk_size.bytes_per_step_sample
    )
    numbers = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96]
    for fitting in range(1, 101):
        engine.chunk_size.memory = fitting * each
        assert engine.chunk_size.clients(16, STEPS) == max(number for number in numbers if number <= fitting)


def test_a_loss_that_cannot_be_padded_is_not_compiled():
    for wrap in (Normalising, Standardising):
        with pytest.raises(
            SettingError, match=r"numerics.engine: 'compiled' is not allowed .* vectorised or sequential"
        ):
            rigs(wrap=wrap, compiler=lambda gradients: gradients)


COMPILED = """
import torch
from benchmark import simulate
from torch._dynamo.utils import counters
trial = {
    "task": {"name": "digits", "clients": 6, "model": "linear", "augmentation": "crop_flip"},
    "algorithm": "scaffold",
    "local": {"steps": 2, "lr": 0.05, "batch_size": 32},
    "rounds": 5,
}
models = [
    simulate(trial | {"numerics": {"dtype": "float64", "engine": engine}}).model for engine in ("sequential", "compiled")
]
print(abs(models[1] - models[0]).max(), counters["stats"]["unique_graphs"], len(counters["graph_break"]))
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler on a CPU")
def test_the_compiled_engine_is_equal():
    # In a process of its own, for the checks of annotations that run here cannot be compiled.
    environment = os.environ | {"PYTHONPATH": str(Path(engines.__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    error, graphs, breaks = done.stdout.split()
    assert float(error) < 1e-10
    assert (int(graphs), int(breaks)) == (1, 0)  # everybody answers, and a short minibatch takes no graph of its own


MASK = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 1], [1, 1, 1, 1, 1, 1]])
TRIAL = {
    "task": {
        "name": "digits",
        "clients": 6,
        "partition": {"name": "dirichlet", "alpha": 0.3},
        "augmentation": CROP,
        "model": {"name": "mlp", "hidden": [8]},
    },
    "participation": {
        "name": "trace",
        "mask": MASK,
        "probability": np.linspace(0.3, 0.9, 6),
        "stationary": np.linspace(0.3, 0.9, 6),
        "correlation": np.linspace(0.1, 0.5, 6),
    },
    "local": {"steps": 5, "lr": 0.05, "batch_size": 32},
    "rounds": 4,
    "evaluation": {"every": 1},
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_engines_are_equal_for_every_method(name):
    one_step = name in ("fedsgd", "fedsgd_iw")
    trial = TRIAL | {"algorithm": name, "local": TRIAL["local"] | ({"steps": 1} if one_step else {})}
    sequential, vectorised = (
        simulate(trial | {"numerics": {"dtype": "float64", "engine": engine}})
        for engine in ("sequential", "vectorised")
    )
    moved = np.abs(sequential.server - simulate(trial | {"rounds": 1, "local": trial["local"] | {"lr": 1e-12}}).server)
    assert moved.max() > 1e-3
    assert np.abs(vectorised.model - sequential.model).max() < 1e-10
    assert np.abs(vectorised.server - sequential.server).max() < 1e-10
    assert np.allclose(vectorised.history, sequential.history, rtol=0, atol=1e-10)
    assert vectorised.history.columns.equals(sequential.history.columns)


def test_engines_learn_the_same_in_float32():
    trial = TRIAL | {
        "task": {"name": "digits", "clients": 6, "partition": TRIAL["task"]["partition"], "augmentation": CROP},
        "participation": {"name": "bernoulli", "probability": 0.5},
        "algorithm": "fedavg",
        "local": {"steps": 5, "lr": 0.1, "batch_size": 16},
        "rounds": 50,
        "evaluation": {"every": 5, "splits": ["test"]},
    }
    sequential, vectorised = (
        simulate(trial | {"numerics": {"engine": engine}}).history["test/accuracy"]
        for engine in ("sequential", "vectorised")
    )
    assert sequential.max() > 0.5
    assert np.abs(vectorised - sequential).max() <= 0.01
