"""The vectorised engine against the sequential one, which has tests of its own."""

import numpy as np
import torch
from engine_rigs import STEPS, WRAPS, Standardising, rigs
from torch.utils._python_dispatch import TorchDispatchMode

from rollcall.benchmark.engines import LocalTraining


def test_memory_decides_only_how_many_are_computed_at_once():
    _, roomy, x = rigs()
    engine = roomy.engine
    each = engine.bytes_of_client + 16 * (engine.bytes_of_pass + STEPS * engine.bytes_of_sample)
    clients, draw = torch.arange(6), torch.Generator().manual_seed(2)
    start, correct = x + 0.1 * torch.randn(2, 6, len(x), generator=draw, dtype=torch.float64)
    options = {"scale": torch.linspace(0.5, 2.0, 6, dtype=torch.float64), "correct": correct - x}
    whole = roomy.sgd(clients, start, **options)
    assert len(list(engine._chunks(list(range(6)), STEPS))) == 1
    for fitting, parts in ((2, 3), (4, 2), (0, 6)):
        _, tight, _ = rigs()
        tight.engine.memory = fitting * each
        assert len(list(tight.engine._chunks(list(range(6)), STEPS))) == parts
        assert (tight.sgd(clients, start, **options) - whole).abs().max() < 1e-12
        gradients, losses = tight.gradients(clients, start, 1)
        expected, expected_losses = roomy.gradients(clients, start, 1)
        assert (gradients - expected).abs().max() < 1e-12
        assert (losses - expected_losses).abs().max() < 1e-12


def test_a_loss_whose_samples_depend_on_each_other_is_not_padded():
    sequential, vectorised, x = rigs(wrap=Standardising, batch_size=16)
    clients = torch.tensor([1, 2, 4])
    ends, expected = (work.sgd(clients, x.expand(3, -1)) for work in (vectorised, sequential))
    assert (ends - expected).abs().max() < 1e-10


K = np.array([1, 4, 2, 7, 3, 1])


def test_a_client_that_is_done_stays_while_others_go_on():
    sequential, vectorised, x = rigs(local=LocalTraining(K, momentum=0.9, weight_decay=0.01), wrap=WRAPS["batchnorm"])
    # Nine clients would be padded to ten. Here the clients with steps left are padded with those that are done.
    vectorised.engine.padded_number = lambda clients: clients + 1 if vectorised.engine.padding else clients
    clients = torch.tensor([3, 0, 5, 1, 4])
    start = x + 0.01 * torch.arange(5, dtype=x.dtype)[:, None]
    correct = 0.01 * torch.ones_like(start)
    ends, expected = (work.sgd(clients, start, correct=correct) for work in (vectorised, sequential))
    assert (ends - expected).abs().max() < 1e-9
    assert (ends - start).abs().amax(dim=1).min() > 1e-3


def test_stacked_minibatches_are_those_of_the_feed_bit_for_bit():
    sequential, vectorised, _ = rigs()
    feed, clients, first = sequential.feed, torch.tensor([5, 0, 2]), 7
    stacked = vectorised.feed.stacked(clients.tolist(), [first] * 3, 4)
    short = 0
    for k in range(4):
        batch, weights = [column[k] for column in stacked.samples], stacked.weights[k]
        for row, client in enumerate(clients.tolist()):
            expected = feed.batch(client, first + k)
            n = len(expected[0])
            for column, values in zip(batch, expected, strict=True):
                assert torch.equal(column[row, :n], values)
            assert weights[row].tolist() == [1 / n] * n + [0.0] * (16 - n)
            short += n < 16
        for members, alike in stacked.by_length(k):
            for i, row in enumerate(members.tolist()):
                expected = feed.batch(clients[row].item(), first + k)
                assert all(torch.equal(column[i], values) for column, values in zip(alike, expected, strict=True))
    assert 4 < short < 12


class Waits(TorchDispatchMode):
    """Counts what makes a host wait for a GPU: values that Python reads, and shapes that depend on values."""

    WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero")

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        self.count += operator.__name__.partition(".")[0].lstrip("_") in {name.lstrip("_") for name in self.WAITING}
        return operator(*arguments, **(options or {}))


def test_the_host_reads_nothing_but_who_is_asked(monkeypatch):
    _, work, x = rigs(wrap=WRAPS["batchnorm"])
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
