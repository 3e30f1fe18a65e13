"""A task as a flat vector, against torch's own functions."""

import torch
from torch import nn

from rollcall.benchmark.engines import FlatTask
from rollcall.benchmark.engines.flat_task import in_channels_last
from rollcall.tasks import Task


class Norm(Task):
    def __init__(self):
        super().__init__(lr=0.1)
        self.network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        self.register_buffer("constant", torch.ones(4), persistent=False)

    def loss(self, batch):
        return self.network(batch[0]).sum()

    def metrics(self, batch):
        return {"loss": self.loss(batch)}


def test_a_vector_goes_in_and_out():
    task = Norm()
    model = FlatTask(task)
    assert torch.equal(model.vector(), nn.utils.parameters_to_vector(task.parameters()).detach())
    model.move(torch.arange(15.0))
    assert task.network[0].weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert task.network[1].bias.tolist() == [12, 13, 14]
    assert [tuple(piece.shape) for piece in model.split(torch.arange(15.0))] == [(3, 2), (3,), (3,), (3,)]


def test_learnt_buffers_are_those_of_batchnorm_not_constants():
    names = ["network.1.running_mean", "network.1.running_var", "network.1.num_batches_tracked"]
    assert FlatTask(Norm()).buffer_names == names


def test_only_images_change_their_layout():
    images, labels = torch.rand(2, 3, 4, 5), torch.arange(2)
    converted, same = in_channels_last((images, labels))
    assert converted.stride() == (60, 1, 15, 3)
    assert torch.equal(converted, images)
    assert same is labels
