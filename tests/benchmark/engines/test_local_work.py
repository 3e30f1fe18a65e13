"""The local work of both engines, against plain PyTorch and against counts by hand: uneven clients, BatchNorm."""

from functools import partial

import numpy as np
import pytest
import torch
from engine_rigs import LR, WRAPS, Normalising, T, by_torch, rigs
from torch import nn
from torch.optim import SGD

from rollcall.algorithms import LocalWork, Rows
from rollcall.benchmark.engines import Feed, FlatTask, LocalTraining, Sequential, Vectorised, held_out_splits
from rollcall.tasks import Minibatches, leaf_synthetic

STEPS = np.array([2, 6, 1, 10, 6, 4])
OPTIMIZERS = {
    "sgd": (LocalTraining(STEPS), SGD),
    "momentum": (LocalTraining(STEPS, momentum=0.9), partial(SGD, momentum=0.9)),
    "decay": (LocalTraining(STEPS, weight_decay=0.3), partial(SGD, weight_decay=0.3)),
    "both": (LocalTraining(STEPS, 0.9, 0.3), partial(SGD, momentum=0.9, weight_decay=0.3)),
}


@pytest.mark.parametrize(
    ("name", "changed", "wrap"),
    [("sgd", True, "batchnorm"), ("both", True, "plain"), ("momentum", False, "plain"), ("decay", False, "plain")],
)
def test_local_steps(name, changed, wrap):
    local, make = OPTIMIZERS[name]
    sequential, vectorised, x = rigs(local=local, wrap=WRAPS[wrap])
    clients = torch.tensor([3, 0, 4, 1, 5])
    draw = torch.Generator().manual_seed(1)
    start = x + 0.1 * torch.randn(5, len(x), generator=draw, dtype=torch.float64)
    correct = 0.02 * torch.randn(start.shape, generator=draw, dtype=torch.float64) if changed else None
    scale = torch.tensor([0.5, 3.0, 1.5, 0.0, 0.2], dtype=torch.float64) if changed else None
    before = start.clone()
    ends = [work.sgd(clients, start, correct=correct, scale=scale) for work in (sequential, vectorised)]
    assert torch.equal(start, before)
    for row, client in enumerate(clients.tolist()):
        lr, correction = (LR * scale[row].item(), correct[row]) if changed else (LR, None)
        model = by_torch(sequential, make, start[row], client, lr, correction)
        expected = nn.utils.parameters_to_vector(model.parameters()).detach()
        learnt = [model.get_buffer(buffer).double() for buffer in sequential.model.buffer_names]
        assert (expected - start[row]).abs().max() > 1e-3 or lr == 0
        for work, end in zip((sequential, vectorised), ends, strict=True):
            assert (end[row] - expected).abs().max() < 1e-10
            for mean, buffer in zip(work.buffers(clients[row : row + 1]), learnt, strict=True):
                assert torch.allclose(mean, buffer, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("batch_size", "wrap"), [(16, "batchnorm"), (3, "plain"), ("full", "plain")])
def test_gradients_have_the_weight_decay_and_losses_have_not(wrap, batch_size):
    works = rigs(batch_size, LocalTraining(STEPS, weight_decay=0.3), WRAPS[wrap])[:2]
    clients, x = torch.tensor([1, 4, 5]), works[0].model.vector()
    at = x + torch.tensor([[0.0], [0.1], [-0.1]], dtype=torch.float64)
    for step in (2, 0):
        found = [work.gradients(clients, at, step) for work in works]
        for row, client in enumerate(clients.tolist()):
            model = by_torch(works[0], SGD, at[row], client, lr=0.0)
            model.zero_grad()
            loss = model.loss(works[0].feed.batch(client, int(STEPS[client]) * T + step))
            loss.backward()
            pieces = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
            expected = torch.cat([piece.flatten() for piece in pieces]) + 0.3 * at[row]
            for gradients, losses in found:
                assert losses[row].item() == pytest.approx(loss.item(), rel=1e-10)
                assert (gradients[row] - expected).abs().max() < 1e-10


def test_no_client_is_a_valid_set_of_clients():
    *works, x = rigs(wrap=WRAPS["batchnorm"])
    nobody = torch.empty(0, dtype=torch.int64)
    for work in works:
        assert isinstance(work, LocalWork)
        assert work.sgd(nobody, x.expand(0, -1)).shape == (0, len(x))
        gradients, losses = work.gradients(nobody, x.expand(0, -1), 0)
        assert gradients.shape == (0, len(x))
        assert losses.shape == (0,)
        assert not work.buffers(nobody)


