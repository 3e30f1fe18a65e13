"""The sequential engine: memory formats, threads, dropout. Its numbers are in `test_local_work.py`."""

import numpy as np
import pytest
import torch
from engine_rigs import Viewing, by_torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from rollcall.benchmark.engines import Feed, FlatTask, LocalTraining, Sequential
from rollcall.tasks import Minibatches
from rollcall.tasks.base import Task
from rollcall.tasks.streams import stream

STEPS, LR, T = 4, 0.1, 3


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


def images(*layers, workers=1, dtype=torch.float64):
    """An engine for three clients with uneven data, and what it was made of."""
    torch.manual_seed(1)
    task = Images(nn.Sequential(*layers)).to(dtype)
    samples = (torch.randn(20, 2, 4, 4, dtype=dtype), torch.arange(20) % 3)
    minibatches = Minibatches(np.split(np.arange(20), [3, 8]), 4, seed=0)
    engine = Sequential(FlatTask(task), Feed(task, samples, minibatches), LocalTraining(STEPS), workers)
    return engine, task, samples


def convolution():
    return [nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]


@pytest.mark.parametrize(("flatten", "channels_last"), [(nn.Flatten(), True), (Viewing(), False)])
def test_the_layout_of_images_changes_nothing_and_suits_the_model(flatten, channels_last):
    engine, task, _ = images(*convolution(), flatten, nn.Linear(12, 3))
    assert engine.channels_last == channels_last
    assert next(engine.batches(0, range(1)))[0].is_contiguous(memory_format=torch.channels_last) == channels_last
    x = parameters_to_vector(task.parameters())
    ends = engine.round(0, LR).sgd(torch.arange(3), x.expand(3, -1))
    for client in range(3):
        plain = by_torch(engine.round(0, LR), torch.optim.SGD, x, client, t=0)
        assert (ends[client] - parameters_to_vector(plain.parameters())).abs().max() < 1e-12
    assert torch.equal(parameters_to_vector(task.parameters()), x)


@pytest.mark.parametrize("normalised", [False, True])
def test_results_do_not_depend_on_the_number_of_threads(normalised, monkeypatch):
    norm = [nn.BatchNorm2d(2)] if normalised else []
    monkeypatch.setattr("rollcall.benchmark.engines.sequential.WORTH_A_THREAD", 0.0)
    clients, found = torch.arange(3), []
    for threads in (1, 2, 3):
        torch.manual_seed(0)
        engine, task, _ = images(*norm, *convolution(), nn.Flatten(), nn.Linear(12, 3), workers=threads)
        assert engine.threads == threads
        x = parameters_to_vector(task.parameters()).repeat(3, 1)
        work = engine.round(T, LR)
        found.append([*work.gradients(clients, x, 1), work.sgd(clients, x), *(work.buffers(clients) or ())])
    assert len(found[0]) == (6 if normalised else 3)
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))


def test_dropout_follows_client_and_step_and_leaves_torch_alone(monkeypatch):
    monkeypatch.setattr("rollcall.benchmark.engines.sequential.WORTH_A_THREAD", 0.0)
    engine, task, _ = images(nn.Flatten(), nn.Dropout(0.5), nn.Linear(32, 3))
    assert engine.threads == 1
    assert not images(nn.Flatten(), nn.Linear(32, 3))[0].draws
    x = parameters_to_vector(task.parameters()).repeat(3, 1)
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


class Elsewhere(torch.Tensor):
    """Samples that say they are on a GPU."""

    device = torch.device("cuda")
    __torch_function__ = torch._C._disabled_torch_function_impl  # what is computed from them is a plain tensor


class DropoutElsewhere(nn.Module):
    """Dropout whose random numbers come from the generator of a GPU; it notes them."""

    def __init__(self, generator, drawn):
        super().__init__()
        self.shared = generator, drawn

    def __deepcopy__(self, memo):
        return DropoutElsewhere(*self.shared)

    def forward(self, x):
        generator, drawn = self.shared
        drawn.append(torch.rand(x.shape, generator=generator))
        return 2 * x * (drawn[-1] < 0.5)


@pytest.fixture
def gpu(monkeypatch):
    """The generator of a GPU that torch seems to use."""
    generator = torch.Generator()
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.manual_seed_all", generator.manual_seed)
    monkeypatch.setattr("torch.cuda.get_rng_state", lambda device: generator.get_state())
    monkeypatch.setattr("torch.cuda.set_rng_state", lambda state, device: generator.set_state(state))
    monkeypatch.setattr("rollcall.benchmark.engines.feed.to_device", lambda array, device: torch.from_numpy(array))
    return generator


def test_dropout_on_a_gpu_follows_client_and_step_too(gpu):
    drawn = []
    task = Images(nn.Sequential(nn.Flatten(), DropoutElsewhere(gpu, drawn), nn.Linear(32, 3))).double()
    x = parameters_to_vector(task.parameters()).detach()
    samples = torch.randn(20, 2, 4, 4, dtype=torch.float64), torch.arange(20) % 3
    minibatches = Minibatches(np.split(np.arange(20), [3, 8]), 4, seed=7)
    state = gpu.get_state()
    feed = Feed(task, tuple(column.as_subclass(Elsewhere) for column in samples), minibatches)
    engine = Sequential(FlatTask(task), feed, LocalTraining(STEPS), workers=2)
    assert (engine.draws, engine.channels_last, engine.threads) == (True, False, 1)
    drawn.clear()
    everyone, first = torch.arange(3), 2 * STEPS  # of round 2
    ends = engine.round(2, LR).sgd(everyone, x.repeat(3, 1))
    engine.round(2, LR).gradients(everyone, x.repeat(3, 1), 1)
    assert torch.equal(state, gpu.get_state())
    keys = [(client, step) for client in range(3) for step in range(first, first + STEPS)]
    keys += [(client, first + 1) for client in range(3)]
    for mask, key in zip(drawn, keys, strict=True):
        seed = int(stream(7, "noise", *key).integers(2**63))
        assert torch.equal(mask, torch.rand(mask.shape, generator=torch.Generator().manual_seed(seed)))
    gpu.manual_seed(99)
    for client in (2, 0):  # alone and in another order
        assert torch.equal(engine.round(2, LR).sgd(torch.tensor([client]), x[None])[0], ends[client])


def test_copies_that_autocast_keeps_are_not_used_after_a_step():
    engine, task, _ = images(nn.Flatten(), nn.Linear(32, 3), dtype=torch.float32)
    x, ends = parameters_to_vector(task.parameters()).detach(), []
    for kept in (False, True):
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=kept):
            ends.append(engine.round(0, LR).sgd(torch.arange(3), x.expand(3, -1)))
    assert torch.equal(*ends)
