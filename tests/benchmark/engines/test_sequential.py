"""The sequential engine against plain PyTorch: a module of its own for each client, and torch.optim.SGD."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from rollcall.algorithms import LocalWork
from rollcall.benchmark.engines import Feed, FlatTask, LocalTraining, Sequential
from rollcall.tasks import Minibatches, digits
from rollcall.tasks.base import Task
from rollcall.tasks.partitions import Parts

STEPS, LR, T = 4, 0.1, 3


class Normalising(Task):
    """A task with BatchNorm, a constant buffer, and a parameter that its loss does not use."""

    def __init__(self):
        super().__init__(lr=0.1)
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
        self.idle = nn.Parameter(torch.ones(2))
        self.register_buffer("constant", torch.tensor(2.0), persistent=False)

    def loss(self, batch):
        x, y = batch
        return (self.network(x).squeeze(-1) * self.constant - y).square().mean()

    def metrics(self, batch):
        return {"loss": self.loss(batch)}


@pytest.fixture
def rig():
    """A work of round T, its model, and the batches of a client's steps."""
    task, data = digits(0, clients=6, partition=lambda labels, m, seed: ragged(labels, m))
    task = task.double()
    minibatches = Minibatches(data.parts, 32, seed=0)
    work = Sequential(FlatTask(task), Feed(task, data.splits["train"], minibatches), LocalTraining(STEPS)).round(T, LR)

    def batch(client, step):
        rows = torch.from_numpy(minibatches.rows(client, T * STEPS + step))
        return tuple(column[rows] for column in data.splits["train"])

    return work, task, batch


def ragged(labels, m):
    """Clients with 5, 15, 45, ... samples."""
    bounds = 5 * np.cumsum(3 ** np.arange(m - 1))
    return Parts(np.split(np.arange(len(labels)), np.minimum(bounds, len(labels) - 5)), np.full((m, 10), 0.1))


def train_plainly(task, start, batches, lr, correction=None):
    """SGD on a copy of the task, as anyone would write it."""
    model = copy.deepcopy(task)
    nn.utils.vector_to_parameters(start.clone(), model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for batch in batches:
        optimizer.zero_grad()
        loss = model.loss(batch)
        if correction is not None:
            loss = loss + (correction * nn.utils.parameters_to_vector(model.parameters())).sum()
        loss.backward()
        optimizer.step()
    return model


def vector(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def test_it_is_what_algorithms_ask_for(rig):
    assert isinstance(rig[0], LocalWork)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("corrected", [False, True])
def test_sgd(rig, scaled, corrected):
    work, task, batch = rig
    clients = torch.tensor([0, 2, 5])
    draw = torch.Generator().manual_seed(1)
    start = vector(task) + 0.1 * torch.randn(3, len(vector(task)), generator=draw, dtype=torch.float64)
    scale = torch.tensor([0.5, 3.0, 1.5], dtype=torch.float64) if scaled else None
    correct = 0.01 * torch.randn(start.shape, generator=draw, dtype=torch.float64) if corrected else None
    given = start.clone()
    ends = work.sgd(clients, start, scale=scale, correct=correct)
    assert torch.equal(start, given)
    for row, client in enumerate(clients.tolist()):
        batches = [batch(client, step) for step in range(STEPS)]
        lr = LR * (scale[row].item() if scaled else 1.0)
        expected = vector(train_plainly(task, start[row], batches, lr, correct[row] if corrected else None))
        assert (ends[row] - expected).abs().max() < 1e-10
        assert (ends[row] - start[row]).abs().max() > 1e-3


def test_gradients(rig):
    work, task, batch = rig
    clients = torch.tensor([1, 4])
    x = vector(task) + torch.tensor([[0.0], [0.1]], dtype=torch.float64)
    gradients, losses = work.gradients(clients, x, 2)
    for row, client in enumerate(clients.tolist()):
        model = train_plainly(task, x[row], [], LR)
        loss = model.loss(batch(client, 2))
        loss.backward()
        assert losses[row].item() == pytest.approx(loss.item(), rel=1e-12)
        expected = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        assert (gradients[row] - expected).abs().max() < 1e-12


def test_starting_points_may_share_memory(rig):
    work, task, _ = rig
    x = vector(task)
    shared = work.sgd(torch.tensor([0, 1]), x.expand(2, -1))
    assert torch.equal(shared, work.sgd(torch.tensor([0, 1]), x.repeat(2, 1)))


def test_nobody_is_a_valid_set_of_clients(rig):
    work, task, _ = rig
    x = vector(task)
    nobody = torch.empty(0, dtype=torch.int64)
    assert work.sgd(nobody, x.expand(0, -1)).shape == (0, len(x))
    gradients, losses = work.gradients(nobody, x.expand(0, -1), 0)
    assert gradients.shape == (0, len(x))
    assert losses.shape == (0,)


def test_batchnorm_statistics_belong_to_their_client():
    task = Normalising()
    samples = (torch.randn(12, 3, generator=torch.Generator().manual_seed(3)), torch.arange(12.0))
    minibatches = Minibatches([np.arange(6), np.arange(6, 12)], 3, seed=0)
    work = Sequential(FlatTask(task), Feed(task, samples, minibatches), LocalTraining(STEPS)).round(0, 0.01)
    x = vector(task)
    ends = work.sgd(torch.tensor([0, 1]), x.expand(2, -1))
    assert work.model.buffer_names == [
        "network.1.running_mean",
        "network.1.running_var",
        "network.1.num_batches_tracked",
    ]
    assert not task.network[1].running_mean.any()  # the server's own have not moved
    for client in (0, 1):
        batches = [tuple(column[minibatches.rows(client, step)] for column in samples) for step in range(STEPS)]
        plain = train_plainly(task, x, batches, 0.01)
        assert torch.allclose(ends[client], vector(plain), atol=1e-6)
        norm = plain.network[1]
        for found, expected in zip(
            work.buffers(torch.tensor([client])),
            (norm.running_mean, norm.running_var, norm.num_batches_tracked),
            strict=True,
        ):
            assert torch.allclose(found, expected.double())


class Images(Task):
    """Any network on 4 x 4 images with two channels."""

    def __init__(self, network):
        super().__init__(lr=0.1)
        self.network = network

    def loss(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.network(x), y)

    def metrics(self, batch):
        return {"loss": self.loss(batch)}


class Viewing(nn.Module):
    """Flattens by `view`, which wants the channels of an image apart."""

    def forward(self, x):
        return x.view(len(x), -1)


def images(*layers, workers=1):
    """An engine for three clients with uneven data, and what it was made of."""
    torch.manual_seed(1)
    task = Images(nn.Sequential(*layers)).double()
    samples = (torch.randn(20, 2, 4, 4, dtype=torch.float64), torch.arange(20) % 3)
    minibatches = Minibatches(np.split(np.arange(20), [3, 8]), 4, seed=0)
    engine = Sequential(FlatTask(task), Feed(task, samples, minibatches), LocalTraining(STEPS), workers)
    return engine, task, samples, minibatches


def convolution():
    return [nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]


@pytest.mark.parametrize(("flatten", "channels_last"), [(nn.Flatten(), True), (Viewing(), False)])
def test_the_layout_of_images_changes_nothing_and_suits_the_model(flatten, channels_last):
    engine, task, samples, minibatches = images(*convolution(), flatten, nn.Linear(12, 3))
    assert engine.channels_last == channels_last
    assert engine.batch(0, 0)[0].is_contiguous(memory_format=torch.channels_last) == channels_last
    x = vector(task)
    ends = engine.round(0, LR).sgd(torch.arange(3), x.expand(3, -1))
    for client in range(3):
        batches = [tuple(column[minibatches.rows(client, step)] for column in samples) for step in range(STEPS)]
        assert (ends[client] - vector(train_plainly(task, x, batches, LR))).abs().max() < 1e-12
    assert torch.equal(vector(task), x)


@pytest.mark.parametrize("normalised", [False, True])
def test_results_do_not_depend_on_the_number_of_threads(normalised, monkeypatch):
    norm = [nn.BatchNorm2d(2)] if normalised else []
    monkeypatch.setattr("rollcall.benchmark.engines.sequential.WORTH_A_THREAD", 0.0)
    clients, found = torch.arange(3), []
    for threads in (1, 2, 3):
        torch.manual_seed(0)
        engine, task, _, _ = images(*norm, *convolution(), nn.Flatten(), nn.Linear(12, 3), workers=threads)
        assert engine.threads == threads
        x = vector(task).repeat(3, 1)
        work = engine.round(T, LR)
        found.append([*work.gradients(clients, x, 1), work.sgd(clients, x), *(work.buffers(clients) or ())])
    assert len(found[0]) == (6 if normalised else 3)
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))