def test_buffers_follow_all_that_a_client_computes():
    sequential, vectorised, x = rigs(wrap=WRAPS["batchnorm"])
    everyone = torch.arange(6)
    for work in (sequential, vectorised):
        assert work.buffers(everyone) is None
        ends = work.sgd(everyone[1:4], x.expand(3, -1))
        work.gradients(everyone[2:], ends[[0, 1, 2, 2]], 3)
        tracked = [work.buffers(everyone[client : client + 1])[2].item() for client in range(1, 6)]
        assert tracked == [5, 6, 6, 1, 1]
        assert work.buffers(everyone[:1]) is None
    for one, other in zip(vectorised.buffers(everyone), sequential.buffers(everyone), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)
    norm = vectorised.engine.model.task.network[1]
    assert not norm.running_mean.any()  # the server's own have not moved, neither by work nor by trying
    assert norm.num_batches_tracked == 0


@pytest.fixture(params=[Sequential, Vectorised])
def leaf(request):
    """A work of logistic regressions whose clients hold out samples, the data, and the model for three clients."""
    task, data = leaf_synthetic(0, clients=5, validation=0.2)
    task = task.double()
    data.splits = {name: (x.double(), y) for name, (x, y) in data.splits.items()}
    splits = held_out_splits(data, torch.device("cpu"))
    feed = Feed(task, data.splits["train"], Minibatches(data.parts, 16, seed=0), splits)
    engine = request.param(FlatTask(task), feed, LocalTraining(np.array([3, 1, 2, 1, 1])))
    return engine.round(0, 0.1), data, FlatTask(task).vector().expand(3, -1)


def test_losses_on_held_out_samples(leaf):
    work, data, x = leaf
    x = x + torch.tensor([[0.0], [0.3], [-0.2]], dtype=torch.float64)
    clients = torch.tensor([4, 0, 2])
    for split in ("validation", "test"):
        features, labels = data.splits[split]
        losses = work.losses(clients, x, split)
        for row, client in enumerate(clients.tolist()):
            W, b = x[row][:600].view(10, 60), x[row][600:]
            mine = torch.from_numpy(data.owner(split) == client)
            logits = features[mine] @ W.T + b
            picked = logits[torch.arange(int(mine.sum())), labels[mine]]
            assert losses[row].item() == pytest.approx((logits.logsumexp(1) - picked).mean().item(), rel=1e-10)
        same = work.losses(clients, x[:1].expand(3, -1), split)
        assert same[0] == work.losses(clients[:1], x[:1], split)[0]
    with pytest.raises(ValueError, match="losses: 'train' is not allowed with this task; must be validation, test"):
        work.losses(clients, x, "train")


def test_gradients_are_counted_and_losses_are_noted(leaf):
    work, _, x = leaf
    clients = torch.tensor([0, 2])
    _, losses = work.gradients(clients, x[:2], 0)
    assert work.gradient_count == 2
    held_out = work.losses(clients[1:], x[:1], "validation")
    assert work.gradient_count == 2  # a loss on held-out samples needs no gradient
    work.sgd(clients, x[:2])
    assert work.gradient_count == 2 + 3 + 2
    assert [call.tolist() for call in work.loss_calls] == [losses.tolist(), held_out.tolist()]
    assert work.steps == 3
    assert work.steps_of(clients).tolist() == [3, 2]


def test_each_call_in_a_round_starts_from_the_momentum_before_it():
    local = LocalTraining(2, momentum=0.9, keep_momentum=True)
    size = len(rigs(local=local)[2])
    for work in rigs(local=local, momentum=Rows.begin(torch.zeros(size, dtype=torch.float64), 6))[:2]:
        clients, x = torch.tensor([1, 3]), work.model.vector().expand(2, -1)
        first, kept = work.sgd(clients, x), work.momentum[clients]
        assert kept.any()
        assert torch.equal(work.sgd(clients, x), first)
        assert torch.equal(work.momentum[clients], kept)


def test_losses_leave_the_statistics_of_batchnorm():
    for work in rigs(wrap=lambda task: Normalising(task, dropout=0.0))[:2]:
        model, samples = work.model, work.feed.samples
        work.feed.held_out = {"validation": (samples, work.feed.minibatches.parts)}
        before = [buffer.clone() for buffer in model.buffers_()]
        clients, x = torch.arange(3), model.vector().expand(3, -1)
        losses = work.losses(clients, x, "validation")
        assert all(map(torch.equal, before, model.buffers_()))
        model.task.eval()
        rows = work.feed.minibatches.parts
        expected = [model.task.loss(tuple(column[rows[i]] for column in samples)).item() for i in range(3)]
        assert losses.tolist() == expected


def test_losses_at_models_that_differ():
    for work in rigs()[:2]:
        work.feed.held_out = {"validation": (work.feed.samples, work.feed.minibatches.parts)}
        x = work.model.vector()
        clients, at = torch.tensor([4, 0, 2]), x + 0.1 * torch.randn(3, len(x), dtype=torch.float64)
        together = work.losses(clients, at, "validation")
        alone = [work.losses(clients[row : row + 1], at[row : row + 1], "validation").item() for row in range(3)]
        assert together.tolist() == alone
