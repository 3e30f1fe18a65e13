"""What a round's local work counts, and the losses that it notes: against counts by hand."""

import numpy as np
import pytest
import torch

from rollcall.benchmark.engines import Feed, FlatTask, LocalTraining, Sequential, Vectorised, held_out_splits
from rollcall.tasks import Minibatches, leaf_synthetic

CLIENTS = torch.tensor([0, 2])


@pytest.fixture(params=[Sequential, Vectorised])
def work_and_model(request):
    task, data = leaf_synthetic(0, clients=3, validation=0.2)
    task = task.double()
    data.splits = {name: (x.double(), y) for name, (x, y) in data.splits.items()}
    feed = Feed(
        task, data.splits["train"], Minibatches(data.parts, 16, seed=0), held_out_splits(data, torch.device("cpu"))
    )
    engine = request.param(FlatTask(task), feed, LocalTraining(np.array([3, 1, 2])))
    return engine.round(0, 0.1), FlatTask(task).vector().expand(2, -1)


def test_gradients_are_counted_and_losses_are_noted(work_and_model):
    work, x = work_and_model
    _, losses = work.gradients(CLIENTS, x, 0)
    assert work.gradient_count == 2
    held_out = work.losses(CLIENTS[1:], x[1:], "validation")
    assert work.gradient_count == 2  # a loss on held-out samples needs no gradient
    assert [call.tolist() for call in work.loss_calls] == [losses.tolist(), held_out.tolist()]


def test_local_sgd_counts_the_steps_of_each_client(work_and_model):
    work, x = work_and_model
    work.sgd(CLIENTS, x)
    assert work.gradient_count == 3 + 2
    assert work.loss_calls == []
    assert work.steps == 3
    assert work.steps_of(CLIENTS).tolist() == [3, 2]