def test_a_short_step_stays_in_one_thread():
    assert images(nn.Flatten(), nn.Linear(32, 3))[0].threads == 1


def test_an_error_in_a_thread_comes_out(monkeypatch):
    monkeypatch.setattr("rollcall.benchmark.engines.sequential.WORTH_A_THREAD", 0.0)
    engine, task, samples, _ = images(nn.Flatten(), nn.Linear(32, 3), workers=2)
    assert engine.threads == 2
    samples[1].fill_(7)  # no such class
    with pytest.raises(IndexError, match="out of bounds"):
        engine.round(0, LR).sgd(torch.arange(3), vector(task).repeat(3, 1))


def test_dropout_follows_client_and_step_and_leaves_torch_alone(monkeypatch):
    monkeypatch.setattr("rollcall.benchmark.engines.sequential.WORTH_A_THREAD", 0.0)
    engine, task, _, _ = images(nn.Flatten(), nn.Dropout(0.5), nn.Linear(32, 3))
    assert engine.threads == 1
    assert not images(nn.Flatten(), nn.Linear(32, 3))[0].draws
    x = vector(task).repeat(3, 1)
    state = torch.get_rng_state()
    ends = engine.round(0, LR).sgd(torch.arange(3), x)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(99)
    for client in (2, 0):  # alone and in another order
        assert torch.equal(engine.round(0, LR).sgd(torch.tensor([client]), x[:1])[0], ends[client])
    # One sample a client: what differs between the gradients of two steps, or of two clients, is what was dropped.
    engine.feed.samples = tuple(column[:1].expand(20, *column.shape[1:]) for column in engine.feed.samples)
    work = engine.round(0, LR)
    step_0, step_1 = (work.gradients(torch.arange(3), x, step)[0][:, :32] for step in (0, 1))
    kept = [(gradient != 0).tolist() for gradient in (step_0[0], step_0[1], step_1[0])]
    assert kept[0] != kept[1] != kept[2] != kept[0]
